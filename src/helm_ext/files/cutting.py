"""A file of lines, cut into ranges of whole lines that any process can read, and its SHA-256.

Who cuts reads the whole file, from its beginning to its end, and does little else. So it is done by a process of its
own, beside those that read the ranges: with many of them it would else hold up the one that gives out the work.
"""

from __future__ import annotations

import hashlib
import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from helm.common.hierarchical_logger import hwarn

from helm_ext.errors import HelmExtError
from helm_ext.evalset.interrupts import held_back
from helm_ext.files.finding import Identity, changed
from helm_ext.files.limits import COPY_BYTES

__all__ = ["LineRange", "LineRanges", "cut_lines"]

TRIES = 3
"""So often the process may be lost."""

COMMAND = """
import sys
sys.path[:] = filter(None, sys.path)  # not from the current folder, where anything may lie
from helm_ext.files.cutting import main
main(*sys.argv[1:])
"""


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
    """The ranges of a file, as they are found, by another process; `digest` is known when the last one was taken."""

    digest = ""
    """SHA-256 of the file, lower-case hex."""

    def __init__(self, path: str, above: int, size: int) -> None:
        """`above`, `size`: see `cut_lines`."""
        self._path = path
        self._identity = Identity.find(path)
        self._arguments = [path, str(above), str(size)]

    def __iter__(self) -> Iterator[LineRange]:
        """Yield the ranges. Raises DatasetChangedError for another file, HelmExtError where none can be cut."""
        given = 0
        for _ in range(TRIES):
            for found in itertools.islice(self._cut(), given, None):  # the same ones each time
                if isinstance(found, str):
                    self.digest = found
                    return
                yield found
                given += 1
            if Identity.find(self._path) != self._identity:  # it found no file, perhaps: no other would
                raise changed(self._path)
            hwarn(f"{self._path}: the process that cuts the file into ranges was lost")
        raise HelmExtError(f"{self._path}: the process that cuts the file into ranges was lost {TRIES} times")

    def _cut(self) -> Iterator[LineRange | str]:
        command = [sys.executable, "-c", COMMAND, *self._arguments]
        pipe = subprocess.PIPE
        with held_back():
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, text=True)
        with process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    words = line.split()
                    if line.endswith("\n"):
                        yield LineRange(*map(int, words)) if len(words) > 1 else words[0]
            finally:
                process.kill()


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


def main(path: str, above: str, size: str) -> None:
    """Print the ranges of a file, one a line, and its digest."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this process ends it
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who started it is gone
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            for found in cut_lines(file, int(above), int(size)):
                print(found if isinstance(found, str) else " ".join(map(str, found)), flush=True)  # noqa: T201
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")
