"""Pairs of rows that share many words, out of all pairs.

In small files all pairs are compared (`all_pairs`). In others MinHash proposes some (`minhash`).
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from helm_ext.analysis.lint.all_pairs import AllPairs, Views
from helm_ext.analysis.lint.rows import Row
from helm_ext.analysis.lint.texts import find_figures

if TYPE_CHECKING:
    from helm_ext.analysis.lint.minhash import MinHashPairs

ALL_PAIRS = 300
"""Of up to this many rows all pairs are compared: none is missed, and numpy, which MinHash needs, is not
imported."""
MOST_CONTEXT = 6
"""A row is compared as a whole if it is at most this many times as long as its own sentences."""
SHORT = 300
"""Characters. So short a row is compared as a whole too."""


class Candidates:
    """Finds pairs of rows that share many words.

    Two rows of a pair have one gold, and all figures in one order. Where sentences that many rows share are the greater
    part of a row, what remains is compared; where they are the smaller one, all is; and both where it is neither.
    """

    def __init__(self, rare: Sequence[int], context: Collection[int]) -> None:
        """`rare` says of each row whether the gold means something. `context`: sentences that many rows share."""
        self._rare = rare
        self._context = context
        self._classes = array("q")
        self._proposer: AllPairs | MinHashPairs
        if len(rare) <= ALL_PAIRS:
            self._proposer = AllPairs()
        else:
            from helm_ext.analysis.lint.minhash import MinHashPairs

            self._proposer = MinHashPairs()

    def see(self, row: Row, gold: int) -> None:
        """Look at a row; `gold` is a number for what is right."""
        self._classes.append(hash((gold, find_figures("\n".join(row.parts)))))
        self._proposer.see(_views(row, self._context))

    def find(self) -> Sequence[tuple[int, int]]:
        """Return pairs of numbers, the lower first, in order of the second."""
        return self._proposer.find(self._classes, self._rare)


def _views(row: Row, context: Collection[int]) -> Views:
    """Return all of a row's text, and its own sentences; "" for what is not compared."""
    parts = row.parts
    own = [part for part in parts if hash(part) not in context]
    everything, rest = sum(map(len, parts)), sum(map(len, own))
    options = sorted(row.options)
    return (
        "\n".join([*parts, *options]) if not own or everything <= max(SHORT, MOST_CONTEXT * rest) else "",
        "\n".join([*own, *options]) if own and len(own) < len(parts) else "",
    )
