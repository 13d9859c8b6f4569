"""Ranges of a JSON Lines file: whole lines that any process can read, and what reads them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from helm_ext.errors import DatasetSyntaxError, Problems
from helm_ext.evalset.progress import Measured
from helm_ext.files import split_lines
from helm_ext.files.limits import COPY_BYTES, READ_BYTES
from helm_ext.files.lines import too_long
from helm_ext.formats.request_states.reading import LineReader, State

__all__ = ["LineRange", "RangeReader", "Ranges", "split_range"]


class LineRange(NamedTuple):
    """Some whole lines of a file."""

    start: int
    """The first one's place in the file; `stop`: behind the last one's line end."""
    stop: int
    first: int
    """The first one's number."""
    lines: int
    """How many they are."""

    @property
    def number(self) -> int:
        """As `lines`: what a worker has done is counted so."""
        return self.lines

    def __str__(self) -> str:
        return f"lines {self.first} to {self.first + self.lines - 1}"


class Ranges:
    """Cuts a file, which is read once, from its beginning, and whose digest is known when the last range was taken."""

    def __init__(self, file: BinaryIO, header_line: int, size: int) -> None:
        """Lines up to `header_line` are in no range. `size`: bytes of a range, and at most as many more or one line."""
        self._file = file
        self._header_line = header_line
        self._size = size
        self._chunk = min(size, COPY_BYTES)
        self._hash = hashlib.sha256()
        self._last: LineRange | None = None
        self._done = 0

    def finish(self, lines: int) -> None:
        """Note that so many lines were read."""
        self._done += lines

    def measure(self) -> Measured:
        """Return how many lines were read, and how many there will be, as foreseen from the ranges that were taken."""
        last = self._last
        if last is None:
            return Measured(0, None)
        taken, size = last.first + last.lines - 1, os.fstat(self._file.fileno()).st_size
        return Measured(self._done, taken * size // max(1, last.stop), is_about=last.stop < size)

    @property
    def digest(self) -> str:
        """SHA-256 of the file, lower-case hex."""
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[LineRange]:
        place = start = 0  # where the chunk begins, and the next range
        first, lines = self._header_line + 1, 0  # of the next range
        above = self._header_line
        is_ended = True
        while data := self._file.read(self._chunk):
            self._hash.update(data)
            begin = 0
            while above and (end := data.find(b"\n", begin)) >= 0:
                above, begin = above - 1, end + 1
                start = place + begin
            if not above:
                lines += data.count(b"\n", begin)
                last = data.rfind(b"\n", begin)
                if last >= 0 and place + last + 1 - start >= self._size:
                    stop = place + last + 1
                    self._last = LineRange(start, stop, first, lines)
                    yield self._last
                    start, first, lines = stop, first + lines, 0
            place += len(data)
            is_ended = data.endswith(b"\n")
        if not above and start < place:
            self._last = LineRange(start, place, first, lines + (not is_ended))
            yield self._last


def split_range(path: str, lines: LineRange) -> list[LineRange]:
    """Return a range as several, down to a line each, so that one that ends its reader can be named."""
    if lines.lines < 2:
        return [lines]
    most = max(1, lines.lines // 10)
    parts: list[LineRange] = []
    with open(path, "rb") as file:  # noqa: PTH123
        file.seek(lines.start)
        start, first = lines.start, lines.first
        for number in range(1, lines.lines + 1):
            file.readline()
            place = min(file.tell(), lines.stop)
            if number % most == 0 or number == lines.lines:
                if place > start:
                    parts.append(LineRange(start, place, first, lines.first + number - first))
                start, first = place, lines.first + number
    return parts


class RangeReader(LineReader):
    """Reads the states of a range. Their positions count from 0."""

    def __init__(self, path: str, problems: Problems, file: BinaryIO, lines: LineRange) -> None:
        super().__init__(path, problems)
        self._file = file
        self._lines = lines
        self._left = lines.stop - lines.start

    def states(self) -> Iterator[State]:
        """Yield the states."""
        self._file.seek(self._lines.start)
        yield from self.read_states(self.note_places(self._read_lines(), self._lines.start))
        self.is_seekable = self.is_at(self._lines.stop)

    def _read_lines(self) -> Iterator[tuple[int, bytes]]:
        before = self._lines.first - 1
        for number, data in split_lines(self._read_chunk):
            if data is None:
                raise DatasetSyntaxError([too_long(self.path, before + number)])
            yield before + number, data

    def _read_chunk(self) -> bytes:
        data = self._file.read(min(READ_BYTES, self._left))
        self._left -= len(data)
        return data
