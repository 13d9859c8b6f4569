"""What `target` means. The harness writes it as a text, whatever it was (lm_eval/loggers/evaluation_tracker.py).

Of a multiple-choice task it was a position from 0, an option's text, or a list of positions (lm_eval/api/task.py,
process_results). There false and true are the positions 0 and 1, as they are for Python: also where the options read
"True" and "False". Metrics that log the gold itself (`f1`, `mcc`, `brier_score`, `likelihood`) tell which; else both
ways are tried on every line, and must lead to the `acc` that was logged.

Where a task lets the model write and has `doc_to_choice`, it is a position too: the harness compares the answer with
`doc_to_choice(doc)[doc_to_target(doc)]` (lm_eval/api/task.py, process_results). What the choices are stands in the
task's config, in the results file; without it, a position is told from an answer by what was counted as right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from helm_ext.errors import show
from helm_ext.formats.lm_eval.requests import RequestError
from helm_ext.formats.lm_eval.samples import to_score

Reading = Literal["logged", "index", "text"]
"""How the target of a multiple-choice line is read."""

_INDEX = re.compile(r"-?\d{1,9}", re.ASCII)
_TRUTHS = {"False": 0, "True": 1}
_LOGGED = ("f1", "mcc", "brier_score", "likelihood")
"""Metrics whose value is a pair that begins with the gold."""


def _by_logged(sample: Mapping[str, Any], options: Sequence[str]) -> list[int] | None:  # noqa: ARG001
    for name in _LOGGED:
        value = sample.get(name) if name in sample["metrics"] else None
        if isinstance(value, list) and len(value) == 2:
            golds = value[0] if isinstance(value[0], list) else [value[0]]
            if all(isinstance(gold, int) for gold in golds):  # true and false too
                return list(map(int, golds))
    return None


def _by_index(sample: Mapping[str, Any], options: Sequence[str]) -> list[int] | None:  # noqa: ARG001
    target: str = sample["target"]
    if target[:1] == "[" and target[-1:] == "]":
        positions = [to_position(part.strip()) for part in target[1:-1].split(",")] if target != "[]" else []
    else:
        positions = [to_position(target)]
    return None if None in positions else cast("list[int]", positions)


def to_position(text: str) -> int | None:
    """Return the position that a logged target is; None for any other text."""
    if text in _TRUTHS:
        return _TRUTHS[text]
    return int(text) if _INDEX.fullmatch(text) else None


def _by_text(sample: Mapping[str, Any], options: Sequence[str]) -> list[int] | None:
    target = sample["target"]
    return [options.index(target)] if target in options else None


READINGS: Mapping[Reading, Callable[[Mapping[str, Any], Sequence[str]], list[int] | None]] = {
    "logged": _by_logged,
    "index": _by_index,
    "text": _by_text,
}
"""From a sample and the texts of its options to the positions that are right; None for what cannot be read so."""


@dataclass
class _Way:
    reading: Reading
    unread: tuple[int, str] | None = None
    """The first line that cannot be read so, and its target."""
    disagrees: tuple[int, str] | None = None
    """The first line whose `acc` another gold has, in words."""
    has_gold: bool = False
    """Whether a line names one of its options."""


@dataclass
class Targets:
    """Sees the targets of all multiple-choice lines, and decides how they are read."""

    _ways: list[_Way] = field(default_factory=lambda: [_Way(reading) for reading in READINGS])
    _differ: tuple[int, str] | None = None
    """The first line that is read differently as position and as text."""

    def see(self, sample: Mapping[str, Any], options: Sequence[str], winner: int, line: int) -> None:
        """Take one more line; `winner` is the position of its likeliest option."""
        acc = to_score(sample["acc"]) if "acc" in sample["metrics"] else None
        read: dict[Reading, list[int]] = {}
        for way in self._ways:
            if way.unread is not None:
                continue
            golds = READINGS[way.reading](sample, options)
            if golds is None:
                way.unread = line, sample["target"]
                continue
            read[way.reading] = golds
            way.has_gold = way.has_gold or any(0 <= gold < len(options) for gold in golds)
            if acc is not None and way.disagrees is None and float(winner in golds) != acc:
                said = f"number {winner}, {show(options[winner])}; target is {show(sample['target'])}"
                way.disagrees = line, f"the likeliest option is {said}, and acc {acc:g}"
        if self._differ is None and len(read) > 1 and read.get("index") != read.get("text"):
            self._differ = line, sample["target"]

    def decide(self) -> Reading:
        """Return how all targets are read. Raises `TargetError`."""
        right = [way for way in self._ways if way.unread is None and way.disagrees is None]
        if right and not any(way.has_gold for way in right):
            hint = "these are the hidden answers of a test split: use a split whose answers are public"
            raise TargetError(None, "no gold: no target names an option of its row, so nothing can be scored", hint)
        if right and right[0].reading == "logged":
            return "logged"
        if len(right) > 1 and self._differ is not None:
            line, target = self._differ
            raise TargetError(
                line, f"target {show(target)} is a position, counted from 0, or the text of an option",
                "gold_kind=index or gold_kind=text says which",
            )  # fmt: skip
        if right:
            return right[0].reading
        read = [way for way in self._ways if way.disagrees is not None and way.unread is None]
        hint = "gold=doc.KEY names where the right option stands"
        if read and read[0].disagrees is not None:
            line, message = read[0].disagrees
            raise TargetError(line, f"target is not what the harness compared with: {message}", hint)
        found = min(way.unread for way in self._ways if way.unread is not None and way.reading != "logged")
        raise TargetError(found[0], f"target {show(found[1])} names no option of its row", hint)


class TargetError(Exception):
    """Targets cannot be read: line, message, hint."""

    def __init__(self, line: int | None, message: str, hint: str) -> None:
        super().__init__(message)
        self.line = line
        self.hint = hint


def read_texts_of_target(sample: Mapping[str, Any]) -> Sequence[str] | None:
    """Return the accepted texts of a generated answer; None where the task has no target for the row.

    A target that looks like a list is one only if it stands in `doc`. Raises RequestError where that cannot be told.
    """
    target: str = sample["target"]
    first = target[:1]
    if first not in ("[", "{", "(") and target != "None":
        return (target,)
    values = [value for value in _walk(sample["doc"]) if str(value) == target]
    texts = [value for value in values if isinstance(value, str)]
    others = [value for value in values if not isinstance(value, str)]
    if texts and not others:
        return (target,)
    if target == "None":
        return None
    if others and not texts and isinstance(others[0], list) and all(isinstance(one, str | int) for one in others[0]):
        return tuple(dict.fromkeys(str(one) for one in others[0])) or None
    if first == "[" or others:
        raise RequestError(
            f"target {show(target)} could be a list of answers or a text: doc does not tell",
            "gold=doc.KEY names where the answers stand",
        )
    return (target,)


def _walk(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield all values inside a document, itself included."""
    yield value
    if depth < 20:
        if isinstance(value, dict):
            for child in value.values():
                yield from _walk(child, depth + 1)
        elif isinstance(value, list):
            for child in value:
                yield from _walk(child, depth + 1)


