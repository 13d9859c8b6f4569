"""The shape of a file: what each key may hold. Also the JSON Schema for editors.

Typed dicts, not classes: they are validated at about the speed of parsing, and unknown keys stay where they are.
pydantic's words for what is wrong never reach a user: see `wording`. Every key is explained in docs/adapter_spec.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import Required, TypedDict

__all__ = [
    "FILE",
    "JOINT",
    "JOINT_COT",
    "JOINT_METHODS",
    "KNOWN_STATE",
    "LABELLED_METHODS",
    "METHODS",
    "STATE",
    "UNSUPPORTED_METHODS",
    "known_keys",
    "validate",
]

_OPEN = ConfigDict(strict=True, extra="allow", use_attribute_docstrings=True)
"""Unknown keys are kept (they occur in real files)."""

AnswerMapping = dict[str, str | int]

_EVAL_SPLITS = "[Tt][Ee][Ss][Tt]|[Vv][Aa][Ll][Ii][Dd](?:[Aa][Tt][Ii][Oo][Nn])?|[Dd][Ee][Vv]"
Split = Annotated[str, Field(json_schema_extra={"pattern": rf"^\s*(?:[Tt][Rr][Aa][Ii][Nn]|{_EVAL_SPLITS})\s*$"})]
"""Names of splits; `rows` reads them and says what is wrong. The pattern is for editors."""
EvalSplit = Annotated[str, Field(json_schema_extra={"pattern": rf"^\s*(?:{_EVAL_SPLITS})\s*$"})]


@with_config(_OPEN)
class OutputModel(TypedDict, total=False):
    """What a reference says."""

    text: Required[str]
    """The answer, or one option."""


@with_config(_OPEN)
class ReferenceModel(TypedDict, total=False):
    """One possible answer; an option, for multiple choice."""

    output: Required[OutputModel]
    """What it says."""
    tags: list[str] | None
    """`["correct"]` marks what is right; several references may be."""
    split: Split | None
    """Accepted here too; must agree with the instance's."""


@with_config(_OPEN)
class MessageModel(TypedDict, total=False):
    """One turn of a conversation."""

    role: Required[str]
    """`system`, `user` or `assistant`."""
    content: Required[str]
    """What is said."""


@with_config(_OPEN)
class InputModel(TypedDict, total=False):
    """What is asked."""

    text: str | None
    """The question."""
    messages: list[MessageModel] | None
    """A conversation, for the method `chat`."""


@with_config(_OPEN)
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


@with_config(_OPEN)
class TokenModel(TypedDict, total=False):
    """One token of a completion."""

    text: Required[str]
    """The token."""
    logprob: Measured | None
    """Its log-probability."""


@with_config(_OPEN)
class FinishReasonModel(TypedDict, total=False):
    """Why a completion ended. HELM's metrics read its `reason`."""

    reason: Required[str]
    """`stop`, `length`, `endoftext`, or another word."""


@with_config(_OPEN)
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


@with_config(_OPEN)
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


@with_config(_OPEN)
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


@with_config(_OPEN)
class StateModel(TypedDict, total=False):
    """One element of `request_states`: a row, and what a model answered, if it was asked."""

    instance: Required[InstanceModel]
    """The row."""
    request: RequestModel | None
    """What was sent to a model and came back. Absent or {}: not run."""
    result: ResultModel | None
    """HELM's own place of the result."""
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


_CLOSED = ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)
"""Unknown keys are errors: a typo would silently change the prompt or the score."""

METHODS = (
    "generation",
    "chat",
    "multiple_choice_joint",
    "multiple_choice_joint_chain_of_thought",
    "multiple_choice_separate_original",
    "multiple_choice_separate_calibrated",
)
"""HELM's adaptation methods for text that can be run and re-scored."""

JOINT = "multiple_choice_joint"
JOINT_COT = "multiple_choice_joint_chain_of_thought"
JOINT_METHODS = (JOINT, JOINT_COT)
LABELLED_METHODS = (None, "generation", "chat", *JOINT_METHODS)
"""Methods whose completions name an option (None: not chosen yet, and then it will be one of these)."""

UNSUPPORTED_METHODS = (
    "language_modeling",
    "ranking_binary",
    "ehr_instruction",
    "generation_multimodal",
    "multiple_choice_joint_multimodal",
)
"""HELM's other methods."""


@with_config(_CLOSED)
class DecodingModel(TypedDict, total=False):
    """How the model samples."""

    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    """Absent: 0."""
    top_p: Annotated[float, Field(ge=0, le=1)] | None
    """Nucleus sampling."""
    top_k: Annotated[int, Field(ge=1)] | None
    """HELM's top_k_per_token."""
    frequency_penalty: Annotated[float, Field(allow_inf_nan=False)] | None
    """Against repetition, by frequency."""
    presence_penalty: Annotated[float, Field(allow_inf_nan=False)] | None
    """Against repetition, by presence."""
    num_outputs: Annotated[int, Field(ge=1)] | None
    """Completions per request. Absent: 1."""
    seed: int | str | None
    """The model's seed (HELM: `random`); not the one that rows are sampled with."""


@with_config(_CLOSED)
class SubstitutionModel(TypedDict):
    """HELM's Substitution."""

    source: str
    """Regular expression."""
    target: str
    """Replacement."""


