"""The shape of a file, its header and its rows: what each key may hold.

Read by `checking`, and by editors as JSON Schema, which describes a key by the comment at its end or above it. Typed
dicts, not classes: unknown keys stay where they are. Every key is explained in docs/adapter_spec.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta
from typing_extensions import Required, TypedDict

from helm_ext.judging.judgement import Judgement

AnswerMapping = dict[str, str | int]

EVAL_SPLITS_PATTERN = "[Tt][Ee][Ss][Tt]|[Vv][Aa][Ll][Ii][Dd](?:[Aa][Tt][Ii][Oo][Nn])?|[Dd][Ee][Vv]"
Split = Annotated[str, Meta(extra_json_schema={"pattern": rf"^\s*(?:[Tt][Rr][Aa][Ii][Nn]|{EVAL_SPLITS_PATTERN})\s*$"})]
"""Names of splits; `rows` reads them and says what is wrong. The pattern is for editors."""


_AsSent = Annotated[Any, Meta(description="As it was sent.")]
_Unused = Annotated[Any, Meta(description="HELM's; not used here.")]


class OutputShape(TypedDict, total=False):
    """What a reference says."""

    text: Required[str]  # The answer, or one option.


class ReferenceShape(TypedDict, total=False):
    """One possible answer; an option, for multiple choice."""

    output: Required[OutputShape]  # What it says.
    tags: list[str] | None  # `["correct"]` marks what is right; several references may be.
    split: Split | None  # Accepted here too; must agree with the instance's.


class MessageShape(TypedDict, total=False):
    """One turn of a conversation."""

    role: Required[str]  # `system`, `user` or `assistant`.
    content: Required[str]  # What is said.


class InputShape(TypedDict, total=False):
    """What is asked."""

    text: str | None  # The question.
    messages: list[MessageShape] | None  # A conversation, for the method `chat`.


class InstanceShape(TypedDict, total=False):
    """One row of the dataset."""

    input: Required[InputShape]  # What is asked.
    references: list[ReferenceShape] | None  # Possible answers, the right one (or ones) tagged `correct`.
    split: Split | None  # `train` (demonstrations), `test` or `valid` (`validation` and `dev` mean `valid`).
    id: int | str | None  # Any name; made unique where it is not.
    sub_split: str | None  # HELM's sub split.
    perturbation: dict[str, Any] | None  # HELM's description of a perturbation.
    contrast_inputs: list[InputShape] | None  # HELM's contrast sets.
    contrast_references: list[list[ReferenceShape]] | None  # HELM's contrast sets.
    extra_data: dict[str, Any] | None  # Anything; passed to HELM as it is.
    chain_of_thought: str | None  # Train rows: the reasoning, rendered between output_prefix and the answer.
    # Label to option: the option's text, or its position in `references`, counted from 0.
    answer_mapping: AnswerMapping | None
    output_mapping: AnswerMapping | None  # HELM's name of answer_mapping.


MAX_WHOLE = 1 << 53
"""Below, a float is the whole number that it shows."""

_LARGEST = 1e100
Measured = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
"""A number that HELM's stats add up and square: `Stat.add` (helm/benchmark/metrics/statistic.py) fails beyond 1e154."""


class TokenShape(TypedDict, total=False):
    """One token of a completion."""

    text: Required[str]  # The token.
    logprob: Measured | None  # Its log-probability.


class FinishReasonShape(TypedDict, total=False):
    """Why a completion ended. HELM's metrics read its `reason`."""

    reason: Required[str]  # `stop`, `length`, `endoftext`, or another word.


class CompletionShape(TypedDict, total=False):
    """One output of the model."""

    text: str | None  # What the model wrote.
    logprob: Measured | None  # Sum of the log-probabilities.
    tokens: list[TokenShape] | None  # Its tokens.
    finish_reason: FinishReasonShape | None  # Why it ended.
    thinking: dict[str, Any] | None  # HELM: `{text}` of a reasoning model.
    multimodal_content: _Unused


class ResultShape(TypedDict, total=False):
    """What came back for a request: HELM's RequestResult."""

    success: bool | None  # Absent with completions means true.
    # The model's outputs, in order. None, or a single empty one without tokens and success: not run.
    completions: list[CompletionShape] | None
    cached: bool | None  # Whether it came from a cache.
    request_time: Measured | None  # Seconds.
    request_datetime: int | float | None  # Seconds since 1970.
    error: str | None  # What went wrong, if success is false.
    batch_size: Annotated[int, Meta(ge=1, le=MAX_WHOLE)] | None  # HELM's.
    batch_request_time: Measured | None  # HELM's.
    embedding: _Unused
    error_flags: _Unused


