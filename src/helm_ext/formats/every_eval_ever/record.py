"""A record: an aggregate and the samples beside it.

What Every Eval Ever 0.3.0 demands of its two files is restated here (every_eval_ever/schemas/*.json upstream). Of the
aggregate: what it reports, of whom, and under which names here. Of a line of samples: what it must have, what tells
rows, repeats and scores apart, and what it says.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, DatasetSchemaError, Location, Problems, show
from helm_ext.files import canonical_json, parse_json, read_source
from helm_ext.formats.format import look
from helm_ext.formats.imported.format import choose_part
from helm_ext.formats.imported.gold import to_options
from helm_ext.formats.imported.json_log import StructLines, to_struct
from helm_ext.formats.imported.row import Message, RowError, as_object, is_finite_number, parse_list, spells_list

VERSION = "0.3.0"
"""Of what we export."""

READ_VERSIONS = ("0.2.", "0.3.")
"""Beginnings of the versions that are read: 0.2.x has the same fields where they matter here."""

KEPT = "every_eval_ever"
"""The key under which a row keeps what the importer read of its sample and HELM has no place for."""

ORIGINAL_LIBRARY = "original_eval_library_name"
"""The key of `source_metadata.additional_details` that names, in our export of an imported record, its tool."""
OUR_VERSION = "helm_ext_version"
"""The key of `eval_library.additional_details` in a record that our export wrote."""

AGGREGATE_KEYS = frozenset({"schema_version", "evaluation_id", "source_metadata", "model_info", "evaluation_results"})
"""By these an aggregate is recognised; files of 0.2.x have them too."""

INSTANCE_KEYS = frozenset({"schema_version", "evaluation_id", "model_id", "sample_id", "interaction_type"})
"""By these a line of samples is recognised."""

ENUMS = {
    "source_metadata.source_type": ("documentation", "evaluation_run"),
    "source_metadata.evaluator_relationship": ("first_party", "third_party", "collaborative", "other"),
    "model_info.additional_details.deployment_type": ("self_deployed", "externally_managed", "unknown"),
    "model_info.additional_details.model_availability": ("open_weights", "closed_weights", "unknown"),
    "interaction_type": ("single_turn", "multi_turn", "agentic"),
    "source_data.source_type": ("url", "hf_dataset", "other"),
    "metric_config.score_type": ("binary", "continuous", "levels"),
}


JSONObject = dict[str, Any]

_SAMPLES = "_samples.jsonl"
_NAME = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.json|_samples\.jsonl)")
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
    return any(path.name.endswith(_SAMPLES) and look(path).keys >= INSTANCE_KEYS for path in _named(folder))


def find_records(path: Path) -> list[Record]:
    """Return the records that a path names: a file's own, or all below a folder, by their paths.

    Raises DatasetNotFoundError where there is none, DatasetIntegrityError for a file of neither kind.
    """
    if path.is_dir():
        found = {
            _to_record(each)
            for each in _named(path)
            if any(look(each).keys >= keys for keys in (AGGREGATE_KEYS, INSTANCE_KEYS))
        }
        if not found:
            raise DatasetNotFoundError.at(path, "no record of Every Eval Ever is in this folder", code="record")
        return sorted(found, key=lambda record: str(record.aggregate or record.samples))
    if not path.is_file():
        raise DatasetNotFoundError.at(path, "no such file", code="record")
    if (keys := look(path).keys) < INSTANCE_KEYS:
        missing = ", ".join(sorted(INSTANCE_KEYS - keys))
        message = f"no record of Every Eval Ever: the first object has no {missing}"
        raise DatasetIntegrityError.at(path, message, code="record")
    return [_to_record(path)]


def choose(path: Path, name: str | None) -> Record:
    """Return the record that is meant. Raises as `find_records`, and where a folder does not tell."""
    records = find_records(path)
    names = [record.name for record in records]
    return records[names.index(choose_part(path, names, name, "record"))]


def _to_record(path: Path) -> Record:
    """Return the record that a file is of, with the one beside it."""
    are_samples = path.name.endswith(_SAMPLES)
    stem = path.name.removesuffix(_SAMPLES) if are_samples else path.stem
    aggregate, samples = path.with_name(f"{stem}.json"), path.with_name(stem + _SAMPLES)
    if look(path).keys >= AGGREGATE_KEYS:
        return Record(stem, path, samples if samples.is_file() else None)
    return Record(stem, aggregate if are_samples and look(aggregate).keys >= AGGREGATE_KEYS else None, path)


def _named(folder: Path) -> Iterator[Path]:
    """Yield the files that are named after a UUID, in a folder and those below it."""
    for parent, _, files in os.walk(folder):
        for name in files:
            if _NAME.fullmatch(name):
                yield Path(parent) / name


class _ModelInfo(msgspec.Struct):
    id: str


class _ScoreDetails(msgspec.Struct):
    score: float


class Result(msgspec.Struct):
    """One score that a record reports."""

    evaluation_name: str
    score_details: _ScoreDetails
    evaluation_result_id: str | None = None
    source_data: JSONObject | None = None
    metric_config: JSONObject | None = None
    generation_config: JSONObject | None = None
    name: str = msgspec.field(name="name of the result", default="")
    """As this run names it, unlike any other result of its record: filled in by the reader."""

    @property
    def config(self) -> JSONObject:
        """What the record says of the metric."""
        return self.metric_config or {}

    @property
    def described(self) -> str:
        """lm-eval's name of the metric, in records of its converter."""
        return str(self.config.get(_DESCRIBED) or "")

    @property
    def score(self) -> float:
        """What is reported."""
        return self.score_details.score

    def bounds(self, score: float) -> tuple[float, float] | None:
        """Return the least and the greatest score, where the record says both, and this one lies between."""
        low, high = self.config.get("min_score"), self.config.get("max_score")
        if not (is_finite_number(low) and is_finite_number(high) and low <= score <= high):
            return None
        return float(low), float(high)


