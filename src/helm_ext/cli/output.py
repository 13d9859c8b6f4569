"""Where all that the command shows passes: what data, file names and servers say cannot steer the terminal."""

from __future__ import annotations

from collections.abc import Iterable

import rich.console
import typer
from rich.segment import Segment

from helm_ext.errors import printable

__all__ = ["Console", "echo"]


def echo(message: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Write a text to standard output or standard error."""
    typer.echo(printable(message), err=err, nl=nl)


class Console(rich.console.Console):
    """Rich's console. Its own control sequences are added behind this place."""

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return super()._render_buffer(
            segment if segment.control else Segment(printable(segment.text), segment.style) for segment in buffer
        )
