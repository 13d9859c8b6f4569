"""What commands share: arguments and options, each declared once, and where all that is shown passes.

What data, file names and servers say cannot steer the terminal.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from helm_ext.errors import HelmExtError, RunEntryError, printable
from helm_ext.formats.format import as_helm_reads

if TYPE_CHECKING:
    from rich.console import Console

    from helm_ext.analysis import FinishedRun


def echo(message: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Write a text to standard output or standard error."""
    typer.echo(printable(message), err=err, nl=nl)


def say(lines: Iterable[object], prefix: str = "") -> None:
    """Write lines to standard error, where output may be piped into another program."""
    for line in lines:
        echo(f"{prefix}{line}", err=True)


def status(message: str) -> contextlib.AbstractContextManager[Any]:
    """Say on a terminal what is being done, for as long as it is. Elsewhere nothing is said, and rich is not loaded."""
    if not sys.stderr.isatty():
        return contextlib.nullcontext()
    return make_console(stderr=True).status(message)


def make_console(*, piped: int = 120, stderr: bool = False) -> Console:
    """Return rich's console, which takes no markup and no steering from texts.

    `piped`: how many columns tables have that go to no terminal.
    """
    import rich.console  # slow to load
    from rich.segment import Segment

    class Printable(rich.console.Console):
        def _render_buffer(self, buffer: Iterable[Segment]) -> str:
            """Rich's own control sequences are added behind this place."""
            return super()._render_buffer(
                segment if segment.control else Segment(printable(segment.text), segment.style) for segment in buffer
            )

    console = Printable(stderr=stderr, emoji=False, markup=False, highlight=False)
    if not console.is_terminal:
        console.width = piped
    return console


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], *, left: Iterable[str] = (), console: Console
) -> None:
    """Print rows in columns; those of numbers, all but the first and `left`, are flush right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if not place or heading in left else "right")
    for row in rows:
        table.add_row(*map(str, row))
    console.print(table)


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


_ANSWERS = {
    "cut": "cut at the limit of tokens",
    "refused": "refused by the model",
    "filtered": "cut by a content filter",
    "tool_calls": "calls of a tool instead of a text",
    "empty": "empty",
}
"""What is odd about answers that are scored as they are, by the names of the counts."""


def describe_answers(counts: Mapping[str, int]) -> str:
    """Return how many answers are no whole text of the model's; "" where none is known to be."""
    return ", ".join(f"{counts[name]} {what}" for name, what in _ANSWERS.items() if counts.get(name))


def parse_pairs(option: str, pairs: Sequence[str] | None) -> dict[str, str]:
    """Return what a repeatable `KEY=VALUE` option gives. Raises RunEntryError for no `=`, and for a key given twice."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise RunEntryError(f"{option} {pair}: expected KEY=VALUE")
        if key in found:
            raise RunEntryError(f"{option} {pair}: {key} is given twice")
        found[key] = value
    return found


def parse_arguments(pairs: Sequence[str] | None) -> dict[str, Any]:
    """Return the run entry's arguments of `--arg`; unlike in a run entry, values may hold commas."""
    return {key: as_helm_reads(value) for key, value in parse_pairs("--arg", pairs).items()}


def with_option(text: str) -> str:
    """Return a message with `--arg` before each argument that its hint names: what is shown can be typed.

    Within a run entry, behind `:` or `,`, arguments stay as they are, and so does what names the file.
    """
    return re.sub("^  .*", lambda line: put_option(line[0]), text, flags=re.MULTILINE)


def put_option(text: str) -> str:
    """Return a text with `--arg` before each argument that it names, also where commas join them."""
    from helm_ext.formats import all_formats

    names = "|".join(
        sorted({name for one in all_formats() for name in {*one.argument_names()}.difference(one.sources)})
    )
    joined = rf"(?<![\w.,:=+/'\"{{-])(?<!--arg )((?:{names})=(?:[^\s,]*,(?:{names})=)*)"
    return re.sub(joined, lambda found: f"--arg {found[1].replace(',', ' --arg ')}", text)


def read_folders(folders: Sequence[Path]) -> list[FinishedRun]:
    """Return the finished runs of these folders, and name those that are not finished. Raises DatasetNotFoundError."""
    from helm_ext.analysis import find_runs

    found, unfinished = find_runs(folders)
    say(unfinished_notes(unfinished))
    return found


def unfinished_notes(folders: Iterable[Path]) -> list[str]:
    """Return what is said of runs that are not finished."""
    return [f"left out: {folder}: the run is not finished" for folder in folders]


@contextlib.contextmanager
def writing(path: object, why: str = "cannot be written: ") -> Iterator[None]:
    """Raise HelmExtError about what is written for errors of the system; our own, of which some are such, pass."""
    try:
        yield
    except HelmExtError:
        raise
    except OSError as error:
        raise HelmExtError(f"{path}: {why}{error.strerror or error}") from error
