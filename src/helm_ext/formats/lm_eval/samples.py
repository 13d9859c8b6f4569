"""The lines of a samples file, and what the harness's own scores of a line are."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from helm_ext import files
from helm_ext.errors import (
    DatasetChangedError,
    DatasetError,
    DatasetSchemaError,
    Location,
    Problem,
    Problems,
    raise_for,
    show,
)

__all__ = ["SIGNATURE", "error", "is_invalid", "metric_names", "read_again", "read_samples", "to_score"]

SIGNATURE = (
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash",
)  # fmt: skip
"""Keys of every line."""

_KEYS = frozenset(SIGNATURE)
_TYPES: tuple[tuple[str, type | tuple[type, ...], str], ...] = (
    ("doc_id", (int, str), "a whole number"),
    ("target", str, "a text"),
    ("arguments", dict, "an object"),
    ("resps", list, "a list"),
    ("filtered_resps", list, "a list"),
    ("filter", str, "a text"),
    ("metrics", list, "a list"),
)


_USUAL = (int, str, dict, list, list, str, list)


def read_samples(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, sample), each of the right shape, and last (0, {"digest": ...}) of the file's bytes.

    Raises DatasetError for the first line that is no sample.
    """
    problems = Problems(str(path))
    with files.LineSource(path) as source:
        for number, value in files.iter_json_lines(source, str(path), problems, blank="error", allow_nan=True):
            if problems.errors:
                break
            _check(value, path, number)
            yield number, value
        raise_for(problems.finish())
        yield 0, {"digest": source.digest}


_QUICK = msgspec.json.Decoder()


def read_again(path: Path, digest: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the samples of a file that `read_samples` has read. Raises DatasetError if it was changed since."""
    with files.LineSource(path) as source:
        for number, line in source:
            if not line.strip():
                continue
            try:
                value = _QUICK.decode(line)
            except msgspec.MsgspecError:  # NaN, which the harness writes, and HELM's files do not hold
                value = json.loads(line, parse_constant=lambda _: None, parse_float=_to_finite)
            yield number, value
        if source.digest != digest:
            raise error(path, None, "the file was changed while it was read", kind=DatasetChangedError)


def _to_finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _check(value: Any, path: Path, number: int) -> None:
    if type(value) is dict and value.keys() >= _KEYS:  # nearly all lines end here
        found = tuple([type(value[key]) for key, _, _ in _TYPES])
        if found == _USUAL and all(type(name) is str and name in value for name in value["metrics"]):
            return
    if not isinstance(value, dict):
        raise error(path, number, f"expected an object, got {show(value)}")
    missing = _KEYS - value.keys()
    if missing:
        names = ", ".join(key for key in SIGNATURE if key in missing)
        raise error(path, number, f"no sample of lm-eval: it has no {names}")
    for key, kind, title in _TYPES:
        if not isinstance(value[key], kind) or isinstance(value[key], bool):
            raise error(path, number, f"{key}: expected {title}, got {show(value[key])}")
    for name in value["metrics"]:
        if not isinstance(name, str) or name not in value:
            raise error(path, number, f"metrics names {show(name)}, and there is no such key")


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


def error(
    path: Path | str,
    number: int | None,
    message: str,
    hint: str = "",
    code: str = "samples",
    kind: type[DatasetError] = DatasetSchemaError,
) -> DatasetError:
    """Return the error of a line."""
    return kind([Problem(message, Location(str(path), number), hint, code=code, kind=kind)])


def is_invalid(filtered: Any) -> bool:
    """Whether a filter found nothing (lm_eval/filters/extraction.py)."""
    return filtered == "[invalid]" or (isinstance(filtered, list) and set(map(str, filtered)) == {"[invalid]"})


def metric_names(sample: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (metric, its name in reports: `metric,filter`) for each score of a line."""
    chosen = sample["filter"]
    return [(name, f"{name},{chosen}") for name in sample["metrics"]]
