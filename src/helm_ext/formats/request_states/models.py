"""The shape of a row of `request_states`: what each key may hold. Also the JSON Schema for editors.

Typed dicts, not classes: they are validated at about the speed of parsing, and unknown keys stay where they are.
pydantic's words for what is wrong never reach a user: see `wording`. Every key is explained in docs/adapter_spec.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema, with_config
from typing_extensions import Required, TypedDict

from helm_ext.judging.judgement import Judgement

OPEN = ConfigDict(strict=True, extra="allow", defer_build=True)
"""Unknown keys are kept (they occur in real files)."""

AnswerMapping = dict[str, str | int]

EVAL_SPLITS_PATTERN = "[Tt][Ee][Ss][Tt]|[Vv][Aa][Ll][Ii][Dd](?:[Aa][Tt][Ii][Oo][Nn])?|[Dd][Ee][Vv]"
Split = Annotated[str, Field(json_schema_extra={"pattern": rf"^\s*(?:[Tt][Rr][Aa][Ii][Nn]|{EVAL_SPLITS_PATTERN})\s*$"})]
"""Names of splits; `rows` reads them and says what is wrong. The pattern is for editors."""


@with_config(OPEN)
class OutputModel(TypedDict, total=False):
    """What a reference says."""

    text: Required[str]
    """The answer, or one option."""


@with_config(OPEN)
class ReferenceModel(TypedDict, total=False):
    """One possible answer; an option, for multiple choice."""

    output: Required[OutputModel]
    """What it says."""
    tags: list[str] | None
    """`["correct"]` marks what is right; several references may be."""
    split: Split | None
    """Accepted here too; must agree with the instance's."""


@with_config(OPEN)
class MessageModel(TypedDict, total=False):
    """One turn of a conversation."""

    role: Required[str]
    """`system`, `user` or `assistant`."""
    content: Required[str]
    """What is said."""


@with_config(OPEN)
class InputModel(TypedDict, total=False):
    """What is asked."""

    text: str | None
    """The question."""
    messages: list[MessageModel] | None
    """A conversation, for the method `chat`."""


@with_config(OPEN)
class InstanceModel(TypedDict, total=False):
    """One row of the dataset."""

    input: Required[InputModel]
    """What is asked."""
    references: list[ReferenceModel] | None
    """Possible answers, the right one (or ones) tagged `correct`."""
    split: Split | None
    """`train` (demonstrations), `test` or `valid` (`validation` and `dev` mean `valid`)."""
    id: int | str | None
    """Any name; made unique where it is not."""
    sub_split: str | None
    """HELM's sub split."""
    perturbation: dict[str, Any] | None
    """HELM's description of a perturbation."""
    contrast_inputs: list[InputModel] | None
    """HELM's contrast sets."""
    contrast_references: list[list[ReferenceModel]] | None
    """HELM's contrast sets."""
    extra_data: dict[str, Any] | None
    """Anything; passed to HELM as it is."""
    chain_of_thought: str | None
    """Train rows: the reasoning, rendered between output_prefix and the answer."""
    answer_mapping: AnswerMapping | None
    """Label to option: the option's text, or its position in `references`, counted from 0."""
    output_mapping: AnswerMapping | None
    """HELM's name of answer_mapping."""


_MAX_WHOLE = 1 << 53
"""Below, a float is the whole number that it shows."""

_LARGEST = 1e100
Measured = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST), msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
"""A number that HELM's stats add up and square: `Stat.add` (helm/benchmark/metrics/statistic.py) fails beyond 1e154."""


@with_config(OPEN)
class TokenModel(TypedDict, total=False):
    """One token of a completion."""

    text: Required[str]
    """The token."""
    logprob: Measured | None
    """Its log-probability."""


@with_config(OPEN)
class FinishReasonModel(TypedDict, total=False):
    """Why a completion ended. HELM's metrics read its `reason`."""

    reason: Required[str]
    """`stop`, `length`, `endoftext`, or another word."""


@with_config(OPEN)
class CompletionModel(TypedDict, total=False):
    """One output of the model."""

    text: str | None
    """What the model wrote."""
    logprob: Measured | None
    """Sum of the log-probabilities."""
    tokens: list[TokenModel] | None
    """Its tokens."""
    finish_reason: FinishReasonModel | None
    """Why it ended."""
    thinking: dict[str, Any] | None
    """HELM: `{text}` of a reasoning model."""
    multimodal_content: Any
    """HELM's; not used here."""


@with_config(OPEN)
class ResultModel(TypedDict, total=False):
    """What came back for a request: HELM's RequestResult."""

    success: bool | None
    """Absent with completions means true."""
    completions: list[CompletionModel] | None
    """The model's outputs, in order. None, or a single empty one without tokens and success: not run."""
    cached: bool | None
    """Whether it came from a cache."""
    request_time: Measured | None
    """Seconds."""
    request_datetime: int | float | None
    """Seconds since 1970."""
    error: str | None
    """What went wrong, if success is false."""
    batch_size: Annotated[int, Field(ge=1, le=_MAX_WHOLE), msgspec.Meta(ge=1, le=_MAX_WHOLE)] | None
    """HELM's."""
    batch_request_time: Measured | None
    """HELM's."""
    embedding: Any
    """HELM's; not used here."""
    error_flags: Any
    """HELM's; not used here."""


