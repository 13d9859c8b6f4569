"""What models said of a record's answers: the score of a result that `metric_config.llm_scoring` calls a judge's.

Upstream's schema names the judges of a result, and has one score of a sample: the judge's verdict, or that of all
judges together. Our own export has each judgement whole, as JSON in `metadata.judgements` of a sample; then nothing
else is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helm_ext.errors import DatasetSchemaError, Location, Problems, raise_for
from helm_ext.formats.every_eval_ever.record import Aggregate
from helm_ext.formats.every_eval_ever.samples import Sample
from helm_ext.formats.imported.row import is_finite_number
from helm_ext.judging.judgement import read_judgements

KEY = "judgements"
"""Of `metadata`."""


def read_row_judgements(
    path: str, repeats: Sequence[Sequence[Sample]], completions: Sequence[int], aggregate: Aggregate | None
) -> list[dict[str, Any]]:
    """Return what was said of a row's answers. `completions`: of each repeat the number of its first answer.

    Raises DatasetSchemaError for judgements of our own export that are not as it writes them.
    """
    first = repeats[0][0]
    if KEY in first.metadata:
        return _read_own(path, first)
    return [
        judgement
        for lines, completion in zip(repeats, completions, strict=True)
        for sample in lines
        for judgement in _judge(sample, aggregate, completion)
    ]


def _read_own(path: str, sample: Sample) -> list[dict[str, Any]]:
    problems = Problems(path)

    def report(where: tuple[str | int, ...], message: str, hint: str) -> None:
        place = ("metadata", KEY, *where)
        problems.add(place, message, hint, line=sample.line, code="judgement", kind=DatasetSchemaError)

    try:
        given = json.loads(sample.metadata[KEY])
    except (TypeError, ValueError, RecursionError) as error:
        raise DatasetSchemaError.at(
            Location(path, sample.line, f"metadata.{KEY}"), f"not JSON: {error}", "as `helm-ext export` writes it",
            code="judgement",
        ) from error  # fmt: skip
    found = [one.to_json() for one in read_judgements(given, report)]
    raise_for(problems.finish())
    return found


def _judge(sample: Sample, aggregate: Aggregate | None, completion: int) -> Iterator[dict[str, Any]]:
    """Yield the judgement that a line's score is: none where no result says that a judge gave it."""
    results = aggregate.find(sample.result_id, sample.evaluation) if aggregate else []
    if len(results) != 1 or not sample.is_scored:
        return
    config: Mapping[str, Any] = results[0].value.get("metric_config") or {}
    judges = (config.get("llm_scoring") or {}).get("judges") if isinstance(config.get("llm_scoring"), dict) else None
    names = [_name(judge) for judge in judges] if isinstance(judges, list) else []
    scale, value = _find_scale(config), float(sample.value["evaluation"]["score"])
    if not names or None in names or scale is None or not _is_on(scale, value):
        return
    yield {
        "by": " + ".join(map(str, names)), "kind": "model", "criterion": results[0].name, "value": value,
        "scale": scale, "completion": completion,
    }  # fmt: skip


def _name(judge: Any) -> str | None:
    info = judge.get("model_info") if isinstance(judge, dict) else None
    found = (info.get("id") or info.get("name")) if isinstance(info, dict) else None
    return found if isinstance(found, str) and found.strip() else None


def _find_scale(config: Mapping[str, Any]) -> list[float] | dict[str, float] | None:
    """Return the scale of a result's scores; None where the record does not say it."""
    if config.get("score_type") == "binary":
        return [0.0, 1.0]
    ends = config.get("min_score"), config.get("max_score")
    if config.get("score_type") == "continuous" and all(map(is_finite_number, ends)) and ends[0] < ends[1]:  # type: ignore[operator]
        return {"min": float(ends[0]), "max": float(ends[1])}  # type: ignore[arg-type]
    return None


def _is_on(scale: list[float] | dict[str, float], value: float) -> bool:
    return value in scale if isinstance(scale, list) else scale["min"] <= value <= scale["max"]
