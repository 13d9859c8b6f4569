"""One state of the file becomes one Row: checked by itself, nothing decided yet that depends on other rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from helm_ext.errors import Path, Problems, did_you_mean, show
from helm_ext.evalset import EXTRA_KEY, KeptExtra, Recorded, RecordedState
from helm_ext.formats.request_states.checking import read_state
from helm_ext.formats.request_states.header import SPLITS, Header, read_split
from helm_ext.formats.request_states.labels import LabelReader, LabelsFrom
from helm_ext.formats.request_states.reading import Place, State
from helm_ext.formats.request_states.recorded import (
    is_helm_state,
    read_earlier_row,
    read_recorded,
    settle_completion,
)
from helm_ext.judging.judgement import Judgement, read_judgements
from helm_ext.scoring.score import ANSWERS, NOISE
from helm_ext.scoring.scores.likelihoods import count_reference_tokens

CORRECT = "correct"

_OF_THE_RUN = frozenset({"left_out", "scoring", "judgements"})
"""Keys of what a run of ours wrote about a row that `Row` has fields for."""


class Row(msgspec.Struct, array_like=True, eq=False):
    """A state of the right shape: what is stored of it."""

    instance: dict[str, Any]
    """The instance as the file has it, checked."""
    is_helm: bool
    """Whether HELM wrote it: then several states may be about one instance."""
    is_untagged: bool
    """Whether its single reference has no tag and is taken as correct."""
    labels: dict[str, int] | None
    """Label to position in the references; None where completions are not read as labels."""
    labels_from: LabelsFrom
    recorded: Any
    """What is recorded for it (`Recorded`), of all its states."""
    likelihoods: list[Any] | None
    """What is recorded instead of a text (`Likelihood`), in the order of the references."""
    extra: dict[str, Any]
    """What of its `RowExtra` is known already; of what a run of ours wrote, that which it wrote about the row."""
    judgements: list[Judgement] | None
    """What was said of what is recorded."""

    @property
    def references(self) -> list[Any]:
        """Its references, the single one of a row without tags as correct."""
        given = self.instance.get("references") or []
        return [{**given[0], "tags": [CORRECT]}] if self.is_untagged else given

    @property
    def options(self) -> list[str]:
        """The texts of the references."""
        return [one["output"]["text"] for one in self.references]


Fetch = Callable[[Sequence[int]], Iterable[Row]]
"""Returns the rows of these ordinals: their places among the rows of the file."""


class RowReader:
    """Turns states into Rows; what is wrong goes to the problems."""

    def __init__(self, header: Header, problems: Problems) -> None:
        self.header = header
        self.problems = problems
        self._labels = LabelReader(header, problems)

    def read(self, state: State) -> Row | None:
        """Return the row, or None where something is wrong with it, which is reported.

        One without a correct reference is returned: it is counted. Written for speed: this runs once a row.
        """
        errors = self.problems.errors
        place = state.place
        value = state.value if state.is_known else _validate(state)
        if value is None:
            return None
        instance = value["instance"]
        references = instance.get("references") or []
        is_helm = is_helm_state(value)
        inside = (value.get("request") or {}).get("result") if value.get("result") else None
        if inside and inside != value["result"]:  # in HELM's place, beside it
            said, hint = "contradicts request.result, which means the same", "keep one of them"
            place.error("result", message=said, hint=hint, code="contradiction", is_integrity=True)
        state.split = _read_split(instance, references, place)
        given = instance["input"]
        if given.get("text") is None or self.header.method == "chat":
            self._check_input(given, place)
        tags = [CORRECT in (reference.get("tags") or ()) for reference in references]
        is_untagged, lack = False, ""
        if True not in tags and not is_helm and not state.unscored and state.needs_gold and self.header.is_measured:
            is_untagged = len(references) == 1 and not references[0].get("tags")
            if is_untagged:
                references = [{**references[0], "tags": [CORRECT]}]
                tags = [True]
                state.facts.append("untagged")
            else:
                lack = _find_lack(instance, references)
        earlier = read_earlier_row(instance, place) if instance.get("extra_data") else None
        likelihoods = None if state.unscored else value.get("likelihoods") or (earlier or {}).get("likelihoods") or None
        has_likelihoods = likelihoods is not None
        labels, labels_from = self._labels.read(
            value, references, tags, place, is_helm=is_helm, has_likelihoods=has_likelihoods
        )
        if likelihoods is not None and self.problems.errors == errors:
            settle_completion(value, likelihoods, [one["output"]["text"] for one in references], labels, place)
        if instance.get("perturbation"):
            try:
                read_perturbation(msgspec.json.encode(instance["perturbation"]))
            except ValueError as error:
                place.error("instance", "perturbation", message=str(error), code="perturbation")
        judgements = _read_judgements(value, earlier, place)
        state.told = None if earlier is None else earlier.get("scoring")
        if (len(tags) > 1 and False in tags and not is_helm) or (labels is not None and labels_from != "prefix"):
            state.facts.append("choice")
        row = Row(
            instance,
            is_helm,
            labels=labels,
            labels_from=labels_from,
            recorded=_read_recorded(state, value, earlier, is_helm=is_helm),
            is_untagged=is_untagged,
            extra=self._read_extra(state, value, earlier, is_helm=is_helm),
            judgements=judgements,
            likelihoods=likelihoods,
        )
        is_right = self.problems.errors == errors
        if lack:
            state.facts.append("lacks_gold")
            hint = 'write "references": [{"output": {"text": ...}, "tags": ["correct"]}]'
            where, code = ("instance", "references"), "no-correct-reference"
            place.error(*where, message=lack, hint=hint, code=code, is_integrity=True)
        return row if is_right else None

    def _read_extra(
        self, state: State, value: Mapping[str, Any], earlier: KeptExtra | None, *, is_helm: bool
    ) -> dict[str, Any]:
        """Return what of the row's `RowExtra` is known already."""
        extra: dict[str, Any] = {key: said for key, said in (earlier or {}).items() if key not in _OF_THE_RUN}
        if earlier is None or not is_helm:  # else the annotations that the run wrote
            extra |= _gather_unknown(value, state.unknown) if state.unknown else {}
        if attributes := _read_attributes(value, self.header.options.by, state.place):
            extra["attributes"] = {**extra.get("attributes", {}), **attributes}
        cluster = self.header.options.cluster  # its values may be of any length: they are never shown
        if cluster is not None:
            hint = "its values are texts or numbers"
            if (found := _read_value(value, cluster, "cluster", hint, state.place)) is not None:
                extra["cluster"] = str(found)
        if value.get("source_scores"):
            self._take_source_scores(state, value["source_scores"])
        return {**extra, **state.extra}

    def _take_source_scores(self, state: State, given: Mapping[str, float | None]) -> None:
        """Put what another tool scored the row under the names of its stats. The header must have its names."""
        source = self.header.source
        known = source.scores if source is not None else {}
        for name in given:
            if name.removesuffix(ANSWERS).removesuffix(NOISE) not in known:
                hint = did_you_mean(name, known)
                hint = hint or 'the header\'s "source": {"tool": ..., "scores": {NAME: {}}} has all'
                where = "source_scores", name
                state.place.error(*where, message="no score of the source", hint=hint, code="source-score")
        if source is not None:
            state.extra = source.name_scores(given)

    def _check_input(self, given: Mapping[str, Any], place: Place) -> None:
        method, messages = self.header.method, given.get("messages")
        where = "instance", "input"
        if method == "chat":
            if not messages:
                said = "missing, and method chat sends nothing else"
                hint = 'give a list of {"role": ..., "content": ...}'
                place.error(*where, "messages", message=said, hint=hint, code="missing-key")
        elif given.get("text") is None and (method is not None or not messages):
            texts = [key for key, value in given.items() if isinstance(value, str)]
            hint = f"{texts[0]!r} is there: write 'text'" if len(texts) == 1 else ""
            hint = 'messages are sent by "method": "chat"' if messages else hint
            place.error(*where, "text", message="missing", hint=hint, code="missing-key")


