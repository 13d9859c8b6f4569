"""Where all that the command shows passes: what data, file names and servers say cannot steer the terminal."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import typer

from helm_ext.errors import printable


def echo(message: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Write a text to standard output or standard error."""
    typer.echo(printable(message), err=err, nl=nl)


def status(message: str) -> AbstractContextManager[Any]:
    """Say on a terminal what is being done, for as long as it is. Elsewhere nothing is said, and rich is not loaded."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.markup import escape

    from helm_ext.cli.console import Console

    return Console(stderr=True).status(escape(message))
