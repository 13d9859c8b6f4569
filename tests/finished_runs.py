"""Finished runs in folders, for tests: of files with recorded completions, and of a scenario of HELM's kind."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.augmentations.data_augmenter import DataAugmenterSpec
from helm.benchmark.augmentations.perturbation import PerturbationSpec
from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.metrics.metric import Metric, MetricSpec
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    get_model_deployment,
    register_model_deployment,
)
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference, Scenario, ScenarioSpec
from helm.benchmark.tokenizer_config_registry import TokenizerConfig, TokenizerSpec, register_tokenizer_config
from helm.clients.client import Client
from helm.common.authentication import Authentication
from helm.common.request import ErrorFlags, GeneratedOutput, RequestResult, Token
from typer.testing import CliRunner

from helm_ext.analysis import FinishedRun, find_runs, read_run
from helm_ext.cli import app
from helm_ext.running.runner import StreamingRunner

BASIC = "helm.benchmark.metrics.basic_metrics"


def score(folder: Path, file: Path, model: str = "org/model", **arguments: str) -> FinishedRun:
    """Score a file with `helm-ext score`, and return its run."""
    chosen = [part for key, value in arguments.items() for part in ("--arg", f"{key}={value}")]
    output = folder / "out"
    before = {run.folder for run in find_runs([output])[0]} if output.exists() else set()
    done = CliRunner().invoke(app, ["score", str(file), "--model", model, "-o", str(output), *chosen])
    assert done.exit_code == 0, (done.output, done.exception)
    (run,) = [run for run in find_runs([output])[0] if run.folder not in before]
    return run


@dataclass
class Sums(Scenario):
    """Three questions: 1 + 1, 2 + 1, 3 + 1, each with two wrong answers."""

    name: str = field(default="sums", init=False)
    description: str = field(default="Sums", init=False)
    tags: list[str] = field(default_factory=list, init=False)

    def get_instances(self, output_path: str) -> list[Instance]:
        return [
            Instance(
                Input(f"What is {number} + 1?"),
                [Reference(Output(str(number + 1)), [CORRECT_TAG]), *(Reference(Output(w), []) for w in ("0", "9"))],
                split="test",
                sub_split="odd" if number % 2 else "even",
                id=f"s{number}",
                extra_data={"level": number, "weird": float("inf")},
            )
            for number in (1, 2, 3)
        ]


class Two(Client):
    """Answers 2; of an echoed prompt it says it whole, and likes it the less the longer it is."""

    def make_request(self, request: Any) -> RequestResult:
        if "3 + 1" in request.prompt and "fail" in request.model_deployment:
            flags = ErrorFlags(is_retriable=False, is_fatal=False)
            return RequestResult(False, [], [], cached=False, error="refused by the provider", error_flags=flags)
        text = request.prompt if request.echo_prompt else " 2"
        tokens = [Token(word, -0.5) for word in text.split(" ")]
        made = [GeneratedOutput(text, -0.5 * len(tokens), tokens, {"reason": "stop"})] * request.num_completions
        return RequestResult(True, [], made, cached=False, request_time=0.25, request_datetime=1_700_000_000)


class Odd(Metric):
    """Stats that nobody describes, and values that are no numbers."""

    def evaluate_generation(self, adapter_spec: Any, request_state: Any, metric_service: Any, eval_cache_path: str):
        length = len(request_state.result.completions[0].text)
        return [Stat(MetricName("odd_length")).add(length), Stat(MetricName("odd_nan")).add(float("nan"))]


def run_sums(folder: Path, name: str = "sums", *, deployment: str = "two", metrics: tuple[str, ...] = ("exact_match",),
             more: tuple[str, ...] = (), perturbation: str = "", **spec: Any) -> FinishedRun:  # fmt: skip
    """Run `Sums` as HELM runs any scenario of its own, and return the run."""
    deployment = _register(deployment)
    specs = [MetricSpec(f"{BASIC}.BasicGenerationMetric", {"names": list(metrics)})]
    if spec.get("method", "").startswith("multiple_choice_separate"):
        specs = [MetricSpec(f"{BASIC}.BasicReferenceMetric", {})]
    perturbations = [PerturbationSpec(perturbation, {"prob": 1.0})] if perturbation else []
    adapter_spec = AdapterSpec(
        **{"method": "generation", "model": "org/two", "model_deployment": deployment, "max_train_instances": 0,
           "temperature": 0.0, "max_tokens": 5, "num_outputs": 1, "stop_sequences": [], **spec}
    )  # fmt: skip
    runner = StreamingRunner(
        execution_spec=ExecutionSpec(auth=Authentication(""), url=None, local_path=str(folder), parallelism=1),
        output_path=str(folder / "out"), suite="s", skip_instances=False, cache_instances=False,
        cache_instances_only=False, skip_completed_runs=False, exit_on_error=True,
    )  # fmt: skip
    augment = DataAugmenterSpec(perturbations, should_augment_eval_instances=True, should_include_original_eval=True)
    runner.run_one(
        RunSpec(name, ScenarioSpec(f"{__name__}.Sums"), adapter_spec, [*specs, *map(MetricSpec, more)],
                data_augmenter_spec=augment if perturbation else DataAugmenterSpec())
    )  # fmt: skip
    return read_run(folder / "out" / "runs" / "s" / name)


def _register(name: str) -> str:
    """Register a deployment once, and return its name."""
    full = f"finished_runs/{name}"
    try:
        get_model_deployment(full)
    except ValueError:
        tokenizer = TokenizerSpec("helm.tokenizers.simple_tokenizer.SimpleTokenizer")
        register_tokenizer_config(TokenizerConfig(f"{full}/words", tokenizer, end_of_text_token="", prefix_token=""))
        client = ClientSpec(f"{__name__}.Two")
        register_model_deployment(
            ModelDeployment(full, client, tokenizer_name=f"{full}/words", max_sequence_length=1000)
        )
    return full


def rewrite(run: FinishedRun, name: str, **layout: Any) -> None:
    """Write one of the run's files again, in another layout."""
    path = run.folder / name
    path.write_text(json.dumps(json.loads(path.read_bytes()), **layout))
