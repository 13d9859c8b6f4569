"""Pairs of rows that share many words, out of all pairs, in time that grows with the rows and not with the pairs.

MinHash (Broder 1997, "On the resemblance and containment of documents") over words and pairs of words, in bands
(Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4). Of two questions that share half of what they consist
of, 94 % are proposed with bands of three hashes; of two that share a tenth, 2 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from helm_ext.analysis.lint.rows import Row
from helm_ext.analysis.lint.texts import find_figures, split_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Places = NDArray[np.int64]

__all__ = ["find_candidates"]

HASHES = 63
BAND = 3
"""Hashes of a band."""
LEAST_ALIKE = {True: 0.3, False: 0.45}
"""Of the shares of common words and pairs of words, as MinHash estimates them: pairs below are not proposed. The second
where the gold is not rare, and only questions that are nearly equal count."""
MOST_CONTEXT = 6
"""A row is compared as a whole if it is at most so many times as long as its own sentences."""
SHORT = 300
"""Characters. So short a row is compared as a whole too."""
CROWD = 12
"""Where more rows fall into one bucket, not all pairs are proposed."""
NEIGHBOURS = 3
"""There each is paired with so many that share its rarest words."""
NEAREST = 2
"""Of a row's pairs those are proposed that are most alike."""
CHUNK = 100_000


def find_candidates(
    rows: Sequence[Row], golds: Sequence[int], rare: Sequence[bool], context: Collection[int]
) -> list[tuple[int, int]]:
    """Return pairs of places in the list, the lower first, in order of the second.

    Two rows of a pair have one number among `golds`, and all figures in one order. `rare` says where the gold means
    something. `context` are sentences that many rows share: where they are the greater part of a row, what remains is
    compared; where they are the smaller one, all is; and both where it is neither.
    """
    classes = np.array(
        [hash((gold, find_figures("\n".join(row.parts)))) for row, gold in zip(rows, golds, strict=True)],
        dtype=np.int64,
    )
    is_rare = np.array(rare, dtype=bool)
    views = [_views(row, context) for row in rows]
    found = []
    for view in range(2):
        members = [place for place, some in enumerate(views) if some[view]]
        if members:
            texts = [views[place][view] for place in members]
            found.append(_Index(np.array(members, dtype=np.int64), texts, classes, is_rare).find())
    pairs = _keep_nearest(np.concatenate(found)) if found else np.empty((0, 2), dtype=np.int64)
    return [(low, high) for high, low in sorted(zip(pairs[:, 1].tolist(), pairs[:, 0].tolist(), strict=True))]


def _keep_nearest(pairs: _Places) -> _Places:
    """Return, of (row, row, equal hashes), each pair once that is one of the nearest of either of its rows."""
    pairs = pairs[np.lexsort((-pairs[:, 2], pairs[:, 1], pairs[:, 0]))]
    pairs = pairs[np.diff(pairs[:, 0] * (pairs[:, :2].max(initial=0) + 1) + pairs[:, 1], prepend=-1) != 0]
    is_kept = np.zeros(len(pairs), dtype=bool)
    for side in range(2):
        order = np.lexsort((-pairs[:, 2], pairs[:, side]))
        starts = np.flatnonzero(np.diff(pairs[order, side], prepend=-1) != 0)
        sizes = np.diff(np.append(starts, len(order)))
        rank = np.arange(len(order)) - np.repeat(starts, sizes)
        is_kept[order[rank < NEAREST]] = True
    return pairs[is_kept, :2]


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


