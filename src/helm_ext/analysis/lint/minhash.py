"""Pairs of rows that share many words, in time that grows with the rows and not with the pairs.

MinHash (Broder 1997, "On the resemblance and containment of documents") over words and pairs of words, in bands
(Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4). Of two questions that share half of what they consist
of, 94 % are proposed with bands of three hashes; of two that share a tenth, 2 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from helm_ext.analysis.lint.all_pairs import LEAST_ALIKE, NEAREST, View, to_shingles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Places = NDArray[np.int64]

__all__ = ["propose_pairs"]

HASHES = 63
BAND = 3
"""Hashes of a band."""
CROWD = 12
"""Where more rows fall into one bucket, not all pairs are proposed."""
NEIGHBOURS = 3
"""There each is paired with so many that share its rarest words."""
CHUNK = 100_000


def propose_pairs(views: Sequence[View], classes: Sequence[int], rare: Sequence[bool]) -> list[tuple[int, int]]:
    """Return pairs of rows of one class that are alike as far as MinHash tells, of each row the nearest ones."""
    of = np.array(classes, dtype=np.int64)
    is_rare = np.array(rare, dtype=bool)
    found = []
    for view in views:
        members = [place for place, text in enumerate(view) if text]
        if members:
            texts = [view[place] for place in members]
            found.append(_Index(np.array(members, dtype=np.int64), texts, of, is_rare).find())
    pairs = _keep_nearest(np.concatenate(found)) if found else np.empty((0, 2), dtype=np.int64)
    return list(zip(pairs[:, 0].tolist(), pairs[:, 1].tolist(), strict=True))


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
            shingles = to_shingles(text)
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
        return sorted((self._often[shingle], shingle) for shingle in to_shingles(self._texts[index]))[:4]
