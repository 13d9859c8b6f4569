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
from typing import Any

from helm_ext.errors import did_you_mean, show

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


def default_labels(prefix: str, count: int) -> list[str]:
    """Return the labels of `count` options where the file says only `reference_prefix`.

    As HELM: the prefix's letter and those that follow it. Latin letters go on with AA, AB, ...; numbers with 10.
    Raises LabelError.
    """
    span = find_label(prefix)
    if span is None:
        hint = 'set adapter_spec.reference_prefix (for example "A. "), or give an answer_mapping'
        if not prefix:
            raise LabelError(
                "multiple choice needs a reference_prefix or an answer_mapping, and both are empty", hint, "no-labels"
            )
        raise LabelError(
            f"reference_prefix {show(prefix)} holds no label (a letter or digit that stands alone)", hint, "no-labels"
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
    hint = did_you_mean(text, options)
    if not hint and text.strip().isdecimal():
        hint = f"for a position, write {text.strip()} without quotes"
    raise LabelError(
        f"{show(label)} maps to {show(text)}, which is none of the references",
        hint or "every option must be one of the references; only right ones are tagged correct",
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
            f'set adapter_spec.reference_prefix, for example to "{labels[0]}. "; if the options stand in input.text '
            'already, set "method": "generation"',
            "no-labels",
        )
    before, after = prefix[: span[0]], prefix[span[1] :]
    if any(char.isalnum() for char in before):
        raise LabelError(
            f"reference_prefix {show(prefix)} has text before the label, which HELM's joint adapter cannot render",
            f'begin it with the label, for example "{labels[0]}. "',
            "prefix-before-label",
        )
    candidates = [labels[0]] if len(labels[0]) == 1 and labels[0].isalnum() else []
    for char in (*candidates, *_PLACEHOLDERS):
        if char not in after:
            return before + char + after
    raise LabelError(
        f"reference_prefix {show(prefix)} cannot be rendered by HELM's joint adapter",
        f'make it shorter, for example "{labels[0]}. "',
        "prefix-before-label",
    )
