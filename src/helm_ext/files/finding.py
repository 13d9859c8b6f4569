"""Lines of a file that are found again: where each stands, what it was, and whether the file is still the same.

A file of many rows is read twice: once to check it, and once more, some rows at a time, when they are scored. From the
first reading on, numbers tell where rows stand (`LineIndex`); the second one seeks (`LineFile`), in any process.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from helm_ext.errors import DatasetChangedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Identity", "LineFile", "LineIndex", "changed", "iterate"]


def changed(path: str) -> DatasetChangedError:
    """Return the error for a file that is not what it was when it was read first."""
    return DatasetChangedError(
        f"{path}: the file was changed while it was read\n  hint: start again when nobody writes to it"
    )


class Identity(NamedTuple):
    """What tells whether a file is the one that was read before, without reading it."""

    device: int
    inode: int
    size: int
    changed: int
    """Nanoseconds."""

    @classmethod
    def of(cls, file: int | str) -> Identity:
        """Return that of an open file or a path. Raises OSError."""
        status = os.stat(file)  # noqa: PTH116 - of a descriptor too
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    @classmethod
    def find(cls, path: str) -> Identity | None:
        """Return that of a path, None where there is none."""
        try:
            return cls.of(path)
        except OSError:
            return None

    def open(self, path: str) -> BinaryIO:
        """Open the file. Raises DatasetChangedError if it is another one by now."""
        try:
            file = open(path, "rb")  # noqa: PTH123, SIM115 - the caller closes it
        except OSError as error:
            raise changed(path) from error
        self.require(file.fileno(), path)
        return file

    def require(self, file: int | str, path: str) -> None:
        """Raise DatasetChangedError unless it is the same file with the same content."""
        try:
            is_same = Identity.of(file) == self
        except OSError:
            is_same = False
        if not is_same:
            raise changed(path)


class LineIndex:
    """Where the lines of a file begin, and a checksum of each, noted while it is read: 12 bytes a line.

    It is given the bytes, as an object of hashlib is, and the lines that may be wanted again. Line ends may have a
    carriage return.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._starts = array("q", [0])
        self._checks = array("I", [0])
        self._size = 0

    def update(self, data: bytes) -> None:
        """Add the next bytes of the file."""
        import numpy as np

        self._hash.update(data)
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
        self._starts.frombytes((ends + (self._size + 1)).astype(np.int64).tobytes())
        self._size += len(data)

    def hexdigest(self) -> str:
        """Return the SHA-256 of the bytes, lower-case hex."""
        return self._hash.hexdigest()

    def note(self, number: int, line: bytes) -> None:
        """Note a line, which was not noted before, nor any behind it. `number`: from 1. `line`: without its end."""
        skipped = number - len(self._checks)
        if skipped:
            self._checks.extend(array("I", bytes(4 * skipped)))
        self._checks.append(zlib.crc32(line))

    def find(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the spans of lines, by their numbers: where each begins, its bytes, its checksum. 0: no line."""
        import numpy as np

        starts = np.frombuffer(self._starts, np.int64)
        checks = np.frombuffer(self._checks, np.uint32)
        spans = np.zeros((len(numbers), 3), np.int64)
        there = numbers > 0
        lines = numbers[there].astype(np.intp)
        ends = np.where(lines < len(starts), starts[np.minimum(lines, len(starts) - 1)], self._size)
        spans[there] = np.column_stack([starts[lines - 1], ends - starts[lines - 1], checks[lines]])
        return spans


@dataclass(frozen=True)
class LineFile:
    """A file whose lines are read again, by their spans. Can be sent to another process on this machine."""

    path: str
    identity: Identity
    """Before it was read."""
    offset: int = 0
    """Where the bytes that were indexed begin: inside an archive they do not stand at its beginning."""

    def is_same(self) -> bool:
        """Whether it is the file that was read, as far as can be told without reading it."""
        return Identity.find(self.path) == self.identity

    def read(self, spans: NDArray[Any]) -> Iterator[bytes | None]:
        """Yield lines without their ends, in the order of `spans` (see `LineIndex.find`); None where there is no line.

        Raises DatasetChangedError if the file or one of these lines is another by now.
        """
        with self.identity.open(self.path) as file:
            for start, size, check in iterate(spans):
                if not size:
                    yield None
                    continue
                file.seek(self.offset + start)
                line = file.read(size).removesuffix(b"\n").removesuffix(b"\r")
                if zlib.crc32(line) != check:
                    raise changed(self.path)
                yield line
            self.identity.require(file.fileno(), self.path)


def iterate(values: NDArray[Any], size: int = 4096) -> Iterator[Any]:
    """Yield the elements of an array as Python's numbers (rows of a table: lists of them), some made at a time."""
    for start in range(0, len(values), size):
        yield from values[start : start + size].tolist()
