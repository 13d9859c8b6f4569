"""`helm-ext export`: finished runs as files for other tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from helm_ext.cli.output import echo, status
from helm_ext.cli.run_options import RunFolders, read_folders
from helm_ext.cli.session import without_output
from helm_ext.errors import HelmExtError, RunEntryError, count
from helm_ext.formats.every_eval_ever.schema import ENUMS

if TYPE_CHECKING:
    from helm_ext.analysis import FinishedRun
    from helm_ext.analysis.export.every_eval_ever import Publisher


@dataclass
class _Said:
    """What is printed when all is written."""

    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


Write = Callable[["Sequence[FinishedRun]", Path, "Publisher", str, bool, bool], _Said]
"""(runs, path, publisher, table, replace, for spreadsheets). Raises HelmExtError."""

_PREDICTIONS, _SCORES = "predictions", "scores"


@dataclass(frozen=True)
class _Target:
    """What `--to` names."""

    ending: str
    """Ends the name of the table that it is written to unless `--out` says otherwise."""
    write: Write


def _table(writer: str) -> Write:
    def write(
        runs: Sequence[FinishedRun], target: Path, publisher: Publisher, table: str, replace: bool, guarded: bool
    ) -> _Said:
        from helm_ext.analysis.export import tables
        from helm_ext.analysis.export.every_eval_ever import Publisher
        from helm_ext.analysis.export.scores import scores_table

        if publisher != Publisher():
            raise RunEntryError("--organization and the like are for records of Every Eval Ever: --to every_eval_ever")
        chosen = scores_table if table == _SCORES else tables.predictions_table
        more = {"for_spreadsheets": True} if guarded else {}
        rows = getattr(tables, writer)(runs, target, replace=replace, table=chosen, **more)
        what = count(rows, table.removesuffix("s"))
        return _Said([f"{target}: {what} of {count(len(runs), 'run')}"])

    return write


def _record(
    runs: Sequence[FinishedRun],
    target: Path,
    publisher: Publisher,
    table: str,
    replace: bool,
    guarded: bool,  # noqa: ARG001 - of CSV alone
) -> _Said:
    from helm_ext.analysis.export.every_eval_ever import has_scores, write_every_eval_ever

    if table != _PREDICTIONS:
        raise RunEntryError(
            "--table scores: a record of Every Eval Ever has scores and predictions\n  hint: leave it out"
        )
    scored = [run for run in runs if has_scores(run)]
    without = [] if not scored else [run for run in runs if run not in scored]
    said = _Said(notes=[f"left out: {run.folder}: none of the stats of its rows is a score" for run in without])
    for written in write_every_eval_ever(scored or runs, target, publisher, replace=replace):
        said.lines.append(f"{written.aggregate}: {count(written.lines, 'sample')}")
        said.notes += [f"note: {written.aggregate}: {note}" for note in written.notes]
    return said


_TARGETS = {
    "csv": _Target(".csv", _table("write_csv")),
    "every_eval_ever": _Target("", _record),
    "hf": _Target("", _table("write_hf")),
    "jsonl": _Target(".jsonl", _table("write_jsonl")),
    "parquet": _Target(".parquet", _table("write_parquet")),
}


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(repr, choices))}.")
        return value

    return parse


def _choice(path: str, description: str) -> typer.models.OptionInfo:
    words = ENUMS[path]
    option: typer.models.OptionInfo = typer.Option(
        parser=_one_of(*words), metavar=f"[{'|'.join(words)}]", help=f"EEE: {description}"
    )
    return option


def export(
    runs: RunFolders,
    to: Annotated[
        str, typer.Option(parser=_one_of(*_TARGETS), metavar=f"[{'|'.join(_TARGETS)}]", help="What to write.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file, or for hf and every_eval_ever the folder. Default: the table's name, every_eval_ever."
        ),
    ] = None,
    table: Annotated[
        str,
        typer.Option(
            parser=_one_of(_PREDICTIONS, _SCORES),
            metavar=f"[{_PREDICTIONS}|{_SCORES}]",
            help="A row for each prediction, or for each run, score and slice with its 95 % interval.",
        ),
    ] = _PREDICTIONS,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite what is there.")] = False,
    for_spreadsheets: Annotated[
        bool,
        typer.Option("--for-spreadsheets", help="csv: an apostrophe before texts that begin with = + - @."),
    ] = False,
    organization: Annotated[str, typer.Option(help="EEE: who ran the evaluation.")] = "unknown",
    relationship: Annotated[
        str, _choice("source_metadata.evaluator_relationship", "of the organization to the model's developer.")
    ] = "other",
    deployment_type: Annotated[
        str, _choice("model_info.additional_details.deployment_type", "who ran the model.")
    ] = "unknown",
    model_availability: Annotated[
        str, _choice("model_info.additional_details.model_availability", "of the model's weights.")
    ] = "unknown",
) -> None:
    """Write the predictions or the scores of finished runs, of any HELM scenario, as a table, or records of EEE.

    csv, jsonl, parquet: one file of all runs. hf: a folder for datasets.load_from_disk. every_eval_ever (EEE): a record
    for each run, https://evalevalai.com. Columns and rules: docs/how-to/export.md.
    """
    from helm_ext.analysis.export.every_eval_ever import Publisher

    if not organization.strip():
        raise RunEntryError("--organization: expected a name")
    if for_spreadsheets and to != "csv":
        raise RunEntryError(f"--for-spreadsheets is about CSV files, and --to is {to}")
    publisher = Publisher(organization, relationship, deployment_type, model_availability)
    target = _TARGETS[to]
    path = out or Path("every_eval_ever" if target.write is _record else f"{table}{target.ending}")
    found = read_folders(runs)
    try:
        with status("exporting"), without_output():
            said = target.write(found, path, publisher, table, replace, for_spreadsheets)
    except OSError as error:
        raise HelmExtError(f"{path}: cannot be written: {error.strerror}") from error
    for note in said.notes:
        echo(note, err=True)
    for line in said.lines:
        echo(line)