class _Detailed(msgspec.Struct):
    hash_algorithm: Any = "sha256"
    checksum: Any = None
    total_rows: Any = None


class _File(msgspec.Struct):
    schema_version: Any
    evaluation_id: str
    model_info: _ModelInfo
    evaluation_results: list[Result]
    source_metadata: JSONObject | None = None
    eval_library: JSONObject | None = None
    detailed_evaluation_results: _Detailed | None = None


class Aggregate:
    """What a record says beside its samples."""

    def __init__(self, path: Path) -> None:
        """Read an aggregate. Raises DatasetError."""
        source = read_source(path)
        value = parse_json(source.data, str(path))
        file = to_struct(value, _File, "record of Every Eval Ever", str(path))
        self.digest = source.digest
        self.version = require_version(file.schema_version, str(path))
        self.evaluation_id, self.model, self.results = file.evaluation_id, file.model_info.id, file.evaluation_results
        if not self.results:
            place = Location(str(path), None, "evaluation_results")
            raise DatasetSchemaError.at(place, "no results: nothing is reported", code="record")
        _name_results(self.results)
        details = file.detailed_evaluation_results or _Detailed()
        self.checksum = details.checksum if details.hash_algorithm == "sha256" else None
        """SHA-256 of the samples, where the record has it."""
        self.total_rows = details.total_rows if isinstance(details.total_rows, int) else None
        self.declares_samples = bool(value.get("detailed_evaluation_results"))
        results = zip(self.results, value["evaluation_results"], strict=True)
        self.kept = {key: value[key] for key in _KEPT if key in value}
        """What an export of the run restores."""
        self.kept["results"] = {
            result.name: {key: given[key] for key in given if key in _KEPT_OF_RESULT} for result, given in results
        }
        is_export = OUR_VERSION in as_object((file.eval_library or {}).get("additional_details"))
        configs = [one.generation_config or {} for one in self.results if is_export]
        self.said = {key: value for one in configs for key, value in as_object(one.get("additional_details")).items()}
        """How the run was asked and scored, where our export wrote the record: `multi_label`, `completions`.

        Others may mean something else by these words: such details have no schema.
        """
        said = as_object((file.source_metadata or {}).get("additional_details"))
        original = said.get(ORIGINAL_LIBRARY)  # of a record that we exported again
        library = str(original or (file.eval_library or {}).get("name", ""))
        self.is_of_lm_eval = library == "lm_eval"
        """Whether upstream's converter made the record of lm-eval's files. Its references are positions from 0, or
        the text of a Python list where there are several (converters/lm_eval/instance_level_adapter.py).
        """
        self.is_of_inspect = library in ("inspect", "inspect_ai")
        """Whether it made it of a log of inspect_ai, whose scorer `choice` wants all right options together."""

    @property
    def evaluations(self) -> set[str]:
        """What its results are of."""
        return {result.evaluation_name for result in self.results}

    def find(self, sample: Sample) -> list[Result]:
        """Return the results that a sample may belong to: the one that it names, else those of its evaluation."""
        named = sample.evaluation_result_id
        return self._by_place.get((None, sample.evaluation_name) if named is None else (named, ""), [])

    @cached_property
    def _by_place(self) -> dict[tuple[str | None, str], list[Result]]:
        found: dict[tuple[str | None, str], list[Result]] = {}
        for one in self.results:
            found.setdefault((None, one.evaluation_name), []).append(one)
            if one.evaluation_result_id is not None:
                found.setdefault((one.evaluation_result_id, ""), []).append(one)
        return found