def _read_judgements(value: Mapping[str, Any], earlier: KeptExtra | None, place: Place) -> list[Judgement] | None:
    """Return what was said of the row: what a run of ours wrote of it, and behind that the state's own."""
    found: list[Judgement] = []
    written = None if earlier is None else earlier.get("judgements")
    for where, given in ((("instance", "extra_data", EXTRA_KEY), written), ((), value.get("judgements"))):
        if given is not None:

            def report(inside: Path, message: str, hint: str, before: Path = where) -> None:
                place.error(*before, "judgements", *inside, message=message, hint=hint, code="judgement")

            found += read_judgements(given, report)
    return found or None


def _gather_unknown(state: Mapping[str, Any], places: Sequence[Path]) -> dict[str, Any]:
    """Return the unknown keys of a row as `RowExtra.data`, if it has any. Those of what is recorded stay there."""
    instance = state["instance"]
    found: dict[str, Any] = {"state": {}, "instance": {}, "input": {}, "references": {}}
    for path in places:
        match path:
            case (str(key),):
                found["state"][key] = state[key]
            case ("instance", key):
                found["instance"][key] = instance[key]
            case ("instance", "input", key):
                found["input"][key] = instance["input"][key]
            case ("instance", "references", position, key):
                found["references"].setdefault(str(position), {})[key] = instance["references"][position][key]
    found = {where: keys for where, keys in found.items() if keys}
    return {"data": found} if found else {}


