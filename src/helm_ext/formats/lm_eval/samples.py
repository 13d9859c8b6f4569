"""The lines of a samples file, and what the harness's own scores of a line are."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from helm_ext import files
from helm_ext.errors import DatasetSchemaError, Problems, show
from helm_ext.files.lines import Line
from helm_ext.formats.imported.structs import StructLines


class _Line(msgspec.Struct):
    doc_id: int | str
    doc: Any
    target: str
    arguments: dict[str, Any]
    resps: list[Any]
    filtered_resps: list[Any]
    filter: str
    metrics: list[str]
    doc_hash: str
    prompt_hash: str
    target_hash: str


_KEYS = frozenset(_Line.__struct_fields__)
_ADDED = frozenset({"filter", "metrics", "doc_hash", "prompt_hash", "target_hash"})
"""Of these, what lines of older versions do not have: the hashes before 0.4.3, filter and metrics before 0.4.7."""


def open_samples(path: Path, filters: Sequence[str], problems: Problems) -> StructLines:
    """Return the samples of a file. `filters`: the task's, for lines that do not name theirs; empty: not known."""
    older = _Older(filters)
    return StructLines(
        path, _Line, "sample of lm-eval", problems, is_lenient=True, cut=_cut, complete=older.complete
    )  # fmt: skip


def require_metrics(sample: dict[str, Any], path: Path, number: int) -> None:
    """Raise DatasetSchemaError for a sample that names a metric and has no value of it."""
    for name in sample["metrics"]:
        if name not in sample:
            message = f"metrics names {show(name)}, and there is no such key"
            raise DatasetSchemaError.at(path, message, line=number, code="samples")


def _cut(lines: Iterable[Line]) -> Iterable[Line]:
    """Return the lines; those of an indented JSON list, as versions before 0.4.3 write it, an element at a time."""
    lines = iter(lines)
    first = next(lines, None)
    if first is None or (first[1] or b"").strip() != b"[":
        return itertools.chain([first] if first is not None else [], lines)
    return _cut_elements(lines)


def _cut_elements(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the elements of a list that `json.dumps(indent=2)` wrote, each with the number of its first line.

    A line break inside a text is escaped, so a bracket that stands two spaces from the left ends an element.
    """
    start, element = 0, bytearray()
    for number, line in lines:
        text = (line or b"").rstrip()
        if not element:
            if text == b"]":
                continue
            start = number
        element += text + b"\n"
        if text in (b"  }", b"  },"):
            yield start, bytes(element).rstrip().removesuffix(b",")
            element.clear()
    if element:
        yield start, bytes(element)


class _Older:
    """Brings samples of older versions into the shape of newer ones (lm_eval/evaluator.py of v0.4.0 to v0.4.6).

    Lines are written filter by filter, and do not name it: the first of a question is that of the first filter. The
    metrics are what stands behind the other keys. Before 0.4.3 `arguments` are lists, and numbers are no texts.
    """

    def __init__(self, filters: Sequence[str]) -> None:
        self._filters = filters
        self._seen: Counter[int | str] = Counter()
        """By question: its lines."""

    def complete(self, value: Any) -> Any:
        """Return a sample with all keys; anything else as it is."""
        if type(value) is not dict or "filter" in value or not value.keys() >= _KEYS - _ADDED:
            return value
        doc_id = value["doc_id"]
        if not isinstance(doc_id, int | str):
            return value
        place = self._seen[doc_id]
        self._seen[doc_id] += 1
        filters = self._filters
        completed = {
            "doc_hash": files.canonical_json(value["doc"]).decode(),
            "prompt_hash": "",
            "target_hash": "",
            **value,
            "filter": filters[place % len(filters)] if filters else f"filter {place + 1}",
            "metrics": [key for key in value if key not in _KEYS],
            "target": str(value["target"]),
        }
        if isinstance(value["arguments"], list):
            completed["arguments"] = _to_named(value["arguments"])
            completed |= {key: _to_texts(value[key]) for key in ("resps", "filtered_resps")}
        return completed


def _to_named(arguments: Sequence[Any]) -> Any:
    """Return the arguments of requests as newer versions write them: `gen_args_0.arg_0`."""
    if not all(isinstance(one, list) for one in arguments):
        return arguments
    return {
        f"gen_args_{number}": {f"arg_{place}": value for place, value in enumerate(one)}
        for number, one in enumerate(arguments)
    }


def _to_texts(value: Any) -> Any:
    """Return answers as newer versions write them, numbers as texts (lm_eval/utils.py, sanitize_list)."""
    return [_to_texts(one) for one in value] if isinstance(value, list) else str(value)


_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WORDS = {"True": 1.0, "False": 0.0}
_LARGEST = 1 << 53


def to_score(value: Any) -> float | None:
    """Return the number of a metric's value; None where the harness made none; NaN for what is no number.

    numpy's numbers and truth values are written as texts ("0.5", "True"): lm_eval/utils.py, handle_non_serializable.
    """
    if isinstance(value, float):
        return None if math.isnan(value) else (value if math.isfinite(value) else math.nan)
    if isinstance(value, int):  # bool too
        return float(value) if abs(value) <= _LARGEST else math.nan
    if isinstance(value, str):
        if value in _WORDS:
            return _WORDS[value]
        return float(value) if _NUMBER.fullmatch(value) else math.nan
    return None if value is None else math.nan


def is_invalid(filtered: Any) -> bool:
    """Whether a filter found nothing (lm_eval/filters/extraction.py)."""
    return filtered == "[invalid]" or (isinstance(filtered, list) and set(map(str, filtered)) == {"[invalid]"})
