"""What a file is, once all rows were seen: how they are asked, which are demonstrations, which are evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from helm_ext.errors import DatasetIntegrityError, Problem, Problems
from helm_ext.formats.request_states.header import Header, Options
from helm_ext.formats.request_states.labels import LabelError, encode_prefix, shared_sequence
from helm_ext.formats.request_states.profile import Profile
from helm_ext.formats.request_states.recorded import EarlierRun, read_earlier_run
from helm_ext.formats.request_states.scoring import ScoringMaker
from helm_ext.formats.request_states.shapes import JOINT, JOINT_COT, JOINT_METHODS

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec

    from helm_ext.evalset import Decoding, Scoring
    from helm_ext.files.store import RowStore
    from helm_ext.formats.request_states.reading import Reader
    from helm_ext.formats.request_states.rows import Row

_FRAME = (
    "instructions",
    "global_prefix",
    "global_suffix",
    "input_prefix",
    "input_suffix",
    "output_prefix",
    "output_suffix",
    "instance_prefix",
)
_OPTIONS = ("reference_prefix", "reference_suffix")
_THOUGHTS = ("chain_of_thought_prefix", "chain_of_thought_suffix")
TEXTS = (*_FRAME, *_OPTIONS, *_THOUGHTS)
"""HELM's prefixes and suffixes."""
_USED = {
    "generation": _FRAME,
    "chat": (),
    JOINT: _FRAME + _OPTIONS,
    JOINT_COT: TEXTS,
    "multiple_choice_separate_original": _FRAME,
    "multiple_choice_separate_calibrated": _FRAME,
}
"""The text keys that a method puts into the prompt."""

_PASSED_THROUGH = (
    "num_train_trials",
    "num_trials",
    "sample_train",
    "multi_label",
    "output_mapping_pattern",
    "max_tokens",
    "stop_sequences",
    "eval_splits",
)


@dataclass
class File:
    """A file of which all rows were seen; and how they are asked and scored, when that was planned."""

    reader: Reader
    header: Header
    profile: Profile
    problems: Problems
    store: RowStore[Row] | None
    """None where the file is only checked."""

    # What `make_plan` decides
    method: str = ""
    scoring: Scoring = field(init=False)
    labels: tuple[str, ...] = ()
    """The shared label sequence of the joint methods."""
    reference_prefix: str | None = None
    """As HELM's joint adapter renders it rightly; None: as the file has it."""
    max_train_instances: int = 0
    wanted: int = 0
    """Demonstrations that would be drawn, were there enough rows."""
    demonstrations: int = 0
    """Demonstrations that are drawn from the rows."""
    can_run_live: bool = True
    """Whether a row is left to evaluate beside the demonstrations."""
    evaluated: int = 0
    """Rows that are evaluated, before a cap."""
    cap: int | None = None
    """The file's max_eval_instances. In HELM's own output it has been applied already."""
    earlier: EarlierRun | None = None
    """How the run of ours that wrote the file scored its rows."""
    counts: dict[str, int] = field(default_factory=dict)
    """What was counted, for the user."""

    def finish(self) -> list[Problem]:
        """Return all that was found, errors first."""
        return self.problems.finish(self.reader.locate)


def _find_earlier_run(options: Options, profile: Profile) -> EarlierRun | None:
    """Return how the run of ours that wrote the file scored its rows; what is wrong with that is reported."""
    if not profile.told:
        return None
    first, *others = profile.told.values()
    if others:
        where = "instance", "extra_data", "helm_ext", "scoring"
        said = "this row and those behind it are of another run, which scored otherwise than the first"
        hint = "score the output of each run by itself"
        others[0][1].error(*where, message=said, hint=hint, code="two-runs", is_integrity=True)
    told, place = first
    overridden = options.scoring.get("metrics") is not None
    earlier = read_earlier_run(told, place, overridden=overridden)
    return None if earlier is not None and earlier.is_likelihood and options.score_otherwise else earlier


def make_plan(file: File) -> None:
    """Decide what the file as a whole says. What contradicts it goes to the problems."""
    header, profile = file.header, file.profile
    file.method, file.labels, file.reference_prefix = _choose_method(header, profile, file.problems)
    file.earlier = earlier = _find_earlier_run(header.options, profile)
    overrides, output_format = header.options.scoring, header.output_format
    if earlier is not None and header.options.output_format is None:
        output_format = earlier.scoring.output_format
    maker = ScoringMaker(file.method, output_format, file.reader, header, profile)
    if earlier is None:
        file.scoring = maker.make(header.keys.get("scoring") or {})
        is_asked = not file.method.startswith("multiple_choice_separate") and not profile.is_helm_output
        if is_asked and profile.find("choice").count:
            file.scoring = replace(file.scoring, next_question=header.next_question)
    elif header.options.score_otherwise:
        given = earlier.to_given(names_metrics=overrides.get("metrics") is not None)
        file.scoring = earlier.settle(maker.make(given))
    else:
        file.scoring = earlier.scoring
    file.max_train_instances = 0 if file.method == "chat" else header.max_train_instances
    file.wanted = 0 if profile.is_differentiated else file.max_train_instances * header.num_train_trials
    # Rows of other splits than those evaluated are drawn first.
    drawn = max(0, file.wanted - (profile.rows - profile.selected))
    file.can_run_live = not 0 < profile.selected <= drawn
    file.demonstrations = file.wanted if file.can_run_live else 0
    is_whole = profile.is_differentiated or profile.is_recorded or not file.can_run_live
    file.evaluated = profile.selected if is_whole else max(0, profile.selected - drawn)
    file.cap = None if profile.find("helm").count else header.given.get("max_eval_instances")


