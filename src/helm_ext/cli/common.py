"""What commands share: arguments and options, each declared once, and where all that is shown passes.

What data, file names and servers say cannot steer the terminal.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helm_ext.errors import HelmExtError, RunEntryError, printable
from helm_ext.formats import format_names
from helm_ext.formats.arguments import as_helm_reads

if TYPE_CHECKING:
    from rich.console import Console

    from helm_ext.analysis import FinishedRun


def echo(message: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Write a text to standard output or standard error."""
    typer.echo(printable(message), err=err, nl=nl)


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


OUTPUT = Path("benchmark_output")
PROD_ENV = Path("prod_env")


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a parser of an option that takes one of a few words. It raises typer.BadParameter."""

    def parse(value: str) -> str:
        if value not in choices:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(repr, choices))}.")
        return value

    return parse


def choice(*choices: str, name: str | None = None, about: str) -> typer.models.OptionInfo:
    """Return the declaration of such an option."""
    option: typer.models.OptionInfo = typer.Option(
        *filter(None, [name]), parser=one_of(*choices), metavar=f"[{'|'.join(choices)}]", help=about
    )
    return option


# A dataset

AsFormat = Annotated[str | None, choice(*format_names(), name="--as", about="Read the file as this format.")]
Arguments = Annotated[list[str] | None, typer.Option("--arg", help="KEY=VALUE, as in the run entry; repeatable.")]

# HELM's folders

OutputPath = Annotated[Path, typer.Option("--output-path", "-o", help="HELM's output folder.")]
LocalPath = Annotated[Path, typer.Option(help="HELM's folder of local configurations.")]
Suite = Annotated[str, typer.Option(help="HELM's suite.")]
Plugins = Annotated[
    list[str] | None, typer.Option(help="A module, or the path of one, with scenarios of your own; repeatable.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show HELM's own log.")]

# Finished runs

RunFolders = Annotated[
    list[Path],
    typer.Argument(metavar="RUN|FOLDER...", help="Folders of finished runs, or folders with runs below: a suite."),
]
Metric = Annotated[str | None, typer.Option(help="A stat of the rows. Default: each run's main metric.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Rows with one value of this key are not independent: a passage. Default: as the runs were told."
    ),
]

# Requests, and a server that speaks OpenAI's protocol

Results = Annotated[
    list[Path] | None, typer.Argument(metavar="FILE...", help="Results, in any order; also parts of them.")
]
SentAs = Annotated[str | None, typer.Option(help="The model's name for the server. Default: as HELM would send it.")]
MAX_PER_SHARD = 50_000
PerShard = Annotated[int, typer.Option(min=1, max=MAX_PER_SHARD, help="Requests in a file at most.")]
PricesOption = Annotated[
    str | None, typer.Option("--prices", metavar="IN,OUT", help="What a million tokens cost, in any currency.")
]
Omit = Annotated[
    list[str] | None, typer.Option(help="A parameter that the server refuses, as temperature; repeatable.")
]
TopK = Annotated[bool, typer.Option("--top-k", help="Send top_k, which OpenAI's API does not know.")]
Seed = Annotated[int | None, typer.Option(help="Send a seed.")]
ExtraToken = Annotated[
    bool, typer.Option("--extra-token", help="Scored prompts: ask for one token; some servers refuse 0.")
]

# What is written

Replace = Annotated[bool, typer.Option("--replace", help="Overwrite what is there.")]
JsonLines = Annotated[
    bool,
    typer.Option("--json", help="Print JSON Lines for programs, one object for each result; notes go to stderr."),
]


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


def read_folders(folders: Sequence[Path]) -> list[FinishedRun]:
    """Return the finished runs of these folders, and name those that are not finished. Raises DatasetNotFoundError."""
    from helm_ext.analysis import find_runs

    found, unfinished = find_runs(folders)
    for folder in unfinished:
        echo(f"left out: {folder}: the run is not finished", err=True)
    return found


def not_written(path: Path, error: OSError) -> HelmExtError:
    """Return the error of a file that cannot be written."""
    return HelmExtError(f"{path}: cannot be written: {error.strerror or error}")
