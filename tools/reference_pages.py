"""Reference pages that are made from the code when the site is built (`hooks` in mkdocs.yml).

A page that is made from what the program does cannot be out of date. What the code does not say about itself
(a description, a default) is mended in the code.

How-to pages (docs/how-to/) find their place in the navigation by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer.main
from argument_tables import to_table
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from helm_ext.formats import all_formats
from helm_ext.scoring.registry import get_scores

KINDS = {
    "text": "Of a text, for each accepted answer; the best counts",
    "row": "Of a whole row",
    "list": "Of lists (`output_format: list`)",
    "helm": "HELM's",
    "likelihoods": "Log-probabilities of options",
}
"""What the kinds of scores are called (`Score.kind`)."""

HOW_TO = "How-to"
"""The title of the section of the navigation that takes the how-to pages."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the how-to pages into the navigation, in the order of their names; mkdocs calls this."""
    folder = Path(config.docs_dir)
    pages = sorted(path.relative_to(folder).as_posix() for path in folder.glob("how-to/*.md"))
    for section in config.nav or []:
        if HOW_TO in section:
            section[HOW_TO] += pages
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages; mkdocs calls this."""
    pages = {"arguments.md": arguments_page(), "scores.md": scores_page(), "command.md": command_page()}
    for name, lines in pages.items():
        files.append(File.generated(config, f"reference/{name}", content="\n".join(lines) + "\n"))
    return files


def arguments_page() -> Iterator[str]:
    """Yield the lines of the page about run entries: the arguments of each format that is installed."""
    yield from (
        "# Arguments of run entries",
        "",
        "Made from the table of formats. The same arguments go to `helm-ext validate`, `preview`, `score` and",
        "`convert` as `--arg KEY=VALUE`, and to `helm_ext.formats.load` and `check`. Arguments that HELM's run",
        "expanders take (`max_train_instances=`, `temperature=`, ...) work as with any run entry and are not listed.",
    )
    for format_ in all_formats():
        page = f"../{format_.name}.md"
        yield from ("", f"## `{format_.name}:` {format_.title}", "", f"Shortest: {format_.usage}", "")
        yield f"[The format's page]({page}) has the sections that the table refers to.\n"
        yield to_table(format_.arguments).replace("](#", f"]({page}#")


def scores_page() -> Iterator[str]:
    """Yield the lines of the page about scores: every name that files and run entries may give."""
    yield from (
        "# Scores",
        "",
        "Made from the registry of scores: the names that `metrics` and `main_metric` take in files and run entries.",
        "Where a score gives several stats, the first is the one that a leaderboard shows.",
    )
    scores = [*get_scores().values(), *(score for score in get_scores("list").values() if score.kind == "list")]
    named = [score for score in scores if not score.refused]
    for kind, title in KINDS.items():
        rows = [
            (
                f"`{score.name}`",
                score.description,
                ", ".join(f"`{stat.name}`" for stat in (*score.over_all, *score.stats)),
            )
            for score in named
            if score.kind == kind
        ]
        yield from ("", f"## {title}", "", *table(("name", "meaning", "stats"), rows))
    refused = [(f"`{score.name}`", score.refused) for score in scores if score.refused]
    yield from ("", "## Not to be had by name", "", *table(("name", "why"), refused))


def command_page() -> Iterator[str]:
    """Yield the lines of the page about `helm-ext`: each command with its arguments and options, as `--help` says."""
    from helm_ext.cli import app

    yield from (
        "# The command",
        "",
        "Made from the command itself. Exit codes: 0 fine, 1 problems found, 2 wrong usage.",
    )
    yield from _describe("helm-ext", typer.main.get_command(app))


def _describe(path: str, command: Any) -> Iterator[str]:
    # A group is asked: it imports a command only then.
    children = {name: command.get_command(None, name) for name in getattr(command, "commands", ())}
    if not children:
        yield from ("", f"## {path}", "", *_paragraphs(command.help))
        rows = [(_names(parameter), _about(parameter)) for parameter in command.params if parameter.name != "help"]
        if rows:
            yield from ("", *table(("argument or option", "meaning"), rows))
    for name, child in children.items():
        yield from _describe(f"{path} {name}", child)


def _paragraphs(text: str | None) -> Iterator[str]:
    for paragraph in (text or "").split("\n\n"):
        yield from (" ".join(paragraph.split()), "")


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))


def _about(parameter: Any) -> str:
    text = " ".join((getattr(parameter, "help", None) or "").split())
    default = getattr(parameter.default, "value", parameter.default)
    shown = f"Default: `{default}`." if default not in (None, False, (), []) and not callable(default) else ""
    needed = "Required." if parameter.required else ""
    return " ".join(filter(None, (text, shown, needed)))


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield f"| {' | '.join(header)} |"
    yield f"|{'|'.join(' --- ' for _ in header)}|"
    for row in rows:
        cells = (cell.replace("|", "\\|") for cell in row)
        yield f"| {' | '.join(cells)} |"