@with_config(_CLOSED)
class AdapterSpecModel(TypedDict, total=False):
    """How prompts are made and the model is asked: HELM's AdapterSpec, with the format's own keys."""

    method: Annotated[str, Field(json_schema_extra={"enum": list(METHODS)})] | None
    """HELM's adaptation method. Absent: chosen by what the rows are."""
    instructions: str | None
    """The task's description, at the top of the prompt."""
    global_prefix: str | None
    """Before the whole prompt."""
    global_suffix: str | None
    """After the whole prompt."""
    input_prefix: str | None
    """Before each input."""
    input_suffix: str | None
    """After each input."""
    reference_prefix: str | None
    """Before each option; its letter is the first label."""
    reference_suffix: str | None
    """After each option."""
    reference_prefix_characters: list[str] | None
    """The labels of the options, in order."""
    chain_of_thought_prefix: str | None
    """Before each chain of thought."""
    chain_of_thought_suffix: str | None
    """After each chain of thought."""
    output_prefix: str | None
    """Before each answer."""
    output_suffix: str | None
    """After each answer."""
    instance_prefix: str | None
    """Between demonstrations."""
    instance_prefixw: str | None
    """Accepted for instance_prefix."""
    output_format: Literal["string", "list"] | None
    """Whether a prediction is one text or a list of segments."""
    ouput_format: Literal["string", "list"] | None
    """Accepted for output_format."""
    max_train_instances: Annotated[int, Field(ge=0)] | None
    """Demonstrations in a prompt."""
    max_eval_instances: Annotated[int, Field(ge=1)] | None
    """At most this many rows are evaluated."""
    max_tokens: Annotated[int, Field(ge=0)] | None
    """At most this many tokens are generated."""
    stop_sequences: list[str] | None
    """Generation ends at the first of these."""
    decoding_parameters: DecodingModel | None
    """How the model samples."""
    answer_mapping: AnswerMapping | None
    """Label to option, for all rows."""
    output_mapping: AnswerMapping | None
    """HELM's name of answer_mapping."""
    output_mapping_pattern: str | None
    """Regular expression that finds the label in a completion."""
    num_outputs: Annotated[int, Field(ge=1)] | None
    """As in decoding_parameters."""
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    """As in decoding_parameters."""
    random: str | None
    """As decoding_parameters.seed."""
    num_train_trials: Annotated[int, Field(ge=1)] | None
    """Runs with different demonstrations."""
    num_trials: Annotated[int, Field(ge=1)] | None
    """Runs with different seeds of the model."""
    sample_train: bool | None
    """Whether HELM draws demonstrations at random."""
    multi_label: bool | None
    """All correct references together are the answer, not any of them."""
    substitutions: list[SubstitutionModel] | None
    """Search and replace at the very end of the prompt."""
    eval_splits: list[EvalSplit] | None
    """The splits that are evaluated: `test`, `valid` (`validation` and `dev` mean `valid`). Absent or []: both."""
    model: str | None
    """In HELM's own files; the run names the model."""
    model_deployment: str | None
    """In HELM's own files; the run names the deployment."""
    image_generation_parameters: dict[str, Any] | None
    """In HELM's own files; not used for text."""
    reeval_parameters: dict[str, Any] | None
    """In HELM's own files; not used here."""


@with_config(_CLOSED)
class ScoringModel(TypedDict, total=False):
    """How completions become scores."""

    metrics: list[str] | None
    """HELM's metric names or this package's."""
    main_metric: str | None
    """What the leaderboard shows: one of the metrics."""
    extract: str | None
    """Regular expression applied to each prediction: first group of the last match. No match: unmapped, score 0."""
    strip: bool | None
    """Remove white space around each prediction."""
    lower: bool | None
    """Lower-case predictions and references."""
    separator: Annotated[str, Field(min_length=1)] | None
    """Between the segments of a list. Absent: `;`."""
    extract_all: str | None
    """Regular expression each match of which is a segment of a list; several groups make a tuple."""
    extract_positions: bool | None
    """Make the number of words before a match of `extract_all` part of its segment."""
    extract_references: bool | None
    """Apply `extract` and `extract_all` to references too."""
    drop_duplicates: bool | None
    """Count a segment that is repeated in a list once."""
    cut_at_stop: bool | None
    """Cut predictions and references at the stop sequences. Absent: where only white space follows in references."""


@with_config(_CLOSED)
class FileModel(TypedDict, total=False):
    """A file of `adapter_spec` and `request_states`, as one object."""

    schema_: Annotated[str | None, Field(alias="$schema")]
    """The JSON Schema that an editor checks the file against."""
    name: str | None
    """Short name; absent: the file's."""
    display_name: str | None
    """Title in reports."""
    description: str | None
    """What it is about."""
    adapter_spec: Required[AdapterSpecModel]
    """How prompts are made and the model is asked."""
    scoring: ScoringModel | None
    """How completions become scores."""
    annotator_specs: list[Any] | None
    """In HELM's own files; not used here."""
    request_states: Required[list[StateModel]]
    """The rows."""


FILE: TypeAdapter[FileModel] = TypeAdapter(FileModel)
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
