"""One task of a file or folder, ready to be read: what is chosen, what is scored, and what a reader must know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetIntegrityError, count
from helm_ext.evalset import Source, SourceScore, garbage
from helm_ext.formats.imported.format import choose_part
from helm_ext.formats.imported.row import Opened
from helm_ext.formats.lm_eval.profile import Profile
from helm_ext.formats.lm_eval.report import Report, SampleFile, choose, find_results

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
    file = choose(path, task, time)
    report = _read_report(file, results)
    if prediction == "raw" and filter is not None:
        message = "filter= chooses among filtered answers, and prediction=raw scores none of them"
        raise DatasetIntegrityError.at(file.path, message, code="samples")
    unread = {"index_base": index_base, "gold_kind": None if gold_kind in ("index", "text") else gold_kind}
    for name, said in unread.items():
        if not gold and said is not None:
            hint = "gold=doc.KEY names where they stand; of target, gold_kind=index or gold_kind=text says what it is"
            message = f"{name}={said} is about golds of doc, and none is named"
            raise DatasetIntegrityError.at(file.path, message, hint, code="samples")
    with garbage.paused():
        found = Profile(file.path, report, gold, gold_kind, index_base, by)
    chosen = None
    if filter is not None or prediction == "filtered":
        if found.kind != "generate_until":
            message = f"a task of {found.kind} has no answers that were filtered"
            raise DatasetIntegrityError.at(file.path, message, "leave prediction= and filter= out", code="samples")
        chosen = choose_part(file.path, [*found.filters], filter, "filter")
    is_measured = bool(gold or chosen) or not (report.scores_itself or found.kind == "loglikelihood_rolling")
    clean = report.make_cleaner() if chosen else str
    digest = sha256(f"{found.digest}{report.digest}".encode()).hexdigest() if report.digest else found.digest
    source = _to_source(file.task, found, chosen)
    if not gold and not report.is_unscored:
        source.main, source.main_reason = _choose_main(found, chosen, source)
    if not (is_measured or source.main):
        raise DatasetIntegrityError.at(file.path, *_why_unscored(found), code="samples")
    return Opened(
        path=str(file.path),
        source=source,
        rows=lambda: found.rows(chosen=chosen, clean=clean, needs_gold=is_measured),
        digest=digest,
        adapter_spec={"method": "chat"} if found.is_chat else {},
        scoring=_choose_scoring(found),
        is_measured=is_measured,
    )


def open_report(
    path: str, task: str | None = None, time: str | None = None, results: str | None = None, **_: Any
) -> Report:
    """Return what the results file says of a task; the arguments are those of the run entry. Raises DatasetError."""
    return _read_report(choose(Path(path), task, time), results)


def _read_report(file: SampleFile, results: str | None) -> Report:
    return Report(None if results == _NONE else Path(results) if results else find_results(file), file.task)


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
    return {"main_metric": "exact_match"} if found.kind == "generate_until" and found.report.is_exact else {}


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
    counts = {"lines": found.lines} | ({"duplicates": found.duplicates} if found.duplicates else {})
    filters = [chosen] if chosen else [*found.filters]
    for name in filters:  # rows on which it found nothing
        if found.invalid[name]:
            counts["unmapped" if len(filters) == 1 else f"unmapped by {name}"] = found.invalid[name]
    return Source(
        tool="lm_eval",
        version=report.tool_version,
        model=report.model,
        task=task,
        settings=report.settings,
        scores=scores,
        counts=counts,
        notes=list(_notes(found, chosen)),
    )


def _notes(found: Profile, chosen: str | None) -> Iterator[str]:
    """Yield what a reader of the score must know, in words."""
    rows, report = len(found), found.report
    original, effective = report.original, report.effective
    if report.path is None:
        yield "no results file: the model, the task's settings and the scores that lm-eval reports are not known"
    if effective is not None and rows < effective:
        yield f"{rows:,} of {effective:,} rows are in the file: its scores are not those that lm-eval reports"
    if original is not None and effective is not None and effective < original:
        yield f"a limit: {effective:,} of the task's {original:,} rows were asked"
    if report.is_unscored:
        yield (
            "lm-eval scored nothing (--predict_only), and does not say how the task would: answers are compared with "
            "target here"
        )
    if report.scores_itself:
        yield (
            "the task's scores are made by code of its own (process_results): they are all there is; metrics=NAME or "
            "gold=doc.KEY scores the answers here"
        )
    for name, number in found.invalid.items():
        if number:
            yield f"filter {name} found nothing ([invalid]) in {number} of {count(rows, 'row')}"
    if found.none_answers:
        yield f'{count(found.none_answers, "answer")} "None": lm-eval writes so what a model did not give'
    if not report.is_unscored and (unknown := [name for name in found.kept if name not in report.aggregates]):
        yield f"no means of rows, and not averaged: {', '.join(unknown)}"
    if incomplete := sorted(name for name, lines in found.filters.items() if len(lines) < rows):
        yield f"not all rows have a line of filter {', '.join(incomplete)}"
    filters = [name for name in found.filters if name != "none"]
    if chosen is not None and (others := [name for name in filters if name != chosen]):
        yield f"answers by filter {chosen} are scored: lm-eval's scores by {', '.join(others)} are of other answers"
    if filters and chosen is None and not report.scores_itself:
        named = " or filter=".join(filters)
        if report.is_unscored:
            yield f"whole completions are scored: filter={named} scores what a filter extracts"
        else:
            yield f"our scores are of whole completions, lm-eval's of what filters extract: filter={named} scores that"