def find_in(doc: Any, path: str) -> Any:
    """Return the value of a key of a document, or of a dotted path of keys; None where the document has no such key."""
    if isinstance(doc, dict):
        if path in doc:
            return doc[path]
        key, dot, rest = path.partition(".")
        if dot:
            return find_in(doc.get(key), rest)
    return None


_HINT = "gold=doc.KEY names where the right text stands"
_KEY = re.compile(r"\{\{-?\s*(?:doc\.)?([A-Za-z_][\w.]*)\s*-?\}\}")
"""A Jinja template that names a key and does nothing else."""


def read_choice(sample: Mapping[str, Any], doc_to_choice: Any) -> tuple[str, ...]:
    """Return the text that the harness compared with; () for a negative position, a hidden answer.

    `doc_to_choice`: as the results file has it. Raises RequestError where the choices are not known, or there is no
    such one.
    """
    target: str = sample["target"]
    choices = _find_choices(sample["doc"], doc_to_choice)
    if choices is None:
        raise RequestError(
            f"target {show(target)} is the position of a choice, and doc_to_choice of the task is code or a template "
            f"whose choices are not logged: {show(doc_to_choice)}",
            _HINT,
        )
    position = to_position(target)
    if position is None or position >= len(choices):
        raise RequestError(f"target {show(target)} is no position of the task's {len(choices)} choices", _HINT)
    return (choices[position],) if position >= 0 else ()


def _find_choices(doc: Any, given: Any) -> list[str] | None:
    """Return the texts of the choices of a row; None where the log does not say them."""
    if isinstance(given, dict):
        given = list(given.values())
    elif isinstance(given, str):
        match = _KEY.fullmatch(given.strip())
        is_key = isinstance(doc, dict) and given in doc
        given = find_in(doc, match[1]) if match is not None else doc[given] if is_key else None
    is_list = isinstance(given, list) and bool(given) and all(isinstance(one, str) for one in given)
    return given if is_list else None


def require_compared(sample: Mapping[str, Any]) -> None:
    """Raise RequestError where the logged `exact_match` shows that a `target` that could be a position was no gold.

    An answer that is the target cannot be wrong, and one that was right has the target in it, whatever case, marks or
    parts the task ignores.
    """
    target, logged = sample["target"], sample.get("exact_match")
    found = sample["filtered_resps"][0] if sample["filtered_resps"] else None
    is_scored = "exact_match" in sample["metrics"] and logged in (0, 1)
    if not is_scored or not isinstance(found, str) or to_position(target) is None:
        return
    is_in = target.lower() in found.lower().replace(",", "")
    if (logged == 0 and found == target) or (logged == 1 and not is_in):
        raise RequestError(
            f"target {show(target)} is not what the harness compared with: the answer {show(found)} has exact_match "
            f"{logged:g}; it may be the position of a choice (doc_to_choice), which the results file would name",
            f"results=FILE names the results file; {_HINT}",
        )
