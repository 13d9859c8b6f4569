"""Requests out, results in, against a live helm-run: the same server answers both ways, the files are equal.

What differs is what only a live run can measure: times.
"""

import os
import random
import shutil
from pathlib import Path

import processes
import pytest
import request_states_files
from openai_server import Server, answer_file, serve, write_lines
from processes import command, helm_run, load, run_folders, without_times
from request_states_files import choice

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/clients", "src/helm_ext/cli/requests", "src/helm_ext/running"),
]

ROOT = Path(__file__).resolve().parents[2]
FILES = ["run_spec.json", "scenario.json", "scenario_state.json", "stats.json", "per_instance_stats.json"]
STATS = {*processes.TIMES, "batch_size"}
"""HELM makes that too of `request_time` alone (helm/benchmark/metrics/efficiency_metrics.py)."""

SIMPLE1 = "simple1:model=acme/{0},model_deployment=acme/{0}"
CHAT = [
    "adapter_spec:dataset=short_answer_qa",
    "adapter_spec:dataset=multiple_choice",
    "simple_mcqa",
    "simple_mcqa:data_augmentation=lower",
    SIMPLE1.format("chat"),
    "innodata:path=first-bundle.zip",
]
COMPLETIONS = [
    "adapter_spec:dataset=short_answer_qa",
    "adapter_spec:dataset=separate",
    "adapter_spec:dataset=calibrated",
    "tale",
    "ultraeval:config=examples/ultraeval/datasets/workshop/config/workshop_ppl.json",
    SIMPLE1.format("base"),
]


def write_separate(path: Path, method: str) -> None:
    """Write a file of the method that compares the log-probabilities of whole prompts."""
    rows = [
        choice(f"What comes after {n}?", [f"{n + 1}", "nothing at all", f"{n} again"], id=f"row/{n}", split="test")
        for n in range(5)
    ]
    request_states_files.write(
        path, rows, {"method": method, "input_prefix": "Q: ", "output_prefix": "A: ", "max_train_instances": 0}
    )


WINDOWS = """
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.metrics.common_metric_specs import get_language_modeling_metric_specs
from helm.benchmark.run_spec import RunSpec, run_spec_function
from helm.benchmark.scenarios.scenario import Input, Instance, Scenario, ScenarioSpec


class TaleScenario(Scenario):
    name = "tale"
    description = "A text that is longer than the model's window: HELM makes several requests of it."
    tags = []

    def get_instances(self, output_path):
        return [Instance(Input("It was the best of times, it was the worst of times. " * 150), [], split="test")]


@run_spec_function("tale")
def get_tale():
    adapter_spec = AdapterSpec(method="language_modeling", max_train_instances=0, max_tokens=0)
    metrics = get_language_modeling_metric_specs([])
    return RunSpec("tale", ScenarioSpec("tale_plugin.TaleScenario"), adapter_spec, metrics, groups=["tale"])
"""
"""A plugin with a scenario of one's own."""


@pytest.fixture(scope="module")
def server():
    with serve() as running:
        yield running


def make_folder(folder: Path, server: Server) -> Path:
    """Put datasets and deployments into a folder."""
    shutil.copytree(ROOT / "adapter_specs", folder / "adapter_specs")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name in ("original", "calibrated"):
        path = folder / "adapter_specs" / f"{name.replace('original', 'separate')}.json"
        write_separate(path, f"multiple_choice_separate_{name}")
    (folder / "tale_plugin.py").write_text(WINDOWS)
    command(folder, "helm-ext", "hub", "pack", "--test", "examples/innodata/test.jsonl", "--name", "first-bundle")
    (folder / "prod_env").mkdir()
    (folder / "prod_env" / "model_deployments.yaml").write_text(
        f"""
model_deployments:
  - name: acme/chat
    client_spec:
      class_name: helm_ext.clients.OpenAICompatibleClient
      args: {{base_url: {server.url}/v1, endpoint: chat, openai_model_name: tiny-chat}}
  - name: acme/base
    tokenizer_name: simple/tokenizer1
    max_sequence_length: 3000
    client_spec:
      class_name: helm_ext.clients.OpenAICompatibleClient
      args: {{base_url: {server.url}/v1, endpoint: completions}}
"""
    )
    return folder


def here(folder: Path) -> dict[str, str]:
    """Return an environment in which modules of the folder can be imported."""
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def requests_out(folder: Path, *entries: str, model: str, endpoint: str, out: str, options: tuple[str, ...] = ()):
    return command(
        folder, "helm-ext", "requests", "out", *entries, "-m", "100000", "--plugins", "tale_plugin",
        "--model", model, "--endpoint", endpoint, "--out", out, *options, env=here(folder),
    )  # fmt: skip


def requests_in(folder: Path, out: str, *files: Path, suite: str = "in", check: bool = True):
    return command(
        folder, "helm-ext", "requests", "in", f"{out}/manifest.json", *map(str, files), "--suite", suite,
        "--plugins", "tale_plugin", check=check, env=here(folder),
    )  # fmt: skip


def assert_equal_runs(live: Path, made: Path) -> None:
    for name in FILES:
        assert without_times(load(live / name), STATS) == without_times(load(made / name), STATS), f"{live.name}/{name}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, server):
    return make_folder(tmp_path_factory.mktemp("requests"), server)


@pytest.mark.parametrize(
    ("model", "endpoint", "entries"), [("acme/chat", "chat", CHAT), ("acme/base", "completions", COMPLETIONS)]
)
def test_the_files_are_those_of_a_live_run(folder, server, model, endpoint, entries):
    suite = f"live-{endpoint}"
    runner = ("--runner-class-name", "helm_ext.running.StreamingRunner")  # `requests in` notes what was counted too
    helm_run(
        folder, *entries, suite=suite, options=("--models-to-run", model, "--plugins", "tale_plugin", *runner),
        env=here(folder),
    )  # fmt: skip
    before = len(server.asked)
    requests_out(folder, *entries, model=model, endpoint=endpoint, out=endpoint, options=("--per-shard", "40"))
    assert len(server.asked) == before
    outputs = []
    for shard in sorted((folder / endpoint).glob("requests-*.jsonl")):
        lines = answer_file(server, shard)
        random.Random(7).shuffle(lines)
        outputs.append(write_lines(folder / f"{endpoint}-{shard.stem}.out.jsonl", lines))
    assert len(outputs) > 2
    requests_in(folder, endpoint, *reversed(outputs), suite=f"in-{endpoint}")
    live, made = run_folders(folder, suite), run_folders(folder, f"in-{endpoint}")
    assert list(live) == list(made)
    assert len(live) == len(entries)
    for name in live:
        assert_equal_runs(live[name], made[name])
