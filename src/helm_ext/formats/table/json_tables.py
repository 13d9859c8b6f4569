"""Tables in JSON: an object a line, a list of objects, or `{"data": [...]}`.

Rows may have different keys: what a row lacks is absent. The columns are all keys of all rows, so they are known only
after a first reading. Two profiles of other tools are objects too: `profiles` says where their rows are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from helm_ext.errors import DatasetError, DatasetSchemaError, DatasetSyntaxError, Problems, raise_for, show
from helm_ext.files import BOM, LineSource, decode, iter_json_lines, parse_json, read_source
from helm_ext.files.limits import MAX_LINE_BYTES, format_size
from helm_ext.files.opening import Reader
from helm_ext.formats.table.table import LINES, Cells, Table, plain_suffix

__all__ = ["JsonLinesTable", "JsonListTable", "JsonObjectTable", "open_json"]

_PEEK_BYTES = 1 << 20
"""What is looked at to tell JSON Lines from one document."""


def open_json(path: str) -> Table:
    """Open a file of JSON by what it begins with, whatever it is called. Raises DatasetError."""
    start = _peek(path)
    text = start.removeprefix(BOM).lstrip()
    if text.startswith(b"["):
        return JsonListTable(path)
    first, newline, rest = text.partition(b"\n")
    if not newline and len(start) >= _PEEK_BYTES:  # a first line too long to look at
        is_lines = plain_suffix(path) in LINES
    else:
        is_alone = not rest.strip()
        is_lines = _is_object(first) and not (is_alone and _is_document(first, plain_suffix(path) in LINES))
    return JsonLinesTable(path) if is_lines else JsonObjectTable(path)


def _peek(path: str) -> bytes:
    reader = Reader(path)
    start = b""
    try:
        while len(start) < _PEEK_BYTES and (chunk := reader.read_chunk()):
            start += chunk
    finally:
        reader.close()
    return start


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _is_document(line: bytes, is_called_lines: bool) -> bool:
    """Whether the only line of a file, an object, holds rows, or columns, and is no row."""
    value = json.loads(line)
    holds_columns = bool(value) and all(isinstance(held, dict | list) for held in value.values())
    return _find_rows(value) is not None or (holds_columns and not is_called_lines)


class _JsonTable(Table):
    """What is the same for all: columns are collected from every row."""

    def __init__(self, path: str) -> None:
        """Read the file once. Raises DatasetError."""
        super().__init__(path)
        self._collect_columns()

    def _collect_columns(self) -> None:
        columns: dict[str, None] = {}
        seen = 0
        for _, cells, _ in self.rows():
            if len(cells) != seen or not columns.keys() >= cells.keys():
                columns.update(dict.fromkeys(cells))
                seen = len(cells)
        self.columns = list(columns)

    def _require_object(self, value: Any, line: int) -> Cells:
        if not isinstance(value, dict):
            raise DatasetSchemaError.at(
                self.path,
                f"expected an object, got {show(value)}",
                'each row is an object: {"question": ...}',
                line,
                code="not-an-object",
            )
        return value


class JsonLinesTable(_JsonTable):
    """One object a line."""

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Cells, str]]:  # noqa: ARG002
        """Yield (line, the object, ""). Raises DatasetError."""
        problems = Problems(self.path)
        self.lines = 0
        with LineSource(self.path) as source:
            for line, value in iter_json_lines(_without_bom(source), self.path, problems):
                self.lines += 1
                if problems.errors:
                    break
                yield line, self._require_object(value, line), ""
            raise_for(problems.finish())
            self._digest = source.digest


def _without_bom(source: LineSource) -> Iterator[tuple[int, bytes]]:
    for number, line in source:
        yield number, line.removeprefix(BOM) if number == 1 else line


class JsonListTable(_JsonTable):
    """A list of objects, read one by one."""

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Cells, str]]:  # noqa: ARG002
        """Yield (line at which the object begins, the object, ""). Raises DatasetError."""
        self.lines = 0
        reader = Reader(self.path)
        try:
            for line, value in _ListItems(self.path, reader):
                self.lines += 1
                yield line, self._require_object(value, line), ""
            self._digest = reader.finish()
        finally:
            reader.close()


class _ListItems:
    """The items of one JSON list, in memory for one of them.

    A quick parser finds where an item ends; the strict one (`parse_json`) then reads it alone.
    """

    def __init__(self, path: str, reader: Reader) -> None:
        self._path = path
        self._reader = reader
        self._text = ""
        self._at = 0
        self._line = 1
        self._pending = b""
        self._is_whole = False

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        self._skip_space()
        self._expect("[")
        self._skip_space()
        if self._peek() == "]":
            self._at += 1
        else:
            while True:
                yield self._line, self._read_item()
                self._skip_space()
                if self._peek() == "]":
                    self._at += 1
                    break
                self._expect(",")
                self._skip_space()
        self._skip_space()
        if self._peek():
            raise self._error("there is more after the end of the list")

    def _read_item(self) -> Any:
        scan = json.JSONDecoder(strict=True).raw_decode
        line = self._line
        while True:
            try:
                _, end = scan(self._text, self._at)
            except (ValueError, RecursionError):
                end = None
            # A number at the end of what was read may go on.
            if end is not None and (end < len(self._text) or self._is_whole):
                break
            if len(self._text) - self._at > MAX_LINE_BYTES:
                message = f"an item of the list is longer than {format_size(MAX_LINE_BYTES)}"
                raise DatasetSyntaxError.at(self._path, message, line=line, code="too-large")
            if not self._read_more(len(self._text) - self._at):
                end = len(self._text)
                break
        data = self._text[self._at : end].encode()
        value = parse_json(data, self._path, line)  # raises for an item that does not end, with its place
        self._line += data.count(b"\n")
        self._at = end
        return value

    def _read_more(self, at_least: int = 0) -> bool:
        """Read on, twice as much as stands there so that long items are not looked at too often; False at the end."""
        chunks = [self._pending]
        size = 0
        while size <= at_least:
            chunk = self._reader.read_chunk()
            if not chunk:
                self._is_whole = True
                break
            chunks.append(chunk)
            size += len(chunk)
        data = b"".join(chunks)
        keep = 0 if self._is_whole else _incomplete(data)
        self._pending = data[len(data) - keep :]
        self._text = self._text[self._at :] + decode(data[: len(data) - keep], self._path, self._line)
        self._text = self._text.removeprefix("\ufeff") if self._line == 1 else self._text
        self._at = 0
        return size > 0

    def _skip_space(self) -> None:
        while True:
            rest = self._text
            at = self._at
            while at < len(rest) and rest[at] in " \t\r\n":
                at += 1
            self._line += rest.count("\n", self._at, at)
            self._at = at
            if at < len(rest) or self._is_whole or not self._read_more():
                return

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            found = show(self._text[self._at : self._at + 20]) if self._peek() else "the end of the file"
            raise self._error(f"expected {show(character)}, got {found}")
        self._at += 1

    def _error(self, message: str) -> DatasetError:
        return DatasetSyntaxError.at(self._path, f"not JSON: {message}", line=self._line, code="not-json")


def _incomplete(data: bytes) -> int:
    """Return how many bytes at the end begin a character of UTF-8 that is not complete."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            return 0
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < length else 0
    return 0


class JsonObjectTable(_JsonTable):
    """One object that holds the rows: read as a whole, as every document is."""

    names_lines = False

    def __init__(self, path: str) -> None:
        """Read the file. Raises DatasetError."""
        source = read_source(path)
        value = parse_json(source.data.removeprefix(BOM), path)
        rows = _find_rows(value)
        if rows is None:
            _refuse(path, value)
        self._rows = rows
        super().__init__(path)
        self._digest = source.digest

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Cells, str]]:  # noqa: ARG002
        """Yield (position, the object, ""). Raises DatasetError."""
        self.lines = len(self._rows)
        for number, value in enumerate(self._rows, 1):
            yield number, self._require_object(value, number), ""


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
