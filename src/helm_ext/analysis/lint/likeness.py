"""Pairs of rows that share many words, out of all pairs.

In small files all pairs are compared (`all_pairs`). In others MinHash proposes some (`minhash`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from helm_ext.analysis.lint.all_pairs import compare_all
from helm_ext.analysis.lint.rows import Row
from helm_ext.analysis.lint.texts import find_figures

__all__ = ["ALL_PAIRS", "find_candidates"]

ALL_PAIRS = 300
"""Of so many rows all pairs are compared: that takes less time than the import of what MinHash needs (datasketch, and
numpy and scipy with it: 0.4 s)."""
MOST_CONTEXT = 6
"""A row is compared as a whole if it is at most so many times as long as its own sentences."""
SHORT = 300
"""Characters. So short a row is compared as a whole too."""


def find_candidates(
    rows: Sequence[Row], golds: Sequence[int], rare: Sequence[bool], context: Collection[int]
) -> list[tuple[int, int]]:
    """Return pairs of places in the list, the lower first, in order of the second.

    Two rows of a pair have one number among `golds`, and all figures in one order. `rare` says where the gold means
    something. `context` are sentences that many rows share: where they are the greater part of a row, what remains is
    compared; where they are the smaller one, all is; and both where it is neither.
    """
    classes = [hash((gold, find_figures("\n".join(row.parts)))) for row, gold in zip(rows, golds, strict=True)]
    views = list(zip(*(_views(row, context) for row in rows), strict=True))
    if len(rows) <= ALL_PAIRS:
        pairs = compare_all(views, classes, rare)
    else:
        from helm_ext.analysis.lint.minhash import propose_pairs

        pairs = propose_pairs(views, classes, rare)
    return [(low, high) for high, low in sorted((high, low) for low, high in pairs)]


def _views(row: Row, context: Collection[int]) -> tuple[str, str]:
    """Return all of a row's text, and its own sentences; "" for what is not compared."""
    parts = row.parts
    own = [part for part in parts if hash(part) not in context]
    everything, rest = sum(map(len, parts)), sum(map(len, own))
    options = sorted(row.options)
    return (
        "\n".join([*parts, *options]) if not own or everything <= max(SHORT, MOST_CONTEXT * rest) else "",
        "\n".join([*own, *options]) if own and len(own) < len(parts) else "",
    )
