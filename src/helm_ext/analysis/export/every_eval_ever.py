"""Finished runs as Every Eval Ever 0.3.0: an aggregate file and a file of samples for each run.

    OUT/data/COLLECTION/DEVELOPER/MODEL/UUID.json              one result for each score of the run
    OUT/data/COLLECTION/DEVELOPER/MODEL/UUID_samples.jsonl     one line for each row and score

Rules: docs/how-to/export.md, and upstream's validator (every_eval_ever/validator/validation_core.py). The same run
gives the same UUID and the same files, times of retrieval aside: exporting twice does not make two records.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from helm_ext.analysis.export.every_eval_ever_samples import to_shared
from helm_ext.analysis.export.tables import find_main, to_line
from helm_ext.analysis.json_arrays import stat_key
from helm_ext.analysis.judged import list_judged
from helm_ext.analysis.predictions import Prediction
from helm_ext.analysis.run_scores import describe_scores, find_scores
from helm_ext.analysis.runs import RunFiles
from helm_ext.errors import DatasetIntegrityError
from helm_ext.files.writing import open_part
from helm_ext.formats.every_eval_ever.record import KEPT, ORIGINAL_LIBRARY, OUR_VERSION, VERSION
from helm_ext.scoring.registry import find_bounds
from helm_ext.scoring.score import JUDGED, UNCLEAR, judge_stat, list_judge_stats
from helm_ext.scoring.statistics import Interval, mean_interval

JSONObject = dict[str, Any]

_UNSAFE = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
_RESERVED = frozenset({"CON", "PRN", "AUX", "NUL", *(f"{name}{n}" for name in ("COM", "LPT") for n in range(1, 10))})
_LEFT_OUT = {
    "not_run": "not run: no completion is recorded",
    "failed": "failed: the request failed",
    "too_long": "left out: the question does not fit the model's context window",
    "unscored": "unscored: no score could be made of the answer",
}
_LONGEST = 120
"""Characters of one part of a path; file systems take 255 bytes."""


@dataclass(frozen=True)
class Publisher:
    """Who publishes the record, which no run says."""

    organization: str = "unknown"
    """The one that ran the evaluation."""
    relationship: str = "other"
    """Of that organization to the model's developer."""
    deployment_type: str = "unknown"
    model_availability: str = "unknown"


@dataclass(frozen=True)
class Written:
    """The files of one run."""

    aggregate: Path
    samples: Path
    lines: int
    notes: tuple[str, ...] = ()
    """What could not be told, in words."""


def write_every_eval_ever(
    runs: Sequence[RunFiles], target: Path, publisher: Publisher | None = None, *, replace: bool = False
) -> list[Written]:
    """Write the files of each run below `target/data`, and return them.

    Raises DatasetIntegrityError, before anything is written, for a run none of whose stats is a score, and for files
    that exist, unless `replace`; DatasetError for broken runs.
    """
    records = [_Record(run, publisher or Publisher()) for run in runs]
    paths: dict[str, _Record] = {}
    for record in records:
        if not record.results:
            raise DatasetIntegrityError(
                f"{record.run.name}: none of the stats of its rows is a score, and a record of Every Eval Ever is "
                "about scores\n  hint: leave it out, or export it with --to parquet"
            )
        other = paths.setdefault(record.path, record)
        if other is not record:
            raise DatasetIntegrityError(
                f"{record.run.folder} and {other.run.folder} are one run, with one record\n"
                "  hint: export one suite at a time"
            )
        if (target / record.path).exists() and not replace:
            raise DatasetIntegrityError(f"{target / record.path}: exists\n  hint: --replace overwrites it")
    return [record.write(target) for record in records]


def has_scores(run: RunFiles) -> bool:
    """Whether any stat of the run's rows is a score."""
    return bool(find_scores(run.row_stats.names))


