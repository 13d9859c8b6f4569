"""How far a file is read, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from helm_ext.engines.progress import Measured, Progress
from helm_ext.files import LineSource

if TYPE_CHECKING:
    from helm_ext.engines.state import WorkerState


def show_reading(path: str | Path, workers: Sequence[WorkerState] = ()) -> Progress:
    """Return what shows how far this process is with a file, and with the files that it stands for.

    `workers`: those who are given what it reads. The lines that there will be are foreseen from the bytes on disk; what
    is no file of lines shows how long it takes.
    """
    measure = _Watching().measure
    return Progress(None, "lines", title=f"reading {Path(path).name or path}", measure=measure, workers=workers)


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
