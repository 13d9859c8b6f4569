"""One state of the file becomes one Row: checked by itself, nothing decided yet that depends on other rows."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from helm_ext.errors import show
from helm_ext.evalset import RecordedState
from helm_ext.formats.request_states import keys, models
from helm_ext.formats.request_states.labels import LabelError, default_labels, resolve_mapping
from helm_ext.formats.request_states.recorded import Status, drop_nonfinite, is_helm_state, read_recorded
from helm_ext.formats.request_states.report import INTEGRITY, Report
from helm_ext.formats.request_states.state_models import STATE
from helm_ext.formats.request_states.wording import Path, describe, near_key

__all__ = ["CORRECT", "SPLITS", "Context", "First", "Row", "RowReader", "read_split"]

CORRECT = "correct"

RawState = tuple[int, "int | None", Any, bool, bool, bool]
"""Position in request_states, line where it is known, the value, and what is certain of it: that it was validated, that
it holds only finite numbers, that it has no keys but those of the models."""

SPLITS = {
    "train": "train",
    "test": "test",
    "valid": "valid",
    "validation": "valid",
    "dev": "valid",
}
"""Names of splits as files write them, and HELM's."""

HELM_SPLITS = frozenset(SPLITS.values())

_SPLIT_NAMES = "known: train, test, valid (validation, dev)"
_NEAR_NAME = 0.75
"""Of difflib, so that a guess is a slip of the fingers: `tset` is near `test`, `eval` is not near `valid`."""

JOINT_METHODS = ("multiple_choice_joint", "multiple_choice_joint_chain_of_thought")
LABELLED_METHODS = (None, "generation", "chat", *JOINT_METHODS)
"""Methods whose completions name an option (None: not chosen yet, and then it will be one of these)."""


@dataclass(slots=True)
class Row:
    """A state that is right by itself."""

    index: int
    line: int | None
    path: Path
    """Where it stands, as problems name it."""
    instance: dict[str, Any]
    """The instance as the file has it, checked."""
    references: list[Any]
    split: str | None
    """HELM's name of the split; None where the file gives none."""
    is_helm: bool
    is_choice: bool
    labels: dict[str, int] | None
    """Label to position in the references; None where completions are not read as labels."""
    own_labels: bool
    """Whether the labels come from an answer mapping, not from reference_prefix."""
    found: list[tuple[Status, RecordedState | None]]
    has_unknown: bool
    """Whether the instance, its input or a reference has keys that the format does not know."""
    extra: dict[str, Any] | None = None
    """Keys of the state that the format does not know, if there are any."""
    only: Literal["live", "recorded"] | None = None
    helm_id: str = ""


class First:
    """How often something was seen, and where first."""

    __slots__ = ("count", "row")

    def __init__(self) -> None:
        self.count = 0
        self.row: Row | None = None

    def add(self, row: Row) -> None:
        """Count a row."""
        if self.row is None:
            self.row = row
        self.count += 1


class Lack(NamedTuple):
    """Why a row has no correct reference, in words."""

    message: str
    hint: str


_NO_TAG = Lack("no reference is tagged correct", 'add "tags": ["correct"] to the right one')
_A_REFERENCE = 'write "references": [{"output": {"text": ...}, "tags": ["correct"]}]'


def _find_lack(instance: Mapping[str, Any], references: Sequence[Mapping[str, Any]]) -> Lack:
    if not references:
        near = near_key("references", instance)
        state = "missing" if instance.get("references") is None else "empty"
        return Lack(f"{state}, so there is nothing to compare an answer with", near or _A_REFERENCE)
    tags = dict.fromkeys(tag for reference in references for tag in reference.get("tags") or ())
    if not tags:
        return _NO_TAG
    near_tags = difflib.get_close_matches(CORRECT, [tag.strip().lower() for tag in tags], n=1, cutoff=_NEAR_NAME)
    found = ", ".join(show(tag) for tag in list(tags)[:3]) + (", ..." if len(tags) > 3 else "")
    return Lack(
        f"{_NO_TAG.message}; there {'is' if len(tags) == 1 else 'are'} {found}",
        'the tag is spelt exactly "correct"' if near_tags else _NO_TAG.hint,
    )


@dataclass(frozen=True, slots=True)
class Context:
    """What a row needs to know of the file."""

    method: str | None
    """Given by the caller or the file; None: not chosen yet."""
    reference_prefix: str
    prefix_characters: Sequence[str] | None
    mapping: Mapping[str, str | int] | None
    """The answer mapping of the whole file."""


def _text_hint(given: Mapping[str, Any]) -> str:
    """Return where the text of an input may be that has none."""
    texts = [key for key, value in given.items() if isinstance(value, str)]
    return near_key("text", given) or (f"{texts[0]!r} is there: write 'text'" if len(texts) == 1 else "")


def read_split(name: str) -> str | None:
    """Return HELM's name of a split, None if there is no such split."""
    return SPLITS.get(name) or SPLITS.get(name.strip().lower())


_MAPPING_KEYS = frozenset({"answer_mapping", "output_mapping"})


