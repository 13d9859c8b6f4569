"""Files that appear together, or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from helm.common.hierarchical_logger import hlog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["LAST_FILE", "PART", "StagedFiles", "staged"]

PART = ".part"
"""Suffix of a file that is being written. What a killed run leaves is overwritten by the next."""

LAST_FILE = "per_instance_stats.json"
"""Put in place last, and taken away first: while it is missing, HELM does not take a run for complete."""


class StagedFiles:
    """Files of one folder that appear together, or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: list[str] = []

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open the file `name` for writing; it stands under another name until `commit`."""
        if name not in self.names:
            self.names.append(name)
        with self._part(name).open("wb", buffering=1 << 20) as file:
            yield file
            hlog(f"Writing {file.tell()} bytes to {self.folder / name}")
            file.flush()
            os.fsync(file.fileno())

    def commit(self) -> None:
        """Put all files in place. Whatever moment this is killed in, old and new files never pass for one run."""
        if LAST_FILE in self.names:
            (self.folder / LAST_FILE).unlink(missing_ok=True)
        for name in sorted(self.names, key=lambda name: name == LAST_FILE):
            self._part(name).replace(self.folder / name)
        self.names.clear()

    def discard(self) -> None:
        """Remove what was written and not put in place."""
        for name in self.names:
            self._part(name).unlink(missing_ok=True)

    def _part(self, name: str) -> Path:
        return self.folder / (name + PART)


@contextmanager
def staged(folder: Path) -> Iterator[StagedFiles]:
    """Stage files in `folder`, and put them in place when the block ends well."""
    files = StagedFiles(folder)
    try:
        yield files
        files.commit()
    finally:
        files.discard()
