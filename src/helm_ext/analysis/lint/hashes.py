"""What comes again among many hashes: eight bytes each, and no object."""

from __future__ import annotations

from array import array
from collections import Counter

__all__ = ["find_frequent"]

COUNTED = 20_000
"""So many are counted without numpy, whose import takes longer."""


def find_frequent(hashes: array[int], least: int) -> frozenset[int]:
    """Return those that stand there `least` times or more."""
    if len(hashes) <= COUNTED:
        return frozenset(value for value, number in Counter(hashes).items() if number >= least)
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, np.int64))
    again = ordered[least - 1 :] == ordered[: len(ordered) - least + 1]
    return frozenset(ordered[least - 1 :][again].tolist())
