"""Problems of one file, collected; their line numbers are looked up at the end, and only if there are any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from helm_ext.errors import DatasetError, DatasetIntegrityError, DatasetSchemaError, Location, Problem, Severity
from helm_ext.formats.request_states.wording import Path, format_path

__all__ = ["INTEGRITY", "MAX_PROBLEMS", "Report"]

MAX_PROBLEMS = 1_000
"""A file that is wrong in every one of a million rows is reported with this many problems and a count."""

INTEGRITY: type[DatasetError] = DatasetIntegrityError


@dataclass(frozen=True)
class _Entry:
    path: Path
    line: int | None
    message: str
    hint: str
    code: str
    kind: type[DatasetError]
    severity: Severity
    other: Path


class Report:
    """Collects errors and warnings of one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.errors = 0
        self._entries: list[_Entry | Problem] = []

    def add(
        self,
        path: Path,
        message: str,
        hint: str = "",
        *,
        code: str,
        line: int | None = None,
        kind: type[DatasetError] = DatasetSchemaError,
        severity: Severity = "error",
        other: Path = (),
    ) -> None:
        """Add a problem at `path` in the document; `line` where it is known (JSON Lines).

        `other` is a second place, the last that the message names: its line is added there.
        """
        self._keep(_Entry(path, line, message, hint, code, kind, severity, other), severity)

    def warn(
        self, path: Path, message: str, hint: str = "", *, code: str, line: int | None = None, other: Path = ()
    ) -> None:
        """Add a warning."""
        self.add(path, message, hint, code=code, line=line, severity="warning", other=other)

    def extend(self, problems: Sequence[Problem]) -> None:
        """Add problems that were found elsewhere, with their places."""
        for problem in problems:
            self._keep(problem, problem.severity)

    def _keep(self, entry: _Entry | Problem, severity: Severity) -> None:
        if severity == "error":
            self.errors += 1
            if self.errors > MAX_PROBLEMS:
                return
        self._entries.append(entry)

    def finish(self, locate: Callable[[Sequence[Path]], dict[Path, int]]) -> list[Problem]:
        """Return all problems, errors first, each with its line."""
        paths = [
            entry.path for entry in self._entries if isinstance(entry, _Entry) and entry.line is None and entry.path
        ]
        paths += [entry.other for entry in self._entries if isinstance(entry, _Entry) and entry.other]
        lines = locate(paths) if paths else {}
        problems = [entry if isinstance(entry, Problem) else self._to_problem(entry, lines) for entry in self._entries]
        if self.errors > MAX_PROBLEMS:
            more = self.errors - MAX_PROBLEMS
            problems.append(Problem(f"... and {more} more errors", Location(self.path), code="more", number=more))
        return sorted(
            problems,
            key=lambda problem: (problem.severity != "error", problem.code == "more", problem.location.line or 0),
        )

    def _to_problem(self, entry: _Entry, lines: dict[Path, int]) -> Problem:
        line = entry.line if entry.line is not None else lines.get(entry.path)
        return Problem(
            f"{entry.message} (line {lines[entry.other]})" if entry.other else entry.message,
            Location(self.path, line, format_path(entry.path)),
            entry.hint,
            entry.severity,
            entry.code,
            entry.kind,
        )
