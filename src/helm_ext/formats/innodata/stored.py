"""Records and their replies in the store, and the instances that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from helm.benchmark.scenarios.scenario import TEST_SPLIT

from helm_ext.evalset.columns import RECORDED, STATUSES, Recordings, RowColumns, find_lacks
from helm_ext.evalset.unread import RowsTask, UnreadRows
from helm_ext.files.store import Records, RowStore, iterate
from helm_ext.formats.innodata.replies import Replies, to_recorded
from helm_ext.hub.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from helm.benchmark.scenarios.scenario import Instance
    from numpy.typing import NDArray

    from helm_ext.evalset import Recorded

__all__ = ["make_instances"]


@dataclass(frozen=True, kw_only=True)
class RecordReader:
    """Makes instances of records and their replies."""

    records: RowStore[Record] | Records[Record]
    replies: RowStore[Mapping[str, Any]] | Records[Mapping[str, Any]] | None
    make: Callable[[Record, Recorded | None], Instance]

    def read(self, task: RowsTask) -> Iterator[Instance]:
        """Yield the instances of a task: places of records, and the number of each one's reply, from 1; 0: none."""
        places, numbers = task
        records = self.records.read(iterate(places))
        if self.replies is None:
            for record in records:
                yield self.make(record, None)
            return
        replies = self.replies.read(iterate(numbers[numbers > 0] - 1))
        for record, number in zip(records, iterate(numbers), strict=True):
            yield self.make(record, to_recorded(next(replies) if number else None))


def make_instances(
    records: RowStore[Record],
    replies: Replies | None,
    ids: Sequence[str] | None,
    make: Callable[[Record, Recorded | None], Instance],
) -> Sequence[Instance]:
    """Return the instances of records; of many, those that are made when somebody looks at them.

    `ids`: where models may be asked about them: HELM wants to know ids before that.
    """
    nothing = np.zeros(len(records), np.uint8)
    numbers: NDArray[Any] = nothing if replies is None else np.frombuffer(replies.numbers, np.uint32)

    def make_task(places: NDArray[Any]) -> RowsTask:
        return RowsTask((places, numbers[places]))

    of_replies = None if replies is None else replies.store
    if records.kept is not None:
        kept = RecordReader(records=records, replies=of_replies, make=make)
        return list(kept.read(make_task(np.arange(len(records)))))
    reader = RecordReader(
        records=records.records, replies=None if of_replies is None else of_replies.records, make=make
    )
    only, recordings = nothing, None
    if replies is not None:
        only = np.full(len(records), RECORDED, np.uint8)
        (example,) = to_recorded({"reply": ""})["states"]
        recordings = Recordings(
            status=np.where(numbers > 0, STATUSES.index("ok"), STATUSES.index("not_run")).astype(np.uint8),
            lacks=np.where(numbers > 0, find_lacks(example), 0).astype(np.uint8),
        )
    columns = RowColumns(splits=(TEST_SPLIT,), split=nothing, only=only, recordings=recordings)
    return UnreadRows(reader, make_task, columns, ids)
