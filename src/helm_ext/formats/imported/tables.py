"""What every kind of table is to the rest: columns, and rows, which are read once. CSV, TSV and JSON are here.

CSV: every cell is a text, as it stands in the file. Nothing is guessed from values: `NA` and `null` are words, `007`
keeps its zeros. The delimiter is the one that the header line has most of. Quotes are doubled inside quotes (RFC 4180);
a line break inside quotes is part of the cell.

JSON: an object a line, a list of objects, or an object that holds rows (`{"data": [...]}`). Rows may have different
keys: what a row lacks is absent. The columns are all keys of all rows, so they are known only when the file was read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from helm_ext.errors import DatasetSchemaError, Problems, RunEntryError, count, raise_for, show
from helm_ext.files import BOM, LineSource, decode, iter_csv, parse_json, read_source
from helm_ext.files.store import RowStore
from helm_ext.formats.format import look
from helm_ext.formats.imported.gold import spell, to_options
from helm_ext.formats.imported.json_log import JsonRows
from helm_ext.formats.imported.row import RowError, parse_list

Cells = Mapping[str, Any]
"""Column to value. A column that a row lacks is absent."""

TableRow = tuple[int, Cells, str]
"""Line or position, cells, and name of the split."""

KEPT = 10_000
"""Rows of a table that stay in memory, if there are no more."""

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""What `sep=` says, to the character."""

SPREADSHEET_CELL = 32_767
"""Characters of a cell, beyond which spreadsheets cut without a word."""


class Table(ABC):
    """Rows of one file, or of one saved dataset."""

    is_text = False
    """Whether every cell is a text, as in CSV: then a list or a number is written as one, and an empty cell may mean
    "" or nothing."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.columns: list[str] = []
        """In the order of the file; for JSON, in that in which rows name them."""
        self.class_labels: dict[str, Sequence[str]] = {}
        """The names of a column of class labels (Hugging Face), whose cells are positions from 0."""
        self.splits: list[str] = []
        """The names of the splits, where the dataset itself has several."""
        self.digest = ""
        """The SHA-256 of what was read, 64 hex digits; known when the rows were read."""
        self.notes: list[str] = []
        """What is odd about the rows; complete when they were read."""

    @property
    def first(self) -> Cells:
        """The cells of the first row. Raises DatasetError."""
        for _, cells, _ in self.read():
            return cells
        raise DatasetSchemaError.at(self.path, "there are no rows", code="no-rows")

    def name_class(self, column: str, value: Any) -> str | None:
        """Return the name of a cell of a column of class labels; None for any other."""
        names = self.class_labels.get(column, ())
        return names[value] if isinstance(value, int) and 0 <= value < len(names) else None

    @abstractmethod
    def read(self, columns: Sequence[str] | None = None) -> Iterator[TableRow]:
        """Read the file. Only `columns` are needed, where they are given. Raises DatasetError."""


def name_columns(columns: Iterable[str]) -> str:
    """Return names in a row, those in quotes that hold more than words: "city, state" is one."""
    return ", ".join(show(name) if set(name) & set(',;|\t\n"') else name for name in columns)


def plain_suffix(path: str) -> str:
    """Return the ending of a file's name, that of a compression aside, in lower case."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in (".gz", ".zst", ".zstd"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


