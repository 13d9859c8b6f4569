"""The `helm-ext` command.

Exit codes: 0 fine, 1 problems found, 2 wrong usage, 3 the rows do not tell (`compare --fail-if-unsure`).
What a user can cause is a message, never a traceback.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from helm_ext.errors import HelmExtError, RunEntryError, describe_missing, printable

__all__ = ["app", "main"]

_COMMANDS = {
    "validate": ("validate", "Check dataset files: all problems at once"),
    "preview": ("validate", "Show exactly what HELM will send for the first rows"),
    "score": ("score", "Re-score recorded completions, print the table"),
    "convert": ("convert", "Convert a dataset to adapter_spec JSON Lines"),
    "export": ("convert", "Write the predictions or the scores of finished runs"),
    "compare": ("compare", "Compare finished runs row by row, of any HELM scenario"),
    "plan": ("compare", "Say how many rows it takes to tell a difference"),
    "report": ("convert", "Write one self-contained HTML page about finished runs"),
    "merge": ("merge", "Join finished runs of shards of one dataset to one run"),
    "schema": ("convert", "Print the JSON Schema of a format, for editors"),
    "schema-path": ("convert", "Print the path of our report schema"),
    "hub": ("hub", "The Innodata Dataset Hub: chat datasets with immutable versions"),
    "requests": ("requests", "Requests out, results in: let any engine answer a run's requests"),
    "judge": ("judge", "Answers judged by models and by people"),
    "model": ("model", "Models of your own, behind an address or in a folder"),
}
"""Name of a command to its module, and how its help begins; in the order of `--help`."""

_GARBAGE = 200_000
"""Objects that are made before Python looks for cycles among them: modules have none to free, and a tenth of the time
in which they are imported goes into looking."""

_WITH_ARGUMENTS = ("validate", "preview", "score", "convert")
"""Commands that take `--arg`."""


class _Commands(TyperGroup):
    """Imports a command when it is asked for: most are not needed, and the list of them needs none."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        names: dict[str, Any] = dict.fromkeys(_COMMANDS)
        self.commands = names  # without commands yet

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _COMMANDS and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load(cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as click has it
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


def _describe_arguments() -> str:
    """Return the arguments of all formats, for the end of a command's help."""
    import textwrap

    from helm_ext.formats import all_formats

    parts = []
    for format_ in all_formats():
        width = max(map(len, format_.argument_names()))
        # After \b click leaves lines as they are.
        parts.append(f"\b\n--arg of {format_.name} ({format_.title}):")
        for argument in format_.arguments:
            if argument.in_run_entry:
                line = f"  {argument.name:{width}}  {argument.description} ({argument.kind.title})"
                indent = " " * (width + 4)
                parts[-1] += "\n" + textwrap.fill(line, 78, subsequent_indent=indent, break_on_hyphens=False)
    return "\n\n".join(parts).replace("`", "")


def _load(name: str) -> Any:
    """Return a command, or a group of them."""
    found = import_module(f"{__name__}.{_COMMANDS[name][0]}")
    holder = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    group = getattr(found, f"{name}_app", None)
    if group is not None:
        holder.add_typer(group, name=name)
    else:
        epilog = _describe_arguments() if name in _WITH_ARGUMENTS else None
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
        from importlib.metadata import version

        from helm_ext.cli.common import echo

        echo(f"helm-ext {version('helm-ext')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def describe_error(error: Exception, command: str) -> str:
    """Return what is said of an error that a command ended with; hints name arguments as they are typed there."""
    if isinstance(error, ModuleNotFoundError):
        return describe_missing(error)
    if isinstance(error, OSError) and not isinstance(error, HelmExtError):  # a name that is too long, a full disk
        return printable(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error))
    if command not in _WITH_ARGUMENTS:
        return str(error)
    from helm_ext.cli.common import with_option

    return with_option(str(error))


def main() -> None:
    """Run the command; entry point `helm-ext`."""
    gc.set_threshold(_GARBAGE)
    try:
        app()
    except (HelmExtError, ModuleNotFoundError, OSError) as error:
        print(f"error: {describe_error(error, ''.join(sys.argv[1:2]))}", file=sys.stderr)  # noqa: T201 - a command's output
        raise SystemExit(2 if isinstance(error, RunEntryError) else 1) from None
    finally:
        gc.freeze()  # what ends with the process need not be looked through for garbage first: a fifth of a start
