"""One evaluation of one record, ready to be read."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetError, DatasetIntegrityError, Location, Problems, count, did_you_mean
from helm_ext.evalset import Source
from helm_ext.formats.every_eval_ever.folder import Record, choose, find_records
from helm_ext.formats.every_eval_ever.profile import Evaluation, Profile
from helm_ext.formats.every_eval_ever.record import Aggregate, read_aggregate
from helm_ext.formats.every_eval_ever.rows import RowMaker
from helm_ext.formats.every_eval_ever.samples import SampleFile
from helm_ext.formats.every_eval_ever.schema import KEPT
from helm_ext.formats.imported.row import Opened

_CLOSE = 1e-9


def find_tasks(path: Path, record: str | None, evaluation: str | None) -> list[dict[str, str]]:
    """Return what chooses each evaluation of each record that a path names. Raises DatasetError."""
    records = [choose(path, record)] if record is not None else find_records(path)
    tasks = []
    for each in records:
        chosen = {"record": each.name} if len(records) > 1 else {}
        names = [None] if evaluation is not None else _list_evaluations(each)
        tasks += [chosen | ({"evaluation": name} if name is not None else {}) for name in names]
    return tasks or [{}]


def _list_evaluations(record: Record) -> list[str | None]:
    """Return the tasks of a record; [None] where there is one, or where opening it will say what is wrong."""
    try:
        aggregate = read_aggregate(record.aggregate) if record.aggregate else None
        if record.samples is None or (aggregate and len({one.evaluation for one in aggregate.results}) == 1):
            return [None]
        tasks = list(Profile(record.samples, aggregate).tasks)
    except DatasetError:
        return [None]
    return [None] if len(tasks) == 1 else [*tasks]


def read_model(path: Path, record: str | None) -> str:
    """Return the model of a record. Raises DatasetError."""
    chosen = choose(path, record)
    if chosen.aggregate is not None:
        return read_aggregate(chosen.aggregate).model
    assert chosen.samples is not None  # one of the two is there
    first = next(iter(SampleFile(chosen.samples, None, Problems(str(chosen.samples)))), None)
    return str(first.value["model_id"]) if first else ""


def open_samples(
    path: Path,
    *,
    record: str | None = None,
    evaluation: str | None = None,
    gold_kind: Any = None,
    index_base: int | None = None,
    prediction: str = "raw",
) -> Opened:
    """Open one evaluation; the arguments are those of the run entry. Raises DatasetError."""
    chosen = choose(path, record)
    aggregate = read_aggregate(chosen.aggregate) if chosen.aggregate else None
    if chosen.samples is None:
        raise _no_samples(chosen, aggregate)
    found = Profile(chosen.samples, aggregate, gold_kind, index_base)
    name = _choose_task(chosen.samples, found, evaluation)
    task = found.tasks[name]
    has_references = task.counts["referenced"] > 0
    maker = RowMaker(
        str(chosen.samples),
        aggregate,
        task.decide(),
        are_lists=gold_kind == "list" or (gold_kind is None and _are_lists(task, aggregate)),
        takes_extracted=prediction == "extracted",
        needs_gold=has_references,
    )
    source = Source(
        tool="every_eval_ever",
        version=aggregate.version if aggregate else found.version,
        model=aggregate.model if aggregate else found.model,
        task=name,
        settings={KEPT: aggregate.kept} if aggregate else {},
        scores=found.scores(task),
        counts=maker.counts,
        notes=list(_notes(found, task, aggregate, are_lists=maker.are_lists)),
    )
    source.main = next(iter(source.scores))
    if len(source.scores) > 1:
        source.main_reason = "the first of the record" if aggregate else "the first in the samples"
    both = f"{aggregate.digest if aggregate else ''}{found.digest}"
    spec: dict[str, Any] = {"method": "chat"} if task.counts["chat"] else {}
    if maker.golds is not None and _is_multi_label(aggregate):
        spec["multi_label"] = True
    return Opened(
        path=str(chosen.samples),
        source=source,
        rows=lambda: maker.rows(found.questions(task)),
        digest=lambda: sha256(both.encode()).hexdigest(),
        adapter_spec=spec,
        scoring={"completions": "mean"} if len(task.repeats) > 1 else {},
        is_measured=has_references,
    )


def _no_samples(record: Record, aggregate: Aggregate | None) -> DatasetIntegrityError:
    if aggregate is not None and aggregate.declares_samples:
        message = f"the samples that it names are not beside it: {record.name}_samples.jsonl"
        hint = "put both files into one folder"
    else:
        message, hint = "an aggregate without samples: there is no answer to score", ""
    place = Location(str(record.aggregate))
    return DatasetIntegrityError.at(place, message, hint, code="no-samples")


def _choose_task(path: Path, found: Profile, evaluation: str | None) -> str:
    for name, task in found.tasks.items():
        if evaluation in task.names or (evaluation is None and len(found.tasks) == 1):
            return name
    shown = ", ".join(found.tasks)
    hint = (did_you_mean(evaluation, found.tasks) if evaluation else "") or f"evaluation= one of {shown}"
    message = f"no evaluation {evaluation}" if evaluation else f"{len(found.tasks)} evaluations are in this file"
    raise DatasetIntegrityError.at(path, message, hint, code="evaluation")


def _are_lists(task: Evaluation, aggregate: Aggregate | None) -> bool:
    """Whether lm-eval's converter wrote all references of rows without choices as Python lists."""
    return aggregate is not None and aggregate.is_of_lm_eval and 0 < task.counts["free"] == task.counts["lists"]


def _is_multi_label(aggregate: Aggregate | None) -> bool:
    """Whether our export says that all right options together are the answer."""
    results = aggregate.kept["results"].values() if aggregate else ()
    details = [((one.get("generation_config") or {}).get("additional_details") or {}) for one in results]
    return any(one.get("multi_label") == "true" for one in details)


def _notes(found: Profile, task: Evaluation, aggregate: Aggregate | None, *, are_lists: bool) -> Iterator[str]:
    """Yield what a reader of the score must know, in words."""
    if aggregate is None:
        yield "no aggregate file beside the samples: what the record reports, and of whom, is not known"
        return
    if aggregate.total_rows is not None and aggregate.total_rows != found.lines:
        there = f"{found.lines:,} of {aggregate.total_rows:,} samples"
        yield f"{there} are in the file: its scores are not those of the record"
    elif aggregate.checksum is not None and aggregate.checksum != found.digest:
        yield "the samples were changed after the record was made: their SHA-256 is another one"
    if len(task.names) > 1:
        yield f"evaluations of the same answers, read as one: {', '.join(task.names)}"
    if not task.counts["referenced"]:
        yield "no sample says what is right: the record's own score is the main one"
    if are_lists:
        yield "references are Python lists, as lm-eval's converter writes several: any of their texts is right"
    unnamed = task.counts["unnamed"]
    if unnamed:
        yield f"{unnamed:,} samples do not say which of several results their score is: it has the evaluation's name"
    if task.counts["perturbed"]:
        yield "questions that HELM changed (perturbations) are rows of their own, and part of the score"
    reported = {result.name: result.score for result in aggregate.results}
    for name, (total, scored, lines) in task.sums.items():
        if name not in reported or not scored or abs(total / scored - reported[name]) <= _CLOSE:
            continue
        said = f"{name}: the record reports {reported[name]:.6g}, the mean of its samples is {total / scored:.6g}"
        if scored < lines and abs(total / lines - reported[name]) <= _CLOSE:
            said += f": it counts {count(lines - scored, 'line')} without an answer as 0"
        yield said
