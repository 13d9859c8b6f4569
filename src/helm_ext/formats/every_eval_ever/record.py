"""The aggregate of a record: what it reports, of whom, and under which name each of its scores goes here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from helm_ext.errors import DatasetIntegrityError, DatasetSchemaError, Location, show
from helm_ext.files import parse_json, read_source
from helm_ext.formats.every_eval_ever.schema import ORIGINAL_LIBRARY, READ_VERSIONS
from helm_ext.formats.imported.row import is_finite_number
from helm_ext.formats.imported.structs import to_struct

JSONObject = dict[str, Any]

_DESCRIBED = "evaluation_description"
_KEPT = (
    "schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "eval_library", "model_info"
)  # fmt: skip
_KEPT_OF_RESULT = ("evaluation_name", "source_data", "metric_config", "generation_config")


class _ModelInfo(msgspec.Struct):
    id: str


class _ScoreDetails(msgspec.Struct):
    score: float


class _Result(msgspec.Struct):
    evaluation_name: str
    score_details: _ScoreDetails
    evaluation_result_id: str | None = None
    source_data: JSONObject | None = None
    metric_config: JSONObject | None = None
    generation_config: JSONObject | None = None


class _Detailed(msgspec.Struct):
    hash_algorithm: Any = "sha256"
    checksum: Any = None
    total_rows: Any = None


class _File(msgspec.Struct):
    schema_version: Any
    evaluation_id: str
    model_info: _ModelInfo
    evaluation_results: list[_Result]
    source_metadata: JSONObject | None = None
    eval_library: JSONObject | None = None
    detailed_evaluation_results: _Detailed | None = None


@dataclass(frozen=True)
class Result:
    """One score that a record reports."""

    name: str
    """As this run names it: unlike that of any other result of its record."""
    evaluation: str
    result_id: str | None
    score: float
    described: str
    """`metric_config.evaluation_description`: lm-eval's name of the metric, in records of its converter."""
    value: Mapping[str, Any]
    """All of it, but its score."""

    @property
    def config(self) -> Mapping[str, Any]:
        """What the record says of the metric."""
        return self.value.get("metric_config") or {}

    @property
    def lower_is_better(self) -> bool:
        """Whether a lower score is better."""
        return bool(self.config.get("lower_is_better"))

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the greatest score, where the record says both, and its own lies between."""
        low, high = self.config.get("min_score"), self.config.get("max_score")
        if not (is_finite_number(low) and is_finite_number(high) and low <= self.score <= high):
            return None
        return float(low), float(high)


@dataclass(frozen=True)
class Aggregate:
    """What a record says beside its samples."""

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
        return self.library == "lm_eval"

    def find(self, result_id: str | None, evaluation: str) -> list[Result]:
        """Return the results that a sample may belong to: the one that it names, else those of its evaluation."""
        return self._by_place.get((None, evaluation) if result_id is None else (result_id, ""), [])

    @cached_property
    def _by_place(self) -> dict[tuple[str | None, str], list[Result]]:
        found: dict[tuple[str | None, str], list[Result]] = {}
        for one in self.results:
            found.setdefault((None, one.evaluation), []).append(one)
            if one.result_id is not None:
                found.setdefault((one.result_id, ""), []).append(one)
        return found


def read_aggregate(path: Path) -> Aggregate:
    """Read an aggregate. Raises DatasetError."""
    source = read_source(path)
    value = parse_json(source.data, str(path))
    file = to_struct(value, _File, "record of Every Eval Ever", str(path))
    version = require_version(file.schema_version, str(path))
    if not file.evaluation_results:
        place = Location(str(path), None, "evaluation_results")
        raise DatasetSchemaError.at(place, "no results: nothing is reported", code="record")
    details = file.detailed_evaluation_results or _Detailed()
    results = _name_results(value["evaluation_results"])
    kept = {key: value[key] for key in _KEPT if key in value}
    return Aggregate(
        digest=source.digest,
        version=version,
        evaluation_id=file.evaluation_id,
        model=file.model_info.id,
        library=_find_library(file),
        results=results,
        checksum=details.checksum if details.hash_algorithm == "sha256" else None,
        total_rows=details.total_rows if isinstance(details.total_rows, int) else None,
        declares_samples=bool(value.get("detailed_evaluation_results")),
        kept={**kept, "results": {result.name: dict(result.value) for result in results}},
    )


def require_version(version: Any, path: str, line: int | None = None) -> str:
    """Return the version of the schema. Raises DatasetIntegrityError for one that is not known."""
    if not isinstance(version, str) or not version.startswith(READ_VERSIONS):
        raise DatasetIntegrityError.at(
            Location(path, line, "schema_version"),
            f"schema_version {show(version)} is not known here",
            "0.2.x and 0.3.x are read",
            code="version",
        )
    return version


def _name_results(results: list[JSONObject]) -> tuple[Result, ...]:
    """Return the results under names of their own: the metric's, with the result's id where several have one name."""
    metrics = [_find_metric(result) for result in results]
    often = Counter(metrics)
    named: dict[str, Result] = {}
    for result, metric in zip(results, metrics, strict=True):
        result_id, evaluation = result.get("evaluation_result_id"), result["evaluation_name"]
        name = metric if often[metric] == 1 else result_id or f"{evaluation} {metric}"
        while name in named:
            name += "'"
        value = {key: kept for key, kept in result.items() if key in _KEPT_OF_RESULT}
        score, described = result["score_details"]["score"], (value.get("metric_config") or {}).get(_DESCRIBED)
        named[name] = Result(name, evaluation, result_id, float(score), str(described or ""), value)
    return tuple(named.values())


def _find_metric(result: JSONObject) -> str:
    config = result.get("metric_config") or {}
    for key in ("metric_id", "metric_name", _DESCRIBED):
        if isinstance(config.get(key), str) and config[key].strip():
            return str(config[key])
    return str(result["evaluation_name"])


def _find_library(file: _File) -> str:
    """Return the tool that ran the evaluation: of what we exported from a record, the one that the record named."""
    said = (file.source_metadata or {}).get("additional_details")
    original = said.get(ORIGINAL_LIBRARY) if isinstance(said, dict) else None
    return str(original or (file.eval_library or {}).get("name", ""))