@with_config(OPEN)
class RequestModel(TypedDict, total=False):
    """What was sent to a model (HELM's Request), and under `result` what came back."""

    result: ResultModel | None
    """What came back."""
    prompt: str | None
    """What was sent."""
    messages: Any
    """What was sent to a chat model."""
    temperature: Any
    """As it was sent, like all that follows."""
    max_tokens: Any
    """At most this many tokens were generated."""
    stop_sequences: Any
    """Generation ended at the first of these."""
    num_completions: Any
    """Completions that were asked for."""
    top_p: Any
    """Nucleus sampling."""
    top_k_per_token: Any
    """HELM's name of top_k."""
    presence_penalty: Any
    """Against repetition, by presence."""
    frequency_penalty: Any
    """Against repetition, by frequency."""
    random: Any
    """The model's seed."""
    echo_prompt: Any
    """Whether the completion begins with the prompt."""
    model: Any
    """Who was asked; the run names whose completions they are."""
    model_deployment: Any
    """As `model`."""
    embedding: Any
    """HELM's; not used here."""
    multimodal_prompt: Any
    """HELM's; not used here."""
    image_generation_parameters: Any
    """HELM's; not used here."""
    response_format: Any
    """HELM's; not used here."""


@with_config(OPEN)
class LikelihoodModel(TypedDict, total=False):
    """How likely one option is after the question."""

    text: Required[str]
    """The option as it was scored: the text of its reference, or its label."""
    logprob: Required[Measured]
    """Sum of the log-probabilities of its tokens, in nats."""
    greedy: bool | None
    """Whether the model would have written just this."""
    alone: Measured | None
    """Its log-probability without the question, for `acc_mutual_info`."""


_JUDGEMENTS: dict[str, Any] = {
    "type": ["array", "null"],
    "items": {
        "type": "object",
        "required": ["by", "kind", "criterion"],
        "properties": {name: {} for name in Judgement.__struct_fields__},
        "additionalProperties": False,
    },
}


@with_config(OPEN)
class StateModel(TypedDict, total=False):
    """One element of `request_states`: a row, and what a model answered, if it was asked."""

    instance: Required[InstanceModel]
    """The row."""
    request: RequestModel | None
    """What was sent to a model and came back. Absent or {}: not run."""
    result: ResultModel | None
    """HELM's own place of the result."""
    likelihoods: list[LikelihoodModel] | None
    """Log-probabilities of the options, one for each reference and in their order, instead of a text."""
    source_scores: dict[str, Measured | None] | None
    """What another tool, the header's `source`, scored the row, by the names of its scores. None: it could not."""
    judgements: Annotated[Any, WithJsonSchema(_JUDGEMENTS)]
    """What models and people said of the recorded answer. `helm_ext.judging` checks them."""
    answer_mapping: AnswerMapping | None
    """Label to option: the option's text, or its position in `references`, counted from 0."""
    output_mapping: AnswerMapping | None
    """HELM's name of answer_mapping."""
    train_trial_index: int | None
    """HELM's."""
    reference_index: int | None
    """HELM's: which reference this request was about."""
    request_mode: Literal["original", "calibration"] | None
    """HELM's, for multiple_choice_separate_calibrated."""
    num_train_instances: int | None
    """HELM's: demonstrations in the prompt."""
    prompt_truncated: bool | None
    """HELM's."""
    num_conditioning_tokens: int | None
    """HELM's, for language modeling; not used here."""


STATE: TypeAdapter[StateModel] = TypeAdapter(StateModel)
KNOWN_STATE: msgspec.json.Decoder[StateModel] = msgspec.json.Decoder(StateModel)
"""Reads and checks a state in one step, and silently leaves out unknown keys. What it refuses is not explained."""


def known_keys(model: Any) -> frozenset[str]:
    """Return the keys that the format reads in an object of this shape. Files may have others in rows."""
    return frozenset(model.__annotations__)


def validate(adapter: TypeAdapter[Any], value: Any) -> Any:
    """Return `value` as `adapter` has it. Raises ValidationError.

    1.0 stands for 1 where a whole number is expected, as JSON Schema has it; such floats are replaced in `value`.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        numbers = [item for item in error.errors(include_url=False) if item["type"] == "int_type"]
        if not [item for item in numbers if _make_whole(value, item["loc"], item["input"])]:
            raise
    return adapter.validate_python(value)


def _make_whole(value: Any, place: tuple[int | str, ...], found: Any) -> bool:
    """Replace `found` at `place` by a whole number, if it shows one. `place` may go on with pydantic's own names."""
    if not isinstance(found, float) or not found.is_integer() or abs(found) >= _MAX_WHOLE:
        return False
    for part in place:
        holder = value
        try:
            value = holder[part]
        except (KeyError, IndexError, TypeError):
            return False
        if value is found:
            holder[part] = int(found)
            return True
    return False
