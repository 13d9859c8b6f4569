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
from helm_ext.formats.imported.structs import RowError
from helm_ext.formats.lm_eval.samples import to_score

Reading = Literal["logged", "index", "text"]
"""How the target of a multiple-choice line is read."""

Sample = Mapping[str, Any]

_INDEX = re.compile(r"-?\d{1,9}", re.ASCII)
_TRUTHS = {"False": 0, "True": 1}
_LOGGED = ("f1", "mcc", "brier_score", "likelihood")
"""Metrics whose value is a pair that begins with the gold."""
_KEY = re.compile(r"\{\{-?\s*(?:doc\.)?([A-Za-z_][\w.]*)\s*-?\}\}")
"""A Jinja template that names a key and does nothing else."""
_HINT = "gold=doc.KEY names where the right text stands"


def _by_logged(sample: Sample, options: Sequence[str]) -> list[int] | None:  # noqa: ARG001
    for name in _LOGGED:
        value = sample.get(name) if name in sample["metrics"] else None
        if isinstance(value, list) and len(value) == 2:
            golds = value[0] if isinstance(value[0], list) else [value[0]]
            if all(isinstance(gold, int) for gold in golds):  # true and false too
                return list(map(int, golds))
    return None


def _by_index(sample: Sample, options: Sequence[str]) -> list[int] | None:  # noqa: ARG001
    target: str = sample["target"]
    if target[:1] == "[" and target[-1:] == "]":
        positions = [to_position(part.strip()) for part in target[1:-1].split(",")] if target != "[]" else []
    else:
        positions = [to_position(target)]
    return None if None in positions else cast("list[int]", positions)


def _by_text(sample: Sample, options: Sequence[str]) -> list[int] | None:
    return [options.index(sample["target"])] if sample["target"] in options else None


READINGS: Mapping[Reading, Callable[[Sample, Sequence[str]], list[int] | None]] = {
    "logged": _by_logged,
    "index": _by_index,
    "text": _by_text,
}
"""From a sample and the texts of its options to the positions that are right; None for what cannot be read so."""


def to_position(text: str) -> int | None:
    """Return the position that a logged target is; None for any other text."""
    if text in _TRUTHS:
        return _TRUTHS[text]
    return int(text) if _INDEX.fullmatch(text) else None


@dataclass
class Targets:
    """Sees the targets of all multiple-choice lines, and decides how they are read."""

    unread: dict[Reading, tuple[int, str]] = field(default_factory=dict)
    """By reading, the first line that cannot be read so, and its target."""
    disagrees: dict[Reading, RowError] = field(default_factory=dict)
    """By reading, the first line whose `acc` another gold has."""
    has_gold: set[Reading] = field(default_factory=set)
    """Readings by which a line names one of its options."""
    differs: RowError | None = None
    """The first line that is read differently as position and as text."""

    def see(self, sample: Sample, options: Sequence[str], winner: int, line: int) -> None:
        """Take one more line; `winner` is the position of its likeliest option."""
        acc = to_score(sample["acc"]) if "acc" in sample["metrics"] else None
        target = show(sample["target"])
        read: dict[Reading, list[int]] = {}
        for name, reading in READINGS.items():
            golds = reading(sample, options) if name not in self.unread else None
            if golds is None:
                self.unread.setdefault(name, (line, sample["target"]))
                continue
            read[name] = golds
            if any(0 <= gold < len(options) for gold in golds):
                self.has_gold.add(name)
            if acc is not None and name not in self.disagrees and float(winner in golds) != acc:
                self.disagrees[name] = RowError(
                    f"target is not what the harness compared with: the likeliest option is number {winner}, "
                    f"{show(options[winner])}; target is {target}, and acc {acc:g}",
                    "gold=doc.KEY names where the right option stands",
                    line=line,
                )
        if self.differs is None and len(read) > 1 and read.get("index") != read.get("text"):
            message = f"target {target} is a position, counted from 0, or the text of an option"
            self.differs = RowError(message, "gold_kind=index or gold_kind=text says which", line=line)

    def decide(self) -> Reading:
        """Return how all targets are read. Raises RowError."""
        read = [name for name in READINGS if name not in self.unread]
        right = [name for name in read if name not in self.disagrees]
        if right and not self.has_gold.intersection(right):
            hint = "these are the hidden answers of a test split: use a split whose answers are public"
            raise RowError("no gold: no target names an option of its row, so nothing can be scored", hint)
        if len(right) > 1 and right[0] != "logged" and self.differs is not None:
            raise self.differs
        if right:
            return right[0]
        if read:
            raise self.disagrees[read[0]]
        line, target = min(found for name, found in self.unread.items() if name != "logged")
        hint = "gold=doc.KEY names where the right option stands"
        raise RowError(f"target {show(target)} names no option of its row", hint, line=line)


def read_texts_of_target(sample: Sample) -> Sequence[str] | None:
    """Return the accepted texts of a generated answer; None where the task has no target for the row.

    A target that looks like a list is one only if it stands in `doc`. Raises RowError where that cannot be told.
    """
    target: str = sample["target"]
    first = target[:1]
    if first not in ("[", "{", "(") and target != "None":
        return (target,)
    values = [value for value in _walk(sample["doc"]) if str(value) == target]
    others = [value for value in values if not isinstance(value, str)]
    if values and not others:
        return (target,)
    if target == "None":
        return None
    listed = others[0] if others and len(others) == len(values) else None
    if isinstance(listed, list) and all(isinstance(one, str | int) for one in listed):
        return tuple(dict.fromkeys(map(str, listed))) or None
    if first == "[" or others:
        message = f"target {show(target)} could be a list of answers or a text: doc does not tell"
        raise RowError(message, "gold=doc.KEY names where the answers stand")
    return (target,)


def _walk(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield all values inside a document, itself included."""
    yield value
    if depth < 20 and isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
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


def read_choice(sample: Sample, doc_to_choice: Any) -> tuple[str, ...]:
    """Return the text that the harness compared with; () for a negative position, a hidden answer.

    `doc_to_choice`: as the results file has it. Raises RowError where the choices are not known, or there is no such
    one.
    """
    doc, target, choices = sample["doc"], sample["target"], doc_to_choice
    if isinstance(choices, dict):
        choices = list(choices.values())
    elif isinstance(choices, str):
        match = _KEY.fullmatch(choices.strip())
        is_key = isinstance(doc, dict) and choices in doc
        choices = find_in(doc, match[1]) if match is not None else doc[choices] if is_key else None
    if not (isinstance(choices, list) and choices and all(isinstance(one, str) for one in choices)):
        raise RowError(
            f"target {show(target)} is the position of a choice, and doc_to_choice of the task is code or a template "
            f"whose choices are not logged: {show(doc_to_choice)}",
            _HINT,
        )
    position = to_position(target)
    if position is None or position >= len(choices):
        raise RowError(f"target {show(target)} is no position of the task's {len(choices)} choices", _HINT)
    return (choices[position],) if position >= 0 else ()


def require_compared(sample: Sample) -> None:
    """Raise RowError where the logged `exact_match` shows that a `target` that could be a position was no gold.

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
        raise RowError(
            f"target {show(target)} is not what the harness compared with: the answer {show(found)} has exact_match "
            f"{logged:g}; it may be the position of a choice (doc_to_choice), which the results file would name",
            f"results=FILE names the results file; {_HINT}",
        )
