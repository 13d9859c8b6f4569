"""One task of a file or folder, ready to be read: what is chosen, what is scored, and what a reader must know."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetIntegrityError, count, did_you_mean
from helm_ext.evalset import Source, SourceScore, garbage
from helm_ext.formats.imported.row import Opened
from helm_ext.formats.lm_eval.exact_match import is_lenient, make_cleaner
from helm_ext.formats.lm_eval.folder import SampleFile, choose, find_results, find_samples
from helm_ext.formats.lm_eval.profile import Profile
from helm_ext.formats.lm_eval.report import Report, read_report
from helm_ext.formats.lm_eval.rows import RowMaker

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
    if prediction == "raw" and filter is not None:
        message = "filter= chooses among filtered answers, and prediction=raw scores none of them"
        raise DatasetIntegrityError.at(file.path, message, code="samples")
    with garbage.paused():
        found = Profile(file.path, report, gold, gold_kind, index_base)
    wants = filter is not None or prediction == "filtered"
    chosen = _choose_filter(found, filter) if wants else None
    is_measured = bool(gold or chosen) or not (report.scores_itself or found.kind == "loglikelihood_rolling")
    cleaner = make_cleaner(report.exact_match) if wants else None
    maker = RowMaker(found, chosen, by=by, cleaner=cleaner, needs_gold=is_measured)
    digest = sha256(f"{found.digest}{report.digest}".encode()).hexdigest() if report.digest else found.digest
    source = _to_source(file.task, found, chosen)
    if not gold and not report.is_unscored:
        source.main, source.main_reason = _choose_main(found, chosen, source)
    if not (is_measured or source.main):
        raise DatasetIntegrityError.at(file.path, *_why_unscored(found), code="samples")
    return Opened(
        path=str(file.path),
        source=source,
        rows=maker.rows,
        digest=lambda: digest,
        adapter_spec={"method": "chat"} if found.is_chat else {},
        scoring=_choose_scoring(found),
        is_measured=is_measured,
    )


def open_report(
    path: str, task: str | None = None, time: str | None = None, results: str | None = None, **_: Any
) -> Report:
    """Return what the results file says of a task; the arguments are those of the run entry. Raises DatasetError."""
    return _read_report(choose(Path(path), find_samples(Path(path)), task, time), results)


def _read_report(file: SampleFile, results: str | None) -> Report:
    return read_report(None if results == _NONE else Path(results) if results else find_results(file), file.task)


def _choose_filter(found: Profile, name: str | None) -> str:
    """Return the filter whose answers are scored."""
    if found.kind != "generate_until":
        message, hint = f"a task of {found.kind} has no answers that were filtered", "leave prediction= and filter= out"
        raise DatasetIntegrityError.at(found.path, message, hint, code="samples")
    filters = [*found.filters]
    if name is None and len(filters) == 1:
        return filters[0]
    if name not in filters:
        message = f"filter={name}: the task has no such filter" if name else f"the task has {len(filters)} filters"
        hint = did_you_mean(name, filters) if name else ""
        hint = hint or f"filter=NAME chooses one: {', '.join(filters)}"
        raise DatasetIntegrityError.at(found.path, message, hint, code="samples")
    return name


def _choose_main(found: Profile, chosen: str | None, source: Source) -> tuple[str, str]:
    """Return the harness's score that is the main metric, and why: the first of its metrics, by the first filter.

    "" where the harness scored nothing.
    """
    report = found.report
    first = chosen or next(iter(report.filters), "") or next(iter(found.filters), _NONE)
    name = f"{next(iter(report.metrics), '')},{first}"
    reason = "the first of the task's metric_list" + (" and filter_list" if len(report.filters) > 1 else "")
    if name not in source.scores:  # nothing says which is first, or it made several scores of other names
        there = [name for name in found.names if name in source.scores]
        name = next((one for one in there if one.endswith(f",{first}")), next(iter(there), ""))
        reason = "the first in the file"
    if chosen is not None:
        reason = f"the first by filter {chosen}"
    return name, reason if len(source.scores) > 1 else ""


def _why_unscored(found: Profile) -> tuple[str, str]:
    if found.kind == "loglikelihood_rolling":
        return (
            "loglikelihood_rolling measures how likely a text is: there is nothing that could be right or wrong",
            "results_*.json holds its perplexities: results=FILE names it",
        )
    return (
        "the task's scores are made by code of its own (process_results), and none is a mean of its rows",
        "gold=doc.KEY names what is right, and we score",
    )


def _choose_scoring(found: Profile) -> dict[str, Any]:
    """Return the keys of `scoring` that differ from the defaults."""
    if found.kind == "loglikelihood":
        return {"metrics": ["acc"]}
    if found.has_contexts:  # the lengths of the options are not known
        return {"metrics": ["acc", "brier_score"]}
    exact_match = found.report.exact_match
    if found.kind == "generate_until" and exact_match is not None and not is_lenient(exact_match):
        return {"main_metric": "exact_match"}
    return {}


def _to_source(task: str, found: Profile, chosen: str | None) -> Source:
    report, scores = found.report, {}
    for name in dict.fromkeys([*found.names, *report.aggregates]):
        metric, reported = name.rpartition(",")[0], report.aggregates.get(name)
        is_mean = name in found.scores
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
        counts=_count(found, chosen),
        notes=[*_notes(found), *_note_on_filters(found, chosen)],
    )


def _count(found: Profile, chosen: str | None) -> dict[str, int]:
    """Return what is counted beside the rows: lines, and on how many rows a filter found nothing ("unmapped")."""
    filters = [chosen] if chosen else [*found.filters]
    counts = {"lines": found.lines, "duplicates": found.duplicates}
    for name in filters:
        counts["unmapped" if len(filters) == 1 else f"unmapped by {name}"] = found.invalid[name]
    return {name: number for name, number in counts.items() if number or name == "lines"}


def _notes(found: Profile) -> Sequence[str]:
    """Return what a reader of the score must know, in words."""
    rows, report = len(found), found.report
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
        if number
    ]
    if found.none_answers:
        notes.append(f'{count(found.none_answers, "answer")} "None": lm-eval writes so what a model did not give')
    not_known = [name for name in found.kept if name not in report.aggregates]
    if not_known:
        notes.append(f"no means of rows, and not averaged: {', '.join(not_known)}")
    incomplete = [name for name, lines in found.filters.items() if len(lines) < rows]
    if incomplete:
        notes.append(f"not all rows have a line of filter {', '.join(sorted(incomplete))}")
    return notes


def _note_on_filters(found: Profile, chosen: str | None) -> Sequence[str]:
    """Say that whole completions are compared where lm-eval scored what a filter took out of them."""
    report, filters = found.report, [name for name in found.filters if name != "none"]
    if chosen is not None or report.scores_itself or not filters:
        return []
    named = " or filter=".join(filters)
    if report.is_unscored:
        return [f"whole completions are scored: filter={named} scores what a filter extracts"]
    return [f"our own scores are of whole completions, lm-eval's of what its filters extract: filter={named}"]
