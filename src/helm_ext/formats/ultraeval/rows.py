"""The rows of an UltraEval data file: one JSON object a line, as it stands (formats.md, section 2).

Keys differ from row to row, so rows are never read as a table: that would invent keys.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helm_ext.errors import (
    DatasetNotFoundError,
    DatasetSchemaError,
    DatasetSyntaxError,
    Location,
    Problem,
    raise_for,
    show,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Rows", "read_rows"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """A data file, read once."""

    path: Path
    sha256: str
    rows: tuple[Row, ...]
    lines: tuple[int, ...]
    """Line number of each row, from 1."""


def read_rows(path: Path) -> Rows:
    """Read a JSON Lines file. Raises DatasetError with every line that is no JSON object."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DatasetNotFoundError(f"{path}: no such file") from None
    except OSError as error:
        raise DatasetNotFoundError(f"{path}: cannot be read: {error.strerror}") from None
    problems: list[Problem] = []
    rows: list[Row] = []
    lines: list[int] = []
    body = content.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n \t")
    for number, line in enumerate(body.split(b"\n") if body else [], start=1):
        row = _parse(line, Location(str(path), number), problems)
        if row is not None:
            rows.append(row)
            lines.append(number)
    if not body:
        problems.append(Problem("the file holds no rows", Location(str(path)), code="no-rows", kind=DatasetSchemaError))
    raise_for(problems)
    return Rows(path, hashlib.sha256(content).hexdigest(), tuple(rows), tuple(lines))


def _parse(line: bytes, place: Location, problems: list[Problem]) -> Row | None:
    if not line.strip():
        problems.append(Problem("blank line between rows", place, code="blank-line", kind=DatasetSyntaxError))
        return None
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte 0x{line[error.start]:02x} at column {error.start + 1}"
        problems.append(Problem(message, place, "save the file as UTF-8", code="not-utf8", kind=DatasetSyntaxError))
        return None
    except json.JSONDecodeError as error:
        hint = "one JSON object on each line" if place.line == 1 else ""
        message = f"not JSON: {error.msg} at column {error.colno}"
        problems.append(Problem(message, place, hint, code="not-json", kind=DatasetSyntaxError))
        return None
    if not isinstance(row, dict):
        message = f"expected a JSON object, got {show(row)}"
        problems.append(Problem(message, place, code="not-object", kind=DatasetSchemaError))
        return None
    return row
