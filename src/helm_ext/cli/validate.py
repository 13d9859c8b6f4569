"""`helm-ext validate`: every problem of a file at once."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from helm_ext.cli.output import echo
from helm_ext.cli.session import FormatOption, find_file, parse_arguments, require_known, require_unnamed
from helm_ext.engines.progress import read_mode
from helm_ext.errors import DatasetError, HelmExtError, Location, Problem, RunEntryError, count, to_problem
from helm_ext.formats import Format, detect, files_in, get_format

LINTED_ROWS = 5_000
"""Files of up to this many rows are linted without being asked: it takes a second or two."""
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
    lint: Annotated[
        bool | None,
        typer.Option(
            "--lint/--no-lint",
            help="Look for contradictions, duplicates, leaks, uneven golds and answers in prompts. "
            f"[default: in files of up to {LINTED_ROWS:,} rows]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check dataset files: all problems at once, with line, field and a hint. Needs no model and no network.

    Exit code 0: no errors (there may be warnings). 1: errors. 2: wrong usage.
    """
    arguments = parse_arguments(arg or [])
    read_mode()
    if lint and no_exec:
        raise RunEntryError("--lint: what is asked is known once scripts have run\n  hint: leave --no-exec out")
    format_ = get_format(kind) if kind else None
    reports = [
        check_file(file, format_, arguments, no_exec=no_exec, lint=lint)
        for file in itertools.chain.from_iterable(map(files_in, files))
    ]
    print_reports(reports, output)
    if any(problem.severity == "error" for report in reports for problem in report["problems"]):
        raise typer.Exit(1)


def check_file(
    file: Path,
    format_: Format | None,
    arguments: Mapping[str, Any],
    *,
    no_exec: bool = False,
    lint: bool | None = None,
) -> dict[str, Any]:
    """Return `{file, format, problems, counts, linted}` of one file, and `inferred` where something was.

    `lint`: whether the rows are linted. None: in small files, and where that runs no code of the user's. Raises
    RunEntryError for unknown arguments.
    """
    problems: list[Problem] = []
    counts: dict[str, int] = {}
    inferred: list[str] = []
    linted = False
    file = find_file(file)
    try:
        format_ = format_ or detect(file)
    except DatasetError as error:
        return {"file": str(file), "format": "", "problems": list(error.problems), "counts": {}, "linted": False}
    named = format_.name_file(file)
    require_unnamed(named, arguments)
    if not file.exists():
        try:
            format_.parse(named)
        except RunEntryError as error:  # it says which dataset has that file name
            problem = to_problem(error, str(file))
            return {"file": str(file), "format": format_.name, "problems": [problem], "counts": {}, "linted": False}
    require_known(format_, arguments)
    named |= format_.parse_for_load(arguments)
    try:
        for task in format_.tasks(named):
            found, counted = format_.check(execute=not no_exec, **{**named, **task})
            problems = list(dict.fromkeys([*problems, *found]))
            counts = {key: counts.get(key, 0) + counted.get(key, 0) for key in {**counts, **counted}}
            if _is_linted(found, counted, no_exec=no_exec, lint=lint):
                linted, odd = lint_rows(format_, {**named, **task}, str(file))
                problems = _with_lint(problems, odd if linted or lint else ())
        if not any(problem.severity == "error" for problem in problems):
            inferred = format_.describe(named)
    except DatasetError as error:
        problems += error.problems or [to_problem(error, str(file))]
    except (HelmExtError, OSError) as error:
        problems.append(to_problem(error, str(file)))
    if lint and not linted and any(problem.severity == "error" for problem in problems):
        message = "not linted while there are errors"
        problems.append(Problem(message, Location(str(file)), severity="warning", code="not-linted"))
    if named.get("missing") == "skip":  # what these warnings propose
        problems = [problem for problem in problems if problem.code not in ("not-run", "failed")]
    report = {"file": str(file), "format": format_.name, "problems": problems, "counts": counts, "linted": linted}
    return report | ({"inferred": inferred} if inferred else {})


def _is_linted(found: Sequence[Problem], counted: Mapping[str, int], *, no_exec: bool, lint: bool | None) -> bool:
    """Whether the rows are linted: as asked, else in small files. Never those of a file with errors."""
    if no_exec or any(problem.severity == "error" for problem in found):
        return False
    rows = sum(counted.get(key, 0) for key in ("rows", "train"))
    return rows <= LINTED_ROWS if lint is None else lint


def lint_rows(format_: Format, arguments: Mapping[str, Any], path: str) -> tuple[bool, list[Problem]]:
    """Return whether the rows could be linted, and what is odd about them, or why they could not."""
    from helm_ext.analysis.lint import lint

    arguments = {key: value for key, value in arguments.items() if key != "missing"}
    try:
        evalset = format_.load(**arguments)
        return True, lint(evalset, path, demonstrations=format_.load_demonstrations(**arguments))
    except HelmExtError as error:  # `check` found nothing wrong: it is about how rows would be scored
        problem = to_problem(error, path, "not-linted")
        return False, [replace(problem, severity="warning", message=f"not linted: {problem.message}")]


def _with_lint(problems: Sequence[Problem], linted: Sequence[Problem]) -> list[Problem]:
    """Return all problems; where lint lists the rows that leak, without the one that counts them."""
    if not linted:
        return list(problems)
    leaks = any(problem.code == "leak" for problem in linted)
    return [problem for problem in problems if not (leaks and problem.code == "overlap")] + list(linted)


def print_reports(reports: Sequence[dict[str, Any]], output: Output) -> None:
    """Write all reports to standard output."""
    if output is Output.JSON:
        echo(json.dumps([{**r, "problems": [_to_json(p) for p in r["problems"]]} for r in reports], indent=2))
        return
    for report in reports:
        if output is Output.GITHUB:
            for problem in report["problems"]:
                echo(_to_github(problem))
        else:
            _print_text(report)
    if output is Output.TEXT:
        echo(NOT_CHECKED)


SHOWN_PROBLEMS = 20
"""So many problems of one kind are printed. Thousands of rows with the same mistake would hide the others."""


def _print_text(report: Mapping[str, Any]) -> None:
    for line in report.get("inferred", ()):
        echo(line)
    problems: list[Problem] = report["problems"]
    seen: Counter[tuple[str, ...]] = Counter()
    last = [problem for problem in problems if problem.number > 1]
    for problem in problems:
        kind = _kind(problem)
        seen[kind] += 1
        if seen[kind] <= SHOWN_PROBLEMS and problem not in last:
            echo(f"{problem.severity}: {problem}")
    for (severity, path, field, *_), number in seen.items():
        if number > SHOWN_PROBLEMS:
            place = Location(path, None, field)
            echo(f"{severity}: {place}: {number - SHOWN_PROBLEMS} more like these; --format json lists them")
    for problem in last:
        echo(f"{problem.severity}: {problem}")
    found = Counter[str]()
    for problem in problems:
        found[problem.severity] += problem.number
    counts = ", ".join(
        count(number, _SINGULAR[what], what) if what in _SINGULAR else f"{number} {what}"
        for what, number in report["counts"].items()
    )
    echo(
        f"{report['file']}: {report['format'] or 'no format'}: {count(found['error'], 'error')}, "
        f"{count(found['warning'], 'warning')}" + (f"; {counts}" if counts else "")
    )
    if not report["linted"] and report["counts"].get("rows", 0) > LINTED_ROWS and not found["error"]:
        echo(f"{report['file']}: its rows were not compared with one another; --lint looks for duplicates and leaks")


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
