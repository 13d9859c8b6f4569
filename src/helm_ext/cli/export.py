"""`helm-ext export` and `report`: finished runs as files for other tools, and as one HTML page to hand over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from helm_ext.cli.options import Cluster, Metric, Replace, RunFolders, choice, not_written, read_folders
from helm_ext.cli.output import echo, status, without_output
from helm_ext.errors import RunEntryError, count
from helm_ext.formats.every_eval_ever.record import ENUMS

if TYPE_CHECKING:
    from helm_ext.analysis import FinishedRun
    from helm_ext.analysis.export.every_eval_ever import Publisher

_ENDINGS = {"csv": ".csv", "every_eval_ever": "", "jsonl": ".jsonl", "parquet": ".parquet"}
"""What `--to` names, and how the file is called that is written unless `--out` says otherwise."""
_RECORDS = "every_eval_ever"
_PREDICTIONS, _SCORES = "predictions", "scores"


def _choice_of_record(path: str, about: str) -> typer.models.OptionInfo:
    return choice(*ENUMS[path], about=f"EEE: {about}")


def export(
    runs: RunFolders,
    to: Annotated[str, choice(*_ENDINGS, about="What to write.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The file, or for every_eval_ever the folder. Default: the table's name, every_eval_ever."),
    ] = None,
    table: Annotated[
        str,
        choice(
            _PREDICTIONS,
            _SCORES,
            about="A row for each prediction, or for each run, score and slice with its 95 % interval.",
        ),
    ] = _PREDICTIONS,
    replace: Replace = False,
    for_spreadsheets: Annotated[
        bool,
        typer.Option("--for-spreadsheets", help="csv: an apostrophe before texts that begin with = + - @."),
    ] = False,
    organization: Annotated[str, typer.Option(help="EEE: who ran the evaluation.")] = "unknown",
    relationship: Annotated[
        str,
        _choice_of_record("source_metadata.evaluator_relationship", "of the organization to the model's developer."),
    ] = "other",
    deployment_type: Annotated[
        str, _choice_of_record("model_info.additional_details.deployment_type", "who ran the model.")
    ] = "unknown",
    model_availability: Annotated[
        str, _choice_of_record("model_info.additional_details.model_availability", "of the model's weights.")
    ] = "unknown",
) -> None:
    """Write the predictions or the scores of finished runs, of any HELM scenario, as a table, or records of EEE.

    csv, jsonl, parquet: one file of all runs. every_eval_ever (EEE): a record for each run, https://evalevalai.com.
    Columns and rules: docs/how-to/export.md.
    """
    from helm_ext.analysis.export.every_eval_ever import Publisher
    from helm_ext.analysis.export.tables import predictions_table, scores_table, write_table

    publisher = Publisher(organization, relationship, deployment_type, model_availability)
    if not organization.strip():
        raise RunEntryError("--organization: expected a name")
    if for_spreadsheets and to != "csv":
        raise RunEntryError(f"--for-spreadsheets is about CSV files, and --to is {to}")
    if to == _RECORDS and table != _PREDICTIONS:
        raise RunEntryError(f"--table {table}: a record of Every Eval Ever has scores and predictions: leave it out")
    if to != _RECORDS and publisher != Publisher():
        raise RunEntryError("--organization and the like are for records of Every Eval Ever: --to every_eval_ever")
    path = out or Path(_RECORDS if to == _RECORDS else f"{table}{_ENDINGS[to]}")
    found = read_folders(runs)
    try:
        with status("exporting"), without_output():
            if to == _RECORDS:
                lines, notes = _write_records(found, path, publisher, replace=replace)
            else:
                chosen = scores_table if table == _SCORES else predictions_table
                rows = write_table(to, found, path, replace=replace, table=chosen, for_spreadsheets=for_spreadsheets)
                what = count(rows, table.removesuffix("s"))
                lines, notes = [f"{path}: {what} of {count(len(found), 'run')}"], []
    except OSError as error:
        raise not_written(path, error) from error
    for note in notes:
        echo(note, err=True)
    for line in lines:
        echo(line)


def _write_records(
    runs: Sequence[FinishedRun], target: Path, publisher: Publisher, *, replace: bool
) -> tuple[list[str], list[str]]:
    """Write records of Every Eval Ever; returns what is said of them, and notes. Raises HelmExtError."""
    from helm_ext.analysis.export.every_eval_ever import has_scores, write_every_eval_ever

    scored = [run for run in runs if has_scores(run)]
    lines = []
    notes = [
        f"left out: {run.folder}: none of the stats of its rows is a score"
        for run in runs
        if scored and run not in scored
    ]
    for written in write_every_eval_ever(scored or runs, target, publisher, replace=replace):
        lines.append(f"{written.aggregate}: {count(written.lines, 'sample')}")
        notes += [f"note: {written.aggregate}: {note}" for note in written.notes]
    return lines, notes


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