def require_version(version: Any, path: str, line: int | None = None) -> str:
    """Return the version of the schema. Raises DatasetIntegrityError for one that is not known."""
    if not isinstance(version, str) or not version.startswith(READ_VERSIONS):
        place, message = Location(path, line, "schema_version"), f"schema_version {show(version)} is not known here"
        raise DatasetIntegrityError.at(place, message, "0.2.x and 0.3.x are read", code="version")
    return version


def _name_results(results: Sequence[Result]) -> None:
    """Give each result a name of its own: the metric's, with the result's id where several have one name."""
    metrics = [_find_metric(result) for result in results]
    often, taken = Counter(metrics), set[str]()
    for result, metric in zip(results, metrics, strict=True):
        name = metric if often[metric] == 1 else result.evaluation_result_id or f"{result.evaluation_name} {metric}"
        while name in taken:
            name += "'"
        taken.add(name)
        result.name = name


def _find_metric(result: Result) -> str:
    for key in ("metric_id", "metric_name", _DESCRIBED):
        name = result.config.get(key)
        if isinstance(name, str) and name.strip():
            return name
    return result.evaluation_name


_TRIAL = "trial"
"""HELM's word: demonstrations are drawn anew for each."""
_REPEAT_KEYS = ("epoch", _TRIAL)
"""Keys of `metadata` that number the times a question was asked: inspect's converter, and our export."""
LABELS = "option_labels"
"""The key of `metadata` under which our export keeps the labels of options, as a JSON list."""
_POSITIONS = re.compile(r"\[-?\d+(?:, -?\d+)*\]", re.ASCII)
_LM_EVAL_METRICS = "lm_eval_metrics"
"""The key of `metadata` under which upstream's converter keeps lm-eval's scores of a sample, as a JSON object."""


class Input(msgspec.Struct):
    """What was asked, and what is right."""

    raw: str
    reference: list[str]
    formatted: str | None = None
    """The prompt."""
    choices: list[str] | None = None


class Output(msgspec.Struct):
    """What came back."""

    raw: list[str]
    reasoning_trace: str | list[Any] | None = None


class Turn(msgspec.Struct):
    """A message of a transcript."""

    role: str
    content: str | None = None
    reasoning_trace: Any = None
    tool_calls: Any = None
    tool_call_id: Any = None


class Evaluation(msgspec.Struct):
    """The score of a line."""

    score: float
    is_correct: bool


class Sample(msgspec.Struct):
    """A line that has the right shape."""

    schema_version: str
    evaluation_id: str
    model_id: str
    evaluation_name: str
    sample_id: str
    interaction_type: Literal["single_turn", "multi_turn", "agentic"]
    input: Input
    answer_attribution: list[JSONObject]
    """What was read of the answers."""
    evaluation: Evaluation
    evaluation_result_id: str | None = None
    """The result that its score belongs to."""
    output: Output | None = None
    messages: list[Turn] | None = None
    error: str | None = None
    metadata: JSONObject | None = None
    line: int = msgspec.field(name="number of the line", default=0)
    """Filled in by the reader."""

    @property
    def details(self) -> JSONObject:
        """What else is said of it."""
        return self.metadata or {}

    @property
    def repeat(self) -> str | None:
        """Which time the question was asked, where the line says it."""
        return next((str(self.details[key]) for key in _REPEAT_KEYS if key in self.details), None)

    @property
    def is_scored(self) -> bool:
        """Whether its score was made of an answer: a line must have one, and says 0 where the request failed.

        Our export has no answer of a row that only its source could score.
        """
        return self.error is None and ("left_out" in self.details or self.output is None or bool(self.output.raw))

    @property
    def asked(self) -> bytes:
        """A digest of the question as it was asked: in each trial with other demonstrations, which do not count."""
        if _TRIAL in self.details:
            return _digest([self.input.raw, self.input.reference, self.input.choices])
        return _digest([self.input, (self.messages or [])[:-1]])

    @property
    def content(self) -> bytes:
        """A digest of the question and of what came back."""
        return _digest([self.input, self.output, self.messages])


