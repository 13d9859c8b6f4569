"""How the scores of several completions of one row become the score of the row (`scoring.completions`).

The names and rules are those of inspect_ai's epoch reducers (inspect_ai/scorer/_reducer/reducer.py). `first` is the
default: the first completion is the answer, and the others count for nothing.

| name           | the row's score                                                                          |
|----------------|------------------------------------------------------------------------------------------|
| `first`        | that of the first completion                                                             |
| `mean`         | the mean                                                                                 |
| `median`       | the median                                                                               |
| `mode`         | the most frequent value, the first of equally frequent ones                              |
| `max`          | the highest                                                                              |
| `at_least_K`   | 1 if at least K completions score 1 or more, else 0                                      |
| `pass_at_K`    | the probability that of K completions drawn from all one scores 1 or more                |
| `pass_k_K`     | the probability that K completions drawn from all score 1 or more, each                  |
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TypeVar

__all__ = ["FIRST", "REDUCER_NAMES", "Reducer", "find_reducer", "mode"]

FIRST = "first"
REDUCER_NAMES = (FIRST, "mean", "median", "mode", "max", "at_least_K", "pass_at_K", "pass_k_K")
"""K stands for a whole number from 1 on."""

Reducer = Callable[[Sequence[float]], "float | None"]
"""From the scores of the completions, at least one, to that of the row. None: there are too few of them for K."""

T = TypeVar("T")

_WITH_NUMBER = re.compile(r"(at_least|pass_at|pass_k)_([1-9][0-9]{0,5})", re.ASCII)
_RIGHT = 1.0
"""A score from which on a completion counts as right."""


@lru_cache(maxsize=64)
def find_reducer(name: str) -> Reducer | None:
    """Return the reducer of a name, None for a name of none."""
    if name in _PLAIN:
        return _PLAIN[name]
    match = _WITH_NUMBER.fullmatch(name)
    return partial(_WITH_K[match[1]], int(match[2])) if match else None


def mode(values: Sequence[T]) -> T:
    """Return the most frequent of some values, the first of those that are equally frequent."""
    return Counter(values).most_common(1)[0][0]


def _mean(scores: Sequence[float]) -> float:
    return math.fsum(scores) / len(scores)


def _at_least(k: int, scores: Sequence[float]) -> float:
    return float(_count_right(scores) >= k)


def _pass_at(k: int, scores: Sequence[float]) -> float | None:
    """1 - C(wrong, k) / C(all, k) (https://arxiv.org/abs/2107.03374)."""
    if len(scores) < k:
        return None
    return 1.0 - math.comb(len(scores) - _count_right(scores), k) / math.comb(len(scores), k)


def _pass_k(k: int, scores: Sequence[float]) -> float | None:
    """C(right, k) / C(all, k) (https://arxiv.org/abs/2406.12045)."""
    if len(scores) < k:
        return None
    return math.comb(_count_right(scores), k) / math.comb(len(scores), k)


def _count_right(scores: Sequence[float]) -> int:
    return sum(score >= _RIGHT for score in scores)


_PLAIN: dict[str, Reducer] = {
    FIRST: lambda scores: scores[0],
    "mean": _mean,
    "median": statistics.median,
    "mode": mode,
    "max": max,
}
_WITH_K: dict[str, Callable[[int, Sequence[float]], float | None]] = {
    "at_least": _at_least,
    "pass_at": _pass_at,
    "pass_k": _pass_k,
}
