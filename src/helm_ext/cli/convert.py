"""Files for others: `helm-ext convert`, `schema`, `schema-path` of datasets; `export`, `report` of finished runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from helm_ext.cli import options
from helm_ext.cli.common import (
    echo,
    parse_arguments,
    read_folders,
    say,
    status,
    unfinished_notes,
    without_output,
    writing,
)
from helm_ext.cli.session import choose_format, find_file, require_unnamed
from helm_ext.errors import DatasetIntegrityError, RunEntryError, count
from helm_ext.formats import Format, all_formats, format_names, get_format
from helm_ext.formats.conversion import Converted
from helm_ext.formats.every_eval_ever.record import ENUMS
from helm_ext.formats.format import MISSING


def convert(
    source: Annotated[Path, Argument(metavar="SRC", help="A dataset file, or a dataset's name.")],
    target: Annotated[Path, Argument(metavar="DST", help="FILE.jsonl (adapter_spec).")],
    arg: Annotated[list[str] | None, Option(help="KEY=VALUE, as in the run entry of SRC; repeatable.")] = None,
    kind: options.AsFormat = None,
    lossy: Annotated[bool, Option("--lossy", help="Convert even if something is lost.")] = False,
    replace: options.Replace = False,
) -> None:
    """Convert a dataset to adapter_spec JSON Lines, if that loses nothing; else say what it would lose.

    Exit code 1: something would be lost, and nothing was written.
    """
    writers = [format_ for format_ in all_formats() if format_.writes]
    writer = next((format_ for format_ in writers if target.suffix in format_.writes), None)
    if writer is None:
        raise RunEntryError(f"{target}: expected {' or '.join(format_.written_as for format_ in writers)}")
    if target.exists() and not replace:
        raise DatasetIntegrityError(f"{target}: exists\n  hint: --replace overwrites it")
    source = find_file(source)
    with status(f"converting {source}"):
        converted = convert_file(choose_format(kind, source), source, writer, target, parse_arguments(arg), lossy=lossy)
    say(converted.findings.describe())
    echo(f"{converted.path}: {count(converted.rows, 'row')}")


def convert_file(
    format_: Format, source: Path, writer: Format, target: Path, arguments: Mapping[str, Any], *, lossy: bool = False
) -> Converted:
    """Convert a file of a format to one of `writer`. Raises HelmExtError, also for what would be lost."""
    named = format_.name_file(source)
    require_unnamed(named, arguments)
    if MISSING.name in arguments:
        raise RunEntryError(
            f"--arg missing={arguments[MISSING.name]}: a conversion keeps every row\n"
            "  hint: leave it out; runs of DST take it"
        )
    parsed = format_.parse_for_load(arguments)
    evalset = format_.load(**named, **parsed)
    rows = format_.load_demonstrations(**named, **parsed)
    with writing(target):
        return writer.write(evalset, target, demonstrations=rows, losses=format_.losses(evalset), lossy=lossy)


# Schemas

SUITE_SCHEMA = "helm_ext_schema.json"


def schema(
    kind: Annotated[
        str, options.choice(*format_names(), about=f"{' or '.join(format_names())}.", kind=Argument, metavar="FORMAT")
    ] = "adapter_spec",
) -> None:
    """Print the JSON Schema of a format, for editors: "$schema": "adapter_spec.schema.json" in a file."""
    echo(json.dumps(get_format(kind).json_schema(), indent=2, ensure_ascii=False))


def schema_path(
    suite: Annotated[str | None, Option(help="Group this suite's runs by their datasets.")] = None,
    output_path: options.OutputPath = options.OUTPUT,
) -> None:
    """Print the path of our report schema: helm-summarize --schema-path "$(helm-ext schema-path)".

    With --suite the schema is written for the runs of that suite: tasks of one dataset stand under it.
    """
    if suite is None:
        echo(str(resources.files("helm_ext") / "schema_helm_ext.yaml"))
        return
    folder = output_path / "runs" / suite
    found = read_folders([folder])
    path = folder / SUITE_SCHEMA
    with writing(path):
        path.write_text(json.dumps(make_suite_schema([run.run_spec for run in found]), indent=2), encoding="utf-8")
    echo(str(path))


def make_suite_schema(run_specs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a HELM schema with a group for all datasets, and one for each further group that runs name.

    Metrics and the datasets' own groups are left out: HELM generates them from the runs (`Summarizer.fix_up_schema`).
    A run's first group is its dataset's; HELM-ext's runs name those above it after it.
    """
    members: dict[str, dict[str, None]] = {}
    for run_spec in run_specs:
        first, *above = run_spec["groups"]
        for group in ("All datasets", *above):
            members.setdefault(group, {})[first] = None
    return {
        "run_groups": [
            {
                "name": group.replace(" ", "_").lower() if group == "All datasets" else group,
                "display_name": group,
                "description": f"{len(datasets)} datasets" if len(datasets) > 1 else "1 dataset",
                "category": "Datasets" if group == "All datasets" else "Groups",
                "subgroups": list(datasets),
            }
            for group, datasets in members.items()
        ]
    }