@dataclass
class _Result:
    """A score of a run over the rows of one split and perturbation."""

    id: str
    name: JSONObject
    """HELM's full name of the stat."""
    key: str
    """The same as canonical text."""
    place: str
    """What it has in common with its rows (`_place`)."""
    score: float
    values: dict[str, list[float]] = field(default_factory=dict)
    """By instance id, a value for each trial."""
    clusters: dict[str, str] = field(default_factory=dict)
    """What instances belong to, where they say it."""
    left_out: int = 0
    """Rows without a value: a line says why, with the score 0."""

    @property
    def stat(self) -> str:
        """Name of the stat alone."""
        return str(self.name["name"])

    def measure(self) -> Interval:
        """Return the interval of the mean over rows."""
        means = [sum(values) / len(values) for values in self.values.values()]
        return mean_interval(means, [*map(self.clusters.get, self.values)])


class _Record:
    """What of a run stands in its files."""

    def __init__(self, run: RunFiles, publisher: Publisher) -> None:
        self.run = run
        self.publisher = publisher
        self.source: JSONObject = run.metric_arguments.get("source") or {}
        """Where the completions come from (`helm_ext.evalset.Source`), for files that another tool wrote."""
        self.original: JSONObject = (self.source.get("settings") or {}).get(KEPT) or {}
        """What the record said that the run was made of, where it was one of Every Eval Ever."""
        self.model_id = str(run.adapter_spec.get("model") or run.adapter_spec.get("model_deployment") or "unknown")
        self.facts = describe_scores(run.run_spec, find_scores(run.row_stats.names))
        with run.blaming("stats.json"):
            # The main metric first: whoever asks a record for one number takes the first.
            self.main = find_main(run)
            self.results = sorted(self._find_results(), key=lambda result: result.stat != self.main)
        results: JSONObject = self.original.get("results") or {}
        self.source_stats = {score["stat"]: name for name, score in run.source_scores.items()}
        """The source's scores by the names of their stats."""
        self.originals: JSONObject = {stat: results.get(name) or {} for stat, name in self.source_stats.items()}
        """Of the same, the results that came along."""
        self.others = {*self.source_stats, *list_judge_stats(run.judged)}
        """Stats of what others said of answers: not of each answer."""
        self.has_sub_splits = any(result.name.get("sub_split") is not None for result in self.results)
        """Whether stats are told apart by sub-split: HELM's are, ours are not."""
        self.started: float | None = None
        """When the first request was made, in seconds since 1970."""
        names = [one["source_data"]["dataset_name"] for one in results.values()]
        self.dataset = names[0] if names else run.scenario_name
        digest = hashlib.sha256((run.folder / "run_spec.json").read_bytes()).hexdigest()
        self.evaluation_id = f"{self.dataset}/{self.model_id.replace('/', '_')}/{digest[:12]}"
        """The same run always gets it."""
        identity = hashlib.sha256(f"every_eval_ever\0{run.name}\0{digest}".encode()).digest()
        developer, _, model = self.model_id.partition("/")
        if not model:
            developer, model = "unknown", developer
        parts = ["data", *map(_to_component, (self.dataset, developer, model))]
        stem = "/".join([*parts, str(uuid.UUID(bytes=identity[:16], version=4))])
        self.path, self.samples_path = f"{stem}.json", f"{stem}_samples.jsonl"

    def _find_results(self) -> Iterator[_Result]:
        """Yield each stat that is a score of rows: one for each split and perturbation."""
        means = {stat_key(stat["name"]): stat["mean"] for stat in self.run.stats if stat.get("mean") is not None}
        taken: set[str] = set()
        for key, name in self.run.row_stats.kinds.items():
            if name["name"] not in self.facts or key not in means or not math.isfinite(means[key]):
                continue
            changed = (name.get("perturbation") or {}).get("name")
            result_id = ":".join(filter(None, (name["name"], name.get("split"), name.get("sub_split"), changed)))
            if result_id in taken:  # perturbations of one name, with other settings
                result_id += ":" + hashlib.sha256(key.encode()).hexdigest()[:8]
            taken.add(result_id)
            place = _place(*(name.get(part) for part in ("split", "sub_split", "perturbation")))
            yield _Result(result_id, name, key, place, float(means[key]))

    def write(self, target: Path) -> Written:
        """Write both files: the samples aside, for their digest is in the aggregate, which comes last."""
        samples, aggregate = target / self.samples_path, target / self.path
        samples.parent.mkdir(parents=True, exist_ok=True)
        digest, lines = hashlib.sha256(), 0
        with open_part(samples) as part:
            for row in self.run.predictions():
                with self.run.blaming("scenario_state.json"):
                    made = [to_line(sample) for sample in self._to_samples(row)]
                for line in made:
                    digest.update(line)
                    part.file.write(line)
                lines += len(made)
            record = self._to_aggregate(digest.hexdigest(), lines)
            with open_part(aggregate) as other:
                other.file.write(
                    json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False).encode("utf-8", "replace") + b"\n"
                )
                part.replace()
                other.replace()
        return Written(aggregate, samples, lines, tuple(self._notes()))

    def _to_samples(self, row: Prediction) -> Iterator[JSONObject]:
        """Yield a line for each result that the row belongs to."""
        if row.request_datetime is not None:
            self.started = min(row.request_datetime, self.started or row.request_datetime)
        shared = to_shared(row, counts_tokens=self.run.is_ours)
        by_key = {stat_key(stat["name"]): row.scores[name] for name, stat in row.stats.items() if name in row.scores}
        scored = set()
        for result in self.results:
            if (value := by_key.get(result.key)) is not None:
                scored.add(result.stat)
                result.values.setdefault(row.instance_id, []).append(value)
                if row.cluster is not None:
                    result.clusters[row.instance_id] = row.cluster
                # A source may score what we leave out: that line has no error, its score is one.
                error = None if result.stat in self.others else row.error
                yield self._to_sample(row, shared, result, value, error)
        place = _place(row.split, row.sub_split if self.has_sub_splits else None, row.perturbation)
        for result in self.results:
            if result.stat in self.others and row.left_out is None and row.error is None:
                continue  # the source has made no such score of this row, or no judge has
            if result.stat not in scored and result.place == place:
                result.left_out += 1
                why = row.error or _LEFT_OUT.get(row.left_out or "", "no score was made of this row")
                yield self._to_sample(row, shared, result, 0.0, why)

    def _to_sample(
        self, row: Prediction, shared: JSONObject, result: _Result, value: float, error: str | None
    ) -> JSONObject:
        kept: JSONObject = row.data.get(KEPT) or {}
        of_source = self.source_stats.get(result.stat)
        original: JSONObject = (kept.get("scores") or {}).get(of_source) or {} if of_source is not None else {}
        sample = {
            "schema_version": VERSION,
            "evaluation_id": self.evaluation_id,
            "model_id": self.model_id,
            "evaluation_name": original.get("evaluation_name") or self.dataset,
            "evaluation_result_id": result.id,
            "sample_id": kept.get("sample_id", row.instance_id),
            **shared,
            "evaluation": {"score": value, "is_correct": value == 1.0, **shared["evaluation"]},
        }
        if "answer_attribution" in original:
            sample["answer_attribution"] = original["answer_attribution"]
        if "is_correct" in original and error is None:
            sample["evaluation"]["is_correct"] = original["is_correct"]
        if error is not None:
            sample["error"] = error
        return sample

    def _to_aggregate(self, checksum: str, lines: int) -> JSONObject:
        started = {} if self.started is None else {"evaluation_timestamp": str(int(self.started))}
        return {
            "schema_version": VERSION,
            "evaluation_id": self.evaluation_id,
            **started,
            "retrieved_timestamp": str(int(time.time())),
            "source_metadata": self._source_metadata(),
            "eval_library": {
                "name": "helm",
                "version": version("crfm-helm"),
                "additional_details": {OUR_VERSION: version("helm-ext"), "run": self.run.name},
            },
            "model_info": self._model_info(),
            "evaluation_results": list(map(self._to_result, self.results)),
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": self.samples_path,
                "hash_algorithm": "sha256",
                "checksum": checksum,
                "total_rows": lines,
            },
        }

    def _source_metadata(self) -> JSONObject:
        given = self.original.get("source_metadata") or {}
        said: JSONObject = {
            "source_name": "HELM",
            "source_type": "evaluation_run",
            "source_organization_name": self.publisher.organization,
            "evaluator_relationship": self.publisher.relationship,
        }
        if self.publisher.organization == Publisher.organization:  # who published the original published these outputs
            said |= {key: value for key, value in given.items() if isinstance(value, str)}
        if not self.source:
            return said
        details = {"outputs_of": self.source["tool"], "outputs_of_version": self.source.get("version") or "unknown"}
        for key in ("evaluation_id", "retrieved_timestamp", "schema_version"):
            if key in self.original:
                details[f"original_{key}"] = str(self.original[key])
        library = self.original.get("eval_library") or {}
        if library:
            details[ORIGINAL_LIBRARY] = str(library.get("name"))
            details["original_eval_library_version"] = str(library.get("version"))
        return {**said, "additional_details": details}

    def _model_info(self) -> JSONObject:
        given = self.original.get("model_info") or {}
        if given.get("id") == self.model_id:
            return dict(given)
        details = {
            "deployment_type": self.publisher.deployment_type,
            "model_availability": self.publisher.model_availability,
            "helm_model_deployment": str(self.run.adapter_spec.get("model_deployment") or ""),
        }
        developer, _, model = self.model_id.partition("/")
        named = {"developer": developer} if model else {}
        return {"name": self.model_id, "id": self.model_id, **named, "additional_details": details}

    def _to_result(self, result: _Result) -> JSONObject:
        original = self.originals.get(result.stat) or {}
        details = {key: str(result.name[key]) for key in ("split", "sub_split") if result.name.get(key)}
        if result.name.get("perturbation"):
            details["perturbation"] = json.dumps(result.name["perturbation"])
        if result.left_out:
            details["rows_left_out"] = str(result.left_out)
        if not details.keys() & {"sub_split", "perturbation"}:
            details |= self._find_corrected(result.stat, details.get("split"))
        bounds = find_bounds(result.stat, self.run.metric_arguments)
        scored = sum(map(len, result.values.values()))
        return {
            "evaluation_result_id": result.id,
            "evaluation_name": original.get("evaluation_name") or self.dataset,
            "source_data": original.get("source_data") or self._source_data(),
            "metric_config": original.get("metric_config") or self._metric_config(result, bounds),
            "score_details": {
                "score": result.score,
                **({"details": details} if details else {}),
                "uncertainty": {**_to_interval(result, bounds), "num_samples": scored},
            },
            "generation_config": original.get("generation_config") or self._generation_config(),
        }

    def _metric_config(self, result: _Result, bounds: tuple[float, float]) -> JSONObject:
        low, high = bounds if bounds[0] <= result.score <= bounds[1] else (-math.inf, math.inf)
        ours, facts = "helm_ext" if self.run.is_ours else "helm", self.facts[result.stat]
        details = {"computed_by": self.source["tool"] if result.stat in self.source_stats else ours}
        if facts.lower_is_better is None:
            details["lower_is_better"] = "not known"
        return {
            **self._judged_by(result.stat),
            "metric_id": result.stat,
            "metric_name": facts.display_name,
            "evaluation_description": facts.description or facts.display_name,
            "lower_is_better": bool(facts.lower_is_better),
            "score_type": "continuous",
            "min_score": _to_bound(low),
            "max_score": _to_bound(high),
            "additional_details": details,
        }

    def _judged_by(self, name: str) -> JSONObject:
        """Return the field of who judged, for a score of judges."""
        for criterion, told in self.run.judged.items():
            for by in ("", *told["judges"]):
                is_part = not by and criterion in UNCLEAR and name.endswith(JUDGED)  # of unclear rows alone
                if name == judge_stat(criterion, by) or is_part:
                    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
                    judges = [
                        {"model_info": {"name": one, "id": one, "additional_details": unknown}}
                        for one in ([by] if by else told["judges"])
                    ]
                    said = "not recorded; the digest of each prompt is in metadata.judgements of the samples"
                    method = "majority_vote" if told["scale"] == [0.0, 1.0] else "average"
                    jury = {"aggregation_method": method} if len(judges) > 1 else {}
                    return {"llm_scoring": {"judges": judges, "input_prompt": said, **jury}}
        return {}

    def _source_data(self) -> JSONObject:
        arguments = self.run.scenario_arguments
        details = {"scenario_class": self.run.run_spec["scenario_spec"]["class_name"]}
        details |= {key: str(arguments[key]) for key in ("digest", "questions") if key in arguments}
        return {"dataset_name": self.dataset, "source_type": "other", "additional_details": details}

    def _generation_config(self) -> JSONObject:
        spec = self.run.adapter_spec
        arguments: JSONObject = {}
        decoding = self.run.decoding
        if isinstance(decoding.get("temperature"), (int, float)):
            arguments["temperature"] = decoding["temperature"]
        if isinstance(longest := decoding.get("max_tokens"), int) and longest >= 1:
            arguments["max_tokens"] = longest
        details = {
            **{name: "not recorded" for name, value in decoding.items() if value is None},
            "method": str(spec.get("method")),
            "num_outputs": str(spec.get("num_outputs")),
            "max_train_instances": str(spec.get("max_train_instances")),
            "stop_sequences": json.dumps(spec.get("stop_sequences") or [], ensure_ascii=False),
        }
        if spec.get("multi_label"):
            details["multi_label"] = "true"
        if reducer := self.run.metric_arguments.get("completions"):
            details["completions"] = str(reducer)
        return {"generation_args": arguments, "additional_details": details}

    def _find_corrected(self, stat: str, split: str | None) -> dict[str, str]:
        """Return what people's labels make of a judge's score, as its details: samples have the verdicts alone."""
        judged = next((one for one in list_judged(self.run, split) if one.score == stat and "" in one.corrected), None)
        if judged is None:
            return {}
        found = judged.corrected[""]
        said = {"corrected": found.mean, "corrected_low": found.low, "corrected_high": found.high}
        return {name: str(value) for name, value in {**said, "labels": judged.labels}.items()}

    def _notes(self) -> Iterator[str]:
        first = self.results[0].stat
        if self.main is not None and first != self.main:
            yield f"the main metric, {self.main}, is no score of rows and not in the record; its first is {first}"
        unknown = [name for name, facts in self.facts.items() if facts.lower_is_better is None]
        if unknown:
            yield f"whether lower is better is not known of {', '.join(unknown)}: written as false"


