"""Pairs of rows that share many words, out of all pairs: for small files, every pair is compared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations, pairwise
from operator import itemgetter
from zlib import crc32

from helm_ext.analysis.lint.texts import split_words

LEAST_ALIKE = {True: 0.3, False: 0.45}
"""Of the shares of common words and pairs of words: pairs below are not proposed. The second where the gold is not
rare, and only questions that are nearly equal count."""
NEAREST = 4
"""Of a row's pairs those are proposed that are most alike."""

Views = tuple[str, str]
"""What is compared of a row: all of it, and what is its own; "" for what is not compared."""


class AllPairs:
    """Compares all pairs of rows."""

    def __init__(self) -> None:
        self._views: list[Views] = []

    def see(self, views: Views) -> None:
        """Look at a row."""
        self._views.append(views)

    def find(self, classes: Sequence[int], rare: Sequence[int]) -> list[tuple[int, int]]:
        """Return the pairs of one class that are alike, of each row the nearest ones, in order of the second."""
        by_class: defaultdict[int, list[int]] = defaultdict(list)
        for place, of in enumerate(classes):
            by_class[of].append(place)
        shares: dict[tuple[int, int], float] = {}
        for texts in zip(*self._views, strict=True):
            shingles = [to_shingles(text) if text else set() for text in texts]
            for members in by_class.values():
                for pair in combinations([place for place in members if texts[place]], 2):
                    one, two = (shingles[place] for place in pair)
                    common = len(one & two)
                    share = common / (len(one) + len(two) - common)
                    if share >= LEAST_ALIKE[bool(rare[pair[0]])]:
                        shares[pair] = max(share, shares.get(pair, 0))
        kept, often = [], Counter[int]()
        for pair in sorted(shares, key=lambda pair: (-shares[pair], pair)):
            if any(often[place] < NEAREST for place in pair):
                kept.append(pair)
            often.update(pair)
        return sorted(kept, key=itemgetter(1, 0))


def to_shingles(text: str) -> set[int]:
    """Return numbers for the words, and the pairs of words, of a text."""
    words = [crc32(word.encode("utf-8", "surrogatepass")) for word in split_words(text)]
    return {*words, *((one * 31 + two) & 0xFFFFFFFF for one, two in pairwise(words))} or {0}
