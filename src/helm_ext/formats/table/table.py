"""What every kind of table is to the rest: columns, and rows, which are read once and kept."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from helm_ext.files.store import RowStore

LINES = (".jsonl", ".ndjson", ".jsonlines")
"""Endings of files with an object a line."""

Cells = Mapping[str, Any]
"""Column to value. A column that a row lacks is absent."""

TableRow = tuple[int, Cells, str]
"""Line or position, cells, and name of the split."""

KEPT = 10_000
"""Rows of a table that stay in memory, if there are no more."""


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
        self.notes: list[str] = []
        """What is odd about the rows; complete when they were read."""
        self._digest = ""
        self._rows: RowStore[TableRow] | None = None

    @abstractmethod
    def read(self, columns: Sequence[str] | None = None) -> Iterator[TableRow]:
        """Read the file. Only `columns` are needed, where they are given. Raises DatasetError."""

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[TableRow]:
        """Yield the rows. The first call reads the file, and keeps these columns. Raises DatasetError."""
        if self._rows is None:
            store: RowStore[TableRow] = RowStore(list, tuple, KEPT if self.is_json(columns) else math.inf)
            for row in self.read(columns):
                store.add(row)
            store.finish()
            self._rows = store
        return self._rows.read(range(len(self._rows)))

    def is_json(self, columns: Sequence[str] | None) -> bool:  # noqa: ARG002
        """Whether JSON can hold all values of these columns; else they stay in memory."""
        return True

    @property
    def lines(self) -> int:
        """Rows of the file; known when they were read."""
        return 0 if self._rows is None else len(self._rows)

    def first(self) -> Cells | None:
        """Return the cells of the first row; None where there are no rows. Raises DatasetError."""
        return next((cells for _, cells, _ in (self.read() if self._rows is None else self.rows())), None)

    def digest(self) -> str:
        """Return the SHA-256 of what was read, 64 hex digits; known when the rows were read."""
        return self._digest


def plain_suffix(path: str) -> str:
    """Return the ending of a file's name, that of a compression aside, in lower case."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in (".gz", ".zst", ".zstd"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
