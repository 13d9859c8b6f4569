"""Labels of options: which there are, which option each names, and how HELM is made to render them.

HELM's joint adapter renders `reference_prefix` with its first letter or digit replaced by the option's label,
*wherever* that character stands (`MultipleChoiceJointAdapter.get_reference_prefix`): "Answer A. " would come out as
"Bnswer B. ". Past "Z" it goes on with "[". Both are avoided here.
"""

from __future__ import annotations

import itertools
import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from helm_ext.errors import DatasetIntegrityError, Path, Problems, did_you_mean, show
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.reading import Place
from helm_ext.formats.request_states.shapes import JOINT_METHODS, LABELLED_METHODS

_SERIES = (
    "甲乙丙丁戊己庚辛壬癸",
    "一二三四五六七八九十",
    "αβγδεζηθικλμνξοπρστυφχψω",
    "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ",
    "абвгдежзиклмнопрстуфхцчшщэюя",
    "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЭЮЯ",
    "가나다라마바사아자차카타파하",
    "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ",
    "アイウエオカキクケコサシスセソ",
    "あいうえおかきくけこさしすせそ",
    "イロハニホヘト",
    "いろはにほへと",
    "กขคงจฉชซ",
    "أبجدهوزحطي",
    "אבגדהוזחטי",
)
"""Alphabets in the order in which options are lettered, where that is not the order of code points."""

_LETTERS = (string.ascii_uppercase, string.ascii_lowercase)
_ALNUM = re.compile(r"[^\W_]+")
_PLACEHOLDERS = "AXQZ1甲"


class LabelError(ValueError):
    """Labels that cannot be used. `args`: message, hint, code."""

    def __init__(self, message: str, hint: str = "", code: str = "labels", *, labels: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint, code)
        self.message, self.hint, self.code = message, hint, code
        self.labels = labels
        """Those of the row that does not fit, where rows contradict each other."""


def find_label(prefix: str, label: str | None = None) -> tuple[int, int] | None:
    """Return where the label stands in a reference prefix: `label` itself, else a word of a single character.

    Of several, the one that begins the prefix, as HELM's adapter takes it. None when it cannot be told.
    """
    words = [match.span() for match in _ALNUM.finditer(prefix)]
    found = [match.span() for match in re.finditer(re.escape(label), prefix)] if label else []
    for spans in (
        [span for span in found if _is_apart(prefix, *span)],
        [span for span in words if span[1] - span[0] == 1],
    ):
        if len(spans) == 1 or (spans and spans[0] == words[0]):
            return spans[0]
    return None


def _is_apart(text: str, start: int, end: int) -> bool:
    """Whether text[start:end] is no part of a longer word."""
    before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
    after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
    return not before and not after


def shows_options(text: str, labels: Mapping[str, int], options: Sequence[str]) -> bool:
    """Whether every option that has a label stands in a text, each after its label or on a line of its own."""
    lines: set[str] | None = None
    for label, position in labels.items():
        option = options[position].strip()
        if option not in text:
            return False
        if not _follows_label(option, label, text):
            lines = lines if lines is not None else {line.strip(" \t-*•·–") for line in text.splitlines()}
            if option not in lines:
                return False
    return bool(labels)


def _follows_label(option: str, label: str, text: str) -> bool:
    start = text.find(option)
    while start != -1:
        before = text[max(0, start - len(label) - 4) : start]
        span = find_label(before, label)
        if span and before[span[0] : span[1]] == label and not any(c.isalnum() for c in before[span[1] :]):
            return True
        start = text.find(option, start + 1)
    return False


def default_labels(prefix: str, count: int) -> list[str]:
    """Return the labels of `count` options where the file says only `reference_prefix`.

    As HELM: the prefix's letter and those that follow it. Latin letters go on with AA, AB, ...; numbers with 10.
    Raises LabelError.
    """
    span = find_label(prefix)
    if span is None:
        raise LabelError(
            f"reference_prefix {show(prefix)} holds no label (a letter or digit that stands alone)",
            'set adapter_spec.reference_prefix (for example "A. "), or give an answer_mapping',
            "no-labels",
        )
    first = prefix[span[0] : span[1]]
    return list(itertools.islice(_series_from(first, count), count))


