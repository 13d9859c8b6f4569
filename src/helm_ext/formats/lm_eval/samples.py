"""The lines of a samples file, and what the harness's own scores of a line are."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from helm_ext import files
from helm_ext.errors import (
    DatasetChangedError,
    DatasetSchemaError,
    Problems,
    raise_for,
    show,
)

__all__ = ["SIGNATURE", "is_invalid", "metric_names", "read_again", "read_samples", "to_score"]

SIGNATURE = (
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash",
)  # fmt: skip
"""Keys of every line."""

_KEYS = frozenset(SIGNATURE)
_ADDED = frozenset({"filter", "metrics", "doc_hash", "prompt_hash", "target_hash"})
"""Of these, what lines of older versions lack: the hashes before 0.4.3, filter and metrics before 0.4.7."""
_TYPES: tuple[tuple[str, type | tuple[type, ...], str], ...] = (
    ("doc_id", (int, str), "a whole number"),
    ("target", str, "a text"),
    ("arguments", dict, "an object"),
    ("resps", list, "a list"),
    ("filtered_resps", list, "a list"),
    ("filter", str, "a text"),
    ("metrics", list, "a list"),
    ("doc_hash", str, "a text"),
    ("prompt_hash", str, "a text"),
    ("target_hash", str, "a text"),
)


_USUAL = (int, str, dict, list, list, str, list, str, str, str)


def read_samples(path: Path, filters: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, sample), each of the right shape, and last (0, {"digest": ...}) of the file's bytes.

    `filters`: the task's, for lines that do not name theirs; empty where they are not known. Raises DatasetError for
    the first line that is no sample.
    """
    problems = Problems(str(path))
    older = _Older(filters)
    with files.LineSource(path) as source:
        lines = _cut(source)
        for number, value in files.iter_json_lines(lines, str(path), problems, blank="error", allow_nan=True):
            if problems.errors:
                break
            sample = older.complete(value)
            _check(sample, path, number)
            yield number, sample
        raise_for(problems.finish())
        yield 0, {"digest": source.digest}


def _cut(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Return the lines; those of an indented JSON list, as versions before 0.4.3 write it, an element at a time."""
    lines = iter(lines)
    first = next(lines, None)
    if first is None or first[1].strip() != b"[":
        return itertools.chain([first] if first is not None else [], lines)
    return _cut_elements(lines)


def _cut_elements(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the elements of a list that `json.dumps(indent=2)` wrote, each with the number of its first line.

    A line break inside a text is escaped, so a bracket that stands two spaces from the left ends an element.
    """
    start, element = 0, bytearray()
    for number, line in lines:
        text = line.rstrip()
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


_QUICK = msgspec.json.Decoder()


def read_again(path: Path, digest: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the samples of a file that `read_samples` has read. Raises DatasetError if it was changed since."""
    older = _Older(())
    with files.LineSource(path) as source:
        for number, line in _cut(source):
            if not line.strip():
                continue
            try:
                value = _QUICK.decode(line)
            except msgspec.MsgspecError:  # NaN, which the harness writes, and HELM's files do not hold
                value = json.loads(line, parse_constant=lambda _: None, parse_float=_to_finite)
            yield number, older.complete(value)
        if source.digest != digest:
            raise DatasetChangedError.at(path, "the file was changed while it was read", code="samples")


def _to_finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _check(value: Any, path: Path, number: int) -> None:
    if type(value) is dict and value.keys() >= _KEYS:  # nearly all lines end here
        found = tuple([type(value[key]) for key, _, _ in _TYPES])
        if found == _USUAL and all(type(name) is str and name in value for name in value["metrics"]):
            return
    if not isinstance(value, dict):
        raise DatasetSchemaError.at(path, f"expected an object, got {show(value)}", line=number, code="samples")
    missing = _KEYS - value.keys()
    if missing:
        names = ", ".join(key for key in SIGNATURE if key in missing)
        raise DatasetSchemaError.at(path, f"no sample of lm-eval: it has no {names}", line=number, code="samples")
    for key, kind, title in _TYPES:
        if not isinstance(value[key], kind) or isinstance(value[key], bool):
            raise DatasetSchemaError.at(
                path, f"{key}: expected {title}, got {show(value[key])}", line=number, code="samples"
            )
    for name in value["metrics"]:
        if not isinstance(name, str) or name not in value:
            raise DatasetSchemaError.at(
                path, f"metrics names {show(name)}, and there is no such key", line=number, code="samples"
            )


_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WORDS = {"True": 1.0, "False": 0.0}
_LARGEST = 1 << 53
NOT_A_NUMBER = math.nan
"""What `to_score` returns for a value that is kept and never averaged."""


def to_score(value: Any) -> float | None:
    """Return the number of a metric's value; None where the harness made none; NaN for what is no number.

    numpy's numbers and truth values are written as texts ("0.5", "True"): lm_eval/utils.py, handle_non_serializable.
    """
    if isinstance(value, float):
        return None if math.isnan(value) else (value if math.isfinite(value) else NOT_A_NUMBER)
    if isinstance(value, int):  # bool too
        return float(value) if abs(value) <= _LARGEST else NOT_A_NUMBER
    if isinstance(value, str):
        if value in _WORDS:
            return _WORDS[value]
        return float(value) if _NUMBER.fullmatch(value) else NOT_A_NUMBER
    return None if value is None else NOT_A_NUMBER


def is_invalid(filtered: Any) -> bool:
    """Whether a filter found nothing (lm_eval/filters/extraction.py)."""
    return filtered == "[invalid]" or (isinstance(filtered, list) and set(map(str, filtered)) == {"[invalid]"})


def metric_names(sample: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (metric, its name in reports: `metric,filter`) for each score of a line."""
    chosen = sample["filter"]
    return [(name, f"{name},{chosen}") for name in sample["metrics"]]
