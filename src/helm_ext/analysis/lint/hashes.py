"""What comes again among many hashes, which are kept as numbers: eight bytes each."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COUNTED = 20_000
"""Up to this many are counted without numpy, whose import takes longer."""


def find_frequent(hashes: array[int], least: int) -> frozenset[int]:
    """Return those that stand there `least` times or more."""
    if len(hashes) <= COUNTED:
        return frozenset(value for value, number in Counter(hashes).items() if number >= least)
    import numpy as np

    values = np.sort(np.frombuffer(hashes, np.int64))
    last = values[least - 1 :]
    return frozenset(np.unique(last[last == values[: len(last)]]).tolist())


class SeenHashes:
    """A set of hashes: eight bytes each, but for the latest."""

    def __init__(self) -> None:
        self._latest: set[int] = set()
        self._sorted: NDArray[np.int64] | None = None

    def add(self, value: int) -> bool:
        """Add a hash; return whether it was not there before."""
        if value in self._latest or (self._sorted is not None and self._is_sorted_in(value, self._sorted)):
            return False
        self._latest.add(value)
        if len(self._latest) > COUNTED:
            import numpy as np

            latest = np.fromiter(self._latest, np.int64, len(self._latest))
            known = [] if self._sorted is None else [self._sorted]
            self._sorted, self._latest = np.sort(np.concatenate([*known, latest])), set()
        return True

    @staticmethod
    def _is_sorted_in(value: int, known: NDArray[np.int64]) -> bool:
        place = int(known.searchsorted(value))
        return place < len(known) and int(known[place]) == value
