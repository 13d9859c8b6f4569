"""Tables in JSON: an object a line, a list of objects, or an object that holds rows (`{"data": [...]}`).

Rows may have different keys: what a row lacks is absent. The columns are all keys of all rows, so they are known only
when the file was read. Some tools write objects too: `_find_rows` says where their rows are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from helm_ext.errors import DatasetSchemaError, Problems, raise_for, show
from helm_ext.files import BOM, LineSource, iter_json_lines, parse_json, read_source
from helm_ext.files.opening import Reader
from helm_ext.formats.table.table import LINES, Table, TableRow, plain_suffix

_PEEK_BYTES = 1 << 20
"""What is looked at to tell JSON Lines from one document."""


class JsonTable(Table):
    """A file of JSON, told apart by what it begins with, whatever it is called."""

    def __init__(self, path: str) -> None:
        """Read the file. Raises DatasetError."""
        super().__init__(path)
        self.rows()

    def read(self, columns: Sequence[str] | None = None) -> Iterator[TableRow]:  # noqa: ARG002
        """Yield (line or position, the object, ""). Raises DatasetError."""
        found: dict[str, None] = {}
        seen = 0
        for line, value in self._lines() if _is_lines(self.path) else self._items():
            if not isinstance(value, dict):
                message, hint = f"expected an object, got {show(value)}", 'each row is an object: {"question": ...}'
                raise DatasetSchemaError.at(self.path, message, hint, line, code="not-an-object")
            if len(value) != seen or not found.keys() >= value.keys():
                found.update(dict.fromkeys(value))
                seen = len(value)
            yield line, value, ""
        self.columns = list(found)

    def _lines(self) -> Iterator[tuple[int, Any]]:
        problems = Problems(self.path)
        with LineSource(self.path) as source:
            lines = ((number, line.removeprefix(BOM) if number == 1 else line) for number, line in source)
            for line, value in iter_json_lines(lines, self.path, problems):
                if problems.errors:
                    break
                yield line, value
            raise_for(problems.finish())
            self._digest = source.digest

    def _items(self) -> Iterable[tuple[int, Any]]:
        """Return the rows of one document: of a list with their lines, else with their positions."""
        source = read_source(self.path)
        self._digest = source.digest
        data = source.data.removeprefix(BOM)
        if data.lstrip().startswith(b"["):
            return self._items_of_list(data)
        value = parse_json(data, self.path)
        rows = _find_rows(value)
        return enumerate(_refuse(self.path, value) if rows is None else rows, 1)

    def _items_of_list(self, data: bytes) -> Iterator[tuple[int, Any]]:
        try:
            items = msgspec.json.decode(data, type=list[msgspec.Raw])
        except (msgspec.MsgspecError, RecursionError):
            items = []
            for value in parse_json(data, self.path):  # raises, and says where
                yield 1, value
        line, at = 1, 0
        for item in items:
            start = data.index(item, at)  # commas and white space are between them
            line += data.count(b"\n", at, start)
            yield line, parse_json(bytes(item), self.path, line)
            at = start + len(bytes(item))
            line += data.count(b"\n", start, at)


def _is_lines(path: str) -> bool:
    """Whether a file has one object a line. Raises DatasetError."""
    reader = Reader(path)
    start = b""
    try:
        while len(start) < _PEEK_BYTES and (chunk := reader.read_chunk()):
            start += chunk
    finally:
        reader.close()
    first, newline, rest = start.removeprefix(BOM).lstrip().partition(b"\n")
    is_called_lines = plain_suffix(path) in LINES
    if not newline and len(start) >= _PEEK_BYTES and not first.startswith(b"["):  # too long to look at
        return is_called_lines
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict) or rest.strip():
        return isinstance(value, dict)
    holds_columns = bool(value) and all(isinstance(held, dict | list) for held in value.values())
    return _find_rows(value) is None and (is_called_lines or not holds_columns)


def _find_rows(value: Any) -> list[Any] | None:
    """Return the rows that an object holds, or None for one of another kind."""
    if not isinstance(value, dict):
        return None
    for key in ("data", "testCases"):
        if isinstance(value.get(key), list):
            return list(value[key])
    if len(value) == 1:
        [held] = value.values()
        if isinstance(held, list) and held and all(isinstance(row, dict) for row in held):
            return held
    results = value.get("results")  # of promptfoo: in an object, with what it says of the whole; once without
    results = results.get("results") if isinstance(results, dict) else results
    if isinstance(results, list) and all(isinstance(row, dict) and "testCase" in row for row in results):
        return list(results)
    details = value.get("details")  # of OpenCompass's results: rows by number, beside their "type"
    if isinstance(details, dict):
        rows = {key: row for key, row in details.items() if key.isdecimal() and isinstance(row, dict)}
        is_asked = bool(rows) and all("prompt" in row and "predictions" in row for row in rows.values())
        return [{"idx": key, **row} for key, row in rows.items()] if is_asked else None
    if value and all(key.isdecimal() and isinstance(row, dict) for key, row in value.items()):
        is_prediction = all("prediction" in row or "origin_prompt" in row for row in value.values())
        return [{"idx": key, **row} for key, row in value.items()] if is_prediction else None
    return None


def _refuse(path: str, value: Any) -> NoReturn:
    message = f"expected rows, got {show(value)}"
    hint = "write a list of objects, or one object a line"
    if isinstance(value, Mapping) and value:
        if any(key.startswith("label: ") for row in value.values() if isinstance(row, Mapping) for key in row):
            message = "these are OpenCompass's perplexities of options, not predictions"
            hint = "score the files of a task that generates (`gen`)"
        elif all(isinstance(column, Mapping | list) for column in value.values()):
            message = "the file is laid out by columns, not by rows"
            hint = 'write a list of objects, one a row; in pandas: to_json(FILE, orient="records", lines=True)'
        else:
            message = f"expected rows, got one object with the keys {show(list(value))}"
    raise DatasetSchemaError.at(path, message, hint, code="no-rows")