class RowReader:
    """Turns raw states into Rows; what is wrong goes to the report."""

    def __init__(self, context: Context, report: Report) -> None:
        self.context = context
        self.report = report
        self.untagged = First()
        """Rows whose single reference has no tag and was taken as correct."""
        self.nonfinite = First()
        """Rows with numbers that are NaN or infinite."""
        self.nonfinite_numbers = 0
        self.without_correct: list[tuple[Path, int | None, str | None, Lack]] = []
        self.mapping_labels_used: set[str] = set()
        self._made_labels: dict[int, dict[str, int]] = {}
        self._always_asks_labels = context.mapping is not None or context.method in JOINT_METHODS
        self._unlabelled_reported = False

    def read(self, raw: RawState, path: Path, reparse: Callable[[int, int | None], Any]) -> Row | None:
        """Return the row, or None when it is unusable (reported). Written for speed: this runs once a row."""
        errors = self.report.errors
        index, line, value, is_valid, is_finite, has_known_keys = raw
        state = value if is_valid else self._validate(index, line, path, value, reparse)
        if state is None:
            return None
        nonfinite = 0 if is_finite else drop_nonfinite(state)
        instance = state["instance"]
        references = instance.get("references") or []
        # Nearly all states hold nothing but `instance` and `request`.
        is_plain = len(state) <= 1 + ("request" in state)
        is_helm = not is_plain and is_helm_state(state)
        split = self._split(instance, references, path, line)
        given = instance["input"]
        if given.get("text") is None or self.context.method == "chat":
            self._check_input(given, path, line)
        has_unknown = not has_known_keys and not (
            keys.IN_INSTANCE.issuperset(instance)
            and keys.IN_INPUT.issuperset(given)
            and keys.IN_REFERENCE.issuperset(chain.from_iterable(references))
        )
        tags = [CORRECT in (reference.get("tags") or ()) for reference in references]
        has_correct = True in tags
        untagged = False
        if not has_correct and not is_helm:
            if len(references) == 1 and not references[0].get("tags"):
                references = [{**references[0], "tags": [CORRECT]}]
                tags = [True]
                untagged = True
            else:
                self.without_correct.append((path, line, split, _find_lack(instance, references)))
        is_choice = len(tags) > 1 and False in tags and not is_helm
        labels, own = None, False
        if (
            is_choice
            or not is_plain
            or self._always_asks_labels
            or "answer_mapping" in instance
            or "output_mapping" in instance
        ):
            labels, own = self._labels(state, instance, references, tags, path, line, is_helm=is_helm)
        row = Row(
            index, line, path, instance, references, split, is_helm, own or is_choice, labels, own,
            [read_recorded(state, is_helm=is_helm)], has_unknown,
        )  # fmt: skip
        if untagged:
            self.untagged.add(row)
        if nonfinite:
            self.nonfinite.add(row)
            self.nonfinite_numbers += nonfinite
        if not is_plain and not has_known_keys and not keys.IN_STATE.issuperset(state):
            row.extra = {key: value for key, value in state.items() if key not in keys.IN_STATE}
        return row if self.report.errors == errors else None

    def _validate(
        self, index: int, line: int | None, path: Path, value: Any, reparse: Callable[[int, int | None], Any]
    ) -> Any:
        try:
            return models.validate(STATE, value)
        except ValidationError as error:
            failure = error
        # The fast parser makes floats of integers beyond 64 bits; the exact value may well be right.
        exact = reparse(index, line) if re.search(r"e\+\d\d", repr(value)) else None
        if exact is not None:
            try:
                return models.validate(STATE, exact)
            except ValidationError as error:
                failure = error
        for where, message, hint, code in describe(failure, value):
            self.report.add((*path, *where), message, hint, code=code, line=line)
        instance = value.get("instance") if isinstance(value, dict) else None
        if isinstance(instance, dict) and isinstance(instance.get("split"), str):
            self._split(instance, (), path, line)
        return None

    def _split(
        self, instance: Mapping[str, Any], references: Sequence[Mapping[str, Any]], path: Path, line: int | None
    ) -> str | None:
        given = instance.get("split")
        elsewhere = [reference for reference in references if "split" in reference]
        if not elsewhere and (given is None or given in HELM_SPLITS):
            return given
        names: dict[Path, str] = {} if given is None else {("split",): given}
        if elsewhere:
            for position, reference in enumerate(references):
                if reference.get("split") is not None:
                    names["references", position, "split"] = reference["split"]
        if not names:
            return None
        split = None
        for where, name in names.items():
            known = read_split(name)
            if known is None:
                near = difflib.get_close_matches(name.strip().lower(), SPLITS, n=1, cutoff=_NEAR_NAME)
                hint = f"did you mean {near[0]!r}?" if near else _SPLIT_NAMES
                self.report.add(
                    (*path, "instance", *where), f"unknown split {show(name)}", hint, code="unknown-split", line=line
                )
            elif split is not None and known != split:
                self.report.add(
                    (*path, "instance", *where),
                    f"split {show(name)} contradicts split {show(split)} of the same row",
                    "the instance and all its references must have one split",
                    code="split-contradiction",
                    line=line,
                    kind=INTEGRITY,
                )
            else:
                split = known
        return split

    def _check_input(self, given: Mapping[str, Any], path: Path, line: int | None) -> None:
        method = self.context.method
        if method == "chat":
            if not given.get("messages"):
                self.report.add(
                    (*path, "instance", "input", "messages"),
                    "missing, and method chat sends nothing else",
                    'give a list of {"role": ..., "content": ...}',
                    code="missing-key",
                    line=line,
                )
        elif given.get("text") is None and (method is not None or not given.get("messages")):
            hint = 'messages are sent by "method": "chat"' if given.get("messages") else _text_hint(given)
            self.report.add((*path, "instance", "input", "text"), "missing", hint, code="missing-key", line=line)

    def _labels(
        self,
        state: Mapping[str, Any],
        instance: Mapping[str, Any],
        references: Sequence[Mapping[str, Any]],
        tags: Sequence[bool],
        path: Path,
        line: int | None,
        *,
        is_helm: bool,
    ) -> tuple[dict[str, int] | None, bool]:
        if self.context.method not in LABELLED_METHODS:
            return None, False
        mapping, where, shared = self.context.mapping, (*path, "instance", "references"), True
        if not _MAPPING_KEYS.isdisjoint(state) or not _MAPPING_KEYS.isdisjoint(instance):
            mapping, where, shared = self._mapping(state, instance, path, line)
        needs_labels = len(tags) > 1 and (not all(tags) or self.context.method in JOINT_METHODS)
        if mapping is None and (is_helm or not needs_labels):
            return None, False
        options = [reference["output"]["text"] for reference in references]
        try:
            if mapping is not None:
                labels = resolve_mapping(mapping, options, shared=shared)
                if shared:
                    self.mapping_labels_used.update(labels)
            else:
                labels = self._make_labels(len(options))
        except LabelError as error:
            if mapping is None and self.context.prefix_characters is None:
                self._report_once(error, ("adapter_spec", "reference_prefix"))
            else:
                self.report.add(where, error.message, error.hint, code=error.code, line=line, kind=INTEGRITY)
            return None, mapping is not None
        is_clear = self._check_options(options, tags, path, line)
        if mapping is None:
            return labels, False
        if (
            is_clear
            and len(set(labels.values())) < len(options)
            and any(tags)
            and not any(tags[position] for position in labels.values())
        ):
            self.report.add(
                where,
                "no label names a correct option, so no answer could be right",
                "map one label to each option",
                code="mapping-without-correct",
                line=line,
                kind=INTEGRITY,
            )
        return labels, True

    def _report_once(self, error: LabelError, where: Path) -> None:
        # The prefix is wrong once, however many rows need it.
        if not self._unlabelled_reported:
            self._unlabelled_reported = True
            self.report.add(where, error.message, error.hint, code=error.code, kind=INTEGRITY)

    def _mapping(
        self, state: Mapping[str, Any], instance: Mapping[str, Any], path: Path, line: int | None
    ) -> tuple[Mapping[str, str | int] | None, Path, bool]:
        """Return the nearest answer mapping, its place, and whether it is the whole file's."""
        for holder, base in ((state, path), (instance, (*path, "instance"))):
            ours, helms = holder.get("answer_mapping"), holder.get("output_mapping")
            if ours and helms and ours != helms:
                self.report.add(
                    (*base, "answer_mapping"),
                    "contradicts output_mapping, which means the same",
                    "keep one of them",
                    code="contradiction",
                    line=line,
                    kind=INTEGRITY,
                )
            if ours or helms:
                return ours or helms, (*base, "answer_mapping" if ours else "output_mapping"), False
        return self.context.mapping, (*path, "instance", "references"), True

    def _make_labels(self, count: int) -> dict[str, int]:
        """Return the labels of `count` options without a mapping; rows of one length share one dict."""
        if count not in self._made_labels:
            made = self.context.prefix_characters
            if made is None:
                made = default_labels(self.context.reference_prefix, count)
            elif len(made) < count:
                raise LabelError(
                    f"the row has {count} options, and reference_prefix_characters has {len(made)} labels",
                    "give as many labels as the longest row has options",
                )
            self._made_labels[count] = {label: position for position, label in enumerate(made[:count])}
        return self._made_labels[count]

    def _check_options(self, options: Sequence[str], tags: Sequence[bool], path: Path, line: int | None) -> bool:
        """Whether no wrong option reads like a right one."""
        read = list(map(str.strip, options))  # as completions are compared with them
        if len(set(read)) == len(read):
            return True
        for position, text in enumerate(read):
            if tags[read.index(text)] != tags[position]:
                self.report.add(
                    (*path, "instance", "references", position, "output", "text"),
                    f"two options read {show(text)}, and only one of them is correct",
                    "an answer could not be told right from wrong; change or remove one",
                    code="same-options",
                    line=line,
                    kind=INTEGRITY,
                )
                return False
        return True
