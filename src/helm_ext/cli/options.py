"""Arguments and options that several commands take, each declared once, and what their values are made into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helm_ext.cli.output import echo
from helm_ext.errors import HelmExtError, RunEntryError
from helm_ext.formats import format_names
from helm_ext.formats.arguments import as_helm_reads

if TYPE_CHECKING:
    from helm_ext.analysis import FinishedRun

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
