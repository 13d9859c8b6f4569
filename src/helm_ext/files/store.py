"""The rows of a dataset, kept from the one reading of its file: in memory while they are few, else on disk.

    row ──SpillWriter──▶ Segments of a file ──RowStore──▶ row, in any order

A row is a tuple, an object or a struct of what JSON can hold, written as msgpack; one with an integer of more than 64
bits is written as JSON. What is on disk lies in HELM's output folder, in a staging folder (`files.writing`): it is
removed when nobody can read it any more, and that of a killed process by the next one that stores rows there.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, Generic, NamedTuple, TypeVar

import msgspec

from helm_ext.errors import HelmExtError
from helm_ext.files.content import COPY_BYTES
from helm_ext.files.writing import StagedFiles

Row = TypeVar("Row")

SEGMENT_ROWS = 10_000
"""Rows whose places are in memory while they are written."""


class Segment(NamedTuple):
    """Rows that stand one behind the other in a file, and behind them their places: 8 bytes each."""

    path: str
    end: int
    """Where the last one ends, and the places begin."""
    rows: int


class SpillWriter:
    """Writes rows to a new file of a folder."""

    def __init__(self, folder: str | Path) -> None:
        self._path = str(Path(folder) / f"rows-{os.getpid()}-{secrets.token_hex(4)}")
        self._encode = msgspec.msgpack.Encoder().encode
        self._file: IO[bytes] | None = None
        self._places = array("q", [0])

    def __len__(self) -> int:
        """Return how many rows there are since the last segment."""
        return len(self._places) - 1

    def add(self, row: object) -> None:
        """Write a row. Raises HelmExtError where there is no room."""
        try:
            data = self._encode(row)
        except (OverflowError, UnicodeEncodeError):
            data = json.dumps(msgspec.to_builtins(row)).encode()
        self._write(data)
        self._places.append(self._places[-1] + len(data))

    def end(self) -> Segment:
        """Return what was written since the last segment."""
        segment = Segment(self._path, self._places[-1], len(self))
        self._write(self._places.tobytes(), flush=True)
        self._places = array("q", [segment.end + self._places.itemsize * len(self._places)])
        return segment

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):  # without room; what there was to say of it was said
                self._file.close()

    def _write(self, data: bytes, *, flush: bool = False) -> None:
        try:
            if self._file is None:
                self._file = open(self._path, "wb", buffering=COPY_BYTES)  # noqa: PTH123, SIM115 - closed by `close`
            self._file.write(data)
            if flush:
                self._file.flush()
        except OSError as error:
            raise _no_room(self._path, error) from None


class Folder:
    """A folder for rows, which is removed with this object. Raises HelmExtError where there can be none."""

    def __init__(self) -> None:
        above = _find_place()
        try:
            above.mkdir(parents=True, exist_ok=True)
            files = StagedFiles(above)
            self.path = str(files.part("rows").parent)
        except OSError as error:
            raise _no_room(str(above), error) from None
        owner = os.getpid()
        weakref.finalize(self, lambda: files.discard() if os.getpid() == owner else None)


class RowStore(Generic[Row]):
    """Rows in the order of a file, numbered from 0. All are added, then any are read.

    Can be sent to another process of this machine then; rows on disk are there as long as the one is that was not sent.
    """

    def __init__(self, kind: type[Row], kept: float) -> None:
        """`kind`: the type of the rows. `kept`: rows that stay in memory, if there are no more."""
        self._kind, self._most = kind, kept
        self.kept: list[Row] | None = []
        """The rows, while they are in memory."""
        self._segments: list[Segment] = []
        self._ends: list[int] = []
        self._folder: Folder | None = None
        self._writer: SpillWriter | None = None
        self._places: dict[int, array[int]] = {}
        """By the number of the segment."""

    def __len__(self) -> int:
        if self.kept is not None:
            return len(self.kept)
        return (self._ends[-1] if self._ends else 0) + len(self._writer or ())

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_places": {}, "_folder": None}

    def add(self, row: Row) -> None:
        """Add the next row. Raises HelmExtError where there is no room."""
        if self.kept is not None:
            self.kept.append(row)
            if len(self.kept) > self._most:
                kept, self.kept = self.kept, None
                self._folder = Folder()
                self._writer = SpillWriter(self._folder.path)
                for one in kept:
                    self._writer.add(one)
            return
        writer = self._writer
        assert writer is not None
        writer.add(row)
        if len(writer) >= SEGMENT_ROWS:
            self._take(writer.end())

    def finish(self) -> None:
        """Take note that all rows were added."""
        if self._writer is not None:
            self._take(self._writer.end())
            self._writer.close()
            self._writer = None

    def take(self, segments: Sequence[Segment], folder: Folder) -> None:
        """Hold what other processes have written."""
        self.kept, self._folder = None, folder
        for segment in segments:
            self._take(segment)

    def _take(self, segment: Segment) -> None:
        self._segments.append(segment._replace(path=sys.intern(segment.path)))  # sent, and held, once a file
        self._ends.append((self._ends[-1] if self._ends else 0) + segment.rows)

    def read(self, numbers: Iterable[int]) -> Iterator[Row]:
        """Return the rows of these numbers, in any order."""
        return self._read(numbers) if self.kept is None else map(self.kept.__getitem__, numbers)

    def release(self, numbers: Sequence[int]) -> Iterator[Row]:
        """Yield the rows in memory of these numbers, in their order. Those that were yielded are kept no longer."""
        assert self.kept is not None
        for number, following in zip(numbers, [*numbers[1:], -1], strict=True):
            yield self.kept[number]
            if following != number:
                self.kept[number] = None  # type: ignore[assignment]

    def _read(self, numbers: Iterable[int]) -> Iterator[Row]:
        decode = msgspec.msgpack.Decoder(self._kind).decode
        files: dict[str, IO[bytes]] = {}
        first = end = 0  # of the segment that is looked at
        with ExitStack() as stack:
            for number in numbers:
                if not first <= number < end:
                    found = bisect_right(self._ends, number)
                    segment, end = self._segments[found], self._ends[found]
                    first = end - segment.rows
                    if segment.path not in files:
                        files[segment.path] = stack.enter_context(open(segment.path, "rb"))  # noqa: PTH123
                    file = files[segment.path]
                    places = self._find_places(found, file)
                start = places[number - first]
                file.seek(start)
                data = file.read(places[number - first + 1] - start)
                is_json = data.startswith((b"[", b"{"))
                yield msgspec.convert(json.loads(data), self._kind) if is_json else decode(data)

    def _find_places(self, number: int, file: IO[bytes]) -> array[int]:
        places = self._places.get(number)
        if places is None:
            segment = self._segments[number]
            places = array("q")
            file.seek(segment.end)
            places.frombytes(file.read(places.itemsize * (segment.rows + 1)))
            self._places[number] = places  # when it is whole: HELM perturbs rows in several threads
        return places


def _find_place() -> Path:
    """Return where rows are kept: in HELM's output folder where a run is made, else where the user's caches are.

    Never a temporary folder: that may be memory.
    """
    runner = sys.modules.get("helm.benchmark.runner")
    if runner is not None and (output := Path(runner.get_benchmark_output_path())).is_dir():
        return output
    from platformdirs import user_cache_path

    return user_cache_path("helm-ext") / "rows"


def _no_room(path: str, error: OSError) -> HelmExtError:
    return HelmExtError(
        f"{path}: the rows of a large file cannot be kept here: {error.strerror}\n  hint: they need about as much room "
        "as the file, in HELM's output folder or in the user's cache folder (XDG_CACHE_HOME)"
    )
