"""The aggregate of a record: what it reports, of whom, and under which name each of its scores goes here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetIntegrityError, DatasetSchemaError, Location, show
from helm_ext.files import parse_json, read_source
from helm_ext.formats.every_eval_ever.schema import ORIGINAL_LIBRARY, find_missing
from helm_ext.formats.imported.row import is_finite_number

__all__ = ["Aggregate", "Result", "read_aggregate", "require_version"]

JSONObject = dict[str, Any]

_NEEDED = ("schema_version", "evaluation_id", "model_info.id", "evaluation_results")
_NEEDED_OF_RESULT = ("evaluation_name", "score_details.score")
_VERSIONS = ("0.2.", "0.3.")
"""Beginnings of the versions that are read: 0.2.x has the same fields where they matter here."""
_OF_LM_EVAL = "lm_eval"


@dataclass(frozen=True)
class Result:
    """One score that a record reports."""

    name: str
    """As this run names it: unlike that of any other result of its record."""
    evaluation: str
    result_id: str | None
    described: str
    """`metric_config.evaluation_description`: lm-eval's name of the metric, in records of its converter."""
    score: float
    lower_is_better: bool
    value: Mapping[str, Any]
    """All of it, but its score."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the greatest score, where the record says both, and its own lies between."""
        config = self.value.get("metric_config") or {}
        low, high = config.get("min_score"), config.get("max_score")
        if not (is_finite_number(low) and is_finite_number(high) and low <= self.score <= high):
            return None
        return float(low), float(high)


@dataclass(frozen=True)
class Aggregate:
    """What a record says beside its samples."""

    path: str
    digest: str
    version: str
    evaluation_id: str
    model: str
    library: str
    """The tool that ran the evaluation."""
    results: tuple[Result, ...]
    checksum: str | None
    """SHA-256 of the samples, where the record has it."""
    total_rows: int | None
    declares_samples: bool
    kept: JSONObject = field(default_factory=dict)
    """What an export of the run restores."""

    @property
    def is_of_lm_eval(self) -> bool:
        """Whether upstream's converter made the record of lm-eval's files. Its references are positions from 0, or
        the text of a Python list where there are several (converters/lm_eval/instance_level_adapter.py).
        """
        return self.library == _OF_LM_EVAL

    def find(self, result_id: str | None, evaluation: str) -> list[Result]:
        """Return the results that a sample may belong to: the one that it names, else those of its evaluation."""
        return self._by_id.get(result_id, []) if result_id is not None else self._by_evaluation.get(evaluation, [])

    @cached_property
    def _by_id(self) -> dict[str, list[Result]]:
        named = [result for result in self.results if result.result_id is not None]
        return {str(one.result_id): [each for each in named if each.result_id == one.result_id] for one in named}

    @cached_property
    def _by_evaluation(self) -> dict[str, list[Result]]:
        names = dict.fromkeys(result.evaluation for result in self.results)
        return {name: [result for result in self.results if result.evaluation == name] for name in names}


def read_aggregate(path: Path) -> Aggregate:
    """Read an aggregate. Raises DatasetError."""
    source = read_source(path)
    value = parse_json(source.data, str(path))
    missing = find_missing(value, _NEEDED) if isinstance(value, dict) else list(_NEEDED)
    if missing:
        raise _error(path, f"no record of Every Eval Ever: without {', '.join(missing)}")
    version = require_version(value["schema_version"], str(path))
    _require_objects(path, value, ("source_metadata", "eval_library", "model_info", "detailed_evaluation_results"))
    results = value["evaluation_results"]
    if not isinstance(results, list) or not results:
        raise _error(path, "no results: nothing is reported", "evaluation_results")
    for index, result in enumerate(results):
        _check_result(path, f"evaluation_results[{index}]", result)
    details = value.get("detailed_evaluation_results") or {}
    named = _name(results)
    return Aggregate(
        path=str(path),
        digest=source.digest,
        version=version,
        evaluation_id=str(value["evaluation_id"]),
        model=str(value["model_info"]["id"]),
        library=_find_library(value),
        results=named,
        checksum=details.get("checksum") if details.get("hash_algorithm", "sha256") == "sha256" else None,
        total_rows=details.get("total_rows") if isinstance(details.get("total_rows"), int) else None,
        declares_samples=bool(details),
        kept=_keep(value, named),
    )


