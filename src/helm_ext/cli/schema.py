"""`helm-ext schema` and `helm-ext schema-path`."""

from __future__ import annotations

import json
from importlib import resources
from typing import Annotated, Any

import typer

from helm_ext.cli.options import OUTPUT, OutputPath, one_of
from helm_ext.cli.output import echo
from helm_ext.errors import HelmExtError
from helm_ext.formats import format_names, get_format

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
