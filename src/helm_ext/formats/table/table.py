"""What every kind of table is to the rest: columns, and rows that are read one by one, as often as needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["LINES", "Cells", "Table", "plain_suffix"]

LINES = (".jsonl", ".ndjson", ".jsonlines")
"""Endings of files with an object a line."""

Cells = Mapping[str, Any]
"""Column to value. A column that a row lacks is absent."""


class Table(ABC):
    """Rows of one file, or of one saved dataset. Never held as a whole."""

    is_text = False
    """Whether every cell is a text, as in CSV: then a list or a number is written as one, and an empty cell may mean
    "" or nothing."""
    names_lines = True
    """Whether the number of a row is a line of the file; else its position."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.columns: list[str] = []
        """In the order of the file; for JSON, in that in which rows name them."""
        self.class_labels: dict[str, Sequence[str]] = {}
        """The names of a column of class labels (Hugging Face), whose cells are positions from 0."""
        self.splits: list[str] = []
        """The names of the splits, where the dataset itself has several."""
        self.lines = 0
        """Rows of the file; complete when the last was read."""
        self.notes: list[str] = []
        """What is odd about the rows; complete when the last was read."""
        self._digest = ""

    @abstractmethod
    def rows(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Cells, str]]:
        """Yield (line or position, cells, name of the split) of each row; every call reads the file again.

        Only `columns` are needed, where they are given. Raises DatasetError.
        """

    def digest(self) -> str:
        """Return the SHA-256 of what was read, 64 hex digits; known after the last row."""
        return self._digest


def plain_suffix(path: str) -> str:
    """Return the ending of a file's name, that of a compression aside, in lower case."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in (".gz", ".zst", ".zstd"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
