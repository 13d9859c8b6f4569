"""What a user can cause ends helm-run with a message, not with a traceback, and before anything is asked for."""

import json

import pytest
import recorded_runs
from openai_server import serve
from processes import command, load, only_run, run_folders

pytestmark = pytest.mark.slow

OURS = ("--runner-class-name", "helm_ext.running.StreamingRunner")
JUDGED = """
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.annotation.annotator import Annotator, AnnotatorSpec
from helm.benchmark.metrics.metric import MetricSpec
from helm.benchmark.run_spec import RunSpec, run_spec_function
from helm.benchmark.scenarios.scenario import ScenarioSpec
from helm.common.request import Request

SIZES = {"num_input_tokens": 3, "vocab_size": 9, "num_train_instances": 1, "num_test_instances": 5}


class Judge(Annotator):
    name = "judge"

    def __init__(self, auto_client, model):
        self.client, self.model = auto_client, model

    def annotate(self, request_state):
        request = Request(model=self.model, model_deployment=self.model, prompt="Is it right?", max_tokens=5)
        result = self.client.make_request(request)
        assert result.success, result.error
        return {"says": result.completions[0].text}


@run_spec_function("judged")
def get_judged():
    return RunSpec(
        name="judged",
        scenario_spec=ScenarioSpec("helm.benchmark.scenarios.simple_scenarios.Simple1Scenario", SIZES),
        adapter_spec=AdapterSpec(method="generation", max_train_instances=0, max_eval_instances=3, max_tokens=5),
        metric_specs=[MetricSpec("helm.benchmark.metrics.basic_metrics.BasicGenerationMetric", {"names": []})],
        groups=[],
        annotators=[AnnotatorSpec("judged.Judge", {"model": "local/tiny"})],
    )
"""


@pytest.fixture
def folder(tmp_path):
    recorded_runs.write_many(tmp_path, 20)
    return tmp_path


def fail(folder, *options, **env):
    """Return the last lines of a run that ends with an error."""
    done = command(folder, "helm-run", "--suite", "s", "-m", "10", *options, check=False, env=env)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert not run_folders(folder)
    return done.stderr[done.stderr.index("error: ") :]


@pytest.mark.parametrize(("name", "value", "expected"), [
    ("HELM_EXT_WORKERS", "two", "a whole number from 1 on\n  hint: unset it for the default"),
    ("HELM_EXT_MAX_COST", "five", "a number, in the currency of the prices, from 0 on\n  hint: unset it for no limit"),
])  # fmt: skip
def test_a_setting_that_makes_no_sense_is_said_before_anything_is_read(folder, name, value, expected):
    entries = ("simple1:model=simple/model1", "adapter_spec:path=not-there.jsonl,model=recorded/m")
    said = fail(folder, *OURS, "--run-entries", *entries, **{name: value})
    assert said == f'error: {name}="{value}": expected {expected}\n'


def test_score_says_so_too(folder):
    for name, value in (("HELM_EXT_WORKERS", "0"), ("HELM_EXT_MAX_COST", "five"), ("HELM_EXT_PROGRESS", "palin")):
        done = command(folder, "helm-ext", "score", "many.jsonl", "--model", "m", check=False, env={name: value})
        assert done.returncode in (1, 2)
        assert done.stdout == ""
        assert done.stderr.startswith(f'error: {name}="{value}": ')
        assert "  hint: " in done.stderr
    done = command(folder, "helm-ext", "validate", "many.jsonl", check=False, env={"HELM_EXT_PROGRESS": "palin"})
    assert (done.returncode, done.stdout) == (2, "")


def test_what_is_wrong_with_a_file_ends_the_log(folder):
    said = fail(folder, *OURS, "--run-entries", "adapter_spec:path=manny.jsonl,model=recorded/m")
    assert said == "error: manny.jsonl: no such file\n  hint: did you mean 'many.jsonl'?\n"


def test_the_last_lines_say_why_a_run_failed(folder):
    """Of two models one has no server behind it."""
    command(folder, "helm-ext", "model", "add", "local/gone", "--url", "http://127.0.0.1:9/v1")
    live = folder / "live.jsonl"
    first, *rows = (folder / "many.jsonl").read_text().splitlines()
    live.write_text("\n".join([first, *(json.dumps({"instance": json.loads(row)["instance"]}) for row in rows)]))
    done = command(
        folder, "helm-run", "--suite", "s", "-m", "10", *OURS, "--run-entries",
        "adapter_spec:path=live.jsonl,model=local/gone", "adapter_spec:path=many.jsonl,model=recorded/m", check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    first, second, *_ = done.stderr[done.stderr.index("error: ") :].splitlines()
    assert first.startswith('error: Failed runs: ["adapter_spec:path=live.jsonl,')
    assert first.count("adapter_spec:") == 1
    assert second.startswith("adapter_spec:path=live.jsonl,")
    assert ": nobody answers at http://127.0.0.1:9/v1" in second
    assert len(run_folders(folder)) == 1


def test_a_judge_is_refused_before_the_first_request_where_there_is_a_limit(folder, monkeypatch):
    (folder / "judged.py").write_text(JUDGED)
    options = (*OURS, "--plugins", "judged", "--run-entries", "judged:model=local/tiny")
    with serve() as server:
        command(folder, "helm-ext", "model", "add", "local/tiny", "--url", f"{server.url}/v1")
        (folder / "prod_env" / "prices.yaml").write_text("local/tiny: {in: 1, out: 1}\n")
        monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
        for name in ("HELM_EXT_MAX_COST", "HELM_EXT_MAX_TOKENS"):
            said = fail(folder, *options, **{name: "500"})
            assert said == (
                f"error: {name}=500: the limit cannot be kept: judged:model=local_tiny has an annotator that asks a "
                f"model, judged.Judge, and what that costs nobody counts\n  hint: without {name} nothing is limited\n"
            )
            assert server.asked == []
        command(folder, "helm-run", "--suite", "s", "-m", "3", *options)
    states = load(only_run(folder) / "scenario_state.json")["request_states"]
    assert len(states) == 3
    assert all(state["annotations"]["judge"]["says"] for state in states)


def test_settings_of_helm_summarize_are_checked_before_anything_is_written(tmp_path):
    (tmp_path / "benchmark_output/runs/s").mkdir(parents=True)
    done = command(
        tmp_path, "helm-summarize", "--suite", "s", "--auto-generate-schema", "--summarizer-class-name",
        "helm_ext.running.StreamingSummarizer", check=False, env={"HELM_EXT_PROGRESS": "x"},
    )  # fmt: skip
    assert done.returncode == 1
    assert 'error: HELM_EXT_PROGRESS="x": ' in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
