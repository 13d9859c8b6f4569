"""`helm-ext schema` and `helm-ext schema-path`."""

from __future__ import annotations

import json
from importlib import resources
from typing import Annotated

import typer

from helm_ext.cli.validate import FormatName
from helm_ext.formats import FORMATS

__all__ = ["schema", "schema_path"]


def schema(
    kind: Annotated[FormatName, typer.Argument(metavar="FORMAT", help="adapter_spec, ultraeval or innodata.")] = (
        FormatName.ADAPTER_SPEC
    ),
) -> None:
    """Print the JSON Schema of a format, for editors: "$schema": "adapter_spec.schema.json" in a file."""
    typer.echo(json.dumps(FORMATS[kind.value].module.json_schema(), indent=2, ensure_ascii=False))


def schema_path() -> None:
    """Print the path of our report schema: helm-summarize --schema-path "$(helm-ext schema-path)"."""
    typer.echo(str(resources.files("helm_ext") / "schema_helm_ext.yaml"))
