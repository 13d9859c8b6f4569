"""Where all that the command shows passes: what data, file names and servers say cannot steer the terminal."""

from __future__ import annotations

import typer

from helm_ext.errors import printable

__all__ = ["echo"]


def echo(message: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Write a text to standard output or standard error."""
    typer.echo(printable(message), err=err, nl=nl)