def _choose_method(header: Header, profile: Profile, problems: Problems) -> tuple[str, tuple[str, ...], str | None]:
    """Choose the method where none is given; return it with its labels and their reference_prefix (`File`).

    All rows multiple choice, with one label sequence and the options not in the input text: multiple_choice_joint.
    """
    method = header.method or _infer_method(header, profile)
    hint = 'use "method": "generation"'
    message = f"rows with likelihoods are rows of method generation, and the method is {method}"
    compared = profile.find("likelihoods")
    if method != "generation" and compared.refuse("likelihoods", message=message, hint=hint, code="likelihoods"):
        return "generation", (), None
    if method not in JOINT_METHODS or profile.find("helm").count:
        return method, (), None
    if method == JOINT and profile.thoughts.count and header.options.method is None:
        method = JOINT_COT
    fewer = profile.find("few_options")
    have = "one row has" if fewer.count == 1 else f"{fewer.count} rows have"
    message = f"method {method} needs two or more options, and {have} fewer"
    if fewer.refuse("instance", "references", message=message, hint=hint, code="too-few-options"):
        return method, (), None
    message, hint = f"method {method} shows every option with a label, and one has none", "map one label to each option"
    profile.find("unlabelled").refuse(
        "instance", "answer_mapping", message=message, hint=hint, code="unlabelled-option"
    )
    try:
        sequence, prefix = _share_labels(header, profile)
    except LabelError as error:
        odd = profile.label_sets.get(error.labels)
        if odd is not None:
            odd.error("instance", message=error.message, hint=error.hint, code=error.code, is_integrity=True)
        else:
            where = ("adapter_spec", "reference_prefix")
            problems.add(where, error.message, error.hint, code=error.code, kind=DatasetIntegrityError)
        return method, (), None
    return method, sequence, prefix


def _share_labels(header: Header, profile: Profile) -> tuple[tuple[str, ...], str | None]:
    """Return the label sequence of all rows, and the reference_prefix that HELM renders it by. Raises LabelError."""
    sequence = shared_sequence(list(profile.label_sets))
    return sequence, encode_prefix(header.text("reference_prefix"), sequence) if sequence else None


def _infer_method(header: Header, profile: Profile) -> str:
    chats, choices, in_text = profile.find("chat_only"), profile.find("choice"), profile.find("options_in_text")
    if chats.count == profile.rows:
        return "chat"
    if chats.place is not None:
        hint = 'give every row a text, or set "method": "chat" and give every row messages'
        said = "missing, and other rows have it"
        chats.place.error("instance", "input", "text", message=said, hint=hint, code="missing-key")
    if profile.find("likelihoods").count or profile.find("few_options").count or in_text.count == profile.rows:
        return "generation"
    if choices.place is None or choices.count < profile.rows:
        return "generation"
    where = ["instance"]
    try:
        _share_labels(header, profile)
        if not profile.find("unlabelled").count:
            return JOINT
        why = "not every option has a label"
    except LabelError as error:
        why = error.message
        where += ["input", "text"]
    said = f"method generation is used: {why}"
    hint = "a model that is asked live is not shown the options: write them into input.text"
    choices.place.warn(*where, message=said, hint=hint, code="options-not-shown")
    return "generation"


def request_decoding(file: File) -> Decoding:
    """Return what each row's request needs beyond AdapterSpec.

    HELM's joint adapter asks for one completion whatever `num_outputs` is, and its own files are asked again so.
    """
    header, profile = file.header, file.profile
    is_ours = not profile.find("helm").count or profile.find("ours").count > 0
    if file.method in JOINT_METHODS and header.num_outputs > 1 and is_ours:
        return {**header.decoding, "num_completions": header.num_outputs}
    return header.decoding


def make_adapter_spec(file: File) -> AdapterSpec:
    """Return HELM's AdapterSpec, without a model and without max_eval_instances."""
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec, Substitution

    header, profile, given = file.header, file.profile, file.header.given
    used = _USED[file.method]
    if file.method == "generation" and profile.thoughts.count:
        used = (*used, *_THOUGHTS)
    texts = {key: header.text(key, used=key in used) for key in TEXTS}
    if file.reference_prefix is not None:
        texts["reference_prefix"] = file.reference_prefix
    if file.method.startswith("multiple_choice_separate") and "output_suffix" not in given:
        texts["output_suffix"] = ""  # HELM scores the end of the prompt (get_multiple_choice_separate_adapter_spec)
    if file.max_train_instances == 0 and file.method == "generation" and not profile.find("helm").count:
        # The text holds the frame already, as in files with worked examples: it is given to the model as it is.
        if profile.find("starts_doubled").count == profile.rows:
            texts["input_prefix"] = ""
        if profile.find("ends_doubled").count == profile.rows:
            texts["input_suffix"] = texts["output_prefix"] = ""
    return AdapterSpec(
        method=file.method,
        **texts,
        **{key: given[key] for key in _PASSED_THROUGH if given.get(key) is not None},
        reference_prefix_characters=list(file.labels) if file.labels else given.get("reference_prefix_characters"),
        substitutions=[Substitution(**substitution) for substitution in given.get("substitutions") or []],
        max_train_instances=file.max_train_instances,
        num_outputs=header.num_outputs,
        temperature=header.temperature,
        random=header.random,
    )
