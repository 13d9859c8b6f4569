"""The `helm-ext` command.

Exit codes: 0 fine, 1 problems found, 2 wrong usage, 3 the rows do not tell (`compare --fail-if-unsure`).
What a user can cause is a message, never a traceback.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from helm_ext.cli.output import echo
from helm_ext.errors import HelmExtError, RunEntryError

__all__ = ["app", "main"]

_COMMANDS = {
    "validate": "validate",
    "preview": "preview",
    "score": "score",
    "convert": "convert",
    "export": "export",
    "compare": "compare",
    "plan": "compare",
    "report": "report",
    "merge": "merge",
    "schema": "schema",
    "schema-path": "schema",
    "hub": "hub",
    "requests": "requests",
    "model": "model",
}
"""Name of a command to its module, in the order of `--help`."""

_WITH_ARGUMENTS = ("validate", "preview", "score", "convert")
"""Commands that take `--arg`: their help ends with the arguments of all formats."""


class _Commands(TyperGroup):
    """Imports a command when it is asked for: all of them take 60 ms, and most are not needed."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        names: dict[str, Any] = dict.fromkeys(_COMMANDS)
        self.commands = names  # without commands yet

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _COMMANDS and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load(cmd_name)
        return super().get_command(ctx, cmd_name)


def _load(name: str) -> Any:
    """Return a command, or a group of them."""
    found = import_module(f"{__name__}.{_COMMANDS[name]}")
    holder = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    group = getattr(found, f"{name}_app", None)
    if group is not None:
        holder.add_typer(group, name=name)
    else:
        epilog = None
        if name in _WITH_ARGUMENTS:
            from helm_ext.cli.session import describe_arguments

            epilog = describe_arguments()
        holder.command(name, epilog=epilog)(getattr(found, name.replace("-", "_")))
    return get_group(holder).commands[name]


app = typer.Typer(
    name="helm-ext",
    cls=_Commands,
    help="Datasets for HELM: check them, see the prompts they make, re-score recorded completions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(value: bool) -> None:
    if value:
        import helm_ext

        echo(f"helm-ext {helm_ext.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; entry point `helm-ext`."""
    try:
        app()
    except HelmExtError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a command's output
        raise SystemExit(2 if isinstance(error, RunEntryError) else 1) from None
