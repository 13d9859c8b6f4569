"""The rows of a large dataset: stored, and made into HELM's instances when somebody looks at them, and not before.

HELM plans a run without knowing how many rows it will score, takes all of them from the scenario, looks at ids and
splits, and then keeps those that `--max-eval-instances` allows. So ids, splits and whatever else decides who takes part
are columns beside the store, and HELM is handed instances that know their id and split, and become the row that they
stand for when anything else of it is asked for.

Plain equivalent: a list of HELM's instances. Saves 0.57 GB and more than half of the time of `helm-run -m 10` on
200,000 chat records. Held equal by tests/unit/formats/innodata/test_innodata_unread.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np
from helm.benchmark.scenarios.scenario import Input as HelmInput
from helm.benchmark.scenarios.scenario import Instance, Reference

if TYPE_CHECKING:
    from numpy.typing import NDArray

BOTH, LIVE, RECORDED = 0, 1, 2
"""`RowExtra.only`, by code."""

_AT_A_TIME = 4096
"""Places that are Python's numbers."""

_set = object.__setattr__


class Store(Protocol):
    """Records, numbered from 0 (`files.store`), or found by what else `StoredRows.numbers` holds.

    Can be sent to another process of this machine.
    """

    def read(self, numbers: Sequence[Any]) -> Iterator[Any]:
        """Return the records of these numbers, in any order."""


@dataclass(frozen=True)
class RowKeys:
    """What `StoredRows.make_rows` must know of some rows: sent with them to another process, where no columns are."""

    columns: tuple[NDArray[Any], ...]
    """`StoredRows.numbers`, then `told`."""

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, some: slice | NDArray[Any]) -> RowKeys:
        return RowKeys(tuple(column[some] for column in self.columns))


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredRows(Sequence[Instance]):
    """The instances of a dataset, for runs of any kind. Whoever goes through them has them made; nothing is kept.

    Can be sent to another process of this machine, without its columns where those of some rows come with each task.
    Columns have a number for each instance.
    """

    store: Store
    make: Callable[..., Instance]
    """Makes the instance of a record. Its other arguments are the instance's numbers of the columns `told`."""
    numbers: NDArray[Any]
    """Of each, its record's number."""
    told: tuple[NDArray[Any], ...] = ()
    """Columns that `make` needs."""
    splits: tuple[str, ...]
    split: NDArray[np.uint8]
    """By `splits`."""
    only: NDArray[np.uint8]
    """Kinds of runs that it takes part in: BOTH, LIVE, RECORDED."""
    status: NDArray[np.uint8] | None = None
    """By `evalset.STATUSES`; None where nothing is recorded."""
    unrecorded: NDArray[np.uint8] | None = None
    """Bits of `Unrecorded`."""
    is_kept: bool = False
    """Whether the records are in memory."""
    has_perturbations: bool = False
    has_labels: bool = False
    """Whether there is a row whose completion is read as one of its options."""
    ids: Sequence[str] | None = None
    """Where they are known without reading."""

    def read(self, places: Sequence[int] | NDArray[Any]) -> Iterator[Instance]:
        """Yield the instances of these places, in any order."""
        places = np.asarray(places, np.intp)
        for start in range(0, len(places), _AT_A_TIME):
            yield from self.make_rows(self.keys[places[start : start + _AT_A_TIME]])

    @property
    def keys(self) -> RowKeys:
        """What must be known to make each."""
        return RowKeys((self.numbers, *self.told))

    def make_rows(self, keys: RowKeys) -> Iterator[Instance]:
        """Return the instances of these keys, made one by one."""
        numbers, *told = (column.tolist() for column in keys.columns)
        return map(self.make, self.store.read(numbers), *told)

    def without_columns(self) -> StoredRows:
        """Return what makes instances of keys alone: its size does not depend on the number of rows."""
        nothing = np.zeros(0, np.uint8)
        return replace(
            self, numbers=nothing, told=(), split=nothing, only=nothing, status=None, unrecorded=None, ids=None
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Instance]:
        return self.read(np.arange(len(self)))

    @overload
    def __getitem__(self, place: int) -> Instance: ...
    @overload
    def __getitem__(self, place: slice) -> list[Instance]: ...
    def __getitem__(self, place: int | slice) -> Instance | list[Instance]:
        places = range(len(self))[place]
        if isinstance(places, int):
            return next(self.read([places]))
        return list(self.read(places))

    def is_of(self, splits: Sequence[str]) -> NDArray[np.bool_]:
        """Return which instances are of one of these splits."""
        return np.isin(self.split, [code for code, split in enumerate(self.splits) if split in splits])

    def count_splits(self, kind: Literal["recorded", "live"]) -> Counter[str]:
        """Return how many instances of each split take part in runs of this kind."""
        takes_part = self.split[self.only != (LIVE if kind == "recorded" else RECORDED)]
        return Counter({self.splits[code]: rows for code, rows in enumerate(np.bincount(takes_part).tolist()) if rows})

    def find_splits(self) -> set[str]:
        """Return the splits that occur."""
        return {self.splits[code] for code in np.flatnonzero(np.bincount(self.split)).tolist()}

    def find_unrecorded(self, places: NDArray[Any]) -> int:
        """Return what at least one of these rows does not hold; those that have no recording do not count."""
        assert self.status is not None
        assert self.unrecorded is not None
        return int(np.bitwise_or.reduce(self.unrecorded[places[self.status[places] == 0]], initial=0))

    @property
    def can_wait(self) -> bool:
        """Whether rows can be handed out before they are made: ids are known, and nothing but the split decides."""
        return self.ids is not None and self.status is None

    def hand_out(self, finish: Callable[[Instance], None] = lambda _: None) -> list[Instance]:
        """Return an instance for each row that has not been made yet. `finish`: what is done to each when it is."""
        assert self.ids is not None
        codes = self.split.tolist()
        return [
            _Waiting(rows=self, place=place, id=one, split=self.splits[codes[place]], finish=finish)
            for place, one in enumerate(self.ids)
        ]