def open_samples(path: Path, problems: Problems) -> StructLines[Sample]:
    """Return the lines of a file that have the right shape; what is wrong with others goes to the problems."""
    return StructLines(path, Sample, "sample of Every Eval Ever", problems)


def find_contradictions(value: JSONObject, aggregate: Aggregate | None) -> Iterator[tuple[str, str]]:
    """Yield in which keys a line of samples contradicts itself or its aggregate, and how."""
    kind = value["interaction_type"]
    for key, is_needed, shape in (
        ("output", kind == "single_turn", "an object with raw, a list of texts"),
        ("messages", kind != "single_turn", "a list of objects with role"),
    ):
        if (value.get(key) is not None) is not is_needed:
            yield key, f"expected {shape if is_needed else 'null'}, as {kind} has it, got {show(value.get(key))}"
    for key, right in (("evaluation_id", aggregate.evaluation_id), ("model_id", aggregate.model)) if aggregate else ():
        if value[key] != right:
            yield key, f"{show(value[key])} is not that of the aggregate, {show(right)}"


def read_options(sample: Sample) -> dict[str, str] | None:
    """Return the options of a sample, by label: its own labels where it has some, else A, B, C, ..."""
    choices = sample.input.choices
    if not choices:
        return None
    labels = read_json(sample.details.get(LABELS))
    if isinstance(labels, list) and len(labels) == len(choices) == len({*map(str, labels)}):
        return dict(zip(map(str, labels), choices, strict=True))
    return to_options(choices, or_numbers=True)


def name_scores(sample: Sample, aggregate: Aggregate | None) -> tuple[dict[str, float], bool]:
    """Return the scores of a sample by the names of their results, and whether its result can be told."""
    results = aggregate.find(sample) if aggregate else []
    if len(results) == 1:
        return {results[0].name: sample.evaluation.score}, True
    metrics = as_object(read_json(sample.details.get(_LM_EVAL_METRICS)))
    by_name = {
        result.name: float(value)
        for result in results
        for metric, value in metrics.items()
        if is_finite_number(value) and (result.described == metric or result.described.startswith(f"{metric} ("))
    }
    if by_name:
        return by_name, True
    return {sample.evaluation_result_id or sample.evaluation_name: sample.evaluation.score}, not results


def read_gold(sample: Sample, options: Mapping[str, str], aggregate: Aggregate | None) -> str | Sequence[str]:
    """Return what of the options is right: upstream's converter of lm-eval writes several positions as one text."""
    references = sample.input.reference
    if len(references) != 1:
        return references
    is_list = aggregate is not None and aggregate.is_of_lm_eval and _POSITIONS.fullmatch(references[0])
    if not is_list or references[0] in options.values():
        return references[0]
    return list(dict.fromkeys(re.findall(r"-?\d+", references[0])))


def read_list(text: str) -> list[str] | None:
    """Return the texts of a Python list of texts, None for any other text. No code is run."""
    try:
        value = parse_list(text) if spells_list(text) else None
    except RowError:
        return None
    return value if isinstance(value, list) and value and all(isinstance(one, str) for one in value) else None


def read_conversation(formatted: str | None) -> list[Message] | None:
    """Return the messages of a prompt that is written as a JSON list of them; None for any other prompt."""
    if not formatted or not formatted.startswith('[{"role": '):
        return None
    turns = read_json(formatted)
    if not isinstance(turns, list):
        return None
    fits = all(isinstance(t, dict) and t.keys() == {"role", "content"} and isinstance(t["content"], str) for t in turns)
    return turns if fits else None


def read_json(text: Any) -> Any:
    """Return the value of a JSON text; None for anything else."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(canonical_json(msgspec.to_builtins(value)), digest_size=12).digest()
