"""A run of rows that are read some at a time writes the files of HELM's runner, in this process and in several."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import BIN, OFFLINE, command, load, run_folders

FILES = ("run_spec.json", "scenario_state.json", "stats.json", "per_instance_stats.json")
OURS = ("--runner-class-name", "helm_ext.running.StreamingRunner")
WORDS = "amber basin cedar delta ember fjord grove harbor island jasper kernel lagoon".split()  # noqa: SIM905
ROWS = 260

pytestmark = pytest.mark.slow


def make_row(draw, number, **instance):
    text = " ".join(draw.choice(WORDS) for _ in range(6))
    gold = " ".join(text.split()[2:4])
    logprobs = [-draw.random() for _ in range(3)]
    completion = {
        "text": draw.choice([gold, gold.split()[0], "nothing", gold.upper() + "."]),
        "logprob": sum(logprobs),
        "tokens": [{"text": "t", "logprob": logprob} for logprob in logprobs],
    }
    result = {"success": True, "completions": [completion], "request_time": draw.random()}
    return {
        "instance": {
            "id": f"r{number}",
            "input": {"text": text},
            "references": [{"output": {"text": gold}, "tags": ["correct"]}],
            **instance,
        },
        "request": {"result": result},
    }


def write(path, rows, **spec):
    header = {
        "adapter_spec": {"method": "generation", "max_train_instances": 0, "max_tokens": 5, **spec},
        "scoring": {"metrics": ["exact_match", "quasi_exact_match", "f1_score"], "main_metric": "f1_score"},
    }
    path.write_text("\n".join(map(json.dumps, [header, *rows])) + "\n")


def write_ultraeval(folder, method, draw):
    """The outputs of a finished UltraEval run; some rows have none."""
    folder.mkdir()
    rule = "in_match" if method == "gen" else "log_prob"
    (folder / "config.json").write_text(json.dumps({"metric": {"accuracy": {"evaluation": {"type": rule}}}}))
    with (folder / "instance.jsonl").open("w") as file:
        for number in range(ROWS):
            options = {f"{word} {number}": int(not place) for place, word in enumerate(draw.sample(WORDS, 3))}
            logprobs = [[-2.0, *(-4 * draw.random() for _ in range(3))] for _ in options]
            outputs = [draw.choice([*options])] if method == "gen" else [logprobs]
            row = {
                "data": {"question": f"{number}?", "target_scores": options},
                "ground_truth": next(iter(options)),
                "prompt_inputs": [f"Which of {' '.join(WORDS)}? "],
                "raw_outputs": [] if number % 50 == 3 else outputs,
            }
            file.write(json.dumps(row) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that need something else each: ids, splits, draws, caps, rows that are left out, groups."""
    folder = tmp_path_factory.mktemp("fold")
    draw = random.Random(5)

    def rows(**instance):
        return [make_row(draw, number, **instance) for number in range(ROWS)]

    write(folder / "plain.jsonl", rows(split="test"))
    unmeasured = rows(split="test")
    del unmeasured[-7]["request"]["result"]["completions"][0]["logprob"]
    del unmeasured[-7]["request"]["result"]["completions"][0]["tokens"]
    write(folder / "unmeasured.jsonl", unmeasured)
    left_out = rows(split="test")
    for number in range(3, ROWS, 9):
        left_out[number]["request"] = {"result": {"success": False}} if number % 2 else None
        left_out[number] = {key: value for key, value in left_out[number].items() if value}
    write(folder / "left_out.jsonl", left_out)
    write(folder / "splits.jsonl", [make_row(draw, n, split=("train", "test", "valid", "test")[n % 4])
                                    for n in range(ROWS)], max_train_instances=3)  # fmt: skip
    write(folder / "drawn.jsonl", rows(), max_train_instances=4, max_eval_instances=150)
    ids = rows(split="test")
    for number, row in enumerate(ids):
        row["instance"]["id"] = [f"q{number % 50}", None, number, "id7"][number % 4]
    write(folder / "ids.jsonl", ids)
    twice = rows()[:90]
    for row in twice:
        del row["instance"]["id"]
    write(folder / "twice.jsonl", twice * 3, max_train_instances=4)
    groups = [make_row(draw, n, split="test", sub_split="ab"[n % 2],
                       extra_data={"kind": "xyz"[n % 3], "passage": str(n // 5)}) for n in range(ROWS)]  # fmt: skip
    write(folder / "groups.jsonl", groups)
    (folder / "packed.jsonl.gz").write_bytes(gzip.compress((folder / "plain.jsonl").read_bytes()))
    (folder / "returns.jsonl").write_bytes((folder / "plain.jsonl").read_bytes().replace(b"\n", b"\r\n"))
    lines = ["id,question,answer,said", *(f"{n},What is {n}?,{n},{n + n % 3 // 2}" for n in range(ROWS))]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    for method in ("gen", "ppl"):
        write_ultraeval(folder / f"sums_sums_{method}", method, draw)
    # What tells the sizes at which files are read again, and rows are sent to other processes.
    (folder / "small").mkdir()
    (folder / "small" / "sitecustomize.py").write_text(
        "import importlib.abc, sys\n"
        "SIZES = {'helm_ext.formats.request_states.loading': ('KEPT_ROWS', 20),\n"
        "         'helm_ext.formats.ultraeval.log_rows': ('KEPT_ROWS', 20),\n"
        "         'helm_ext.running.recorded_rows': ('TASK_ROWS', 60)}\n"
        "class Finder(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name not in SIZES:\n"
        "            return None\n"
        "        sys.meta_path.remove(self)\n"
        "        spec = importlib.util.find_spec(name)\n"
        "        sys.meta_path.insert(0, self)\n"
        "        execute = spec.loader.exec_module\n"
        "        def exec_module(module):\n"
        "            execute(module)\n"
        "            setattr(module, *SIZES[name])\n"
        "        spec.loader.exec_module = exec_module\n"
        "        return spec\n"
        "import importlib.util\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    return folder


ENTRIES = (
    "adapter_spec:path=plain.jsonl,model=recorded/m",
    "adapter_spec:path=unmeasured.jsonl,model=recorded/m",
    "adapter_spec:path=left_out.jsonl,missing=skip,model=recorded/m",
    "adapter_spec:path=splits.jsonl,model=recorded/m",
    "adapter_spec:path=drawn.jsonl,model=recorded/m",
    "adapter_spec:path=ids.jsonl,model=recorded/m",
    "adapter_spec:path=twice.jsonl,model=recorded/m",
    "adapter_spec:path=groups.jsonl,by=kind,cluster=passage,model=recorded/m",
    "adapter_spec:path=packed.jsonl.gz,model=recorded/m",
    "adapter_spec:path=returns.jsonl,model=recorded/m",
    "table:path=table.csv,output=said,model=recorded/m",
    "ultraeval:data=sums_sums_gen/instance.jsonl,missing=skip,model=recorded/m",
    "ultraeval:data=sums_sums_ppl/instance.jsonl,missing=skip,model=recorded/m",
)


def run(folder, suite, *options, most=100_000, **env):
    """Run all entries; return the files of each run, as bytes."""
    few = {"PYTHONPATH": os.pathsep.join([str(folder / "small"), os.environ.get("PYTHONPATH", "")])} if env else {}
    command(
        folder, "helm-run", "--suite", suite, "--disable-cache", "--exit-on-error", "-m", str(most), *options,
        "--run-entries", *ENTRIES, env={**env, **few},
    )  # fmt: skip
    return {
        name: {file: (path / file).read_bytes() for file in FILES} for name, path in run_folders(folder, suite).items()
    }


def parsed(runs):
    # repr tells 1 from 1.0, and NaN is equal to itself.
    return {name: {file: repr(json.loads(data)) for file, data in files.items()} for name, files in runs.items()}


@pytest.mark.parametrize("most", [100_000, 100])
def test_files_are_those_of_helms_runner(folder, most):
    helms = run(folder, f"helm{most}", most=most)
    whole = run(folder, f"whole{most}", *OURS, most=most)
    assert len(whole) == len(ENTRIES)
    assert parsed(whole) == parsed(helms)
    assert run(folder, f"fold{most}", *OURS, most=most, HELM_EXT_WORKERS="1") == whole
    assert run(folder, f"two{most}", *OURS, most=most, HELM_EXT_WORKERS="2") == whole
    left = list((folder / "benchmark_output").rglob("*.part"))
    assert left == []


def test_rays_actors_make_the_same_files(folder):
    """Rows are sent to them, and the parts of the files come back: no disk is shared."""
    pytest.importorskip("ray")
    ray = ("--runner-class-name", "helm_ext.running.RayRunner")
    assert run(folder, "ray", *ray, HELM_EXT_RAY_ACTORS="2") == run(folder, "here", *OURS)


def test_a_worker_that_is_killed_loses_no_row_and_changes_no_byte(folder, tmp_path):
    draw = random.Random(1)
    write(tmp_path / "many.jsonl", [make_row(draw, number, split="test") for number in range(40_000)])
    entry = "adapter_spec:path=many.jsonl,model=recorded/m"
    command(tmp_path, "helm-run", "--suite", "one", "-m", "100000", *OURS, "--run-entries", entry)
    running = subprocess.Popen(
        [str(BIN / "helm-run"), "--suite", "two", "-m", "100000", *OURS, "--run-entries", entry],
        cwd=tmp_path, env={**os.environ, **OFFLINE, "HELM_EXT_WORKERS": "2"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    killed = kill_a_worker(running, tmp_path / "benchmark_output/runs/two")
    said, _ = running.communicate(timeout=240)
    assert running.returncode == 0, said[-3000:]
    assert killed
    assert "a worker process was lost" in said
    one, two = (next(iter(run_folders(tmp_path, suite).values())) for suite in ("one", "two"))
    assert [(one / file).read_bytes() == (two / file).read_bytes() for file in FILES] == [True] * 4
    assert len(load(two / "per_instance_stats.json")) == 40_000


def kill_a_worker(running, runs):
    """Kill one of the processes that a run has started, once they have begun to write."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and running.poll() is None:
        parts = [part for part in runs.rglob("*.0.part") if part.name[0].isdigit() and part.stat().st_size > 100_000]
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        workers = [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        if parts and workers:
            os.kill(workers[0], signal.SIGKILL)
            return True
        time.sleep(0.01)
    return False


def test_a_file_that_is_written_to_meanwhile_is_refused(folder, tmp_path):
    """Planned with these bytes, and others when the rows are read again."""
    script = """
import sys
from helm_ext.formats import request_states
from helm_ext.formats.request_states import loading
loading.KEPT_ROWS = 3
rows = request_states.load(sys.argv[1]).instances
assert len(list(rows)) == 260
with open(sys.argv[1], "a") as file:
    file.write("\\n")
list(rows)
"""
    path = tmp_path / "plain.jsonl"
    path.write_bytes((folder / "plain.jsonl").read_bytes())
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert "DatasetChangedError" in done.stderr
    assert "the file was changed while it was read" in done.stderr
