"""`helm-ext report`: a suite as one HTML page to hand over."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from helm_ext.cli.options import Cluster, Metric, RunFolders, not_written
from helm_ext.cli.output import echo, status, without_output
from helm_ext.errors import RunEntryError, count


def report(
    runs: RunFolders,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Default: the name of the suite.")] = None,
    metric: Metric = None,
    cluster: Cluster = None,
    rows: Annotated[int, typer.Option(min=0, help="How many rows of each dataset to show, drawn by their ids.")] = 500,
) -> None:
    """Write one self-contained HTML page about finished runs of any HELM scenario: to open from disk, mail or print.

    It has a leaderboard with 95 % intervals, slices, comparisons row by row, calibration, counts of what was left out,
    baselines, rows to browse, and what each run was made of.
    """
    from helm_ext.analysis import find_runs
    from helm_ext.analysis.report import write_report
    from helm_ext.analysis.report.gathering import gather

    if out.is_dir():
        raise RunEntryError(f"--out {out}: is a folder\n  hint: --out {out / 'report.html'}")
    found, unfinished = find_runs(runs)
    notes = [f"left out: {folder}: the run is not finished" for folder in unfinished]
    with status("reading runs"), without_output():
        datasets, said = gather(found, metric=metric, cluster=cluster, most_rows=rows)
    notes += said
    for note in notes:
        echo(note, err=True)
    suites = list(dict.fromkeys(run.suite for run in found))
    try:
        size = write_report(datasets, notes, out, title or f"Evaluation: {', '.join(suites)}")
    except OSError as error:
        raise not_written(out, error) from error
    shown = sum(len(dataset.runs) for dataset in datasets)
    echo(f"{out}: {count(shown, 'run')} of {count(len(datasets), 'dataset')}, {size / 1e6:.1f} MB")