class _Index:
    """The signatures of texts, each of a row."""

    def __init__(self, places: _Places, texts: Sequence[str], classes: _Places, is_rare: NDArray[np.bool_]) -> None:
        self._places = places
        self._texts = texts
        self._classes = classes[places]
        self._is_rare = is_rare[places]
        self._often: Counter[int] = Counter()
        """In how many texts each word, and each pair of words, stands."""
        self._signatures = self._sign()

    def find(self) -> _Places:
        """Return (place, place, equal hashes), the lower place first, some of them twice."""
        found = [np.empty((0, 3), dtype=np.int64)]
        for rare in (True, False):
            members = np.flatnonzero(self._is_rare == rare)
            crowds: set[int] = set()
            for start in range(0, HASHES if len(members) else 0, BAND):
                order, bucket, sizes = self._put_into_buckets(members, start, start + BAND)
                is_crowd = sizes > CROWD
                crowds.update(self._classes[order[is_crowd[bucket]]].tolist())
                for step in range(1, min(CROWD, int(sizes.max()))):
                    at = np.flatnonzero((bucket[:-step] == bucket[step:]) & ~is_crowd[bucket[:-step]])
                    found += self._keep_alike(order[at], order[at + step], LEAST_ALIKE[rare])
            found += self._keep_alike(*self._find_neighbours(crowds, members), LEAST_ALIKE[rare])
        return np.concatenate(found)

    def _sign(self) -> NDArray[np.uint32]:
        from datasketch import MinHash

        signatures = np.empty((len(self._texts), HASHES), dtype=np.uint32)
        for index, made in enumerate(MinHash.generator(self._count_shingles(), num_perm=HASHES, hashfunc=int)):
            signatures[index] = made.hashvalues
        return signatures

    def _count_shingles(self) -> Iterator[set[int]]:
        for text in self._texts:
            shingles = _shingles(text)
            self._often.update(shingles)
            yield shingles

    def _put_into_buckets(self, members: _Places, start: int, end: int) -> tuple[_Places, ...]:
        """Return the members, those of one bucket together; the bucket of each; and the buckets' sizes.

        A bucket holds rows of one class with the same hashes from `start` to `end`.
        """
        mixed = self._classes[members].astype(np.uint64)
        for column in self._signatures[members, start:end].T:
            mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        order = np.argsort(mixed, kind="stable")
        is_first = np.diff(mixed[order], prepend=~mixed[order[:1]]) != 0
        bucket = np.cumsum(is_first) - 1
        return members[order], bucket, np.bincount(bucket)

    def _keep_alike(self, ones: _Places, twos: _Places, least: float) -> Iterator[_Places]:
        """Yield the pairs whose signatures are alike, some thousands at a time."""
        for start in range(0, len(ones), CHUNK):
            one, two = ones[start : start + CHUNK], twos[start : start + CHUNK]
            equal = (self._signatures[one] == self._signatures[two]).sum(axis=1)
            alike = equal >= least * HASHES
            first, second = self._places[one[alike]], self._places[two[alike]]
            yield np.stack((np.minimum(first, second), np.maximum(first, second), equal[alike]), axis=1)

    def _find_neighbours(self, crowds: set[int], members: _Places) -> tuple[_Places, _Places]:
        """Return pairs of the members of crowded classes that share their rarest words."""
        by_class: dict[int, list[int]] = {crowd: [] for crowd in crowds}
        for index, crowd in zip(members.tolist(), self._classes[members].tolist(), strict=True) if crowds else ():
            if crowd in by_class:
                by_class[crowd].append(index)
        ones: list[int] = []
        twos: list[int] = []
        for indexes in by_class.values():
            ordered = sorted(indexes, key=self._rarest)
            for step in range(1, NEIGHBOURS + 1):
                ones += ordered[:-step]
                twos += ordered[step:]
        return np.array(ones, dtype=np.int64), np.array(twos, dtype=np.int64)

    def _rarest(self, index: int) -> list[tuple[int, int]]:
        return sorted((self._often[shingle], shingle) for shingle in _shingles(self._texts[index]))[:4]


def _shingles(text: str) -> set[int]:
    """Return numbers for the words, and the pairs of words, of a text."""
    words = [crc32(word.encode("utf-8", "surrogatepass")) for word in split_words(text)]
    return {*words, *((one * 31 + two) & 0xFFFFFFFF for one, two in pairwise(words))} or {0}
