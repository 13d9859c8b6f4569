"""The `helm-ext` command.

Exit codes: 0 fine, 1 problems found, 2 wrong usage. What a user can cause is a message, never a traceback.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from helm_ext.cli.compare import compare, plan
from helm_ext.cli.convert import convert
from helm_ext.cli.export import export
from helm_ext.cli.hub import hub_app
from helm_ext.cli.model import model_app
from helm_ext.cli.preview import preview
from helm_ext.cli.report import report
from helm_ext.cli.requests import requests_app
from helm_ext.cli.schema import schema, schema_path
from helm_ext.cli.score import score
from helm_ext.cli.session import describe_arguments
from helm_ext.cli.validate import validate
from helm_ext.errors import HelmExtError, RunEntryError

__all__ = ["app", "main"]

app = typer.Typer(
    name="helm-ext",
    help="Datasets for HELM: check them, see the prompts they make, re-score recorded completions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(value: bool) -> None:
    if value:
        import helm_ext

        typer.echo(f"helm-ext {helm_ext.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


for command in (validate, preview, score, convert):
    app.command(epilog=describe_arguments())(command)
app.command()(export)
app.command()(compare)
app.command()(plan)
app.command()(report)
app.command()(schema)
app.command("schema-path")(schema_path)
app.add_typer(hub_app, name="hub")
app.add_typer(requests_app, name="requests")
app.add_typer(model_app, name="model")


def main() -> None:
    """Run the command; entry point `helm-ext`."""
    try:
        app()
    except HelmExtError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a command's output
        raise SystemExit(2 if isinstance(error, RunEntryError) else 1) from None
