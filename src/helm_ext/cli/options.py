"""Options and arguments that several commands have, each declared once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from helm_ext.errors import RunEntryError
from helm_ext.formats import format_names

OUTPUT = Path("benchmark_output")
PROD_ENV = Path("prod_env")


def choice(
    *choices: str, name: str | None = None, about: str, kind: Callable[..., Any] = Option, metavar: str = ""
) -> Any:
    """Return the declaration of an option, or of an argument (`kind`), that takes one of a few words."""

    def parse(value: str) -> str:
        if value not in choices:
            raise BadParameter(f"{value!r} is not one of {', '.join(map(repr, choices))}.")
        return value

    return kind(*filter(None, [name]), parser=parse, metavar=metavar or f"[{'|'.join(choices)}]", help=about)


def require_given(given: Mapping[str, Any], hint: str = "") -> None:
    """Raise RunEntryError for what is needed and was not given, by its name on the command line."""
    if absent := [name for name, value in given.items() if not value]:
        raise RunEntryError(f"{' and '.join(absent)}: must be given" + (f"\n  hint: {hint}" if hint else ""))


def require_alone(option: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    """Raise RunEntryError where an option and one of those that make no sense beside it are given, by their names."""
    given = [name for options in (option, others) for name, value in options.items() if value]
    if any(option.values()) and len(given) > 1:
        raise RunEntryError(f"{given[0]} and {given[1]}: leave out one of the two")


# A dataset

AsFormat = Annotated[str | None, choice(*format_names(), name="--as", about="Read the file as this format.")]
Arguments = Annotated[list[str] | None, Option("--arg", help="KEY=VALUE, an argument of the run entry; repeatable.")]

# HELM's folders

OutputPath = Annotated[Path, Option("--output-path", "-o", help="HELM's output folder.")]
LocalPath = Annotated[Path, Option(help="HELM's folder of local configurations.")]
Suite = Annotated[str, Option(help="HELM's suite.")]
Plugins = Annotated[list[str] | None, Option(help="A module, or its path, with your scenarios; repeatable.")]
Verbose = Annotated[bool, Option("--verbose", "-v", help="Show HELM's own log.")]

# Finished runs

RunFolders = Annotated[
    list[Path], Argument(metavar="RUN|FOLDER...", help="Folders of finished runs, or folders with runs below: a suite.")
]
Metric = Annotated[str | None, Option(help="A metric that rows have. Default: each run's main metric.")]
Cluster = Annotated[
    str | None,
    Option(help="Rows with one value of this depend on one another, as of passage. Default: as the run says."),
]

# Requests, and a server that speaks OpenAI's protocol

Results = Annotated[list[Path] | None, Argument(metavar="FILE...", help="Results, in any order; also parts of them.")]
SentAs = Annotated[str | None, Option(help="The model's name for the server. Default: as HELM would send it.")]
MAX_PER_SHARD = 50_000
PerShard = Annotated[int, Option(min=1, max=MAX_PER_SHARD, help="The most requests in one file.")]
Prices = Annotated[str | None, Option("--prices", metavar="IN,OUT", help="What a million tokens cost, in and out.")]
Omit = Annotated[
    list[str] | None, Option(help="Leave out a parameter that the server refuses, such as temperature; repeatable.")
]
TopK = Annotated[bool, Option("--top-k", help="Send top_k, which OpenAI's API does not know.")]
Seed = Annotated[int | None, Option(help="Send a seed.")]
ExtraToken = Annotated[
    bool, Option("--extra-token", help="Ask for one token where prompts are scored: some servers refuse 0.")
]

# What is written

Replace = Annotated[bool, Option("--replace", help="Overwrite what is there.")]
JsonLines = Annotated[bool, Option("--json", help="Print JSON Lines for programs; notes go to stderr.")]
