"""How far a file is read, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from helm_ext.engines.progress import Measured, Progress
from helm_ext.files import LineSource

if TYPE_CHECKING:
    from helm_ext.engines.state import WorkerState
    from helm_ext.files.cutting import LineRanges

__all__ = ["show_ranges", "show_reading"]


def show_reading(path: str | Path) -> Progress:
    """Return what shows how far this process is with a file, and with the files that it stands for.

    The lines that there will be are foreseen from the bytes on disk; what is no file of lines shows how long it takes.
    """
    return Progress(None, "lines", title=f"reading {Path(path).name or path}", measure=_Watching().measure)


class _Watching:
    """Looks at the file whose lines are being read; at its end, at the last one."""

    _source: LineSource | None = None
    _size = 0

    def measure(self) -> Measured:
        """Return how many lines were read of it."""
        latest = LineSource.latest
        source = None if latest is None else latest()
        if source is not None and source.size:  # it is open
            self._source, self._size = source, source.size
        if self._source is None or not self._source.lines_read:
            return Measured(0, None)
        lines, read = self._source.lines_read, self._source.bytes_read
        return Measured(lines, lines * self._size // max(1, read), is_about=read < self._size)


def show_ranges(ranges: LineRanges, workers: Sequence[WorkerState]) -> Progress:
    """Return what shows how far those are who read the ranges of a file. `workers`: what each has done."""

    def measure() -> Measured:
        last = ranges.last
        if last is None:
            return Measured(0, None)
        total = (last.first + last.lines - 1) * ranges.size // max(1, last.stop)
        done = sum(worker.rows for worker in list(workers))
        return Measured(done, max(done, total), is_about=last.stop < ranges.size)

    return Progress(None, "lines", title=f"reading {Path(ranges.path).name}", measure=measure, workers=workers)
