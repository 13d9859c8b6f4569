"""StreamingRunner against HELM's Runner: the same run specs, the same deterministic client, the same files."""

import gc
import json
import math
import weakref
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec, Substitution
from helm.benchmark.annotation.annotator import Annotator, AnnotatorSpec
from helm.benchmark.augmentations.data_augmenter import DataAugmenterSpec
from helm.benchmark.augmentations.perturbation import PerturbationSpec
from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.metrics.metric import Metric, MetricSpec
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.runner import Runner, RunnerError
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference, Scenario, ScenarioSpec
from helm.benchmark.tokenizer_config_registry import TokenizerConfig, TokenizerSpec, register_tokenizer_config
from helm.clients.client import Client
from helm.common.authentication import Authentication
from helm.common.request import ErrorFlags, GeneratedOutput, Thinking, Token
from helm_states import make_result

from helm_ext.evalset import garbage
from helm_ext.running import fold
from helm_ext.running.runner import StreamingRunner

FILES = ["run_spec.json", "scenario.json", "scenario_state.json", "stats.json", "per_instance_stats.json"]
LOADED: list[str] = []


@dataclass
class TinyScenario(Scenario):
    """Six questions on sums, with text that JSON writers trip over."""

    kind: str = "plain"
    name: str = field(default="tiny", init=False)
    description: str = field(default="Sums – «ünïcode» 甲", init=False)
    tags: list[str] = field(default_factory=lambda: ["null", "tiny"], init=False)

    def get_instances(self, output_path: str) -> list[Instance]:
        LOADED.append(output_path)
        instances = []
        for number in range(12):
            words = f'What is {number} + 1?\t"quoted" \\ \x7f \u2028 甲 😀 null'
            references = [
                Reference(Output(str(number + 1 + wrong)), tags=[] if wrong else [CORRECT_TAG]) for wrong in range(3)
            ]
            messages = [{"role": "user", "content": words}] if self.kind == "chat" else None
            extra = {
                "extra": {"chain_of_thought": f"One more than {number}.", "none": None, "list": [None, 1.5, True]},
                "odd": {"big": 2**80, 7: "int key", "tuple": (1, 2), "infinite": math.inf, "surrogate": "\ud800"},
            }.get(self.kind)
            instances.append(
                Instance(
                    Input("" if messages else words, messages=messages),
                    references,
                    split="train" if number < 4 else "test" if number % 2 else "valid",
                    sub_split="even" if number % 4 == 0 else None,
                    id=f"n{number}" if self.kind == "ids" else None,
                    extra_data=extra,
                )
            )
        return instances


class EchoClient(Client):
    """Answers out of the prompt, always the same."""

    def make_request(self, request):
        text = request.prompt or request.messages[-1]["content"]
        if "fail" in request.model_deployment and "5 + 1" in text:
            return make_result(
                success=False, error="refused", error_flags=ErrorFlags(is_retriable=False, is_fatal=False)
            )
        seed = sum(map(ord, text))
        completions = []
        for index in range(request.num_completions):
            answer = ["A", " B\n", "7", "the 8.", "甲"][(seed + index) % 5]
            spoken = text + answer if request.echo_prompt else answer
            tokens = [Token(word, -(1 + (seed * i) % 97) / 100) for i, word in enumerate(spoken.split(" "))]
            logprob, reason = sum(token.logprob for token in tokens), {"reason": "stop", "detail": None}
            thinking = Thinking(text="hm") if seed % 2 else None
            completions.append(GeneratedOutput(spoken, logprob, tokens, reason if index else None, thinking=thinking))
        return make_result(*completions, request_time=seed % 1000 / 7e6, request_datetime=1_700_000_000)


class LengthAnnotator(Annotator):
    name = "length"

    def annotate(self, request_state):
        return [{"length": len(c.text), "nothing": None} for c in request_state.result.completions]


NO_LENGTH = {"length": [{"length": 0}]}


