"""Problems as they are found: memory is bounded however wrong a file is, and lines are looked up at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from helm_ext.errors.model import (
    DatasetError,
    DatasetSchemaError,
    Location,
    Path,
    Problem,
    Severity,
    count,
    format_path,
)

KEPT_PROBLEMS = 1_000
"""This many problems of one code are kept; the rest is counted."""


@dataclass(slots=True)
class _Entry:
    problem: Problem
    path: Path | None = None
    """Where the problem is in the document, while its line is not known."""
    also: Path = ()


@dataclass(slots=True)
class _Found:
    errors: int = 0
    warnings: int = 0
    entries: list[_Entry] = field(default_factory=list)
    kept: dict[tuple[Severity, str], int] = field(default_factory=dict)
    left_out: dict[tuple[Severity, str], int] = field(default_factory=dict)


class Problems:
    """Collects errors and warnings of one file, or of several that belong together.

        problems = Problems("x.json")
        problems.add(Location("x.jsonl", 7, "id"), "must not be empty", code="id-empty")
        problems.add(("rows", 3, "id"), "must not be empty", code="id-empty")  # its line: when all is read
        raise_for(problems.finish(locate))

    Of each code the first 1,000 are kept. One more problem then counts the others (`Problem.number`).
    """

    def __init__(self, path: str = "") -> None:
        self.path = path
        """The document in which places given as paths are."""
        self._found = _Found()

    @property
    def errors(self) -> int:
        """How many errors were added, those that were not kept included."""
        return self._found.errors

    @property
    def warnings(self) -> int:
        """How many warnings were added, those that were not kept included."""
        return self._found.warnings

    def add(
        self,
        place: Location | Path,
        message: str,
        hint: str = "",
        *,
        code: str,
        kind: type[DatasetError] = DatasetSchemaError,
        severity: Severity = "error",
        line: int | None = None,
        also: Path = (),
    ) -> None:
        """Add a problem at `place`: a Location, or a path in the document, with its `line` where that is known.

        `kind` is the exception that an error becomes. `also` is a second place in the document, the last that the
        message names: its line is added there.
        """
        location = place if isinstance(place, Location) else Location(self.path, line, format_path(place))
        unknown = place if not isinstance(place, Location) and line is None and place else None
        self._keep(_Entry(Problem(message, location, hint, severity, code, kind), unknown, also))

    def warn(
        self,
        place: Location | Path,
        message: str,
        hint: str = "",
        *,
        code: str,
        line: int | None = None,
        also: Path = (),
    ) -> None:
        """Add a warning."""
        self.add(place, message, hint, code=code, severity="warning", line=line, also=also)

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add problems that were found elsewhere, with their places."""
        for problem in problems:
            self._keep(_Entry(problem))

    def merge(self, other: Problems) -> None:
        """Add what was found in the part of the file that follows. What `other` is given later on goes here too."""
        found = other._found
        for entry in found.entries:
            self._keep(entry)
        for key, number in found.left_out.items():
            self._leave_out(*key, number)
        other._found = self._found

    def count_more(self, code: str, number: int) -> None:
        """Count warnings of a code beyond those that are kept, which were added before: their messages are not made."""
        if number > 0:
            self._leave_out("warning", code, number)

    def finish(self, locate: Callable[[Sequence[Path]], Mapping[Path, int]] | None = None) -> list[Problem]:
        """Return all problems: errors, then warnings, each in the order of the files, and last what was not kept.

        `locate` returns the lines of paths, such as `files.locate` does; it is called once, and only if there are any.
        """
        entries = self._found.entries
        paths = [path for entry in entries for path in (entry.path, entry.also) if path]
        lines = locate(paths) if locate is not None and paths else {}
        found = [_place(entry, lines) for entry in entries]
        found.sort(key=lambda problem: (problem.severity, problem.location.path, problem.location.line or 0))
        first = {(problem.severity, problem.code): problem for problem in reversed(found)}
        for key in self._found.kept:
            number = self._found.left_out.get(key, 0)
            if not number:
                continue
            sample = first[key]
            more = count(number, f"more {sample.severity}")
            found.append(replace(sample, message=f"... and {more} like these ({sample.code})", hint="", number=number,
                                 location=Location(sample.location.path)))  # fmt: skip
        return sorted(found, key=lambda problem: problem.severity)

    def _keep(self, entry: _Entry) -> None:
        found, problem = self._found, entry.problem
        key = (problem.severity, problem.code)
        kept = found.kept.get(key, 0)
        if kept >= KEPT_PROBLEMS:
            self._leave_out(*key, problem.number)
            return
        self._count(problem.severity, problem.number)
        found.kept[key] = kept + 1
        found.entries.append(entry)

    def _leave_out(self, severity: Severity, code: str, number: int) -> None:
        self._count(severity, number)
        key = (severity, code)
        self._found.left_out[key] = self._found.left_out.get(key, 0) + number

    def _count(self, severity: Severity, number: int) -> None:
        if severity == "error":
            self._found.errors += number
        else:
            self._found.warnings += number


def _place(entry: _Entry, lines: Mapping[Path, int]) -> Problem:
    problem = entry.problem
    if entry.path is not None and entry.path in lines:
        problem = replace(problem, location=replace(problem.location, line=lines[entry.path]))
    if entry.also in lines:
        problem = replace(problem, message=f"{problem.message} (line {lines[entry.also]})")
    return problem