def _series_from(first: str, count: int) -> Any:
    for letters in _LETTERS:
        if first in letters:
            words = itertools.chain.from_iterable(
                map("".join, itertools.product(letters, repeat=length)) for length in itertools.count(1)
            )
            return itertools.dropwhile(lambda word: word != first, words)
    if first in string.digits:
        return map(str, itertools.count(int(first)))
    for series in _SERIES:
        if first in series and len(series) - series.index(first) >= count:
            return series[series.index(first) :]
    labels = [chr(ord(first) + offset) for offset in range(count)]
    kinds = {(unicodedata.category(label), unicodedata.name(label, "").split(" ")[0]) for label in labels}
    if len(kinds) > 1:
        raise LabelError(
            f"there is no series of {count} labels that begins with {show(first)}",
            "set adapter_spec.reference_prefix_characters to the labels, or give an answer_mapping",
            "no-labels",
        )
    return labels


def resolve_mapping(mapping: Mapping[str, str | int], options: Sequence[str], *, shared: bool) -> dict[str, int]:
    """Return label → position in `options` for an answer mapping (label → option text, or → position from 0).

    `shared`: the mapping is the whole file's, and rows may have fewer options than it has positions.
    Raises LabelError for what names no option.
    """
    resolved: dict[str, int] = {}
    for label, target in mapping.items():
        if not label.strip():
            raise LabelError("an answer mapping has an empty label", "", "empty-label")
        if isinstance(target, int):
            if 0 <= target < len(options):
                resolved[label] = target
            elif not (shared and target >= 0):
                raise LabelError(
                    f"{show(label)} maps to option number {target}, but there are {len(options)} options",
                    "positions count from 0",
                    "mapping-without-option",
                )
        else:
            resolved[label] = _find_option(label, target, options)
    return resolved


def _find_option(label: str, text: str, options: Sequence[str]) -> int:
    if text in options:
        return options.index(text)
    stripped = [option.strip() for option in options]
    if text.strip() in stripped:
        return stripped.index(text.strip())
    raise LabelError(
        f"{show(label)} maps to {show(text)}, which is none of the references",
        did_you_mean(text, options) or "every option must be one of the references; a position has no quotes",
        "mapping-without-option",
    )


