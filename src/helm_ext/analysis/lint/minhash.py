"""Pairs of rows that share many words, in time that grows with the rows and not with the pairs.

MinHash (Broder 1997, "On the resemblance and containment of documents") over words and pairs of words, in bands
(Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4). Of two questions that share half of what they consist
of, 94 % are proposed with bands of three hashes; of two that share a tenth, 2 %.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from helm_ext.analysis.lint.all_pairs import LEAST_ALIKE, NEAREST, Views, to_shingles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Places = NDArray[np.int64]

__all__ = ["MinHashPairs"]

HASHES = 63
BAND = 3
"""Hashes of a band."""
CROWD = 12
"""Where more rows fall into one bucket, not all pairs are proposed."""
NEIGHBOURS = 3
"""There each is paired with so many that share its rarest words."""
RAREST = 4
CHUNK = 100_000
MERGED = 4_000_000


class MinHashPairs:
    """Proposes pairs of rows as far as MinHash tells. Keeps a signature of each view of a row: 252 bytes."""

    def __init__(self, rows: int) -> None:
        self._indexes = _Index(rows), _Index(rows)
        self._seen = 0

    def see(self, views: Views) -> None:
        """Look at a row."""
        for index, text in zip(self._indexes, views, strict=True):
            if text:
                index.add(self._seen, text)
        self._seen += 1

    def find(
        self, classes: array[int], rare: Sequence[bool], again: Callable[[], Iterable[Views]]
    ) -> list[tuple[int, int]]:
        """Return pairs of rows of one class that are alike, of each row the nearest ones."""
        of = np.array(classes, dtype=np.int64)
        is_rare = np.array(rare, dtype=bool)
        found = [pairs for index in self._indexes for pairs in index.find(of, is_rare)]
        crowded = [side for side, index in enumerate(self._indexes) if index.is_crowded]
        if crowded:  # what their words are is not kept
            for views in again():
                for side in crowded:
                    if views[side]:
                        self._indexes[side].count(views[side])
            for place, views in enumerate(again()):
                for side in crowded:
                    if views[side]:
                        self._indexes[side].look_for_rarest(place, views[side])
            found += [pairs for side in crowded for pairs in self._indexes[side].find_neighbours()]
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
    """The signatures of one view of the rows."""

    def __init__(self, rows: int) -> None:
        from datasketch import MinHash

        self._minhash = MinHash(num_perm=HASHES, hashfunc=int)
        self._signatures = np.empty((rows, HASHES), dtype=np.uint32)
        """Of the rows that are compared in this view, one after the other; memory is taken as they come."""
        self._rows = array("q")
        """Which rows they are."""
        self._crowded: dict[bool, _Places] = {}
        """Places among the signatures, of classes with a bucket of many; by whether their gold is rare."""
        self._often = _Counts()
        """In how many texts each word, and each pair of words, stands."""
        self._rarest = np.empty((0, 0), dtype=np.int64)
        """Of crowded rows: the rarest words, and how often they stand somewhere."""
        self._next_crowded: Iterator[int] | None = None
        self._waiting: int | None = None

    def add(self, row: int, text: str) -> None:
        """Look at the text of a row."""
        self._minhash.clear()  # a new one, or a copy, takes as long as its hashes
        self._minhash.update_batch(to_shingles(text))
        self._signatures[len(self._rows)] = self._minhash.hashvalues
        self._rows.append(row)

    def find(self, classes: _Places, is_rare: NDArray[np.bool_]) -> Iterator[_Places]:
        """Yield (row, row, equal hashes), the lower row first, some of them twice."""
        self._places = np.array(self._rows, dtype=np.int64)
        self._classes = classes[self._places]
        for rare in (True, False):
            members = np.flatnonzero(is_rare[self._places] == rare)
            crowds: set[int] = set()
            for start in range(0, HASHES if len(members) else 0, BAND):
                order, bucket, sizes = self._put_into_buckets(members, start, start + BAND)
                is_crowd = sizes > CROWD
                crowds.update(self._classes[order[is_crowd[bucket]]].tolist())
                for step in range(1, min(CROWD, int(sizes.max()))):
                    at = np.flatnonzero((bucket[:-step] == bucket[step:]) & ~is_crowd[bucket[:-step]])
                    yield from self._keep_alike(order[at], order[at + step], LEAST_ALIKE[rare])
            if crowds:
                self._crowded[rare] = members[np.isin(self._classes[members], list(crowds))]

    @property
    def is_crowded(self) -> bool:
        """Whether many rows fell into one bucket: `find_neighbours` pairs them by their rarest words."""
        return bool(self._crowded)

    def count(self, text: str) -> None:
        """Count the words of a text: of all of them, before any is looked at for its rarest."""
        self._often.add(to_shingles(text))

    def look_for_rarest(self, row: int, text: str) -> None:
        """Note the rarest words of a row, if it is one of a crowd. All rows of this view come in order."""
        if self._next_crowded is None:
            places = np.sort(np.concatenate(list(self._crowded.values())))
            self._rarest = np.full((len(self._rows), 2 * RAREST), -1, dtype=np.int64)
            self._next_crowded = iter(places.tolist())
            self._waiting = next(self._next_crowded, None)
        if self._waiting is not None and self._rows[self._waiting] == row:
            rarest = self._often.find_rarest(to_shingles(text))
            self._rarest[self._waiting, : len(rarest)] = rarest
            self._waiting = next(self._next_crowded, None)

    def find_neighbours(self) -> Iterator[_Places]:
        """Yield what `find` does, of rows of crowded classes that share their rarest words."""
        for rare, members in self._crowded.items():
            classes, rarest = self._classes[members], self._rarest[members]
            order = np.lexsort((*rarest.T[::-1], classes))
            ordered, classes = members[order], classes[order]
            for step in range(1, NEIGHBOURS + 1):
                at = np.flatnonzero(classes[:-step] == classes[step:])
                yield from self._keep_alike(ordered[at], ordered[at + step], LEAST_ALIKE[rare])

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


class _Counts:
    """Counts numbers below 2**32, twelve bytes each."""

    def __init__(self) -> None:
        self._values = np.empty(0, dtype=np.uint32)
        self._counts = np.empty(0, dtype=np.int64)
        self._new = array("I")

    def add(self, values: Collection[int]) -> None:
        self._new.extend(values)
        if len(self._new) > MERGED:
            self._merge()

    def _merge(self) -> None:
        new, counts = np.unique(np.frombuffer(self._new, dtype=np.uint32), return_counts=True)
        values, places = np.unique(np.concatenate((self._values, new)), return_inverse=True)
        merged = np.zeros(len(values), dtype=np.int64)
        np.add.at(merged, places, np.concatenate((self._counts, counts)))
        self._values, self._counts, self._new = values, merged, array("I")

    def find_rarest(self, values: Collection[int]) -> list[int]:
        """Return count and value of the rarest of some values, one after the other."""
        if self._new:
            self._merge()
        some = np.fromiter(values, np.uint32, len(values))
        counts = self._counts[np.searchsorted(self._values, some)]
        order = np.lexsort((some, counts))[:RAREST]
        return [number for pair in zip(counts[order].tolist(), some[order].tolist(), strict=True) for number in pair]
