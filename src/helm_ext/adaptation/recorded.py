"""Deployments without a model: completions that were recorded earlier are handed back.

    helm-run --run-entries adapter_spec:dataset=qa,model=recorded/my-model ...
    helm-run --run-entries adapter_spec:dataset=qa,model=ORG/NAME,model_deployment=recorded/ORG/NAME ...

Any name after `recorded/` is a deployment. It has no tokenizer, no cache and no network. The completion travels on the
request itself, so there is no lookup table, and no second copy of it in HELM's output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    get_model_deployment,
    model_deployment_generator,
)
from helm.clients.client import Client
from helm.common.request import GeneratedOutput, Request, RequestResult, Thinking, Token

from helm_ext.errors import RecordedError
from helm_ext.evalset import RecordedState
from helm_ext.evalset.rows import Unrecorded, find_unrecorded

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState

T = TypeVar("T")

CLIENT_CLASS_NAME = "helm_ext.adaptation.recorded.RecordedClient"
LEFT_OUT_DEPLOYMENT = "recorded/left-out"
"""Where the request of a row goes that a live run leaves out of the score: to no model."""

_TEXT_REQUEST_FIELDS = frozenset(field.name for field in fields(Request)) - {
    # Who is asked is this run's business.
    "model",
    "model_deployment",
    # Objects of their own, for images; the methods that are re-scored are about text.
    "multimodal_prompt",
    "image_generation_parameters",
    "response_format",
}


_STATE_FIELDS = frozenset(RecordedState.__annotations__) - {"result", "request"}


@dataclass(frozen=True)
class RecordedRequest(Request):
    """A request that knows its answer.

    `result` and `unmeasured` are attributes, not dataclass fields: HELM's output files hold the plain request.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "result", None)
        object.__setattr__(self, "unmeasured", frozenset())

    if TYPE_CHECKING:

        @property
        def result(self) -> RequestResult | None:
            """What is handed back; None when HELM copied the request and lost it."""

        @property
        def unmeasured(self) -> frozenset[str]:
            """Names of HELM stats that would be made up, because the recording does not hold them."""


def make_recorded_request(request: Request, result: RequestResult) -> RecordedRequest:
    """Return `request` with the result that it hands back."""
    made = RecordedRequest()
    made.__dict__.update(request.__dict__, result=result)
    return made


def rebuild_request(
    request: RecordedRequest, state: RecordedState, unmeasured: frozenset[str] | None = None
) -> RecordedRequest:
    """Return `request` as it was sent according to a recorded state, with the result that came back.

    `unmeasured`: where that is known of all rows.
    """
    if unmeasured is None:
        unmeasured = unmeasured_stats(state)
    result = to_request_result(state["result"])
    return copy_with(request, result=result, unmeasured=unmeasured, **to_request_fields(state))


def copy_with(template: T, **changes: Any) -> T:
    """Return a copy of a frozen dataclass's instance with these attributes.

    Plain equivalent: `dataclasses.replace`, which sets each field by itself. Saves 5 % of a recorded run.
    """
    made: T = object.__new__(type(template))
    object.__setattr__(made, "__dict__", vars(template) | changes)
    return made


class RecordedClient(Client):
    """HELM's client for `recorded/...`: returns what the request carries, unchanged."""

    def make_request(self, request: Request) -> RequestResult:
        """Return the recorded result.

        Raises RecordedError for a request that carries none: it was made for a live model.
        """
        result = getattr(request, "result", None)
        if result is None:
            raise RecordedError(
                f"{request.model_deployment} only hands back completions that a file holds, and this request carries "
                "none\n  hint: recorded deployments work with the run entries adapter_spec:, ultraeval: and innodata:"
            )
        return result


def hand_back(states: Sequence[RequestState]) -> bool:
    """Fill in the results that the states' requests carry. Does nothing, and says so, unless all of them do.

    HELM's executor would hand each request to `RecordedClient`, which does no more, and copy the state.
    """
    results = [getattr(state.request, "result", None) for state in states]
    if not all(results):
        return False
    for state, result in zip(states, results, strict=True):
        vars(state)["result"] = result
    return True