class DelimitedTable(Table):
    """A CSV or TSV file."""

    is_text = True

    def __init__(self, path: str, *, sep: str | None = None, header: Literal["yes", "no"] = "yes") -> None:
        """Read the header. `sep` is a key of DELIMITERS, or a character. Raises DatasetError, RunEntryError."""
        super().__init__(path)
        if sep is not None and sep not in DELIMITERS and len(sep) != 1:
            raise RunEntryError(f"sep={sep}: expected one character, or one of {', '.join(DELIMITERS)}")
        self._has_header = header == "yes"
        self._delimiter = DELIMITERS.get(sep, sep) if sep is not None else self._find_delimiter()
        for line, cells in self._records():
            names = [name.strip() for name in cells]
            self.columns = (
                self._name_columns(names, line) if self._has_header else [*map(str, range(1, len(names) + 1))]
            )
            return
        raise DatasetSchemaError.at(path, "there are no rows", code="no-rows")

    def read(self, columns: Sequence[str] | None = None) -> Iterator[TableRow]:  # noqa: ARG002
        """Yield (line at which the row begins, its cells, ""). Raises DatasetError."""
        names = self.columns
        width = len(names)
        cut = empty = joined = 0
        records = self._records()
        if self._has_header:
            next(records)
        for line, cells in records:
            if not any(cells) and len(cells) == width > 1:
                empty += 1
                continue
            if len(cells) != width:
                where = "the header has" if self._has_header else "the first row has"
                message = f"{count(len(cells), 'cell')}, and {where} {width}: {show(self._delimiter.join(cells))}"
                hint = f"a cell that holds {show(self._delimiter)} or a line break stands in double quotes"
                raise DatasetSchemaError.at(self.path, message, hint, line, code="ragged-row")
            if max(map(len, cells)) == SPREADSHEET_CELL:
                cut += 1
            if self._delimiter == "\t" and any("\t" in cell and "\n" in cell for cell in cells):
                joined = joined or line
            yield line, dict(zip(names, cells, strict=True)), ""
        self.notes = [f"{count(empty, 'row')} of empty cells left out"] if empty else []
        if joined:
            said = "a cell holds tabs and line breaks: are these rows, and the double quotes around them no quotes?"
            self.notes.append(f"line {joined}: {said}")
        if cut:
            said = f"{count(cut, 'row has', 'rows have')} a cell of {SPREADSHEET_CELL:,} characters"
            self.notes.append(f"{said}: a spreadsheet may have cut it off there")

    def _name_columns(self, names: list[str], line: int) -> list[str]:
        """Return the columns' names, with some for an index in front and for delimiters at the end of every line.

        Raises DatasetError for a header that does not name each of the others.
        """
        names[0] = names[0] or "(unnamed)"
        for at in reversed(range(2, len(names))):  # spreadsheets write columns that were used once
            if names[at]:
                break
            names[at] = f"(unnamed {at + 1})"
        hint = "give each column a name of its own; header=no where the first line is a row already"
        wrong = ""
        if names[0].casefold().startswith("sep=") and len(names) < 3:  # header=no would read it as a row
            wrong, hint = "a line for spreadsheets before it", "remove it"
        for name, number in Counter(names).items():
            if number > 1 or not name:
                wrong = wrong or (f"{show(name)} twice" if name else "a column without a name")
        if wrong:
            raise DatasetSchemaError.at(self.path, f"the header has {wrong}", hint, line, code="header")
        return names

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
            message = f"what stands between the cells cannot be told: the header has {most} of each of {said}"
            hint = f"say which: {' or '.join(f'sep={name}' for name in best)}"
            raise DatasetSchemaError.at(self.path, message, hint, 1, code="delimiter")
        return DELIMITERS[best[0]] if most else ","

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        return iter_csv(self._text_lines(), self.path, self._delimiter)

    def _text_lines(self) -> Iterator[str]:
        """Yield the lines, those within cells too, each with one end. After the last, the digest is known."""
        with LineSource(self.path) as source:
            for number, data in source:
                yield decode(data.removeprefix(BOM) if number == 1 else data, self.path, number) + "\n"
            self.digest = source.digest


class JsonTable(Table):
    """A file of JSON, told apart by what it begins with, whatever it is called."""

    def __init__(self, path: str, *, takes_object: bool = False) -> None:
        """Read the file: only then are all its columns known. Raises DatasetError.

        `takes_object`: one object is one row, where in tables it holds them.
        """
        super().__init__(path)
        self._takes_object = takes_object
        self._rows = RowStore(tuple[int, Cells], KEPT)
        found: dict[str, None] = {}
        for line, value in self._values():
            if not isinstance(value, dict):
                message, hint = f"expected an object, got {show(value)}", 'each row is an object: {"question": ...}'
                raise DatasetSchemaError.at(path, message, hint, line, code="not-an-object")
            found.update(dict.fromkeys(value))
            self._rows.add((line, value))
        self._rows.finish()
        self.columns = list(found)

    def read(self, columns: Sequence[str] | None = None) -> Iterator[TableRow]:  # noqa: ARG002
        """Yield (line or position, the object, "")."""
        return ((line, value, "") for line, value in self._rows.read(range(len(self._rows))))

    def _values(self) -> Iterator[tuple[int, Any]]:
        """Yield the rows with their lines; those that an object holds with their positions."""
        seen = look(self.path)
        if not seen.is_lines() and not seen.start.removeprefix(BOM).lstrip().startswith(b"["):
            source = read_source(self.path)
            self.digest = source.digest
            value = parse_json(source.data.removeprefix(BOM), self.path)
            rows = [value] if self._takes_object else _find_rows(value)
            yield from enumerate(_refuse(self.path, value) if rows is None else rows, 1)
            return
        problems = Problems(self.path)
        found = JsonRows(self.path, problems)
        for line, value in found.values():
            if problems.errors:
                break
            yield line, value
        raise_for(problems.finish())
        self.digest = found.digest


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
    if value and all(key.isdecimal() and isinstance(row, dict) and "prediction" in row for key, row in value.items()):
        return [{"idx": key, **row} for key, row in value.items()]  # predictions of OpenCompass
    return None