def _read_recorded(state: State, value: Mapping[str, Any], earlier: KeptExtra | None, *, is_helm: bool) -> Recorded:
    """Return what is recorded in a state; as the run of ours left it out that wrote it, if it did."""
    if earlier is not None and (left_out := earlier.get("left_out")) is not None:
        return {"status": left_out, "states": [], "skip": True}
    recorded = read_recorded(value, state.place, is_helm=is_helm)
    if state.unscored and recorded["status"] != "failed":
        return {"status": "unscored", "states": [], "skip": True}
    return recorded


def _validate(state: State) -> Any:
    """Return the value of a state, with whole numbers where they are wanted; None when it is wrong (reported)."""
    place, value = state.place, state.value
    read, findings, state.unknown = read_state(value)
    if not findings:
        return read
    for found in findings:
        was_dropped = state.nonfinite and found.message.endswith("got null")
        hint = found.hint or "NaN and infinities are read as null" * was_dropped
        place.error(*found.path, message=found.message, hint=hint, code=found.code)
    instance = value.get("instance") if isinstance(value, dict) else None
    if isinstance(instance, dict) and isinstance(instance.get("split"), str):
        _read_split(instance, (), place)
    return None


def _read_split(instance: Mapping[str, Any], references: Sequence[Mapping[str, Any]], place: Place) -> str | None:
    """Return HELM's name of the row's split; None where it is given neither on the instance nor on a reference."""
    names: dict[Path, str | None] = {("split",): instance.get("split")}
    names |= {("references", at, "split"): one["split"] for at, one in enumerate(references) if "split" in one}
    split = None
    for where, name in names.items():
        if name is None:
            continue
        known = read_split(name)
        if known is None:
            hint = did_you_mean(name.strip(), SPLITS) or "known: train, test, valid (validation, dev)"
            place.error("instance", *where, message=f"unknown split {show(name)}", hint=hint, code="unknown-split")
        elif split is not None and known != split:
            said = f"split {show(name)} contradicts split {show(split)} of the same row"
            hint = "the instance and all its references must have one split"
            place.error("instance", *where, message=said, hint=hint, code="split-contradiction", is_integrity=True)
        else:
            split = known
    return split


def _find_lack(instance: Mapping[str, Any], references: Sequence[Mapping[str, Any]]) -> str:
    """Return why no reference of a row is correct."""
    if not references:
        state = "missing" if instance.get("references") is None else "empty"
        return f"{state}, so there is nothing to compare an answer with"
    tags = [*dict.fromkeys(tag for reference in references for tag in reference.get("tags") or ())]
    more = ", ..." if len(tags) > 3 else ""
    return "no reference is tagged correct" + (f", but {', '.join(map(show, tags[:3]))}{more}" if tags else "")


_OF_ITS_OWN_CLASS = frozenset({
    "dialect", "extra_space", "filler_words", "gender", "misspellings", "person_name", "space", "synonym", "typos",
    "chinese_typos", "chinese_synonym", "chinese_gender", "chinese_person_name",
})  # fmt: skip
"""Perturbations whose descriptions have keys of their own (`helm.common.codec.PERTURBATION_NAME_TO_DESCRIPTION`)."""


@lru_cache(1_000)
def read_perturbation(given: bytes) -> Any:
    """Return HELM's description of a perturbation, given as JSON. Raises ValueError if HELM knows none such.

    HELM's codec knows the classes of all, and imports nltk, spaCy and torch for it, which a light installation lacks:
    3.6 CPU s. Most descriptions are of the base class. A contract test holds both equal.
    """
    from cattrs import structure
    from helm.benchmark.augmentations.perturbation_description import PerturbationDescription

    value = msgspec.json.decode(given)
    try:
        if isinstance(value, dict) and value.get("name") in _OF_ITS_OWN_CLASS:
            from helm.common.codec import from_json

            return from_json(given, PerturbationDescription)
        return structure(value, PerturbationDescription)
    except ImportError:
        raise
    except Exception as error:  # whatever the codec raises, the file is what is wrong
        raise ValueError(f"HELM knows no such perturbation: {show(value)}") from error


# What is recorded for a row: for all its states together

ASKED_MODES = {
    "multiple_choice_separate_original": ("original",),
    "multiple_choice_separate_calibrated": ("original", "calibration"),
}
"""The modes of requests of methods that ask about each option."""


