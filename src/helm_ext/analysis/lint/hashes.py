"""What comes again among many hashes, which are kept as numbers: eight bytes each."""

from __future__ import annotations

from array import array
from collections import Counter

__all__ = ["find_frequent"]

COUNTED = 20_000
"""Up to this many are counted without numpy, whose import takes longer."""


def find_frequent(hashes: array[int], least: int) -> frozenset[int]:
    """Return those that stand there `least` times or more."""
    if len(hashes) <= COUNTED:
        return frozenset(value for value, number in Counter(hashes).items() if number >= least)
    import numpy as np

    values, numbers = np.unique(np.frombuffer(hashes, np.int64), return_counts=True)
    return frozenset(values[numbers >= least].tolist())