def shared_sequence(rows: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the label sequence of which each row has the first few, in any order within the row's mapping.

    Raises LabelError when the rows' labels differ.
    """
    longest = max(rows, key=len, default=())
    ordered = tuple(sorted(longest, key=lambda label: (len(label), label)))
    for sequence in dict.fromkeys((longest, ordered)):
        if all(set(row) == set(sequence[: len(row)]) for row in rows):
            return sequence
    odd = next(row for row in rows if set(row) != set(longest[: len(row)]))
    raise LabelError(
        f"the rows' labels differ: {show(list(longest))} and {show(list(odd))}",
        'multiple_choice_joint needs one label sequence for all rows; use "method": "generation" and write the options '
        "into input.text",
        "labels-differ",
        labels=odd,
    )


def encode_prefix(prefix: str, labels: Sequence[str]) -> str:
    """Return a reference_prefix that HELM's joint adapter renders as meant, with `labels` as prefix characters.

    Raises LabelError where HELM cannot: a letter or digit before the label.
    """
    span = find_label(prefix, labels[0])
    if span is None:
        raise LabelError(
            f"reference_prefix {show(prefix)} holds no label, and multiple_choice_joint writes one before each option",
            f'set it to "{labels[0]}. ", or, if the options stand in input.text already, "method": "generation"',
            "no-labels",
        )
    before, after = prefix[: span[0]], prefix[span[1] :]
    candidates = [labels[0]] if len(labels[0]) == 1 and labels[0].isalnum() else []
    for char in (*candidates, *_PLACEHOLDERS):
        if char not in after and not any(char.isalnum() for char in before):
            return before + char + after
    raise LabelError(
        f"reference_prefix {show(prefix)} cannot be rendered by HELM's joint adapter",
        f'begin it with the label, for example "{labels[0]}. "',
        "prefix-before-label",
    )


# The labels of a row: from its answer mapping, the file's, or the prefix of references

LabelsFrom = Literal["prefix", "row", "file"]
"""What labels come from: reference_prefix, an answer mapping of the row, or one of the whole file."""

_MAPPING_KEYS = frozenset({"answer_mapping", "output_mapping"})


class LabelReader:
    """Finds the labels of one row after the other; what is wrong goes to the problems."""

    def __init__(self, header: Header, problems: Problems) -> None:
        self.header = header
        self.problems = problems
        self._made_labels: dict[int, dict[str, int]] = {}
        self._reads_labels = header.method in LABELLED_METHODS
        self._is_prefix_reported = False
        self._characters: Sequence[str] | None = header.given.get("reference_prefix_characters")

    def read(
        self,
        value: Mapping[str, Any],
        references: Sequence[Mapping[str, Any]],
        tags: Sequence[bool],
        place: Place,
        *,
        is_helm: bool,
        has_likelihoods: bool,
    ) -> tuple[dict[str, int] | None, LabelsFrom]:
        """Return label to position in the references, and what the labels come from.

        None where completions are not read as labels. `tags`: which references are correct. `has_likelihoods`: options
        are told apart by their places, so two of them may read the same.
        """
        if not self._reads_labels:
            return None, "prefix"
        mapping, where, comes_from = self._find_mapping(value, place)
        needs_labels = len(tags) > 1 and (not all(tags) or has_likelihoods or self.header.method in JOINT_METHODS)
        if mapping is None and (is_helm or not needs_labels):
            return None, comes_from
        options = [reference["output"]["text"] for reference in references]
        try:
            if mapping is None:
                labels = self._make_labels(len(options))
            else:
                labels = resolve_mapping(mapping, options, shared=comes_from == "file")
        except LabelError as error:
            if mapping is not None or self._characters is not None:
                place.error(*where, message=error.message, hint=error.hint, code=error.code, is_integrity=True)
            elif not self._is_prefix_reported:  # the prefix is wrong once, however many rows need it
                self._is_prefix_reported = True
                where, kind = ("adapter_spec", "reference_prefix"), DatasetIntegrityError
                self.problems.add(where, error.message, error.hint, code=error.code, kind=kind)
            return None, comes_from
        if has_likelihoods and mapping is not None:
            labels = _by_position(labels, options)
        is_clear = has_likelihoods or _check_options(options, tags, place)
        if (
            mapping is not None
            and is_clear
            and len(set(labels.values())) < len(options)
            and any(tags)
            and not any(tags[position] for position in labels.values())
        ):
            said, hint = "no label names a correct option, so no answer could be right", "map one label to each option"
            place.error(*where, message=said, hint=hint, code="mapping-without-correct", is_integrity=True)
        return labels, comes_from

    def _find_mapping(
        self, value: Mapping[str, Any], place: Place
    ) -> tuple[Mapping[str, str | int] | None, Path, LabelsFrom]:
        """Return the nearest answer mapping, where problems of it are reported, and what it comes from."""
        instance = value["instance"]
        holders: tuple[tuple[Mapping[str, Any], Path], ...] = ((value, ()), (instance, ("instance",)))
        for holder, base in holders:
            if _MAPPING_KEYS.isdisjoint(holder):
                continue
            ours, helms = holder.get("answer_mapping"), holder.get("output_mapping")
            if ours and helms and ours != helms:
                where, said = (*base, "answer_mapping"), "contradicts output_mapping, which means the same"
                place.error(*where, message=said, hint="keep one of them", code="contradiction", is_integrity=True)
            if ours or helms:
                return ours or helms, (*base, "answer_mapping" if ours else "output_mapping"), "row"
        shared = self.header.mapping
        return shared, ("instance", "references"), "prefix" if shared is None else "file"

    def _make_labels(self, count: int) -> dict[str, int]:
        """Return the labels of `count` options without a mapping; rows of one length share one dict."""
        if count not in self._made_labels:
            made = self._characters
            if made is None:
                made = default_labels(self.header.text("reference_prefix"), count)
            elif len(made) < count:
                raise LabelError(
                    f"the row has {count} options, and reference_prefix_characters has {len(made)} labels",
                    "give as many labels as the longest row has options",
                )
            self._made_labels[count] = {label: position for position, label in enumerate(made[:count])}
        return self._made_labels[count]


def _check_options(options: Sequence[str], tags: Sequence[bool], place: Place) -> bool:
    """Whether no wrong option reads like a right one."""
    read = list(map(str.strip, options))  # as completions are compared with them
    if len(set(read)) == len(read):
        return True
    for position, text in enumerate(read):
        if tags[read.index(text)] != tags[position]:
            where = "instance", "references", position, "output", "text"
            said = f"two options read {show(text)}, and only one of them is correct"
            hint = "an answer could not be told right from wrong; change or remove one"
            place.error(*where, message=said, hint=hint, code="same-options", is_integrity=True)
            return False
    return True


def _by_position(labels: Mapping[str, int], options: Sequence[str]) -> dict[str, int]:
    """Return labels of options that may read the same: in the order of the options, if that is what they name.

    A mapping from label to text leads to the first of two options that read the same.
    """
    if len(labels) == len(options) and all(
        options[position] == options[index] for index, position in enumerate(labels.values())
    ):
        return {label: index for index, label in enumerate(labels)}
    return dict(labels)
