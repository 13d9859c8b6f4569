"""Records and their replies in the store, and the instances that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from helm.benchmark.scenarios.scenario import TEST_SPLIT

from helm_ext.evalset.rows import RECORDED, STATUSES, StoredRows, find_lacks
from helm_ext.files.store import RowStore
from helm_ext.formats.innodata.replies import Replies, to_recorded
from helm_ext.hub.chat_records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from helm.benchmark.scenarios.scenario import Instance
    from numpy.typing import NDArray

    from helm_ext.evalset import Recorded


@dataclass(frozen=True, kw_only=True)
class RepliedRecords:
    """Reads records together with their replies."""

    records: RowStore[Record]
    replies: RowStore[Mapping[str, Any]]
    numbers: NDArray[Any]
    """Of each record, the number of its reply, from 1; 0: none."""

    def read(self, numbers: Sequence[int]) -> Iterator[tuple[Record, Mapping[str, Any] | None]]:
        """Yield the records of these numbers with their replies."""
        mine = self.numbers[numbers].tolist()
        replies = self.replies.read([number - 1 for number in mine if number])
        for record, number in zip(self.records.read(numbers), mine, strict=True):
            yield record, next(replies) if number else None


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
    rows = StoredRows(
        store=records,
        make=partial(_make, make),
        numbers=np.arange(len(records)),
        splits=(TEST_SPLIT,),
        split=nothing,
        only=nothing,
        ids=ids,
    )
    if replies is not None:
        assert replies.store is not None
        numbers = np.frombuffer(replies.numbers, np.uint32)
        (example,) = to_recorded({"reply": ""})["states"]
        rows = replace(
            rows,
            store=RepliedRecords(records=records, replies=replies.store, numbers=numbers),
            make=partial(_make_replied, make),
            only=np.full(len(records), RECORDED, np.uint8),
            status=np.where(numbers > 0, STATUSES.index("ok"), STATUSES.index("not_run")).astype(np.uint8),
            lacks=np.where(numbers > 0, find_lacks(example), 0).astype(np.uint8),
        )
    return rows if records.kept is None else list(rows)


def _make(make: Callable[[Record, Recorded | None], Instance], record: Record, _place: int) -> Instance:
    return make(record, None)


def _make_replied(
    make: Callable[[Record, Recorded | None], Instance], stored: tuple[Record, Mapping[str, Any] | None], _place: int
) -> Instance:
    record, reply = stored
    return make(record, to_recorded(reply))
