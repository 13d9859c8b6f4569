"""What is right, from a table joined on custom_id: a JSON object, or rows in JSON, JSON Lines or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helm_ext import files
from helm_ext.errors import DatasetError, DatasetIntegrityError, show
from helm_ext.formats.imported.values import CellError, parse_list, spells_list

ID, GOLD = "custom_id", "gold"


@dataclass
class Golds:
    """Golds by custom_id, as the table has them."""

    path: Path
    digest: str
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    are_cells: bool = False
    """Whether they are cells of CSV or TSV, where a list is spelt as text."""

    def read_lists(self, gold_kind: str | None, *, has_options: bool) -> None:
        """Read the cells that spell lists: of accepted texts, or where there are options also of positions and flags.

        `gold_kind=text` leaves texts as they are. Raises DatasetError for a list whose parts cannot be told apart, and
        where all golds of rows without options are lists of numbers: each may be one answer.
        """
        if not self.are_cells or (gold_kind == "text" and not has_options):
            return
        spelt = {custom_id: gold for custom_id, gold in self.values.items() if spells_list(gold)}
        lists = {custom_id: self._parse(custom_id) for custom_id in spelt}
        may_be_numbers = has_options or gold_kind == "list"
        if lists and len(lists) == len(self.values) and not may_be_numbers:
            of_numbers = [one for one in lists.values() if one and not any(isinstance(item, str) for item in one)]
            if len(of_numbers) == len(lists):
                message = "every gold is a list of numbers: one answer, or several that are accepted?"
                hint = "gold_kind=text where a list is one answer, gold_kind=list where any of it is"
                raise DatasetIntegrityError.at(self.path, message, hint, code="gold")
        for custom_id, items in lists.items():
            if items is not None and (may_be_numbers or all(isinstance(item, str) for item in items)):
                self.values[custom_id] = items

    def _parse(self, custom_id: str) -> list[Any] | None:
        """Return the list that a cell spells; None for a text that only stands in brackets."""
        try:
            value = parse_list(self.values[custom_id])
        except CellError as error:
            if error.is_of_numpy:
                raise DatasetIntegrityError.at(
                    self.path, str(error), error.hint, self.lines[custom_id], code="gold"
                ) from None
            return None
        return value if isinstance(value, list) else None

    def add(self, custom_id: Any, gold: Any, line: int) -> None:
        """Take one. Raises DatasetError for an id that is no text, or that stands there twice."""
        if not isinstance(custom_id, str) or not custom_id:
            raise DatasetIntegrityError.at(
                self.path, f"{ID}: expected a text, got {show(custom_id)}", line=line, code="gold"
            )
        if custom_id in self.values:
            first = self.lines[custom_id]
            raise DatasetIntegrityError.at(
                self.path, f"{show(custom_id)} stands on line {first} already", line=line, code="gold"
            )
        self.values[custom_id] = gold
        self.lines[custom_id] = line


def read_golds(path: Path) -> Golds:
    """Return the golds of a table. Raises DatasetError."""
    source = files.read_source(path)
    data = source.data.removeprefix(files.BOM)
    golds = Golds(path, source.digest, are_cells=data.lstrip()[:1] not in (b"{", b"["))
    rows = _read_csv(path, files.decode(data, str(path))) if golds.are_cells else _read_json(path, data)
    for line, row in rows:
        if not isinstance(row, dict) or ID not in row:
            message = f"expected an object with {ID} and {GOLD}, got {show(row)}"
            raise DatasetIntegrityError.at(path, message, line=line, code="gold")
        others = [key for key in row if key != ID]
        key = GOLD if GOLD in row else others[0] if len(others) == 1 else ""
        if not key:
            message = f"which column is the gold cannot be told: {', '.join(map(show, others)) or 'there is none'}"
            raise DatasetIntegrityError.at(path, message, f"call it {GOLD}", line, code="gold")
        golds.add(row[ID], row[key], line)
    if not golds.values:
        raise DatasetIntegrityError.at(path, "there are no golds", code="gold")
    return golds


def _read_json(path: Path, data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a JSON file: of a list, of an object of golds, or an object a line."""
    try:
        value = files.parse_json(data, str(path))
    except DatasetError:
        lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
        if len(lines) < 2 or lines[0][1].lstrip()[:1] != b"{":
            raise
        yield from ((number, files.parse_json(line, str(path), number)) for number, line in lines)
        return
    if isinstance(value, dict):
        is_row = {ID, GOLD} <= value.keys()
        value = [value] if is_row else [{ID: custom_id, GOLD: gold} for custom_id, gold in value.items()]
    yield from enumerate(value, 1)


def _read_csv(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a CSV or TSV file; cells are texts."""
    head = text.partition("\n")[0]
    csv.field_size_limit(1 << 30)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count), strict=True)
    try:
        columns = next(reader)
        for cells in reader:
            line = reader.line_num
            if cells and len(cells) != len(columns):
                message = f"{len(cells)} cells, and the first line has {len(columns)}"
                raise DatasetIntegrityError.at(path, message, line=line, code="gold")
            if cells:
                yield line, dict(zip(columns, cells, strict=True))
    except csv.Error as error:
        raise DatasetIntegrityError.at(path, f"no CSV: {error}", line=reader.line_num, code="gold") from error
