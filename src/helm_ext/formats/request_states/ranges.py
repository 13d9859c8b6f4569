"""What reads ranges of a JSON Lines file: whole lines, in any process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from helm_ext.errors import DatasetSyntaxError, Problems
from helm_ext.files import split_lines
from helm_ext.files.cutting import LineRange
from helm_ext.files.limits import READ_BYTES
from helm_ext.files.lines import too_long
from helm_ext.formats.request_states.reading import LineReader, State

__all__ = ["RangeReader", "split_range"]


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
        yield from self.read_states(self._read_lines())

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
