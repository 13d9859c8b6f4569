"""`make light`, as a new user does it: no compiler, half a gigabyte, and runs equal to the full installation's."""

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import every_eval_ever_records
import lm_eval_logs
import openai_batches
import processes
import pytest
import request_states_files
from request_states_files import answered, state

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_200),
    pytest.mark.nightly("requirements-light.txt", "src/helm_ext/cli"),
]

ROOT = Path(__file__).parents[2]
MEGABYTES = 490
LM_EVAL = "samples_lx_letters", "samples_lx_index"
SUITE = "benchmark_output/runs/score"
COMMANDS = (
    "score facts.csv --arg output=falcon+heron --arg by=subject",
    "score logprobs.json --model lab/sure",
    f"score {' '.join(LM_EVAL)} headline.eval",
    "score in.jsonl --arg gold=gold.json",
    "score eee",
    "score bundle.zip --arg replies=examples/innodata/replies.jsonl --model chatty",
    "score examples/ultraeval/logs/second-model/workshop_workshop_gen/instance.jsonl --model lab/second",
    f"compare {SUITE}",
    f"plan 0.03 --from {SUITE}",
    "validate facts.csv logprobs.json --lint",
    "preview logprobs.json",
    f"report {SUITE} --out report.html",
    f"export {SUITE} --to csv --out rows.csv",
    "convert facts.csv facts.jsonl",
    "requests out table:path=facts.csv --model lab/next --endpoint chat --out asked",
)
MISSING = {
    f"export {SUITE} --to parquet --out table.parquet": "pyarrow",
    "score rows.parquet": "pyarrow",
}
"""Commands that need more, and the package that they name."""


def write_inputs(folder: Path) -> None:
    folder.mkdir()
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copy(ROOT / "examples/tables/facts.csv", folder)
    for task in LM_EVAL:
        (folder / task).mkdir()
        shutil.copy(lm_eval_logs.samples(task.removeprefix("samples_")), folder / task)
        shutil.copy(lm_eval_logs.results(), folder / task)
    shutil.copy(ROOT / "tests/data/inspect/headlines/matched.eval", folder / "headline.eval")
    logprobs = [-(n + 1) / 9 for n in range(40)]
    completions = [
        {"text": str(n + n % 2), "logprob": logprob, "tokens": [{"text": "1", "logprob": logprob}]}
        for n, logprob in enumerate(logprobs)
    ]
    states = [answered(state(f"{n} + 1?", str(n + 1)), "", completions=[one]) for n, one in enumerate(completions)]
    request_states_files.write(folder / "logprobs.json", states)
    openai_batches.write_batch(
        folder,
        [openai_batches.request(key, f"{key}?") for key in "abc"],
        [openai_batches.result(key, key.upper()) for key in "abc"],
        {"a": "A", "b": "B", "c": "D"},
    )
    every_eval_ever_records.write(folder / "eee", [every_eval_ever_records.sample(key) for key in "abc"])
    (folder / "rows.parquet").write_bytes(b"PAR1")


def run(bin_folder: Path, folder: Path, given: str):
    return subprocess.run(
        [str(bin_folder / "helm-ext"), *given.split()], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "SOURCE_DATE_EPOCH": "0"},
    )  # fmt: skip


def run_here(folder: Path, given: str):
    return processes.command(folder, "helm-ext", *given.split(), check=False, env={"SOURCE_DATE_EPOCH": "0"})


def run_all(run_one, folder: Path) -> dict[str, tuple[int, str, str]]:
    write_inputs(folder)
    pack = "hub pack --test examples/innodata/test.jsonl --name bundle --out ."
    done = {given: run_one(folder, given) for given in (pack, *COMMANDS)}
    return {given: (one.returncode, one.stdout, one.stderr) for given, one in done.items()}


def read_runs(folder: Path) -> dict:
    """Return the files of all runs, without times."""
    return processes.without_times(processes.read_all(folder / SUITE))


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """The environment that `make light` makes, without a compiler."""
    folder = tmp_path_factory.mktemp("light") / "env"
    environment = {**os.environ, "CC": "false", "CXX": "false"}
    done = subprocess.run(
        ["make", "light", f"LIGHT={folder}", f"PYTHON={sys.executable}"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    assert [path.name for path in (folder / "bin").glob("helm-*")] == ["helm-ext"]  # HELM's own need all of HELM
    return folder


def test_commands_do_the_same_as_in_the_full_installation(light, tmp_path):
    size = sum(path.lstat().st_blocks * 512 for path in light.rglob("*")) / 2**20
    assert size <= MEGABYTES
    ours = run_all(functools.partial(run, light / "bin"), tmp_path / "light")
    full = run_all(run_here, tmp_path / "full")
    assert {given: one[0] for given, one in ours.items()} == dict.fromkeys(ours, 0), ours
    assert ours == full
    runs, theirs = (read_runs(tmp_path / name) for name in ("light", "full"))
    assert len({path.rpartition("/")[0] for path in runs}) >= 9
    assert runs == theirs
    for name in ("rows.csv", "facts.jsonl", "asked/requests-1-0001.jsonl"):
        assert (tmp_path / "light" / name).read_bytes() == (tmp_path / "full" / name).read_bytes()
    for given, package in MISSING.items():
        done = run(light / "bin", tmp_path / "light", given)
        assert done.returncode == 1
        lines = [line for line in done.stderr.splitlines() if line.startswith(("error", "Traceback"))]
        assert lines == [f"error: this needs the package {package}, which is not installed"]


def test_the_wheel_runs_the_readmes_first_dataset(light, tmp_path):
    """What would be published, in place of what `make light` installed from these files."""
    pip = [str(light / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    made = [*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(made, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("helm_ext-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--force-reinstall", str(wheel)], check=True, capture_output=True)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (dataset,) = re.findall(r"```json\n(.*?)```", readme, flags=re.DOTALL)
    (tmp_path / "adapter_specs").mkdir()
    (tmp_path / "adapter_specs/capitals.json").write_text(dataset, encoding="utf-8")
    shown = "".join(re.findall(r"```sh\n(.*?)```", readme.partition("```json")[2], flags=re.DOTALL)).splitlines()
    commands = [line.removeprefix("helm-ext ") for line in shown if line.startswith("helm-ext ")][:3]
    assert [given.split()[0] for given in commands] == ["validate", "preview", "score"]
    for given in commands:
        done = run(light / "bin", tmp_path, given)
        assert done.returncode == 0, done.stderr
    assert re.search(r"exact_match\W+0\.5", done.stdout)  # Paris, not Milan


def test_a_log_is_scored_beside_the_newest_inspect_ai(light, tmp_path):
    """It wants a newer zstandard than HELM, so that pip finds no versions of both: README's two commands do."""
    pip = [str(light / "bin/python"), "-m", "pip"]
    subprocess.run([*pip, "install", "--quiet", "inspect-ai"], check=True, capture_output=True)
    write_inputs(tmp_path / "beside")
    for given in ("score headline.eval", "score facts.csv --arg output=falcon"):
        done = run(light / "bin", tmp_path / "beside", given)
        assert done.returncode == 0, done.stderr
    assert len(processes.run_folders(tmp_path / "beside", "score")) == 2
