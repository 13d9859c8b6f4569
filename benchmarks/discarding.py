"""A runner whose files are counted and thrown away: what a run costs without a disk that keeps them."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm.common.hierarchical_logger import hlog

from helm_ext.running import StreamingRunner
from helm_ext.running.fold import RunFiles

if TYPE_CHECKING:
    from collections.abc import Iterator


class Discarded(io.RawIOBase):
    """Takes bytes and counts them."""

    size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.size += len(data)
        return len(data)


class DiscardedFiles:
    """Stands in for `StagedFiles` of a run whose rows' stats are one segment."""

    @contextmanager
    def open(self, name: str) -> Iterator[io.BufferedWriter]:
        """Open a file that nobody will read."""
        raw = Discarded()
        with io.BufferedWriter(raw, buffer_size=1 << 20) as file:
            yield file
            file.flush()
            hlog(f"{name}: {raw.size} bytes")

    def part(self, name: str) -> Path:  # noqa: ARG002
        """Return where further segments go: those of W1 are empty."""
        return Path(os.devnull)


class DiscardingRunner(StreamingRunner):
    """Makes HELM's files of a run, and keeps none."""

    shares_disk = False

    @contextmanager
    def _open_files(self, run_spec: Any, scenario: Any) -> Iterator[RunFiles | None]:
        with RunFiles(DiscardedFiles(), run_spec, scenario) as files:
            yield files