def combine(found: Sequence[Recorded], row: Row, method: str, num_train_trials: int) -> Recorded:
    """Return what is recorded for a row, of what each of its states says.

    It is `ok` only when every request that its method makes is there.
    """
    by_status = {one["status"]: one for one in found}
    if "ok" not in by_status or by_status.keys() & {"unscored", "too_long", "failed"}:
        return next(by_status[one] for one in ("unscored", "too_long", "failed", "not_run") if one in by_status)
    asks_options, options = method in ASKED_MODES, row.options
    states = [state for one in found for state in one["states"]]
    needed: set[tuple[int, int | None, str]] = {
        (trial, index, mode)
        for trial in range(num_train_trials if row.is_helm else 1)
        for index in (range(len(options)) if asks_options else (None,))
        for mode in ASKED_MODES.get(method, ("original",))
    }
    present = Counter(map(_asked, states))
    if (
        "not_run" not in by_status
        and set(present) >= needed
        # Several trials (AdapterSpec.num_trials) ask each request the same number of times.
        and len(set(present.values())) == 1
        and (asks_options or {index for _, index, _ in present} == {None})
        # Where options are worth a number each, as UltraEval's are, prompt and option are compared together.
        and (not asks_options or "score" in row.extra or all(tells_option(state, options) for state in states))
    ):
        if asks_options:  # HELM compares the log-probabilities of a mode by its name
            states = [{**state, "request_mode": _asked(state)[2]} for state in states]
        return {"status": "ok", "states": states}
    there = {_asked(state) for state in states if not asks_options or tells_option(state, options)} & needed
    recorded: Recorded = {"status": "not_run", "states": []}
    if asks_options or 0 < len(there) < len(needed):
        recorded["requests"] = [len(there), len(needed)]
    return recorded


def tells_option(state: RecordedState, options: Sequence[str]) -> bool:
    """Whether the log-probability of the option that the state is about can be told.

    The first completion's tokens end with the option, and each of these has a log-probability. So have the others, but
    for the first token of a text, which never has one.
    """
    index = state.get("reference_index")
    tokens = state["result"]["completions"][0].get("tokens") or []
    if index is None or not 0 <= index < len(options) or any(token.get("logprob") is None for token in tokens[1:]):
        return False
    count = count_reference_tokens([token["text"] for token in tokens], options[index])
    return count is not None and (count < len(tokens) or tokens[0].get("logprob") is not None)


def is_asked_again(states: Sequence[RecordedState]) -> bool:
    """Whether two states of a row are about one request: with `AdapterSpec.num_trials`, or by mistake."""
    return len(states) > 1 and len({*map(_asked, states)}) < len(states)


def _asked(state: RecordedState) -> tuple[int, int | None, str]:
    """Return what a request was about: trial, reference, mode."""
    return state.get("train_trial_index", 0), state.get("reference_index"), state.get("request_mode") or "original"


# What reports group a row by: `by=subject+level`

_BY_HINT = "by= names keys whose values are texts, numbers, true or false"
_LONGEST_HEADING = 100
"""Characters of a value: it becomes part of the name of a stat, and a heading on a page."""


def _read_attributes(state: Mapping[str, Any], names: Sequence[str], place: Place) -> dict[str, str]:
    """Return the row's value of each name that it has one of; what cannot be grouped by is reported at its place.

    A name is a key of the instance's `extra_data`, of the instance, or of the state, the nearest first, or a path with
    dots: `metadata.subject`. null is no value.
    """
    found = {}
    for name in names:
        value = _read_value(state, name, "by", _BY_HINT, place)
        text = str(value).lower() if isinstance(value, bool) else str("" if value is None else value).strip()
        if len(text) > _LONGEST_HEADING:
            message = f"by={name}: {show(value)} is too long a heading"
            place.error("instance", name, message=message, hint=_BY_HINT, code="by")
        elif text:
            found[name] = text
    return found


def _read_value(state: Mapping[str, Any], name: str, argument: str, hint: str, place: Place) -> str | float | None:
    """Return a value that is a text, a number, true or false; report any other."""
    instance = state["instance"]
    for holder in (instance.get("extra_data") or {}, instance, state):
        value = find_value(holder, name)
        if value is not None:
            if isinstance(value, str | int | float):
                return value
            place.error("instance", name, message=f"{argument}={name}: got {show(value)}", hint=hint, code=argument)
            break
    return None


def find_value(holder: Any, name: str) -> Any:
    """Return the value of a key, or of a path of keys; None where there is none."""
    if not isinstance(holder, Mapping):
        return None
    if name in holder:
        return holder[name]
    key, dot, rest = name.partition(".")
    return find_value(holder.get(key), rest) if dot else None