class OddMetric(Metric):
    """NaN and infinite values, and several values a row."""

    def __init__(self, nan_everywhere: bool = False):
        self.nan_everywhere = nan_everywhere

    def evaluate_generation(self, adapter_spec, request_state, metric_service, eval_cache_path):
        length = len(request_state.request.prompt)
        nan = self.nan_everywhere or length % 2
        return [
            Stat(MetricName("odd_nan")).add(math.nan if nan else 1.0),
            Stat(MetricName("odd_infinite")).add(math.inf),
            Stat(MetricName("odd_several")).add(length).add(1e-9).add(1e22),
            Stat(MetricName("odd_annotation")).add((request_state.annotations or NO_LENGTH)["length"][0]["length"]),
        ]


class CrashingMetric(Metric):
    def evaluate_generation(self, adapter_spec, request_state, metric_service, eval_cache_path):
        raise RuntimeError("metric crashed")


@pytest.fixture(scope="module", autouse=True)
def deployments():
    simple = TokenizerSpec(class_name="helm.tokenizers.simple_tokenizer.SimpleTokenizer")
    register_tokenizer_config(TokenizerConfig("runnertest/characters", simple, end_of_text_token="", prefix_token=""))
    client = ClientSpec(class_name=f"{__name__}.EchoClient")
    for name, window in (("wide", 100_000), ("narrow", 330), ("tiny", 60), ("fail", 100_000)):
        sized = {"tokenizer_name": "runnertest/characters", "max_sequence_length": window}
        register_model_deployment(ModelDeployment(name=f"runnertest/{name}", client_spec=client, **sized))
    register_model_deployment(ModelDeployment(name="runnertest/none", client_spec=client))


def basic(*names):
    module = "helm.benchmark.metrics.basic_metrics"
    return [
        MetricSpec(f"{module}.BasicGenerationMetric", {"names": list(names)}),
        MetricSpec(f"{module}.BasicReferenceMetric", {}),
        MetricSpec(f"{module}.InstancesPerSplitMetric", {}),
    ]


def make_run_spec(name="run", *, kind="plain", deployment="wide", metrics=None, augment=None, annotators=None, **spec):
    given = {
        "method": "generation", "instructions": "Answer.\n", "output_prefix": "\nAnswer: ", "max_train_instances": 2,
        "max_eval_instances": 5, "num_outputs": 1, "model": "runnertest/model",
        "model_deployment": f"runnertest/{deployment}",
    }  # fmt: skip
    return RunSpec(
        name=name,
        scenario_spec=ScenarioSpec(f"{__name__}.TinyScenario", {"kind": kind}),
        adapter_spec=AdapterSpec(**{**given, **spec}),
        metric_specs=basic("exact_match", "quasi_exact_match") if metrics is None else metrics,
        data_augmenter_spec=augment or DataAugmenterSpec(),
        groups=["tiny"],
        annotators=annotators,
    )