_ENDINGS = {"csv": ".csv", "every_eval_ever": "", "jsonl": ".jsonl", "parquet": ".parquet"}
"""What `--to` names, and how the file is called that is written unless `--out` says otherwise."""
_RECORDS = "every_eval_ever"
_PREDICTIONS, _SCORES = "predictions", "scores"


def _choice_of_record(path: str, about: str) -> Any:
    return options.choice(*ENUMS[path], about=f"EEE: {about}")


def export(
    runs: options.RunFolders,
    to: Annotated[str, options.choice(*_ENDINGS, about="What to write.")],
    out: Annotated[Path | None, Option(help="The file, or for EEE the folder. Default: named after the table.")] = None,
    table: Annotated[
        str, options.choice(_PREDICTIONS, _SCORES, about="A row for each prediction, or run, score and slice.")
    ] = _PREDICTIONS,
    replace: options.Replace = False,
    for_spreadsheets: Annotated[bool, Option("--for-spreadsheets", help="csv: apostrophes before = + - @.")] = False,
    organization: Annotated[str, Option(help="EEE: who ran the evaluation.")] = "unknown",
    relationship: Annotated[
        str,
        _choice_of_record(
            "source_metadata.evaluator_relationship", "how the organization is related to the model's developer."
        ),
    ] = "other",
    deployment_type: Annotated[
        str, _choice_of_record("model_info.additional_details.deployment_type", "who ran the model.")
    ] = "unknown",
    model_availability: Annotated[
        str,
        _choice_of_record("model_info.additional_details.model_availability", "whether the model's weights are open."),
    ] = "unknown",
) -> None:
    """Write the predictions or the scores of finished runs, of any HELM scenario, as a table, or records of EEE.

    csv, jsonl, parquet: one file of all runs. every_eval_ever (EEE): a record for each run, https://evalevalai.com.
    Columns and rules: docs/how-to/export.md.
    """
    from helm_ext.analysis.export.every_eval_ever import Publisher, has_scores, write_every_eval_ever
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
    lines, notes = [], []
    with writing(path), status("exporting"), without_output():
        if to == _RECORDS:
            scored = [run for run in found if has_scores(run)] or found
            without = [run.folder for run in found if run not in scored]
            notes += [f"left out: {folder}: none of the stats of its rows is a score" for folder in without]
            for written in write_every_eval_ever(scored, path, publisher, replace=replace):
                lines.append(f"{written.aggregate}: {count(written.lines, 'sample')}")
                notes += [f"note: {written.aggregate}: {note}" for note in written.notes]
        else:
            chosen = scores_table if table == _SCORES else predictions_table
            rows = write_table(to, found, path, replace=replace, table=chosen, for_spreadsheets=for_spreadsheets)
            lines.append(f"{path}: {count(rows, table.removesuffix('s'))} of {count(len(found), 'run')}")
    say(notes)
    for line in lines:
        echo(line)


def report(
    runs: options.RunFolders,
    out: Annotated[Path, Option("--out", "-o", help="The file to write.")] = Path("report.html"),
    title: Annotated[str | None, Option(help="The page's title. Default: the name of the suite.")] = None,
    metric: options.Metric = None,
    cluster: options.Cluster = None,
    rows: Annotated[int, Option(min=0, help="How many rows of each dataset to show, drawn by their ids.")] = 500,
) -> None:
    """Write one self-contained HTML page about finished runs of any HELM scenario: to open from disk, mail or print.

    It has a leaderboard with 95 % intervals, slices, comparisons row by row, calibration, counts of what was left out,
    baselines, rows to browse, and what each run was made of.
    """
    from helm_ext.analysis import find_runs
    from helm_ext.analysis.report.gathering import gather
    from helm_ext.analysis.report.page import write_report

    if out.is_dir():
        raise RunEntryError(f"--out {out}: is a folder\n  hint: --out {out / 'report.html'}")
    found, unfinished = find_runs(runs)
    with status("reading runs"), without_output():
        datasets, said = gather(found, metric=metric, cluster=cluster, most_rows=rows)
    notes = unfinished_notes(unfinished) + said
    say(notes)
    suites = list(dict.fromkeys(run.suite for run in found))
    with writing(out):
        size = write_report(datasets, notes, out, title or f"Evaluation: {', '.join(suites)}")
    shown = sum(len(dataset.runs) for dataset in datasets)
    echo(f"{out}: {count(shown, 'run')} of {count(len(datasets), 'dataset')}, {size / 1e3:,.0f} kB")
