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

How much a row's score would vary if the model answered once more is known of `mean`, `pass_at_K` and `pass_k_K`, from
more than one completion, and more than K (`find_noise`).
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TypeVar

FIRST = "first"
REDUCER_NAMES = (FIRST, "mean", "median", "mode", "max", "at_least_K", "pass_at_K", "pass_k_K")
"""K stands for a whole number from 1 on."""

Reducer = Callable[[Sequence[float]], "float | None"]
"""From the scores of the completions, at least one, to that of the row. None: there are too few of them for K."""

Noise = Callable[[Sequence[float]], "float | None"]
"""From the scores of the completions to the variance of the row's score, were the row answered as often again. None:
there are too few of them to tell."""

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


@lru_cache(maxsize=64)
def find_noise(name: str) -> Noise:
    """Return what says how noisy a reducer's score of a row is; of most reducers it says that nobody knows."""
    if name == "mean":
        return lambda scores: statistics.variance(scores) / len(scores) if len(scores) > 1 else None
    match = _WITH_NUMBER.fullmatch(name)
    if match is None or match[1] == "at_least":
        return lambda scores: None  # noqa: ARG005
    return partial(_noise_of_draws, int(match[2]), match[1] == "pass_k")


def mode(values: Sequence[T]) -> T:
    """Return the most frequent of some values, the first of those that are equally frequent."""
    return Counter(values).most_common(1)[0][0]


def _mean(scores: Sequence[float]) -> float:
    return math.fsum(scores) / len(scores)


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


def _noise_of_draws(k: int, of_right: bool, scores: Sequence[float]) -> float | None:
    """Return the variance of C(m, k) / C(n, k), m being those of n completions that are right, or wrong.

    From 2 k completions on without bias: the squared expectation is estimated by C(m, 2k) / C(n, 2k). Of fewer that
    cannot be done; the jackknife is then too large rather than too small (Efron and Stein 1981).
    """
    n, right = len(scores), _count_right(scores)
    m = right if of_right else n - right
    if n <= k:
        return None
    share = math.comb(m, k) / math.comb(n, k)
    if n >= 2 * k:
        return share**2 - math.comb(m, 2 * k) / math.comb(n, 2 * k)
    less, more = (math.comb(left, k) / math.comb(n - 1, k) for left in (max(0, m - 1), m))
    return (n - 1) / n * (m * (less - share) ** 2 + (n - m) * (more - share) ** 2)


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
    "at_least": lambda k, scores: float(_count_right(scores) >= k),
    "pass_at": _pass_at,
    "pass_k": _pass_k,
}
