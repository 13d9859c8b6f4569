"""`helm-ext convert`, `schema` and `schema-path`: files of formats that can be written, and the schemas of all."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from helm_ext.cli.options import OUTPUT, AsFormat, OutputPath, Replace, one_of, parse_arguments
from helm_ext.cli.output import echo, status
from helm_ext.cli.session import choose_format, find_file, require_unnamed
from helm_ext.errors import DatasetIntegrityError, HelmExtError, RunEntryError, count
from helm_ext.formats import Format, all_formats, format_names, get_format
from helm_ext.formats.arguments import MISSING
from helm_ext.formats.conversion import Converted, WriteOptions


def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A dataset file, or a dataset's name.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="FILE.jsonl (adapter_spec).")],
    arg: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE, as in the run entry of SRC, missing aside; repeatable.")
    ] = None,
    kind: AsFormat = None,
    lossy: Annotated[bool, typer.Option("--lossy", help="Convert even if something is lost.")] = False,
    replace: Replace = False,
) -> None:
    """Convert a dataset to adapter_spec JSON Lines, if that loses nothing; else say what it would lose.

    Exit code 1: something would be lost, and nothing was written.
    """
    writer = _find_writer(target)
    if target.exists() and not replace:
        raise DatasetIntegrityError(f"{target}: exists\n  hint: --replace overwrites it")
    source = find_file(source)
    format_ = choose_format(kind, source)
    options = WriteOptions(source, lossy=lossy)
    with status(f"converting {source}"):
        converted = _convert(format_, writer, target, parse_arguments(arg), options)
    for kind_of, found in (("lost", converted.findings.losses), ("note", converted.findings.notes)):
        for text, rows in found.items():
            echo(f"{kind_of}: {text}" + (f" ({rows} rows)" if rows > 1 else ""), err=True)
    echo(f"{converted.path}: {count(converted.rows, 'row')}")


def _find_writer(target: Path) -> Format:
    """Return the format whose files end as the target does. Raises RunEntryError."""
    writers = [format_ for format_ in all_formats() if format_.writes]
    for format_ in writers:
        if target.suffix in format_.writes:
            return format_
    raise RunEntryError(f"{target}: expected {' or '.join(format_.written_as for format_ in writers)}")


def _convert(
    format_: Format, writer: Format, target: Path, arguments: dict[str, Any], options: WriteOptions
) -> Converted:
    named = format_.name_file(options.source)
    require_unnamed(named, arguments)
    if MISSING.name in arguments:
        raise RunEntryError(
            f"--arg missing={arguments[MISSING.name]}: a conversion keeps every row\n"
            "  hint: leave it out; runs of DST take it"
        )
    arguments = format_.parse_for_load(arguments)
    evalset = format_.load(**named, **arguments)
    train = format_.load_demonstrations(**named, **arguments)
    return writer.write(
        evalset, target, dataclasses.replace(options, losses=format_.losses(evalset), demonstrations=train)
    )


# Schemas

SUITE_SCHEMA = "helm_ext_schema.json"


def schema(
    kind: Annotated[
        str, typer.Argument(metavar="FORMAT", parser=one_of(*format_names()), help=f"{' or '.join(format_names())}.")
    ] = "adapter_spec",
) -> None:
    """Print the JSON Schema of a format, for editors: "$schema": "adapter_spec.schema.json" in a file."""
    echo(json.dumps(get_format(kind).json_schema(), indent=2, ensure_ascii=False))


def schema_path(
    suite: Annotated[str | None, typer.Option(help="Group this suite's runs by their datasets.")] = None,
    output_path: OutputPath = OUTPUT,
) -> None:
    """Print the path of our report schema: helm-summarize --schema-path "$(helm-ext schema-path)".

    With --suite the schema is written for the runs of that suite: tasks of one dataset stand under it.
    """
    if suite is None:
        echo(str(resources.files("helm_ext") / "schema_helm_ext.yaml"))
        return
    folder = output_path / "runs" / suite
    run_specs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*/run_spec.json"))]
    if not run_specs:
        raise HelmExtError(f"{folder}: no finished runs\n  hint: --output-path and --suite as for helm-run")
    path = folder / SUITE_SCHEMA
    path.write_text(json.dumps(make_suite_schema(run_specs), indent=2), encoding="utf-8")
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
