"""Which answers people label, drawn with known chances.

random          every answer has one chance
by_verdict      equal numbers of each verdict of the judge
disagreements   equal numbers of each pair of verdicts, of two judges or of two models on one question

In each stratum (all answers with one verdict) the draw is simple random sampling: answers stand in the order of a hash
of the seed and what they are, and the first ones are taken. The order of a file and its other rows make no difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

DESIGNS = ("random", "by_verdict", "disagreements")

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Drawn(Generic[T]):
    """Something that was drawn."""

    key: T
    stratum: str
    p: float
    """The chance that it had."""


def order(keys: Sequence[T], seed: int, purpose: str) -> list[T]:
    """Return the keys shuffled: by a hash of each, the seed and what it is for. `repr` tells keys apart."""
    return sorted(
        keys, key=lambda key: hashlib.sha256(f"{purpose}\0{seed}\0{key!r}".encode("utf-8", "replace")).digest()
    )


def draw(strata: Mapping[str, Sequence[T]], number: int, seed: int) -> list[Drawn[T]]:
    """Return `number` keys, or all where there are fewer: equally many of each stratum, as far as it has them."""
    sizes = allocate({name: len(keys) for name, keys in strata.items()}, number)
    return [
        Drawn(key, name, sizes[name] / len(keys))
        for name, keys in sorted(strata.items())
        for key in order(keys, seed, "draw")[: sizes[name]]
    ]


def allocate(sizes: Mapping[str, int], number: int) -> dict[str, int]:
    """Return how many of each stratum: equal numbers, and what small ones lack is shared by the others.

    Of what cannot be shared equally, larger strata get one more.
    """
    taken = dict.fromkeys(sizes, 0)
    left = min(number, sum(sizes.values()))
    while left:
        able = sorted((name for name in sizes if taken[name] < sizes[name]), key=lambda name: (-sizes[name], name))
        share = max(1, left // len(able))
        for name in able:
            more = min(share, sizes[name] - taken[name], left)
            taken[name] += more
            left -= more
    return taken
