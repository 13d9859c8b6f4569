"""CSV and TSV: every cell is a text, as it stands in the file.

Nothing is guessed from values: `NA` and `null` are words, `007` keeps its zeros. The delimiter is the one that the
header line has most of. Quotes are doubled inside quotes (RFC 4180); a line break inside quotes is part of the cell.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from helm_ext.errors import DatasetError, DatasetSchemaError, DatasetSyntaxError, count, show
from helm_ext.files import BOM, MAX_LINE_BYTES, decode
from helm_ext.files.opening import Reader
from helm_ext.formats.table.table import Table, TableRow, plain_suffix

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""What `sep=` says, to the character."""

SPREADSHEET_CELL = 32_767
"""Characters of a cell, beyond which spreadsheets cut without a word."""

UNNAMED = "(unnamed)"
"""What the first column is called where it has no name, as pandas writes its index; others with their number."""


class DelimitedTable(Table):
    """A CSV or TSV file."""

    is_text = True

    def __init__(self, path: str, *, sep: str | None = None, header: Literal["yes", "no"] = "yes") -> None:
        """Read the header. `sep` is a key of DELIMITERS, or a character. Raises DatasetError."""
        super().__init__(path)
        self._has_header = header == "yes"
        self._delimiter = DELIMITERS.get(sep, sep) if sep is not None else self._find_delimiter()
        first = next(self._records(), None)
        if first is None:
            raise DatasetSchemaError.at(path, "there are no rows", code="no-rows")
        names = [name.strip() for name in first[1]]
        if self._has_header:
            names = self._name_all(names, first[0])
            self._require_names(names, first[0])
            self.columns = names
        else:
            self.columns = [str(number) for number in range(1, len(names) + 1)]

    def read(self, columns: Sequence[str] | None = None) -> Iterator[TableRow]:  # noqa: ARG002
        """Yield (line at which the row begins, its cells, ""). Raises DatasetError."""
        names = self.columns
        width = len(names)
        cut = empty = 0
        records = self._records()
        if self._has_header:
            next(records)
        for line, cells in records:
            if not any(cells) and len(cells) == width > 1:
                empty += 1
                continue
            if len(cells) != width:
                self._refuse_ragged(line, cells)
            if max(map(len, cells)) == SPREADSHEET_CELL:
                cut += 1
            yield line, dict(zip(names, cells, strict=True)), ""
        self.notes = [f"{count(empty, 'row')} of empty cells left out"] if empty else []
        if cut:
            said = f"{count(cut, 'row has', 'rows have')} a cell of {SPREADSHEET_CELL:,} characters"
            self.notes.append(f"{said}: a spreadsheet may have cut it off there")

    def _refuse_ragged(self, line: int, cells: Sequence[str]) -> None:
        width = len(self.columns)
        where = "the header has" if self._has_header else "the first row has"
        raise DatasetSchemaError.at(
            self.path,
            f"{count(len(cells), 'cell')}, and {where} {width}: {show(self._delimiter.join(cells))}",
            f"a cell that holds {show(self._delimiter)} or a line break stands in double quotes",
            line,
            code="ragged-row",
        )

    def _name_all(self, names: Sequence[str], line: int) -> list[str]:
        """Return names for the columns that have none: an index in front, a delimiter at the end of every line.

        Raises DatasetError for a first line that is none.
        """
        if names[0].casefold().startswith("sep=") and len(names) < 3:
            message = "the first line is one for spreadsheets, and no header"
            raise DatasetSchemaError.at(self.path, message, "remove it", line, code="header")
        named = [names[0] or UNNAMED, *names[1:]]
        if len(named) > 2 and not named[-1]:
            named[-1] = f"(unnamed {len(named)})"
        return named

    def _require_names(self, names: Sequence[str], line: int) -> None:
        """Raise DatasetError for a header that does not name each column."""
        doubled = [name for name, number in Counter(names).items() if number > 1]
        if doubled or "" in names:
            wrong = f"{show(doubled[0])} twice" if doubled and doubled[0] else "a column without a name"
            hint = "give each column a name of its own; header=no where the first line is a row already"
            raise DatasetSchemaError.at(self.path, f"the header has {wrong}", hint, line, code="header")

    def _find_delimiter(self) -> str:
        """Return the delimiter that the header has most of. Raises DatasetError for a tie."""
        header = "".join(next(self._text_lines(), "").split('"')[::2])  # without what is quoted
        found = {name: header.count(character) for name, character in DELIMITERS.items()}
        if plain_suffix(self.path) in (".tsv", ".tab") and found["tab"]:
            return DELIMITERS["tab"]
        most = max(found.values())
        best = [name for name, number in found.items() if number == most]
        if len(best) > 1 and most:
            said = " and ".join(f"{show(DELIMITERS[name])}" for name in best)
            raise DatasetSchemaError.at(
                self.path,
                f"what stands between the cells cannot be told: the header has {most} of each of {said}",
                f"say which: {' or '.join(f'sep={name}' for name in best)}",
                1,
                code="delimiter",
            )
        return DELIMITERS[best[0]] if most else ","

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, cells) of every record that is not a blank line. Raises DatasetError."""
        # Python's limit of 131,072 characters a cell is one for the whole process: it is raised, and put back.
        before = csv.field_size_limit(MAX_LINE_BYTES)
        line = 1
        try:
            parser = csv.reader(self._text_lines(), delimiter=self._delimiter, strict=True)
            for cells in parser:
                if cells:
                    yield line, cells
                line = parser.line_num + 1
        except csv.Error as error:
            raise self._broken(str(error), line) from None
        finally:
            csv.field_size_limit(before)

    def _broken(self, said: str, line: int) -> DatasetError:
        """Return the error about a record that begins in this line."""
        message, hint, code = next(
            (known for words, known in _BROKEN.items() if words in said),
            (f"the row cannot be read: {said}", "", "syntax"),
        )
        return DatasetSyntaxError.at(self.path, message, hint, line, code=code)

    def _text_lines(self) -> Iterator[str]:
        """Yield the lines with their ends. After the last, the digest is known."""
        reader = Reader(self.path)
        try:
            number = size = 0
            pending: list[bytes] = []
            while chunk := reader.read_chunk():
                lines = chunk.split(b"\n")
                if len(lines) > 1:
                    lines[0] = b"".join([*pending, lines[0]])
                    pending, size = [], 0
                last = lines.pop()
                pending.append(last)
                size += len(last)
                if size > MAX_LINE_BYTES:
                    message = f"the line is longer than {MAX_LINE_BYTES:,} bytes"
                    raise DatasetSyntaxError.at(self.path, message, line=number + 1, code="too-large")
                for data in lines:
                    number += 1
                    yield self._decode(data, number) + "\n"
            if size:
                yield self._decode(b"".join(pending), number + 1)
            self._digest = reader.finish()
        finally:
            reader.close()

    def _decode(self, data: bytes, number: int) -> str:
        if number == 1:
            data = data.removeprefix(BOM)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return decode(data, self.path, number)  # raises, and says what is wrong


_BROKEN = {
    "unexpected end of data": ("a double quote opens here that none closes", "", "quotes"),
    "expected after": (
        "there is text after the double quote that ends a cell", 'a double quote inside quotes is written twice: ""',
        "quotes",
    ),
    "new-line character": (
        "lines end with a carriage return alone", r"save the file with \n at the end of lines", "line-ends",
    ),
    "field limit": (f"a cell is longer than {MAX_LINE_BYTES:,} characters", "is a double quote missing?", "too-large"),
}  # fmt: skip
"""What Python's parser says, to message, hint and code."""
