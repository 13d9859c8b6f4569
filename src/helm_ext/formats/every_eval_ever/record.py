"""A record: an aggregate and the samples beside it; what it reports, of whom, and under which names here."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, DatasetSchemaError, Location, show
from helm_ext.files import parse_json, read_source
from helm_ext.formats.every_eval_ever.schema import AGGREGATE_KEYS, INSTANCE_KEYS, ORIGINAL_LIBRARY, READ_VERSIONS
from helm_ext.formats.format import look
from helm_ext.formats.imported.format import choose_part
from helm_ext.formats.imported.row import is_finite_number
from helm_ext.formats.imported.structs import to_struct

JSONObject = dict[str, Any]

_SAMPLES = "_samples.jsonl"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_DESCRIBED = "evaluation_description"
_KEPT = (
    "schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "eval_library", "model_info"
)  # fmt: skip
_KEPT_OF_RESULT = ("evaluation_name", "source_data", "metric_config", "generation_config")


@dataclass(frozen=True)
class Record:
    """The files of one record. At least one of them is there."""

    name: str
    """The file's name without its ending: a UUID, where the file is named as upstream demands."""
    aggregate: Path | None
    samples: Path | None


def has_records(folder: Path) -> bool:
    """Whether a folder, or one below it, holds a file of samples."""
    return any(look(path).keys >= INSTANCE_KEYS for path in _named(folder, _SAMPLES))


def find_records(path: Path) -> list[Record]:
    """Return the records that a path names: a file's own, or all below a folder, by their paths.

    Raises DatasetNotFoundError where there is none, DatasetIntegrityError for a file of neither kind.
    """
    if path.is_dir():
        found = [_of_aggregate(each) for each in _named(path, ".json") if look(each).keys >= AGGREGATE_KEYS]
        known = {record.samples for record in found}
        alone = [each for each in _named(path, _SAMPLES) if each not in known and look(each).keys >= INSTANCE_KEYS]
        found += [Record(_stem(each), None, each) for each in alone]
        if not found:
            raise DatasetNotFoundError.at(path, "no record of Every Eval Ever is in this folder", code="record")
        return sorted(found, key=lambda record: str(record.aggregate or record.samples))
    if not path.is_file():
        raise DatasetNotFoundError.at(path, "no such file", code="record")
    keys = look(path).keys
    if keys >= AGGREGATE_KEYS:
        return [_of_aggregate(path)]
    if keys < INSTANCE_KEYS:
        missing = ", ".join(sorted(INSTANCE_KEYS - keys))
        message = f"no record of Every Eval Ever: the first object has no {missing}"
        raise DatasetIntegrityError.at(path, message, code="record")
    beside = path.with_name(_stem(path) + ".json")
    aggregate = beside if path.name.endswith(_SAMPLES) and look(beside).keys >= AGGREGATE_KEYS else None
    return [Record(_stem(path), aggregate, path)]


def choose(path: Path, name: str | None) -> Record:
    """Return the record that is meant. Raises as `find_records`, and where a folder does not tell."""
    records = find_records(path)
    names = [record.name for record in records]
    return records[names.index(choose_part(path, names, name, "record"))]


def _of_aggregate(path: Path) -> Record:
    samples = path.with_name(path.stem + _SAMPLES)
    return Record(path.stem, path, samples if samples.is_file() else None)


def _stem(path: Path) -> str:
    return path.name.removesuffix(_SAMPLES) if path.name.endswith(_SAMPLES) else path.stem


def _named(folder: Path, suffix: str) -> Iterator[Path]:
    """Yield the files whose name is a UUID and this ending, in a folder and those below it."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            if name.endswith(suffix) and _UUID.fullmatch(name.removesuffix(suffix)):
                yield Path(parent) / name


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
    config: Mapping[str, Any]
    """What the record says of the metric."""
    kept: JSONObject
    """All of it, but its score."""

    @property
    def described(self) -> str:
        """lm-eval's name of the metric, in records of its converter."""
        return str(self.config.get(_DESCRIBED) or "")

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the greatest score, where the record says both, and its own lies between."""
        low, high = self.config.get("min_score"), self.config.get("max_score")
        if not (is_finite_number(low) and is_finite_number(high) and low <= self.score <= high):
            return None
        return float(low), float(high)


class Aggregate:
    """What a record says beside its samples."""

    def __init__(self, path: Path) -> None:
        """Read an aggregate. Raises DatasetError."""
        source = read_source(path)
        value = parse_json(source.data, str(path))
        file = to_struct(value, _File, "record of Every Eval Ever", str(path))
        self.digest = source.digest
        self.version = require_version(file.schema_version, str(path))
        self.evaluation_id, self.model = file.evaluation_id, file.model_info.id
        self.results = _name_results(file.evaluation_results, value["evaluation_results"])
        if not self.results:
            place = Location(str(path), None, "evaluation_results")
            raise DatasetSchemaError.at(place, "no results: nothing is reported", code="record")
        details = file.detailed_evaluation_results or _Detailed()
        self.checksum = details.checksum if details.hash_algorithm == "sha256" else None
        """SHA-256 of the samples, where the record has it."""
        self.total_rows = details.total_rows if isinstance(details.total_rows, int) else None
        self.declares_samples = bool(value.get("detailed_evaluation_results"))
        self.kept = {key: value[key] for key in _KEPT if key in value}
        """What an export of the run restores."""
        self.kept["results"] = {result.name: result.kept for result in self.results}
        said = (file.source_metadata or {}).get("additional_details")
        original = said.get(ORIGINAL_LIBRARY) if isinstance(said, dict) else None  # of a record that we exported again
        self.is_of_lm_eval = str(original or (file.eval_library or {}).get("name", "")) == "lm_eval"
        """Whether upstream's converter made the record of lm-eval's files. Its references are positions from 0, or
        the text of a Python list where there are several (converters/lm_eval/instance_level_adapter.py).
        """

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


def require_version(version: Any, path: str, line: int | None = None) -> str:
    """Return the version of the schema. Raises DatasetIntegrityError for one that is not known."""
    if not isinstance(version, str) or not version.startswith(READ_VERSIONS):
        place, message = Location(path, line, "schema_version"), f"schema_version {show(version)} is not known here"
        raise DatasetIntegrityError.at(place, message, "0.2.x and 0.3.x are read", code="version")
    return version


def _name_results(results: list[_Result], values: list[JSONObject]) -> list[Result]:
    """Return the results under names of their own: the metric's, with the result's id where several have one name."""
    metrics = [_find_metric(result) for result in results]
    often = Counter(metrics)
    named: dict[str, Result] = {}
    for result, metric, value in zip(results, metrics, values, strict=True):
        result_id, evaluation = result.evaluation_result_id, result.evaluation_name
        name = metric if often[metric] == 1 else result_id or f"{evaluation} {metric}"
        while name in named:
            name += "'"
        kept = {key: value[key] for key in value if key in _KEPT_OF_RESULT}
        config = result.metric_config or {}
        named[name] = Result(name, evaluation, result_id, result.score_details.score, config, kept)
    return list(named.values())


def _find_metric(result: _Result) -> str:
    for key in ("metric_id", "metric_name", _DESCRIBED):
        name = (result.metric_config or {}).get(key)
        if isinstance(name, str) and name.strip():
            return name
    return result.evaluation_name