JOINT = {"method": "multiple_choice_joint", "reference_prefix": "\nA. ", "reference_suffix": "", "max_tokens": 1}
PERTURBED = DataAugmenterSpec(
    perturbation_specs=[
        PerturbationSpec("helm.benchmark.augmentations.lowercase_perturbation.LowerCasePerturbation", {}),
        PerturbationSpec(
            "helm.benchmark.augmentations.extra_space_perturbation.ExtraSpacePerturbation", {"num_spaces": 2}
        ),
    ],
    should_augment_eval_instances=True,
    should_include_original_eval=True,
)
RUNS = {
    "generation": make_run_spec(),
    "without-demonstrations": make_run_spec(max_train_instances=0, deployment="none"),
    "several-outputs-and-trials": make_run_spec(num_outputs=3, num_train_trials=2, kind="ids"),
    "demonstrations-dropped": make_run_spec(deployment="narrow"),
    "prompt-truncated": make_run_spec(deployment="tiny", max_tokens=5),
    "without-tokenizer": make_run_spec(deployment="none", substitutions=[Substitution("is", "was")]),
    "joint": make_run_spec(**JOINT, metrics=basic("exact_match", "prefix_exact_match")),
    "joint-chain-of-thought": make_run_spec(
        **{**JOINT, "method": "multiple_choice_joint_chain_of_thought"}, kind="extra", chain_of_thought_prefix="Think: "
    ),
    "separate-original": make_run_spec(method="multiple_choice_separate_original", max_eval_instances=3),
    "separate-calibrated": make_run_spec(method="multiple_choice_separate_calibrated", max_eval_instances=3),
    "chat": make_run_spec(method="chat", kind="chat", max_train_instances=0, deployment="none"),
    "perturbed": make_run_spec(augment=PERTURBED, num_train_trials=2),
    "annotated": make_run_spec(
        annotators=[AnnotatorSpec(f"{__name__}.LengthAnnotator")], metrics=[MetricSpec(f"{__name__}.OddMetric", {})]
    ),
    "all-nan": make_run_spec(metrics=[MetricSpec(f"{__name__}.OddMetric", {"nan_everywhere": True})], kind="odd"),
    "non-fatal-error": make_run_spec(deployment="fail", max_eval_instances=8),
    "no-instances": make_run_spec(max_eval_instances=0),
    "no-metrics": make_run_spec(metrics=[]),
}  # fmt: skip


def make_runner(cls, path: Path, **options):
    flags = {name: options.pop(name, False) for name in
             ("skip_instances", "cache_instances", "cache_instances_only", "skip_completed_runs", "exit_on_error")}  # fmt: skip
    spec = ExecutionSpec(url=None, auth=Authentication(""), local_path=str(path / "prod_env"), parallelism=2, **options)
    return cls(spec, str(path / "out"), "suite", **flags)


def read(path: Path):
    folder = path / "out" / "runs" / "suite" / "run"
    return {name: (folder / name).read_text(encoding="ascii") for name in FILES if (folder / name).exists()}


def parse(texts):
    # repr tells 1 from 1.0 and true, and NaN is equal to itself.
    return {name: repr(json.loads(text)) for name, text in texts.items()}


def run_both(tmp_path, run_spec, **options):
    texts = []
    for cls in (Runner, StreamingRunner):
        path = tmp_path / cls.__name__
        make_runner(cls, path, exit_on_error=True, **options).run_all([run_spec])
        texts.append(read(path))
    return texts


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_files_are_helms(tmp_path, name):
    helms, ours = run_both(tmp_path, RUNS[name])
    assert list(ours) == FILES
    assert parse(ours) == parse(helms)


def test_files_have_helms_layout(tmp_path):
    """But for the way that tiny floats are written, the bytes are the same: two spaces a level, ASCII."""
    helms, ours = run_both(tmp_path, RUNS["without-demonstrations"])
    for name in FILES:
        for mine, theirs in zip(ours[name].splitlines(), helms[name].splitlines(), strict=True):
            assert mine == theirs or float(mine.split(": ")[1].rstrip(",")) == float(theirs.split(": ")[1].rstrip(","))


def test_dry_run(tmp_path):
    helms, ours = run_both(tmp_path, RUNS["generation"], dry_run=True)
    assert parse(ours) == parse(helms)
    assert "estimated_num_tokens_cost" in ours["stats.json"]


def test_skip_instances_writes_nothing(tmp_path):
    helms, ours = run_both(tmp_path, RUNS["generation"], skip_instances=True)
    assert helms == ours == {}


def test_cached_instances_are_written_and_read_like_helms(tmp_path):
    spec = make_run_spec(kind="extra")
    helms, ours = run_both(tmp_path, spec, cache_instances=True)
    cached = [
        tmp_path / cls.__name__ / "out/scenario_instances/tiny:kind=extra/input_instances.json"
        for cls in (Runner, StreamingRunner)
    ]
    assert json.loads(cached[0].read_text()) == json.loads(cached[1].read_text())
    LOADED.clear()
    again = run_both(tmp_path, spec, cache_instances=True)
    assert LOADED == []  # from the cache
    assert [parse(texts) for texts in again] == [parse(helms), parse(ours)]


