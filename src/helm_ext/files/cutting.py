"""A file of lines, cut into ranges of whole lines that any process can read, and its SHA-256.

Whoever gives out the work cuts: that reads the whole file, from its beginning to its end, and does little else: 4 µs
for a row of 3.5 kB, of which more than half is the SHA-256.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from helm_ext.errors import DatasetChangedError
from helm_ext.files.limits import COPY_BYTES

__all__ = ["LineRange", "LineRanges", "changed", "cut_lines"]


def changed(path: str) -> DatasetChangedError:
    """Return the error for a file that is not what it was when it was read first."""
    return DatasetChangedError(
        f"{path}: the file was changed while it was read\n  hint: start again when nobody writes to it"
    )


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
    last: LineRange | None = None
    """The one that was found last."""

    def __init__(self, path: str, above: int, size: int) -> None:
        """`above`, `size`: see `cut_lines`. Raises OSError."""
        self.path = path
        self._cut = above, size
        self._status = self._look()
        self.size = self._status[2]
        """Bytes of the file."""

    def _look(self) -> tuple[int, ...]:
        status = os.stat(self.path)  # noqa: PTH116
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

    def __iter__(self) -> Iterator[LineRange]:
        """Yield the ranges. Raises OSError."""
        with open(self.path, "rb") as file:  # noqa: PTH123
            for found in cut_lines(file, *self._cut):
                if isinstance(found, str):
                    self.digest = found
                else:
                    self.last = found
                    yield found

    def require_same(self) -> None:
        """Raise DatasetChangedError unless the file is what it was when these were made."""
        try:
            is_same = self._look() == self._status
        except OSError:
            is_same = False
        if not is_same:
            raise changed(self.path)


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
