"""`helm-ext validate`: every problem of a file at once."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from helm_ext.cli.session import FormatOption, find_file, parse_arguments, require_unnamed
from helm_ext.errors import DatasetError, HelmExtError, Location, Problem, RunEntryError, count, to_problem
from helm_ext.formats import Format, detect, files_in, get_format

__all__ = ["validate"]

NOT_CHECKED = "not checked: whether prompts fit a model's context window, and whether the answers are true"


class Output(str, Enum):
    """How problems are printed."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def validate(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of any format, folders of them, or names."),
    ],
    output: Annotated[Output, typer.Option("--format", help="text, json, or github (workflow annotations).")] = (
        Output.TEXT
    ),
    kind: FormatOption = None,
    arg: Annotated[list[str] | None, typer.Option(help="KEY=VALUE, as in the run entry; repeatable.")] = None,
    no_exec: Annotated[bool, typer.Option("--no-exec", help="Check scripts without running them.")] = False,
) -> None:
    """Check dataset files: all problems at once, with line, field and a hint. Needs no model and no network.

    Exit code 0: no errors (there may be warnings). 1: errors. 2: wrong usage.
    """
    reports = []
    arguments = parse_arguments(arg or [])
    progress = Console(stderr=True)
    for file in itertools.chain.from_iterable(map(files_in, files)):
        with progress.status(escape(f"checking {file}")):
            reports.append(check_file(file, get_format(kind) if kind else None, arguments, no_exec=no_exec))
    print_reports(reports, output)
    if any(problem.severity == "error" for report in reports for problem in report["problems"]):
        raise typer.Exit(1)


def check_file(
    file: Path, format_: Format | None, arguments: Mapping[str, Any], *, no_exec: bool = False
) -> dict[str, Any]:
    """Return `{file, format, problems, counts}` of one file, and `inferred` where something was.

    Raises RunEntryError for unknown arguments.
    """
    problems: list[Problem] = []
    counts: dict[str, int] = {}
    inferred: list[str] = []
    file = find_file(file)
    try:
        format_ = format_ or detect(file)
    except DatasetError as error:
        return {"file": str(file), "format": "", "problems": list(error.problems), "counts": {}}
    named = format_.name_file(file)
    require_unnamed(named, arguments)
    if not file.exists():
        try:
            format_.parse(named)
        except RunEntryError as error:  # it says which dataset has that file name
            return {"file": str(file), "format": format_.name, "problems": [to_problem(error, str(file))], "counts": {}}
    named |= format_.parse(arguments)
    try:
        for task in format_.tasks(named):
            found, counted = format_.check(execute=not no_exec, **{**named, **task})
            problems = list(dict.fromkeys([*problems, *found]))
            counts = {key: counts.get(key, 0) + counted.get(key, 0) for key in {**counts, **counted}}
        if not any(problem.severity == "error" for problem in problems):
            inferred = format_.describe(named)
    except DatasetError as error:
        problems += error.problems or [to_problem(error, str(file))]
    except (HelmExtError, OSError) as error:
        problems.append(to_problem(error, str(file)))
    if named.get("missing") == "skip":  # what these warnings propose
        problems = [problem for problem in problems if problem.code not in ("not-run", "failed")]
    report = {"file": str(file), "format": format_.name, "problems": problems, "counts": counts}
    return report | ({"inferred": inferred} if inferred else {})


def print_reports(reports: Sequence[dict[str, Any]], output: Output) -> None:
    """Write all reports to standard output."""
    if output is Output.JSON:
        typer.echo(json.dumps([{**r, "problems": [_to_json(p) for p in r["problems"]]} for r in reports], indent=2))
        return
    for report in reports:
        if output is Output.GITHUB:
            for problem in report["problems"]:
                typer.echo(_to_github(problem))
        else:
            _print_text(report)
    if output is Output.TEXT:
        typer.echo(NOT_CHECKED)


SHOWN_PROBLEMS = 20
"""So many problems of one kind are printed. Thousands of rows with the same mistake would hide the others."""


def _print_text(report: Mapping[str, Any]) -> None:
    for line in report.get("inferred", ()):
        typer.echo(line)
    problems: list[Problem] = report["problems"]
    seen: Counter[tuple[str, ...]] = Counter()
    last = [problem for problem in problems if problem.number > 1]
    for problem in problems:
        kind = _kind(problem)
        seen[kind] += 1
        if seen[kind] <= SHOWN_PROBLEMS and problem not in last:
            typer.echo(f"{problem.severity}: {problem}")
    for (severity, path, field, *_), number in seen.items():
        if number > SHOWN_PROBLEMS:
            place = Location(path, None, field)
            typer.echo(f"{severity}: {place}: {number - SHOWN_PROBLEMS} more like these; --format json lists them")
    for problem in last:
        typer.echo(f"{problem.severity}: {problem}")
    found = Counter[str]()
    for problem in problems:
        found[problem.severity] += problem.number
    counts = ", ".join(
        count(number, _SINGULAR[what], what) if what in _SINGULAR else f"{number} {what}"
        for what, number in report["counts"].items()
    )
    typer.echo(
        f"{report['file']}: {report['format'] or 'no format'}: {count(found['error'], 'error')}, "
        f"{count(found['warning'], 'warning')}" + (f"; {counts}" if counts else "")
    )


_SINGULAR = {"rows": "row", "demonstrations": "demonstration"}


def _kind(problem: Problem) -> tuple[str, ...]:
    """Return what equal mistakes share: one code at one field, in whatever row."""
    field = re.sub(r"\d+", "*", problem.location.field)
    return problem.severity, problem.location.path, field, problem.code or problem.message


def _to_json(problem: Problem) -> dict[str, Any]:
    location = problem.location
    return {
        "severity": problem.severity,
        "code": problem.code,
        "path": location.path,
        "line": location.line,
        "field": location.field,
        "message": problem.message,
        "hint": problem.hint,
    }


def _to_github(problem: Problem) -> str:
    """Return a workflow command, escaped as GitHub asks: %, CR and LF everywhere, `:` and `,` in properties."""
    location = problem.location
    text = f"{location.field}: {problem.message}" if location.field else problem.message
    if problem.hint:
        text += f"\nhint: {problem.hint}"
    properties = [f"file={_escape_property(location.path)}"]
    if location.line is not None:
        properties.append(f"line={location.line}")
    if problem.code:
        properties.append(f"title={_escape_property(problem.code)}")
    return f"::{problem.severity} {','.join(properties)}::{_escape(text)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
