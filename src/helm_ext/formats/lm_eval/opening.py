"""One task of a file or folder, ready to be read: what is chosen, what is scored, and what a reader must know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetIntegrityError, count, did_you_mean
from helm_ext.evalset import Source, SourceScore
from helm_ext.formats.imported.row import Opened
from helm_ext.formats.lm_eval.exact_match import is_lenient, make_cleaner
from helm_ext.formats.lm_eval.folder import SampleFile, choose, find_results, find_samples
from helm_ext.formats.lm_eval.report import Report, read_report
from helm_ext.formats.lm_eval.rows import RowMaker
from helm_ext.formats.lm_eval.survey import Options, Survey, survey, to_counts

__all__ = ["open_report", "open_samples"]

_NONE = "none"
_SHARES = frozenset({"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"})
"""Metrics of the harness's that are 0 or 1 of a row, or between (repeats)."""


def open_samples(
    path: Path,
    *,
    by: Sequence[str] = (),
    task: str | None = None,
    time: str | None = None,
    results: str | None = None,
    prediction: str | None = None,
    filter: str | None = None,  # noqa: A002 - the argument's name
    gold: str | None = None,
    gold_kind: Any = None,
    index_base: int | None = None,
) -> Opened:
    """Open the samples of one task; the arguments are those of the run entry. Raises DatasetError."""
    file = choose(path, find_samples(path), task, time)
    report = _read_report(file, results)
    wants = filter is not None or prediction == "filtered"
    if prediction == "raw" and filter is not None:
        raise DatasetIntegrityError.at(
            file.path, "filter= chooses among filtered answers, and prediction=raw scores none of them", code="samples"
        )
    given = Options(filter, gold, gold_kind, index_base)
    found = survey(file.path, report, given)
    if wants:
        chosen = _choose_filter(found, filter, file.path)
        if chosen != filter:
            given = Options(chosen, gold, gold_kind, index_base)
            found = survey(file.path, report, given)
    cleaner = make_cleaner(report.exact_match) if wants else None
    is_measured = bool(given.gold or given.filter) or not (
        report.scores_itself or found.kind == "loglikelihood_rolling"
    )
    maker = RowMaker(file.path, found, given, by=by, cleaner=cleaner, needs_gold=is_measured)
    digest = sha256(f"{found.digest}{report.digest}".encode()).hexdigest() if report.digest else found.digest
    source = _to_source(file.task, report, found, given)
    source.main, source.main_reason = _choose_main(report, found, given, source)
    if not (is_measured or source.main):
        raise DatasetIntegrityError.at(file.path, *_why_unscored(found), code="samples")
    return Opened(
        path=str(file.path),
        source=source,
        rows=maker.rows,
        digest=lambda: digest,
        adapter_spec={"method": "chat"} if found.is_chat else {},
        scoring=_choose_scoring(report, found),
        is_measured=is_measured,
    )


def open_report(
    path: str, task: str | None = None, time: str | None = None, results: str | None = None, **_: Any
) -> Report:
    """Return what the results file says of a task; the arguments are those of the run entry. Raises DatasetError."""
    return _read_report(choose(Path(path), find_samples(Path(path)), task, time), results)


def _read_report(file: SampleFile, results: str | None) -> Report:
    return read_report(None if results == _NONE else Path(results) if results else find_results(file), file.task)


def _choose_filter(found: Survey, name: str | None, path: Path) -> str:
    """Return the filter whose answers are scored."""
    if found.kind != "generate_until":
        raise DatasetIntegrityError.at(
            path,
            f"a task of {found.kind} has no answers that were filtered",
            "leave prediction= and filter= out",
            code="samples",
        )
    filters = found.filters
    if name is None and len(filters) == 1:
        return filters[0]
    if name not in filters:
        message = f"filter={name}: the task has no such filter" if name else f"the task has {len(filters)} filters"
        hint = did_you_mean(name, filters) if name else ""
        raise DatasetIntegrityError.at(
            path, message, hint or f"filter=NAME chooses one: {', '.join(filters)}", code="samples"
        )
    return name