def _check_result(path: Path, where: str, result: Any) -> None:
    """Raise DatasetSchemaError where a result is not of the right shape."""
    lacking = find_missing(result, _NEEDED_OF_RESULT) if isinstance(result, dict) else list(_NEEDED_OF_RESULT)
    if lacking:
        raise _error(path, f"without {', '.join(lacking)}", where)
    _require_objects(path, result, ("source_data", "metric_config", "generation_config"), where)
    score = result["score_details"]["score"]
    if not is_finite_number(score):
        raise _error(path, f"expected a number, got {show(score)}", f"{where}.score_details.score")
    for key in ("evaluation_name", "evaluation_result_id"):
        if not isinstance(result.get(key), str | None):
            raise _error(path, f"expected text, got {show(result[key])}", f"{where}.{key}")


def _require_objects(path: Path, holder: JSONObject, keys: Sequence[str], where: str = "") -> None:
    for key in keys:
        if not isinstance(holder.get(key), dict | None):
            raise _error(path, f"expected an object, got {show(holder[key])}", f"{where}.{key}".removeprefix("."))


def require_version(version: Any, path: str, line: int | None = None) -> str:
    """Return the version of the schema. Raises DatasetIntegrityError for one that is not known."""
    if not isinstance(version, str) or not version.startswith(_VERSIONS):
        raise DatasetIntegrityError.at(
            Location(path, line, "schema_version"),
            f"schema_version {show(version)} is not known here",
            "0.2.x and 0.3.x are read",
            code="version",
        )
    return version


def _name(results: list[JSONObject]) -> tuple[Result, ...]:
    """Return the results under names of their own: the metric's, with the result's id where several have one name."""
    short = [_metric_of(result) for result in results]
    often = Counter(short)
    taken: set[str] = set()
    named = []
    for result, metric in zip(results, short, strict=True):
        result_id = result.get("evaluation_result_id")
        evaluation = str(result["evaluation_name"])
        name = metric if often[metric] == 1 else result_id or f"{evaluation} {metric}"
        while name in taken:
            name += "'"
        taken.add(name)
        config = result.get("metric_config") or {}
        named.append(
            Result(
                name=name,
                evaluation=evaluation,
                result_id=result_id,
                described=str(config.get("evaluation_description") or ""),
                score=float(result["score_details"]["score"]),
                lower_is_better=bool(config.get("lower_is_better")),
                value={key: kept for key, kept in result.items() if key in _KEPT_OF_RESULT},
            )
        )
    return tuple(named)


_KEPT_OF_RESULT = ("evaluation_name", "source_data", "metric_config", "generation_config")
_KEPT = (
    "schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "eval_library", "model_info"
)  # fmt: skip


def _metric_of(result: JSONObject) -> str:
    config = result.get("metric_config") or {}
    for key in ("metric_id", "metric_name", "evaluation_description"):
        if isinstance(config.get(key), str) and config[key].strip():
            return str(config[key])
    return str(result["evaluation_name"])


def _find_library(value: JSONObject) -> str:
    """Return the tool that ran the evaluation: of what we exported from a record, the one that the record named."""
    said = (value.get("source_metadata") or {}).get("additional_details")
    original = said.get(ORIGINAL_LIBRARY) if isinstance(said, dict) else None
    return str(original or (value.get("eval_library") or {}).get("name", ""))


def _keep(value: JSONObject, results: tuple[Result, ...]) -> JSONObject:
    kept = {key: value[key] for key in _KEPT if key in value}
    return {**kept, "results": {result.name: dict(result.value) for result in results}}


def _error(path: Path, message: str, where: str = "") -> DatasetSchemaError:
    return DatasetSchemaError.at(Location(str(path), None, where), message, code="record")
