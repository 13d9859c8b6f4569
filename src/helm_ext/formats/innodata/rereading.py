"""Records and replies that are read a second time, when they are scored or asked about, some at a time.

Each is found by its place in its file, in any order and by any process. Records that stand compressed in their bundle
are gone through from the beginning; recorded runs want them in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from helm.benchmark.scenarios.scenario import TEST_SPLIT

from helm_ext.errors import DatasetChangedError, Location, Problems
from helm_ext.evalset import DIGEST_LENGTH
from helm_ext.evalset.columns import RECORDED, STATUSES, Recordings, RowColumns, find_lacks
from helm_ext.evalset.unread import UnreadRows
from helm_ext.files.finding import LineFile, LineIndex, changed, iterate
from helm_ext.formats.innodata.replies import Replies, to_recorded
from helm_ext.hub.records import parse_object, parse_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helm.benchmark.scenarios.scenario import Instance
    from numpy.typing import NDArray

    from helm_ext.evalset import Recorded
    from helm_ext.hub.bundle import Bundle
    from helm_ext.hub.meta import Split
    from helm_ext.hub.records import Record

__all__ = ["RecordReader", "RecordsTask", "Source", "open_instances"]


class RecordsTask(NamedTuple):
    """Some records, as numbers. Arrays are of one length; small, to be sent to another process."""

    places: NDArray[Any]
    """In ascending order where records are compressed."""
    records: NDArray[Any] | None
    """Where they stand (`LineIndex.find`); None where they are compressed."""
    replies: NDArray[Any] | None
    """Where their replies stand; None where no replies are given."""

    @property
    def number(self) -> int:
        """How many they are."""
        return len(self.places)

    def pick(self, some: slice) -> RecordsTask:
        """Return some of the records as a task."""
        return RecordsTask(*(None if column is None else column[some] for column in self))  # type: ignore[arg-type]


@dataclass
class Source:
    """A split of a bundle that was read before. Can be sent to another process on this machine."""

    reopen: Callable[[], AbstractContextManager[Bundle]]
    """Opens the bundle, from the hub or a file. Raises DatasetError, HubError."""
    digest: str
    """Of the bundle."""
    split: Split
    lines: LineFile | None
    """Where its lines stand on disk; None where they are compressed."""

    @contextmanager
    def open(self) -> Iterator[Bundle]:
        """Open the bundle. Raises DatasetChangedError where it is another one by now, DatasetError, HubError."""
        with self.reopen() as bundle:
            if bundle.digest != self.digest:
                raise DatasetChangedError(
                    f"{bundle.path}: the file changed while it was in use: SHA-256 {bundle.digest[:DIGEST_LENGTH]}, it "
                    f"was {self.digest[:DIGEST_LENGTH]}\n  hint: start again; a run's name carries the digest of its "
                    "data"
                )
            yield bundle

    def find_lines(self) -> LineFile | None:
        """Return what reads lines, None where they are compressed. Raises as `open`.

        What looks like another file and has the same bytes, because it was copied or fetched again, is as good.
        """
        if self.lines is not None and not self.lines.is_same():
            with self.open() as bundle:
                self.lines = bundle.find_split(self.split)
        return self.lines

    def read(self, task: RecordsTask) -> Iterator[Record]:
        """Yield the records of a task. Raises as `open`."""
        lines = self.find_lines()
        if lines is None or task.records is None:
            with self.open() as bundle:
                yield from bundle.pick(self.split, iterate(task.places))
            return
        nobody = Problems()  # what is wrong by now is said as a whole
        for place, line in zip(iterate(task.places), lines.read(task.records), strict=True):
            record = None if line is None else parse_record(line, Location(lines.path, place + 1), nobody)
            if record is None:
                raise changed(lines.path)
            yield record


@dataclass(frozen=True, kw_only=True)
class RecordReader:
    """Reads records, and their replies where there are any. Can be sent to another process on this machine."""

    source: Source
    replies: LineFile | None
    make: Callable[[Record, Recorded | None], Instance]

    @property
    def finds_rows(self) -> bool:
        """Whether it reads a few records, in any order, without going through the bundle."""
        return self.source.lines is not None

    def read(self, task: RecordsTask) -> Iterator[Instance]:
        """Yield the instances of a task. Raises DatasetChangedError if a file is another by now, and as `Source.open`.

        That a reply is its record's is looked at once more.
        """
        records = self.source.read(task)
        if self.replies is None or task.replies is None:
            for record in records:
                yield self.make(record, None)
            return
        path, nobody = self.replies.path, Problems()
        for record, line in zip(records, self.replies.read(task.replies), strict=True):
            if line is None:
                yield self.make(record, to_recorded(None))
                continue
            value = parse_object(line, Location(path), nobody)
            if value is None or value.get("id") != record.id:
                raise changed(path)
            yield self.make(record, to_recorded(value))


def open_instances(
    source: Source,
    index: LineIndex,
    number: int,
    replies: Replies | None,
    ids: Sequence[str] | None,
    make: Callable[[Record, Recorded | None], Instance],
) -> UnreadRows:
    """Return the first records of a split, which are read when somebody looks at them. `ids`: where they are known."""
    same = np.zeros(number, np.uint8)
    only, recordings, lines = same, None, None
    if replies is not None:
        only = np.full(number, RECORDED, np.uint8)
        lines = np.frombuffer(replies.lines, np.uint32)
        is_there = lines > 0
        (example,) = to_recorded({"reply": ""})["states"]
        recordings = Recordings(
            status=np.where(is_there, STATUSES.index("ok"), STATUSES.index("not_run")).astype(np.uint8),
            lacks=np.where(is_there, find_lacks(example), 0).astype(np.uint8),
        )

    def make_task(places: NDArray[Any]) -> RecordsTask:
        found = index.find(places + 1) if source.lines is not None else None
        replied = replies.index.find(lines[places]) if replies is not None and lines is not None else None
        return RecordsTask(places, found, replied)

    columns = RowColumns(splits=(TEST_SPLIT,), split=same, only=only, recordings=recordings)
    reader = RecordReader(source=source, replies=None if replies is None else replies.file, make=make)
    return UnreadRows(reader, make_task, columns, ids)
