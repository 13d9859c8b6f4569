"""The rows of an UltraEval data file: one JSON object a line, as it stands (docs/ultraeval.md).

Keys differ from row to row, so rows are never read as a table: that would invent keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetSchemaError, Problem, raise_for, show
from helm_ext.files import LineSource, iter_json_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Row = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """A data file, read once."""

    path: Path
    sha256: str
    """SHA-256 of the bytes on disk, lower-case hex."""
    rows: tuple[Row, ...]
    lines: tuple[int, ...]
    """Line number of each row, from 1."""


def read_rows(path: Path, *, allow_nan: bool = False) -> Rows:
    """Read a JSON Lines file, plain or compressed. Raises DatasetError with every line that is no JSON object.

    `allow_nan`: NaN and Infinity are numbers, as Python writes them.
    """
    problems: list[Problem] = []
    with LineSource(path) as source:
        found = list(iter_objects(source, path, problems, allow_nan=allow_nan))
        digest = source.digest
    if not found and not problems:
        problems.append(no_rows(path))
    raise_for(problems)
    return Rows(path, digest, tuple(row for _, row in found), tuple(line for line, _ in found))


def iter_objects(
    source: LineSource, path: Path, problems: list[Problem], *, allow_nan: bool = False
) -> Iterator[tuple[int, Row]]:
    """Yield (line, object) of a JSON Lines file; a line that is no object is a problem."""
    for number, row in iter_json_lines(source, str(path), problems, blank="error", allow_nan=allow_nan):
        if isinstance(row, dict):
            yield number, row
        else:
            message = f"expected a JSON object, got {show(row)}"
            problems.append(DatasetSchemaError.problem_at(path, message, line=number, code="not-object"))


def no_rows(path: Path) -> Problem:
    """Return the problem of a file without rows."""
    return DatasetSchemaError.problem_at(path, "the file holds no rows", code="no-rows")
