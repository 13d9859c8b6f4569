"""Rows of a large file that are read when somebody looks at them, and not before.

HELM plans a run without knowing how many rows it will score, takes all of them from the scenario, looks at ids and
splits, and then keeps those that `--max-eval-instances` allows. So what it is handed here knows its id and split, and
becomes the row that it stands for when anything else of it is asked for. `read_unread` reads those that were kept, in
one pass over the file.

Plain equivalent: a list of HELM's instances. Saves 0.57 GB and more than half of the time of `helm-run -m 10` on
200,000 chat records. Held equal by tests/unit/formats/innodata/test_innodata_unread.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from helm.benchmark.scenarios.scenario import Input as HelmInput
from helm.benchmark.scenarios.scenario import Instance, Reference

from helm_ext.evalset.columns import RowColumns

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RowReader", "UnreadRows", "read_unread"]

_set = object.__setattr__


class RowReader(Protocol):
    """Reads rows of a dataset, as tasks say which."""

    @property
    def finds_rows(self) -> bool:
        """Whether it reads a few rows, in any order, without going through the file from its beginning."""

    def read(self, task: Any) -> Iterator[Instance]:
        """Yield the instances of a task. May raise DatasetError."""


class UnreadRows(Sequence[Instance]):
    """The instances of a dataset, for runs of any kind. Whoever goes through them reads the file; nothing is kept."""

    def __init__(
        self,
        reader: RowReader,
        make_task: Callable[[NDArray[Any]], Any],
        columns: RowColumns,
        ids: Sequence[str] | None = None,
    ) -> None:
        """`make_task`: from places among the instances, in ascending order unless `reader` says otherwise, to what the
        reader reads. `ids`: of all rows, where they are known without reading.
        """
        self.reader = reader
        self.make_task = make_task
        self.columns = columns
        self.ids = ids
        self._all: list[Instance] | None = None
        self._lock = threading.Lock()
        self._finish: Callable[[Instance], None] | None = None

    def read(self, places: Sequence[int] | NDArray[Any]) -> Iterator[Instance]:
        """Yield the instances of these places, in ascending order. May raise DatasetError."""
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
        found = list(self.read(sorted(places)))
        return found if places.step > 0 else found[::-1]

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

    def take(self, places: Sequence[int]) -> list[Instance]:
        """Return the instances of these places, in this order; the file is read once."""
        wanted = sorted(set(places))
        found = dict(zip(wanted, self.read(wanted), strict=True))
        return [found[place] for place in places]

    def fill(self, unread: Sequence[_Unread]) -> None:
        """Read these, in one pass."""
        waiting: dict[int, set[_Unread]] = {}
        for instance in unread:
            waiting.setdefault(instance.place, set()).add(instance)
        places = sorted(waiting)
        for place, found in zip(places, self.read(places), strict=True):
            for instance in waiting[place]:
                self._let(instance, found)

    def fill_one(self, unread: _Unread) -> None:
        """Read one. Nobody knows which is next, so all are read, once."""
        with self._lock:
            if self._all is None:
                self._all = list(self)
        self._let(unread, self._all[unread.place])

    def _let(self, unread: _Unread, found: Instance) -> None:
        """Let an instance be the one that was read."""
        if self._finish is not None:
            self._finish(found)
        _become(unread, found)


class _Unread(Instance):
    """An instance of HELM's whose row is not read yet. It becomes a plain Instance when it is."""

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
        self.rows.fill_one(self)
        return getattr(self, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.rows.fill_one(self)
        return self.__reduce_ex__(protocol)  # an Instance's, by now


def _become(unread: _Unread, instance: Instance) -> None:
    _set(unread, "__dict__", instance.__dict__)
    _set(unread, "__class__", Instance)


def read_unread(instances: Iterable[Instance]) -> None:
    """Read those of the instances that have not been read, in one pass over each file. May raise DatasetError."""
    waiting: dict[int, tuple[UnreadRows, list[_Unread]]] = {}
    for instance in instances:
        if isinstance(instance, _Unread):
            waiting.setdefault(id(instance.rows), (instance.rows, []))[1].append(instance)
    for rows, unread in waiting.values():
        rows.fill(unread)
