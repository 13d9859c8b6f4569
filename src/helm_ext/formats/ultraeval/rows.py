"""The rows of an UltraEval data file: one JSON object a line, as it stands (formats.md, section 2).

Keys differ from row to row, so rows are never read as a table: that would invent keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetSchemaError, Location, Problem, raise_for, show
from helm_ext.files import LineSource, iter_json_lines

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Rows", "read_rows"]

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


def read_rows(path: Path) -> Rows:
    """Read a JSON Lines file, plain or compressed. Raises DatasetError with every line that is no JSON object."""
    problems: list[Problem] = []
    rows: list[Row] = []
    lines: list[int] = []
    with LineSource(path) as source:
        for number, row in iter_json_lines(source, str(path), problems, blank="error"):
            if isinstance(row, dict):
                rows.append(row)
                lines.append(number)
            else:
                message = f"expected a JSON object, got {show(row)}"
                place = Location(str(path), number)
                problems.append(Problem(message, place, code="not-object", kind=DatasetSchemaError))
        digest = source.digest
    if not rows and not problems:
        problems.append(Problem("the file holds no rows", Location(str(path)), code="no-rows", kind=DatasetSchemaError))
    raise_for(problems)
    return Rows(path, digest, tuple(rows), tuple(lines))
