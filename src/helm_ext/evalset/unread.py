"""Rows of a large dataset, made into HELM's instances when somebody looks at them, and not before.

HELM plans a run without knowing how many rows it will score, takes all of them from the scenario, looks at ids and
splits, and then keeps those that `--max-eval-instances` allows. So what it is handed here knows its id and split, and
becomes the row that it stands for when anything else of it is asked for.

Plain equivalent: a list of HELM's instances. Saves 0.57 GB and more than half of the time of `helm-run -m 10` on
200,000 chat records. Held equal by tests/unit/formats/innodata/test_innodata_unread.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from helm.benchmark.scenarios.scenario import Input as HelmInput
from helm.benchmark.scenarios.scenario import Instance, Reference

from helm_ext.evalset.columns import RowColumns

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RowReader", "RowsTask", "UnreadRows", "read_unread"]

_set = object.__setattr__


class RowsTask(tuple["NDArray[Any]", ...]):
    """Some rows of a dataset, as columns of numbers, all of one length. Small, to be sent to another process."""

    __slots__ = ()

    @property
    def number(self) -> int:
        """How many they are."""
        return len(self[0])

    def pick(self, some: slice) -> RowsTask:
        """Return some of the rows as a task."""
        return RowsTask(column[some] for column in self)


class RowReader(Protocol):
    """Makes rows of a dataset, as tasks say which, in any order. Can be sent to another process of this machine."""

    def read(self, task: RowsTask) -> Iterator[Instance]:
        """Yield the instances of a task."""


class UnreadRows(Sequence[Instance]):
    """The instances of a dataset, for runs of any kind. Whoever goes through them has them made; nothing is kept."""

    def __init__(
        self,
        reader: RowReader,
        make_task: Callable[[NDArray[Any]], RowsTask],
        columns: RowColumns,
        ids: Sequence[str] | None = None,
    ) -> None:
        """`make_task`: from places among the instances to what the reader reads. `ids`: of all rows, where they are
        known without reading.
        """
        self.reader = reader
        self.make_task = make_task
        self.columns = columns
        self.ids = ids
        self._finish: Callable[[Instance], None] | None = None

    def read(self, places: Sequence[int] | NDArray[Any]) -> Iterator[Instance]:
        """Yield the instances of these places."""
        return self.reader.read(self.make_task(np.asarray(places, np.intp)))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Instance]:
        return iter(self.read(range(len(self))))

    @overload
    def __getitem__(self, place: int) -> Instance: ...
    @overload
    def __getitem__(self, place: slice) -> list[Instance]: ...
    def __getitem__(self, place: int | slice) -> Instance | list[Instance]:
        places = range(len(self))[place]
        if isinstance(places, int):
            return next(iter(self.read([places])))
        return list(self.read(places))

    @property
    def can_wait(self) -> bool:
        """Whether rows can be handed out before they are read: ids are known, and nothing but the split decides."""
        return self.ids is not None and self.columns.recordings is None

    def hand_out(self, finish: Callable[[Instance], None] | None = None) -> list[Instance]:
        """Return an instance for each row that has not been read yet. `finish`: what is done to each when it is."""
        assert self.ids is not None
        self._finish = finish
        splits, codes = self.columns.splits, self.columns.split.tolist()
        return [_Unread(self, place, row_id, splits[codes[place]]) for place, row_id in enumerate(self.ids)]

    def fill(self, unread: Sequence[_Unread]) -> None:
        """Let these become the instances that they stand for."""
        for one, found in zip(unread, self.read([one.place for one in unread]), strict=True):
            if self._finish is not None:
                self._finish(found)
            _set(one, "__dict__", found.__dict__)
            _set(one, "__class__", Instance)


class _Unread(Instance):
    """An instance of HELM's that is not made yet. It becomes a plain Instance when it is."""

    rows: UnreadRows
    place: int

    def __init__(self, rows: UnreadRows, place: int, row_id: str, split: str) -> None:
        _set(self, "rows", rows)
        _set(self, "place", place)
        _set(self, "id", row_id)
        _set(self, "split", split)

    @property
    def input(self) -> HelmInput:
        return self._look_at("input")

    @property
    def references(self) -> list[Reference]:
        return self._look_at("references")

    @property
    def extra_data(self) -> dict[str, Any] | None:
        return self._look_at("extra_data")

    def _look_at(self, name: str) -> Any:
        self.rows.fill([self])
        return getattr(self, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.rows.fill([self])
        return self.__reduce_ex__(protocol)  # an Instance's, by now


def read_unread(instances: Iterable[Instance]) -> None:
    """Make those of the instances that have not been made."""
    waiting: dict[int, tuple[UnreadRows, dict[int, _Unread]]] = {}
    for instance in instances:
        if isinstance(instance, _Unread):
            waiting.setdefault(id(instance.rows), (instance.rows, {}))[1][id(instance)] = instance
    for rows, unread in waiting.values():
        rows.fill([*unread.values()])