def _to_interval(result: _Result, bounds: tuple[float, float]) -> JSONObject:
    """Return the field of a 95 % interval; {} where the rows do not tell it, or the score is no mean over them."""
    if not result.values:
        return {}
    interval = result.measure().within(bounds)
    if interval.method == "none" or not math.isclose(interval.mean, result.score, rel_tol=1e-9, abs_tol=1e-12):
        return {}
    return {
        "confidence_interval": {
            "lower": interval.low,
            "upper": interval.high,
            "confidence_level": interval.level,
            "method": interval.method + (f", {interval.clusters} clusters" if interval.clusters else ""),
        }
    }


def _place(split: str | None, sub_split: str | None, perturbation: JSONObject | None) -> str:
    """Return what rows and stats have in common."""
    named = {key: value for key, value in (perturbation or {}).items() if key != "computed_on"}
    return json.dumps([split, sub_split, named], sort_keys=True)


def _to_component(text: str) -> str:
    """Return a text as one part of a path, as the validator takes it."""
    safe = _UNSAFE.sub("_", text)
    if len(safe.encode()) > _LONGEST:
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        safe = f"{safe.encode()[: _LONGEST - 9].decode(errors='ignore')}-{digest}"
    safe = safe.rstrip(". ") or "unknown"
    return f"_{safe}" if safe == "data" or safe.split(".", 1)[0].upper() in _RESERVED else safe


def _to_bound(value: float) -> float | str:
    """Return a bound as the schema wants it: the words for infinite ones."""
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
