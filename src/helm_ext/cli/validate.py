"""`helm-ext validate`: every problem of a file at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from helm_ext.errors import DatasetError, HelmExtError, Location, Problem
from helm_ext.formats import FORMATS, Format, detect

__all__ = ["validate"]

NOT_CHECKED = "not checked: whether prompts fit a model's context window, and whether the answers are true"


class Output(str, Enum):
    """How problems are printed."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


class FormatName(str, Enum):
    """A format, where it cannot be told from the file."""

    ADAPTER_SPEC = "adapter_spec"
    ULTRAEVAL = "ultraeval"
    INNODATA = "innodata"


def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files to check; any of the three formats.")],
    output: Annotated[Output, typer.Option("--format", help="text, json, or github (workflow annotations).")] = (
        Output.TEXT
    ),
    kind: Annotated[FormatName | None, typer.Option("--as", help="Read the files as this format.")] = None,
    no_exec: Annotated[bool, typer.Option("--no-exec", help="UltraEval: check scripts without running them.")] = False,
) -> None:
    """Check dataset files: all problems at once, with line, field and a hint. Needs no model and no network.

    Exit code 0: no errors (there may be warnings). 1: errors. 2: wrong usage.
    """
    reports = []
    progress = Console(stderr=True)
    for file in files:
        with progress.status(f"checking {file}"):
            reports.append(check_file(file, FORMATS[kind.value] if kind else None, no_exec=no_exec))
    print_reports(reports, output)
    if any(problem.severity == "error" for report in reports for problem in report["problems"]):
        raise typer.Exit(1)


def check_file(file: Path, format_: Format | None, *, no_exec: bool) -> dict[str, Any]:
    """Return `{file, format, problems, counts}` for one file."""
    try:
        format_ = format_ or detect(file)
        options = {"execute": False} if no_exec and format_.name == "ultraeval" else {}
        problems, counts = format_.module.check(file, **options)
    except DatasetError as error:
        problems, counts = list(error.problems) or [Problem(str(error), Location(str(file)))], {}
    except (HelmExtError, OSError) as error:
        problems, counts = [Problem(str(error), Location(str(file)))], {}
    return {"file": str(file), "format": format_.name if format_ else "", "problems": problems, "counts": counts}


def print_reports(reports: Sequence[dict[str, Any]], output: Output) -> None:
    """Write all reports to standard output."""
    if output is Output.JSON:
        typer.echo(json.dumps([{**r, "problems": [_to_json(p) for p in r["problems"]]} for r in reports], indent=2))
        return
    for report in reports:
        for problem in report["problems"]:
            typer.echo(_to_github(problem) if output is Output.GITHUB else f"{problem.severity}: {problem}")
        if output is Output.TEXT:
            errors = sum(problem.severity == "error" for problem in report["problems"])
            counts = ", ".join(f"{count} {what}" for what, count in report["counts"].items())
            typer.echo(
                f"{report['file']}: {report['format']}: {errors} errors, {len(report['problems']) - errors} warnings"
                + (f"; {counts}" if counts else "")
            )
    if output is Output.TEXT:
        typer.echo(NOT_CHECKED)


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
    """One workflow command, escaped as GitHub asks: %, CR and LF everywhere, `:` and `,` in properties."""
    location = problem.location
    text = " ".join(part for part in (location.field and f"{location.field}:", problem.message, problem.hint) if part)
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
