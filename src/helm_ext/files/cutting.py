"""A file of lines, cut into ranges of whole lines that any process can read, and its SHA-256.

Whoever gives out the work cuts: that reads the whole file, from its beginning to its end, and does little else: 4 µs
for a row of 3.5 kB, of which more than half is the SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from helm_ext.files.finding import Identity, changed
from helm_ext.files.limits import COPY_BYTES

__all__ = ["LineRange", "LineRanges", "cut_lines"]


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


class LineRanges:
    """The ranges of a file, as they are found; `digest` is known when the last one was taken."""

    digest = ""
    """SHA-256 of the file, lower-case hex."""

    def __init__(self, path: str, above: int, size: int) -> None:
        """`above`, `size`: see `cut_lines`."""
        self._path = path
        self._identity = Identity.find(path)
        self._above = above
        self._size = size

    def __iter__(self) -> Iterator[LineRange]:
        """Yield the ranges. Raises DatasetChangedError where the file is gone or another one, OSError."""
        if self._identity is None:
            raise changed(self._path)
        with self._identity.open(self._path) as file:
            for found in cut_lines(file, self._above, self._size):
                if isinstance(found, str):
                    self.digest = found
                else:
                    yield found


def cut_lines(file: BinaryIO, above: int, size: int) -> Iterator[LineRange | str]:
    """Yield the ranges of a file that is open at its beginning, and at last its SHA-256.

    The first lines, `above` of them, are in no range. `size`: bytes of a range, and at most as many more or one line.
    """
    chunk, digest = min(size, COPY_BYTES), hashlib.sha256()
    place = start = 0  # where the chunk begins, and the next range
    first, lines = above + 1, 0  # of the next range
    is_ended = True
    while data := file.read(chunk):
        digest.update(data)
        begin = 0
        while above and (end := data.find(b"\n", begin)) >= 0:
            above, begin = above - 1, end + 1
            start = place + begin
        if not above:
            lines += data.count(b"\n", begin)
            last = data.rfind(b"\n", begin)
            if last >= 0 and place + last + 1 - start >= size:
                stop = place + last + 1
                yield LineRange(start, stop, first, lines)
                start, first, lines = stop, first + lines, 0
        place += len(data)
        is_ended = data.endswith(b"\n")
    if not above and start < place:
        yield LineRange(start, place, first, lines + (not is_ended))
    yield digest.hexdigest()