def get_recorded_model_deployment(name: str) -> ModelDeployment:
    """Make a deployment for `recorded/NAME`.

    `recorded/openai/gpt-4` stands for the model `openai/gpt-4` (for `model=openai/gpt-4,model_deployment=...`);
    `recorded/mine` is a model of its own.
    """
    model = name.split("/", 1)[1]
    return ModelDeployment(
        name=name, client_spec=ClientSpec(class_name=CLIENT_CLASS_NAME), model_name=model if "/" in model else name
    )


@cache
def register_deployments() -> None:
    """Register `recorded/NAME`, for any name, once: HELM refuses a second time."""
    model_deployment_generator("recorded")(get_recorded_model_deployment)


def is_recorded(model_deployment: str) -> bool:
    """Whether requests to this deployment are answered by `RecordedClient`."""
    return get_model_deployment(model_deployment).client_spec.class_name == CLIENT_CLASS_NAME


def to_request_result(recorded: Mapping[str, Any]) -> RequestResult:
    """Turn a recorded result (JSON) into HELM's RequestResult, times unchanged.

    HELM cannot write a completion without a log-probability or tokens; 0.0 and [] stand for "not recorded", as in
    HELM's own clients, and `unmeasured_stats` says which stats must not be made of them.
    """
    return RequestResult(
        success=True,
        embedding=[],
        completions=[_to_generated_output(completion) for completion in recorded["completions"]],
        cached=bool(recorded.get("cached")),
        request_time=recorded.get("request_time"),
        request_datetime=recorded.get("request_datetime"),
        batch_size=recorded.get("batch_size"),
        batch_request_time=recorded.get("batch_request_time"),
    )


def empty_request_result() -> RequestResult:
    """Return the stand-in for a row that is left out: HELM's report needs one completion per request."""
    return RequestResult(
        success=True, embedding=[], completions=[GeneratedOutput(text="", logprob=0.0, tokens=[])], cached=False
    )


def to_request_fields(state: RecordedState) -> dict[str, Any]:
    """Return the recorded request's fields that HELM's Request has, `model` and `model_deployment` excepted."""
    recorded = state.get("request", {})
    return {key: value for key, value in recorded.items() if key in _TEXT_REQUEST_FIELDS and value is not None}


def to_state_fields(state: RecordedState) -> dict[str, Any]:
    """Return the recorded fields of HELM's RequestState, where they say something."""
    return {key: value for key, value in state.items() if key in _STATE_FIELDS and value not in (None, {})}


def unmeasured_stats(state: RecordedState) -> frozenset[str]:
    """Return the names of HELM's stats that this recording says nothing about, those of log-probabilities aside."""
    return name_unmeasured(find_unrecorded(state))


@cache
def name_unmeasured(unrecorded: int) -> frozenset[str]:
    """Return the names of HELM's stats that a recording says nothing about, by bits of `Unrecorded`; as above."""
    names = {"num_prompt_tokens", "num_output_tokens"}
    if unrecorded & Unrecorded.TOKENS:
        names |= {"num_completion_tokens"}
    if unrecorded & Unrecorded.TRAIN_INSTANCES:
        names |= {"num_train_instances"}
    if unrecorded & Unrecorded.TRUNCATED:
        names |= {"prompt_truncated"}
    return frozenset(names)


def _to_generated_output(completion: Mapping[str, Any]) -> GeneratedOutput:
    thinking = completion.get("thinking")
    return GeneratedOutput(
        text=completion["text"],
        logprob=_number(completion.get("logprob")),
        tokens=[Token(token["text"], _number(token.get("logprob"))) for token in completion.get("tokens") or ()],
        finish_reason=completion.get("finish_reason"),
        thinking=Thinking(text=thinking.get("text")) if isinstance(thinking, Mapping) else None,
    )


def _number(value: float | None) -> float:
    return 0.0 if value is None else value