def test_cache_instances_only(tmp_path):
    helms, ours = run_both(tmp_path, RUNS["generation"], cache_instances=True, cache_instances_only=True)
    assert helms == ours == {}
    assert (tmp_path / "StreamingRunner/out/scenario_instances/tiny:kind=plain/input_instances.json").exists()


def test_completed_runs_are_skipped(tmp_path):
    runner = make_runner(StreamingRunner, tmp_path, skip_completed_runs=True)
    runner.run_all([RUNS["generation"]])
    LOADED.clear()
    runner.run_all([RUNS["generation"]])
    assert LOADED == []
    (tmp_path / "out/runs/suite/run/per_instance_stats.json").unlink()
    runner.run_all([RUNS["generation"]])
    assert len(LOADED) == 1


CRASHING = make_run_spec(metrics=[MetricSpec(f"{__name__}.CrashingMetric", {})])


def test_failed_runs_are_named_and_others_go_on(tmp_path):
    runner = make_runner(StreamingRunner, tmp_path)
    with pytest.raises(RunnerError, match='Failed runs: \\["run"\\]') as caught:
        runner.run_all([CRASHING, replace(RUNS["generation"], name="other")])
    assert str(caught.value).splitlines()[1:] == ["run: RuntimeError: metric crashed (the traceback is above)"]
    assert (tmp_path / "out/runs/suite/other/stats.json").exists()
    assert read(tmp_path) == {}
    with pytest.raises(RuntimeError, match="metric crashed"):
        make_runner(StreamingRunner, tmp_path, exit_on_error=True).run_all([CRASHING])


def test_a_write_that_fails_leaves_the_old_run(tmp_path, monkeypatch):
    runner = make_runner(StreamingRunner, tmp_path, exit_on_error=True)
    runner.run_all([RUNS["generation"]])
    before = read(tmp_path)
    folder = tmp_path / "out/runs/suite/run"

    def fail(*_args):
        raise OSError("disk full")

    monkeypatch.setattr(fold, "remove_stats_nans", fail)
    with pytest.raises(OSError, match="disk full"):
        runner.run_all([RUNS["generation"]])
    assert read(tmp_path) == before
    assert sorted(path.name for path in folder.glob("[!.]*")) == sorted(FILES)
    assert list(folder.glob(".staged-*")) == []


def test_garbage_collector_is_left_as_it_was(monkeypatch):
    before = 700, 10, 10
    monkeypatch.setattr(garbage, "_THRESHOLDS", (701, 11, 11))
    gc.set_threshold(*before)
    with garbage.relaxed():
        assert gc.get_threshold() == (701, 11, 11)
    assert gc.get_threshold() == before


@pytest.mark.long
@pytest.mark.parametrize("reads", [garbage.relaxed, garbage.paused])
def test_what_a_failed_run_left_is_freed_by_the_next_one(reads):
    """The rows hang on the frames of an exception that refers to itself: a cycle. Freezing would keep it for good."""

    class Rows:
        pass

    def fail() -> weakref.ref[Rows]:
        rows = Rows()
        try:
            raise ValueError
        except ValueError as error:
            rows.error = error
        return weakref.ref(rows)

    thresholds = gc.get_threshold()
    try:
        with garbage.relaxed():
            left = fail()
        assert left() is not None
        with reads():
            assert left() is None
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@pytest.mark.long
def test_prompts_are_counted_once(tmp_path, monkeypatch):
    from helm.tokenizers.simple_tokenizer import SimpleTokenizer

    counted = []
    tokenize = SimpleTokenizer.tokenize
    monkeypatch.setattr(
        SimpleTokenizer, "tokenize", lambda self, request: counted.append(request.text) or tokenize(self, request)
    )
    make_runner(StreamingRunner, tmp_path, exit_on_error=True).run_all([RUNS["generation"]])
    assert len(counted) == len(set(counted)) == 5