class RequestShape(TypedDict, total=False):
    """What was sent to a model (HELM's Request), and under `result` what came back."""

    result: ResultShape | None  # What came back.
    prompt: str | None  # What was sent.
    messages: _AsSent
    temperature: _AsSent
    max_tokens: _AsSent
    stop_sequences: _AsSent
    num_completions: _AsSent
    top_p: _AsSent
    top_k_per_token: _AsSent
    presence_penalty: _AsSent
    frequency_penalty: _AsSent
    random: _AsSent
    echo_prompt: _AsSent
    model: _AsSent
    model_deployment: _AsSent
    embedding: _Unused
    multimodal_prompt: _Unused
    image_generation_parameters: _Unused
    response_format: _Unused


class LikelihoodShape(TypedDict, total=False):
    """How likely one option is after the question."""

    text: Required[str]  # The option as it was scored: the text of its reference, or its label.
    logprob: Required[Measured]  # Sum of the log-probabilities of its tokens, in nats.
    greedy: bool | None  # Whether the model would have written just this.
    alone: Measured | None  # Its log-probability without the question, for `acc_mutual_info`.


_JUDGEMENTS: dict[str, Any] = {
    "type": ["array", "null"],
    "items": {
        "type": "object",
        "required": ["by", "kind", "criterion"],
        "properties": {name: {} for name in Judgement.__struct_fields__},
        "additionalProperties": False,
    },
}


class StateShape(TypedDict, total=False):
    """One element of `request_states`: a row, and what a model answered, if it was asked."""

    instance: Required[InstanceShape]  # The row.
    request: RequestShape | None  # What was sent to a model and came back. Absent or {}: not run.
    result: ResultShape | None  # HELM's own place of the result.
    # Log-probabilities of the options, one for each reference and in their order, instead of a text.
    likelihoods: list[LikelihoodShape] | None
    # What another tool, the header's `source`, scored the row, by the names of its scores. None: it could not.
    source_scores: dict[str, Measured | None] | None
    # What models and people said of the recorded answer. `helm_ext.judging` checks them.
    judgements: Annotated[Any, Meta(extra_json_schema=_JUDGEMENTS)]
    # Label to option: the option's text, or its position in `references`, counted from 0.
    answer_mapping: AnswerMapping | None
    output_mapping: AnswerMapping | None  # HELM's name of answer_mapping.
    train_trial_index: int | None  # HELM's.
    reference_index: int | None  # HELM's: which reference this request was about.
    request_mode: Literal["original", "calibration"] | None  # HELM's, for multiple_choice_separate_calibrated.
    num_train_instances: int | None  # HELM's: demonstrations in the prompt.
    prompt_truncated: bool | None  # HELM's.
    num_conditioning_tokens: int | None  # HELM's, for language modeling; not used here.


EvalSplit = Annotated[str, Meta(extra_json_schema={"pattern": rf"^\s*(?:{EVAL_SPLITS_PATTERN})\s*$"})]

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


class DecodingShape(TypedDict, total=False):
    """How the model samples."""

    temperature: Annotated[float, Meta(ge=0)] | None  # Absent: 0.
    top_p: Annotated[float, Meta(ge=0, le=1)] | None  # Nucleus sampling.
    top_k: Annotated[int, Meta(ge=1)] | None  # HELM's top_k_per_token.
    frequency_penalty: Measured | None  # Against repetition, by frequency.
    presence_penalty: Measured | None  # Against repetition, by presence.
    num_outputs: Annotated[int, Meta(ge=1)] | None  # Completions per request. Absent: 1.
    seed: int | str | None  # The model's seed (HELM: `random`); not the one that rows are sampled with.


class SubstitutionShape(TypedDict, total=False):
    """HELM's Substitution."""

    source: Required[str]  # Regular expression.
    target: Required[str]  # Replacement.