def _refuse(path: str, value: Any) -> NoReturn:
    message, hint = f"expected rows, got {show(value)}", "write a list of objects, or one object a line"
    if isinstance(value, Mapping) and value:
        message = f"expected rows, got one object with the keys {show(list(value))}"
        hint += '; of a pandas table: to_json(FILE, orient="records", lines=True)'
    raise DatasetSchemaError.at(path, message, hint, code="no-rows")


# Values of cells: paths into them, and options in the shapes that datasets have


def look_up(cells: Cells, path: str) -> Any:
    """Return the value of a column, or of a path with dots (`doc.query`, `results.0.text`); None where there is none.

    A column whose own name has dots is found first. On the way, a text is read as the list or object it spells
    (SimpleQA's `metadata.topic`).
    """
    if path in cells:
        return cells[path]
    column, dot, rest = path.partition(".")
    if not dot:
        return None
    value = cells.get(column)
    for key in rest.split("."):
        if isinstance(value, str):
            try:
                value = parse_list(value)
            except RowError:
                return None
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, Sequence) and not isinstance(value, str) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def to_text(value: Any, hint: str = "") -> str:
    """Return a single value as text: 72 and 72.0 are "72". Raises RowError, with the hint, for what has parts."""
    text = None if isinstance(value, float) and value - value != 0 else spell(value)
    if text is None:
        raise RowError(f"expected a text, got {show(value)}", hint)
    return text


def to_json_value(value: Any) -> Any:
    """Return a value that HELM can write: dates and the like as text, bytes left out."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None  # NaN and infinity are no JSON
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    return None if isinstance(value, bytes) else str(value)


def read_options(value: Any) -> dict[str, str]:
    """Return the options that one cell holds: label to text.

    Known shapes: a list of texts; `{"text": [...], "label": [...]}` (ARC) and `{"choices": [...], "labels": [...]}`
    (TruthfulQA, whose labels are flags); a list of `{"label": ..., "text": ...}`; an object of label to text. A cell of
    text is read as the list it spells. Labels are A, B, ... where there are none. Raises RowError.
    """
    if isinstance(value, str):
        try:
            value = parse_list(value)
        except RowError as error:
            hint = (
                'give each option a column (options=A+B+C), or write them as JSON: ["a", "b"], in CSV "[""a"", ""b""]"'
            )
            raise RowError(str(error), hint, code=error.code) from None
    texts, labels = value, None
    if isinstance(value, Mapping):
        if isinstance(value.get("text"), list | tuple):
            texts, labels = value["text"], value.get("label")
        elif isinstance(value.get("choices"), list | tuple):
            texts = value["choices"]
        else:
            texts, labels = list(value.values()), list(value)
    elif isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
        texts, labels = [item.get("text") for item in value], [item.get("label") for item in value]
        labels = None if None in labels else labels
    if not isinstance(texts, list | tuple):
        raise RowError(f"expected a list of options, got {show(value)}")
    return label_options(texts, labels)


def label_options(texts: Sequence[Any], labels: Sequence[Any] | None) -> dict[str, str]:
    """Return options under their labels, or A, B, ...; then those that a row lacks at the end are left out.

    Raises RowError for fewer than two, and for labels that are missing or doubled.
    """
    if not isinstance(labels, list | tuple | None):
        raise RowError(f"expected a list of labels, got {show(labels)}")
    texts = list(texts)
    while labels is None and texts and texts[-1] is None:
        texts.pop()
    if len(texts) < 2:
        raise RowError(f"expected two or more options, got {len(texts)}")
    written = [to_text(text) for text in texts]
    if labels is None:
        try:
            return to_options(written)
        except ValueError as error:
            raise RowError(str(error)) from None
    named = [to_text(label).strip() for label in labels]
    if len(named) != len(written) or len(set(named)) != len(named) or "" in named:
        raise RowError(f"{len(written)} options and the labels {show(list(labels))}: each needs one of its own")
    return dict(zip(named, written, strict=True))
