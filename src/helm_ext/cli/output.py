"""Where all that the command shows passes: what data, file names and servers say cannot steer the terminal."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any

import typer

from helm_ext.errors import printable


def echo(message: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Write a text to standard output or standard error."""
    typer.echo(printable(message), err=err, nl=nl)


def status(message: str) -> contextlib.AbstractContextManager[Any]:
    """Say on a terminal what is being done, for as long as it is. Elsewhere nothing is said, and rich is not loaded."""
    if not sys.stderr.isatty():
        return contextlib.nullcontext()
    from rich.markup import escape

    from helm_ext.cli.console import Console

    return Console(stderr=True).status(escape(message))


@contextlib.contextmanager
def without_output() -> Iterator[None]:
    """Drop what HELM prints where that is about itself: the folders it looks into, downloads that it could not make."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def helm_output_to_stderr() -> contextlib.AbstractContextManager[Any]:
    """Keep what HELM prints out of our output, which may be piped into another program."""
    return contextlib.redirect_stdout(sys.stderr)


def shorten(text: str) -> str:
    """Return a question or an answer on one line, and no more of it than a list of rows has place for."""
    shown = " ".join(text.split())
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


_SHOWN = 300
