"""`helm-ext hub`: pack bundles, and keep them in a hub with immutable versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from helm_ext import hub as hubs  # type: ignore[attr-defined,unused-ignore]
from helm_ext.errors import DatasetSchemaError, HelmExtError, RunEntryError, show
from helm_ext.formats.innodata import pack as pack_bundle

__all__ = ["hub_app"]

hub_app = typer.Typer(
    help="The Innodata Dataset Hub: chat datasets with immutable versions.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

HubOption = Annotated[
    str | None,
    typer.Option("--hub", help=f"The hub's folder or fsspec URL. Default: {hubs.HUB_ENV}, else in your data folder."),
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A dataset of the hub.")]
_SHOWN_IDS = 20