def _choose_main(report: Report, found: Survey, given: Options, source: Source) -> tuple[str, str]:
    """Return the harness's score that is the main metric, and why: the first of its metrics, by the first filter.

    "" where the harness scored nothing, or the user says what is right.
    """
    if given.gold or report.is_unscored:
        return "", ""
    first = given.filter or next(iter(report.filters), "") or next(iter(found.filters), _NONE)
    name = f"{next(iter(report.metrics), '')},{first}"
    reason = "the first of the task's metric_list" + (" and filter_list" if len(report.filters) > 1 else "")
    if name not in source.scores:  # nothing says which is first, or it made several scores of other names
        there = [name for name in found.names if name in source.scores]
        name = next((one for one in there if one.endswith(f",{first}")), next(iter(there), ""))
        reason = "the first in the file"
    if given.filter is not None:
        reason = f"the first by filter {given.filter}"
    return name, reason if len(source.scores) > 1 else ""


def _why_unscored(found: Survey) -> tuple[str, str]:
    if found.kind == "loglikelihood_rolling":
        return (
            "loglikelihood_rolling measures how likely a text is: there is nothing that could be right or wrong",
            "results_*.json holds its perplexities: results=FILE names it",
        )
    return (
        "the task's scores are made by code of its own (process_results), and none is a mean of its rows",
        "gold=doc.KEY names what is right, and we score",
    )


def _choose_scoring(report: Report, found: Survey) -> dict[str, Any]:
    """Return the keys of `scoring` that differ from the defaults."""
    if found.kind == "loglikelihood":
        return {"metrics": ["acc"]}
    if found.has_contexts:  # the lengths of the options are not known
        return {"metrics": ["acc", "brier_score"]}
    if found.kind == "generate_until" and report.exact_match is not None and not is_lenient(report.exact_match):
        return {"main_metric": "exact_match"}
    return {}


def _to_source(task: str, report: Report, found: Survey, given: Options) -> Source:
    scores = {}
    for name in dict.fromkeys([*found.names, *report.aggregates]):
        metric, reported = name.rpartition(",")[0], report.aggregates.get(name)
        is_mean = name in found.score_names
        if is_mean or reported is not None:
            scores[name] = SourceScore(
                reported,
                lower_is_better=report.is_lower_better(metric),
                no_mean="" if is_mean else report.explain(metric),
                bounds=(0.0, 1.0) if metric in _SHARES else None,
            )
    return Source(
        tool="lm_eval",
        version=report.tool_version,
        model=report.model,
        task=task,
        settings=report.settings,
        scores=scores,
        counts=dict(to_counts(found, given.filter)),
        notes=[*_notes(report, found), *_note_on_filters(report, found, given)],
    )


def _notes(report: Report, found: Survey) -> Sequence[str]:
    """Return what a reader of the score must know, in words."""
    rows = len(found.entries)
    notes = []
    if report.path is None:
        notes.append("no results file: what lm-eval reports of the task, how it was asked and of whom are not known")
    if report.effective is not None and rows < report.effective:
        notes.append(
            f"{rows:,} of {report.effective:,} rows are in the file: its scores are not those that lm-eval reports"
        )
    if report.original is not None and report.effective is not None and report.effective < report.original:
        notes.append(f"a limit: {report.effective:,} of the task's {report.original:,} rows were asked")
    if report.is_unscored:
        notes.append(
            "lm-eval scored nothing (--predict_only), and does not say how the task would: answers are compared with "
            "target here"
        )
    if report.scores_itself:
        notes.append(
            "the task's scores are made by code of its own (process_results): they are all there is; metrics=NAME or "
            "gold=doc.KEY scores the answers here"
        )
    notes += [
        f"filter {name} found nothing ([invalid]) in {number} of {count(rows, 'row')}"
        for name, number in found.invalid.items()
    ]
    if found.none_answers:
        notes.append(f'{count(found.none_answers, "answer")} "None": lm-eval writes so what a model did not give')
    not_known = [name for name in found.kept if name not in report.aggregates]
    if not_known:
        notes.append(f"no means of rows, and not averaged: {', '.join(not_known)}")
    lines: Counter[str] = Counter()
    for names, number in found.count_filters().items():
        lines.update(dict.fromkeys(names, number))
    incomplete = [name for name, number in lines.items() if number < rows]
    if incomplete:
        notes.append(f"not all rows have a line of filter {', '.join(sorted(incomplete))}")
    return notes


def _note_on_filters(report: Report, found: Survey, given: Options) -> Sequence[str]:
    """Say that whole completions are compared where lm-eval scored what a filter took out of them."""
    filters = [name for name in found.filters if name != "none"]
    if given.filter is not None or report.scores_itself or not filters:
        return []
    named = " or filter=".join(filters)
    if report.is_unscored:
        return [f"whole completions are scored: filter={named} scores what a filter extracts"]
    return [f"our own scores are of whole completions, lm-eval's of what its filters extract: filter={named}"]
