"""A few numbers of each row of a dataset that is not held in memory: what decides who takes part in a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LIVE", "RECORDED", "STATUSES", "Recordings", "RowColumns"]

STATUSES = ("ok", "not_run", "failed", "unscored")
"""`Recorded.status`, by code."""
BOTH, LIVE, RECORDED = 0, 1, 2
"""`RowExtra.only`, by code."""


@dataclass(frozen=True, kw_only=True)
class Recordings:
    """What is recorded of each row."""

    status: NDArray[np.uint8]
    """By STATUSES."""
    unmeasured: NDArray[np.uint8]
    """By `names`."""
    names: tuple[frozenset[str], ...]
    """Sets of stats that nobody measured."""

    def find_unmeasured(self, places: NDArray[Any]) -> frozenset[str]:
        """Return the stats that were not measured of all these rows."""
        usable = places[self.status[places] == 0]
        return frozenset().union(*(self.names[code] for code in np.unique(self.unmeasured[usable]).tolist()))


@dataclass(frozen=True, kw_only=True)
class RowColumns:
    """The columns, one number an instance each."""

    splits: tuple[str, ...]
    split: NDArray[np.uint8]
    """By `splits`."""
    only: NDArray[np.uint8]
    """Kinds of runs that it takes part in: BOTH, LIVE, RECORDED."""
    has_perturbations: bool = False
    has_labels: bool = False
    """Whether there is a row whose completion is read as one of its options."""
    recordings: Recordings | None = None
    """None where there are none."""

    def __len__(self) -> int:
        return len(self.split)

    def is_of(self, splits: Sequence[str]) -> NDArray[np.bool_]:
        """Return which instances are of one of these splits."""
        return np.isin(self.split, [code for code, split in enumerate(self.splits) if split in splits])

    def find_splits(self) -> set[str]:
        """Return the splits that occur."""
        return {self.splits[code] for code in np.unique(self.split).tolist()}