class AdapterSpecShape(TypedDict, total=False):
    """How prompts are made and the model is asked: HELM's AdapterSpec, with the format's own keys."""

    # HELM's adaptation method. Absent: chosen by what the rows are.
    method: Annotated[str, Meta(extra_json_schema={"enum": list(METHODS)})] | None
    instructions: str | None  # The task's description, at the top of the prompt.
    global_prefix: str | None  # Before the whole prompt.
    global_suffix: str | None  # After the whole prompt.
    input_prefix: str | None  # Before each input.
    input_suffix: str | None  # After each input.
    reference_prefix: str | None  # Before each option; its letter is the first label.
    reference_suffix: str | None  # After each option.
    reference_prefix_characters: list[str] | None  # The labels of the options, in order.
    chain_of_thought_prefix: str | None  # Before each chain of thought.
    chain_of_thought_suffix: str | None  # After each chain of thought.
    output_prefix: str | None  # Before each answer.
    output_suffix: str | None  # After each answer.
    instance_prefix: str | None  # Between demonstrations.
    instance_prefixw: str | None  # Accepted for instance_prefix.
    output_format: Literal["string", "list"] | None  # Whether a prediction is one text or a list of segments.
    ouput_format: Literal["string", "list"] | None  # Accepted for output_format.
    max_train_instances: Annotated[int, Meta(ge=0)] | None  # Demonstrations in a prompt.
    max_eval_instances: Annotated[int, Meta(ge=1)] | None  # At most this many rows are evaluated.
    max_tokens: Annotated[int, Meta(ge=0)] | None  # At most this many tokens are generated.
    stop_sequences: list[str] | None  # Generation ends at the first of these.
    decoding_parameters: DecodingShape | None  # How the model samples.
    answer_mapping: AnswerMapping | None  # Label to option, for all rows.
    output_mapping: AnswerMapping | None  # HELM's name of answer_mapping.
    output_mapping_pattern: str | None  # Regular expression that finds the label in a completion.
    num_outputs: Annotated[int, Meta(ge=1)] | None  # As in decoding_parameters.
    temperature: Annotated[float, Meta(ge=0)] | None  # As in decoding_parameters.
    random: str | None  # As decoding_parameters.seed.
    num_train_trials: Annotated[int, Meta(ge=1)] | None  # Runs with different demonstrations.
    num_trials: Annotated[int, Meta(ge=1)] | None  # Runs with different seeds of the model.
    sample_train: bool | None  # Whether HELM draws demonstrations at random.
    multi_label: bool | None  # All correct references together are the answer, not any of them.
    substitutions: list[SubstitutionShape] | None  # Search and replace at the very end of the prompt.
    # The splits that are evaluated: `test`, `valid` (`validation` and `dev` mean `valid`). Absent or []: both.
    eval_splits: list[EvalSplit] | None
    model: str | None  # In HELM's own files; the run names the model.
    model_deployment: str | None  # In HELM's own files; the run names the deployment.
    image_generation_parameters: dict[str, Any] | None  # In HELM's own files; not used for text.
    reeval_parameters: dict[str, Any] | None  # In HELM's own files; not used here.


class ScoringShape(TypedDict, total=False):
    """How completions become scores. Each key is an argument of run entries too, and described there (`format`)."""

    metrics: list[str] | None
    main_metric: str | None
    completions: str | None
    thinking: Literal["move", "keep"] | None
    extract: str | None
    strip: bool | None
    lower: bool | None
    separator: Annotated[str, Meta(min_length=1)] | None
    extract_all: str | None
    extract_references: bool | None
    drop_duplicates: bool | None
    score_tokenizer: str | None
    cut_at_stop: bool | None


class SourceScoreShape(TypedDict, total=False):
    """What another tool reports of one of its scores, over all rows."""

    mean: float | None  # As it is reported; absent where there is no report.
    lower_is_better: bool | None  # Absent: false. None: nobody says.
    no_mean: str | None  # Why what is reported is no mean of the rows' scores.
    # The least and the greatest value that a row may have; None where nobody says.
    bounds: Annotated[list[float], Meta(min_length=2, max_length=2)] | None


class SourceShape(TypedDict, total=False):
    """Where recorded completions come from, with the scores that another tool gave the rows (`source_scores`)."""

    tool: Required[str]  # What wrote them: its scores are stats named `TOOL_SCORE`.
    version: str | None  # The tool's.
    model: str | None  # As the tool spells it.
    task: str | None  # As the tool names the dataset.
    settings: dict[str, Any] | None  # Shots, decoding parameters and the like, as the tool spells them.
    scores: dict[str, SourceScoreShape] | None  # Its scores by name: all that occur in the rows.
    main: str | None  # The score that it is headed by: the main metric, unless the run entry names another.
    main_reason: str | None  # Why it is that one.


_Editors = TypedDict("_Editors", {"$schema": str | None}, total=False)


class FileShape(_Editors, total=False):
    """A file of `adapter_spec` and `request_states`, as one object."""

    name: str | None  # Short name; absent: the file's.
    display_name: str | None  # Title in reports.
    description: str | None  # What it is about.
    adapter_spec: Required[AdapterSpecShape]  # How prompts are made and the model is asked.
    scoring: ScoringShape | None  # How completions become scores.
    source: SourceShape | None  # Where recorded completions come from, if another tool made and scored them.
    annotator_specs: list[Any] | None  # In HELM's own files; not used here.
    request_states: Required[list[StateShape]]  # The rows.


CLOSED = (FileShape, AdapterSpecShape, DecodingShape, SubstitutionShape, ScoringShape, SourceShape, SourceScoreShape)
"""Unknown keys are errors here: a typo would silently change the prompt or the score. Elsewhere they are kept."""