class _Waiting(Instance):
    """An instance of HELM's that is not made yet. It becomes a plain Instance when it is."""

    rows: StoredRows
    place: int
    finish: Callable[[Instance], None]

    def __init__(self, **known: Any) -> None:
        self.__dict__.update(known)  # HELM's class is frozen

    @property
    def input(self) -> HelmInput:
        return self._make("input")

    @property
    def references(self) -> list[Reference]:
        return self._make("references")

    @property
    def extra_data(self) -> dict[str, Any] | None:
        return self._make("extra_data")

    def _make(self, name: str) -> Any:
        make_all([self])
        return getattr(self, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        make_all([self])
        return self.__reduce_ex__(protocol)  # an Instance's, by now


def make_all(instances: Iterable[Instance]) -> None:
    """Make those of the instances that `hand_out` has returned, unless they have been made."""
    waiting: dict[int, dict[int, _Waiting]] = {}
    for instance in instances:
        if isinstance(instance, _Waiting):
            waiting.setdefault(id(instance.rows), {})[id(instance)] = instance
    for of_rows in waiting.values():
        unmade = [*of_rows.values()]
        for one, made in zip(unmade, unmade[0].rows.read([one.place for one in unmade]), strict=True):
            one.finish(made)
            _set(one, "__dict__", made.__dict__)
            _set(one, "__class__", Instance)


class Unrecorded:
    """What a recording may not hold, as bits: stats that would be made of it are not measured."""

    TOKENS = 1
    LOGPROBS = 2
    """Log-probabilities: some that are not 0, and none that is no number."""
    TRAIN_INSTANCES = 4
    TRUNCATED = 8


def find_unrecorded(state: Mapping[str, Any]) -> int:
    """Return what a recording (`RecordedState`) does not hold, as bits of `Unrecorded`.

    Of log-probabilities what `scoring.completeness` finds out of HELM's.
    """
    found = 0 if "num_train_instances" in state else Unrecorded.TRAIN_INSTANCES
    found |= 0 if "prompt_truncated" in state else Unrecorded.TRUNCATED
    is_measured = False
    for completion in state["result"]["completions"]:
        logprob, tokens = completion.get("logprob") or 0.0, completion.get("tokens")
        is_measured = is_measured or logprob != 0
        if not tokens:
            found |= Unrecorded.TOKENS
        if not math.isfinite(logprob) or (tokens and not math.isfinite(sum([t.get("logprob") or 0.0 for t in tokens]))):
            found |= Unrecorded.LOGPROBS
    return found if is_measured else found | Unrecorded.LOGPROBS
