"""The scores of finished runs as a table: a row for each run, score and slice, with its 95 % interval.

The table in docs/how-to/export.md is made of `SCORE_COLUMNS`; a test holds both equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from helm_ext.analysis.export.columns import Column, Kind
from helm_ext.analysis.judged import list_judged
from helm_ext.analysis.run_scores import RunScores, ScoredRow, find_main_metric, open_scores
from helm_ext.analysis.runs import RunFiles
from helm_ext.analysis.scores import find_scores
from helm_ext.errors import RunEntryError
from helm_ext.scoring.stat_names import CORRECTED

_COLUMNS: tuple[tuple[str, Kind, str], ...] = (
    ("run", "text", "name of the run"),
    ("suite", "text", "the folder that the run is in"),
    ("model", "text", "as `helm-ext compare` names it"),
    ("dataset", "text", "title of the dataset"),
    ("metric", "text", "a score of the rows"),
    ("main", "boolean", "whether it is the run's main metric; null where a run of HELM's own names none"),
    ("slice", "text", "`ATTRIBUTE=VALUE`; null for all rows"),
    ("mean", "number", "over the rows, each with the mean over its trials"),
    ("low", "number", "lower end of the 95 % interval; null where the rows do not tell it"),
    ("high", "number", "upper end"),
    ("interval", "text", "how it was made: `wilson`, `t`, `clusters`, `few clusters`, `none`, `corrected` by labels"),
    ("rows", "integer", "rows with a score"),
    ("clusters", "integer", "groups of rows that are not independent, where the run has them (`cluster=`)"),
    ("left_out", "integer", "rows without a score; null for slices"),
)


def _no_row(*_: Any) -> Any:
    raise AssertionError("no column of predictions")


SCORE_COLUMNS = tuple(Column(name, kind, said, _no_row) for name, kind, said in _COLUMNS)


def scores_table(runs: Sequence[RunFiles]) -> tuple[Sequence[Column], Iterator[list[Any]]]:
    """Return the columns, and a row for each score and slice of each run. Each run's files are read once.

    Perturbed copies, and rows of other splits than leaderboards show, are no part of it.
    """
    return SCORE_COLUMNS, (line for run in runs for line in _measure(run))


def find_main(run: RunFiles) -> str | None:
    """Return the main metric of a run; None for one of HELM's own that has no usual one."""
    try:
        return find_main_metric(run)
    except RunEntryError:
        return None


def _measure(run: RunFiles) -> Iterator[list[Any]]:
    main = find_main(run)
    every = [open_scores(run, name) for name in find_scores(run.row_stats.names)]
    for row in run.predictions():
        for scores in every:
            scores.see(row)
    for scores in every:
        if scores.rows:
            is_main = None if main is None else scores.metric == main
            yield _to_line(scores, is_main, None, None)
            for name, rows in _name_slices(scores):
                yield _to_line(scores, is_main, name, rows)
    judged = {one.score: one for one in list_judged(run, every[0].split)} if every else {}
    for scores in every:
        for name, (mean, low, high) in judged[scores.metric].corrected.items() if scores.metric in judged else ():
            held = len(dict(_name_slices(scores))[name] if name else scores.rows)
            yield [
                run.name, run.suite, scores.model, scores.title, f"{scores.metric}{CORRECTED}", False, name or None,
                mean, low, high, "corrected", held, None, None if name else scores.left_out,
            ]  # fmt: skip


def _name_slices(scores: RunScores) -> Iterator[tuple[str, Sequence[tuple[str, ScoredRow]]]]:
    return ((f"{name}={value}", rows) for (name, value), rows in scores.slices().items())


def _to_line(
    scores: RunScores, is_main: bool | None, name: str | None, rows: Sequence[tuple[str, ScoredRow]] | None
) -> list[Any]:
    interval = scores.measure(rows)
    known = interval.method != "none"
    return [
        scores.run.name, scores.run.suite, scores.model, scores.title, scores.metric, is_main, name, interval.mean,
        interval.low if known else None, interval.high if known else None, interval.method, interval.count,
        interval.clusters, scores.left_out if rows is None else None,
    ]  # fmt: skip


def to_score_table() -> str:
    """Return the columns as a Markdown table."""
    rows = (f"| `{name}` | {kind} | {said} |" for name, kind, said in _COLUMNS)
    return "\n".join(["| column | type | |", "|---|---|---|", *rows])
