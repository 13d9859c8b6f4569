"""The shape of a file's header, `adapter_spec` and `scoring`, and of the file as a whole: what each key may hold.

The rows' shape, and why these are typed dicts: `models`. Every key is explained in docs/adapter_spec.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import Required, TypedDict

from helm_ext.formats.request_states.models import EVAL_SPLITS_PATTERN, AnswerMapping, StateModel

EvalSplit = Annotated[str, Field(json_schema_extra={"pattern": rf"^\s*(?:{EVAL_SPLITS_PATTERN})\s*$"})]

CLOSED = ConfigDict(strict=True, extra="forbid", defer_build=True)
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


@with_config(CLOSED)
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


@with_config(CLOSED)
class SubstitutionModel(TypedDict):
    """HELM's Substitution."""

    source: str
    """Regular expression."""
    target: str
    """Replacement."""


@with_config(CLOSED)
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


@with_config(CLOSED)
class ScoringModel(TypedDict, total=False):
    """How completions become scores."""

    metrics: list[str] | None
    """HELM's metric names or this package's. Empty: nothing but what the `source` says."""
    main_metric: str | None
    """What the leaderboard shows: one of the metrics."""
    completions: str | None
    """How several completions of a row are scored: the `first` alone, or the `mean`, `median`, `mode` or `max` of their
    scores, `at_least_K`, `pass_at_K`, `pass_k_K`. Absent: `first`."""
    thinking: Literal["move", "keep"] | None
    """Whether what a model thinks before it answers (`<think>`...) is moved out of its completion. Absent: `move`."""
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
    score_tokenizer: str | None
    """Folder of a Hugging Face tokenizer, or its name in this machine's cache, for scores that count tokens."""
    cut_at_stop: bool | None
    """Cut predictions and references at the stop sequences. Absent: where only white space follows in references."""


@with_config(CLOSED)
class SourceScoreModel(TypedDict, total=False):
    """What another tool reports of one of its scores, over all rows."""

    mean: float | None
    """As it is reported; absent where there is no report."""
    lower_is_better: bool | None
    """Absent: false. None: nobody says."""
    no_mean: str | None
    """Why what is reported is no mean of the rows' scores."""
    bounds: Annotated[list[float], Field(min_length=2, max_length=2)] | None
    """The least and the greatest value that a row may have; None where nobody says."""


@with_config(CLOSED)
class SourceModel(TypedDict, total=False):
    """Where recorded completions come from, with the scores that another tool gave the rows (`source_scores`)."""

    tool: Required[str]
    """What wrote them: its scores are stats named `TOOL_SCORE`."""
    version: str | None
    """The tool's."""
    model: str | None
    """As the tool spells it."""
    task: str | None
    """As the tool names the dataset."""
    settings: dict[str, Any] | None
    """Shots, decoding parameters and the like, as the tool spells them."""
    scores: dict[str, SourceScoreModel] | None
    """Its scores by name: all that occur in the rows."""
    main: str | None
    """The score that it is headed by: the main metric, unless the run entry names another."""
    main_reason: str | None
    """Why it is that one."""


@with_config(CLOSED)
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
    source: SourceModel | None
    """Where recorded completions come from, if another tool made and scored them."""
    annotator_specs: list[Any] | None
    """In HELM's own files; not used here."""
    request_states: Required[list[StateModel]]
    """The rows."""


FILE: TypeAdapter[FileModel] = TypeAdapter(FileModel)
