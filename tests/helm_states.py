"""HELM's request states for tests: what a test is about is given, all else is as in a plain recorded row."""

from typing import Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Instance, Output, Reference
from helm.common.request import GeneratedOutput, Request, RequestResult, Token


def make_references(right: tuple[str, ...] | list[str], wrong: tuple[str, ...] | list[str] = ()) -> list[Reference]:
    return [
        *(Reference(Output(text), [CORRECT_TAG]) for text in right),
        *(Reference(Output(text), []) for text in wrong),
    ]


def make_output(text: str, logprob: float = 0.0, tokens: Any = ()) -> GeneratedOutput:
    """A completion; `tokens` are pairs of text and log-probability."""
    return GeneratedOutput(text, logprob, [Token(*token) for token in tokens])


def make_result(*completions: GeneratedOutput, **fields: Any) -> RequestResult:
    return RequestResult(**{"success": True, "embedding": [], "completions": [*completions], "cached": False, **fields})


def make_state(instance: Instance, *completions: GeneratedOutput, **fields: Any) -> RequestState:
    """A request with these completions; without any it has not been asked."""
    given = {
        "reference_index": None, "request_mode": None, "train_trial_index": 0, "output_mapping": None,
        "request": Request(model_deployment="recorded/x"), "result": make_result(*completions) if completions else None,
        "num_train_instances": 0, "prompt_truncated": False,
    }  # fmt: skip
    return RequestState(instance=instance, **{**given, **fields})


def means(metric: Any, spec: Any, states: Any) -> tuple[Any, dict[str, float]]:
    """Return a metric's result and the means of its stats over the test rows, by name."""
    result = metric.evaluate(ScenarioState(spec, list(states)), None, "", parallelism=1)
    return result, {stat.name.name: stat.mean for stat in result.aggregated_stats if stat.name.split == "test"}
