"""Pairs of rows that share many words, in time that grows with the rows and not with the pairs.

MinHash (Broder 1997, "On the resemblance and containment of documents") over words and pairs of words, in bands
(Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4). Of two questions that share half of what they consist
of, 94 % are proposed with bands of three hashes; of two that share a tenth, 2 %.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from helm_ext.analysis.lint.all_pairs import LEAST_ALIKE, NEAREST, Views, to_shingles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Places = NDArray[np.int64]
    _Some = NDArray[np.signedinteger[Any]]

__all__ = ["MinHashPairs"]

HASHES = 63
BAND = 3
"""Hashes of a band."""
CROWD = 12
"""Where more rows fall into one bucket, not all pairs are proposed."""
NEIGHBOURS = 3
"""There each is paired with this many that share its rarest words."""
RAREST = 4
COMPARED = 1_000_000
"""Pairs whose signatures are compared together."""
MERGED = 2_000_000
BLOCK = 16_384
"""Signatures that are written together, all first hashes first."""
SPOOLED = 32_000_000
"""Bytes of signatures that are kept in memory; more are written to a temporary file."""


class MinHashPairs:
    """Proposes pairs of rows as far as MinHash tells. Writes a signature of each view of a row: 252 bytes."""

    def __init__(self) -> None:
        self._indexes = _Index(), _Index()
        self._seen = 0

    def see(self, views: Views) -> None:
        """Look at a row."""
        for index, text in zip(self._indexes, views, strict=True):
            if text:
                index.add(self._seen, text)
        self._seen += 1

    def find(
        self, classes: array[int], rare: Sequence[int], again: Callable[[], Iterable[Views]]
    ) -> list[tuple[int, int]]:
        """Return pairs of rows of one class that are alike, of each row the nearest ones, in order of the second."""
        of = np.array(classes, dtype=np.int64)
        is_rare = np.array(rare, dtype=bool)
        found = _Nearest()
        for index in self._indexes:
            index.find(of, is_rare, found)
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
            for side in crowded:
                self._indexes[side].find_neighbours(found)
        pairs = found.finish()
        ordered = pairs[np.lexsort((pairs[:, 0], pairs[:, 1])), :2]
        return [(one, two) for one, two in ordered.tolist()]


class _Nearest:
    """Collects (row, row, equal hashes), and keeps those that are one of the nearest of either of their rows.

    That is the same of parts as of all at once: what is among the nearest of all is so in its part.
    """

    def __init__(self) -> None:
        self._found: list[_Places] = []
        self._new = 0

    def add(self, pairs: _Places) -> None:
        self._found.append(pairs)
        self._new += len(pairs)
        if self._new > MERGED:
            self.finish()

    def finish(self) -> _Places:
        """Return those that are kept, of all that were added."""
        kept = _keep_nearest(np.concatenate(self._found)) if self._found else np.empty((0, 3), dtype=np.int64)
        self._found, self._new = [kept], 0
        return kept


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
    return pairs[is_kept]


class _Index:
    """The signatures of one view of the rows."""

    def __init__(self) -> None:
        from datasketch import MinHash

        self._minhash = MinHash(num_perm=HASHES, hashfunc=int)
        self._signatures = _Signatures()
        """Of the rows that are compared in this view, one after the other."""
        self._rows = array("q")
        """Which rows they are."""
        self._crowded: dict[bool, _Places] = {}
        """Places among the signatures, of classes with a bucket of many; by whether their gold is rare."""
        self._often = _Counts()
        """In how many texts each word, and each pair of words, stands."""
        self._crowd = np.empty(0, dtype=np.int64)
        """Places of all rows of crowded classes, in order."""
        self._rarest = np.empty((0, 2 * RAREST), dtype=np.int64)
        """Of the same rows: the rarest words, and how often they stand somewhere."""
        self._looked_at = 0

    def add(self, row: int, text: str) -> None:
        """Look at the text of a row."""
        self._minhash.clear()  # a new one, or a copy, takes as long as its hashes
        self._minhash.update_batch(to_shingles(text))
        self._signatures.add(self._minhash.hashvalues)
        self._rows.append(row)

    def find(self, classes: _Places, is_rare: NDArray[np.bool_], found: _Nearest) -> None:
        """Add (row, row, equal hashes) to what is found, the lower row first, some of them twice."""
        self._places = np.array(self._rows, dtype=np.int64)
        self._classes = classes[self._places]
        for rare in (True, False):
            members = np.flatnonzero(is_rare[self._places] == rare)
            crowds: set[int] = set()
            waiting: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
            for start in range(0, HASHES if len(members) else 0, BAND):
                order, bucket, sizes = self._put_into_buckets(members, start, start + BAND)
                is_crowd = sizes > CROWD
                crowds.update(self._classes[order[is_crowd[bucket]]].tolist())
                for step in range(1, min(CROWD, int(sizes.max()))):
                    at = np.flatnonzero((bucket[:-step] == bucket[step:]) & ~is_crowd[bucket[:-step]])
                    waiting.append((order[at].astype(np.int32), order[at + step].astype(np.int32)))
                    if sum(len(ones) for ones, _ in waiting) >= COMPARED:
                        self._keep_alike(waiting, LEAST_ALIKE[rare], found)
            self._keep_alike(waiting, LEAST_ALIKE[rare], found)
            if crowds:
                self._crowded[rare] = members[np.isin(self._classes[members], list(crowds))]
        if self._crowded:
            self._crowd = np.sort(np.concatenate(list(self._crowded.values())))
            self._rarest = np.full((len(self._crowd), 2 * RAREST), -1, dtype=np.int64)

    @property
    def is_crowded(self) -> bool:
        """Whether many rows fell into one bucket: `find_neighbours` pairs them by their rarest words."""
        return bool(self._crowded)

    def count(self, text: str) -> None:
        """Count the words of a text: of all of them, before any is looked at for its rarest."""
        self._often.add(to_shingles(text))

    def look_for_rarest(self, row: int, text: str) -> None:
        """Note the rarest words of a row, if it is one of a crowd. All rows of this view come in order."""
        if self._looked_at < len(self._crowd) and self._rows[self._crowd[self._looked_at]] == row:
            rarest = self._often.find_rarest(to_shingles(text))
            self._rarest[self._looked_at, : len(rarest)] = rarest
            self._looked_at += 1

    def find_neighbours(self, found: _Nearest) -> None:
        """Add what `find` does, of rows of crowded classes that share their rarest words."""
        for rare, members in self._crowded.items():
            classes, rarest = self._classes[members], self._rarest[np.searchsorted(self._crowd, members)]
            order = np.lexsort((*rarest.T[::-1], classes))
            ordered, classes = members[order], classes[order]
            for step in range(1, NEIGHBOURS + 1):
                at = np.flatnonzero(classes[:-step] == classes[step:])
                self._keep_alike([(ordered[at], ordered[at + step])], LEAST_ALIKE[rare], found)

    def _put_into_buckets(self, members: _Places, start: int, end: int) -> tuple[_Places, ...]:
        """Return the members, those of one bucket together; the bucket of each; and the buckets' sizes.

        A bucket holds rows of one class with the same hashes from `start` to `end`.
        """
        mixed = self._classes[members].astype(np.uint64)
        for number in range(start, end):
            mixed = (mixed ^ self._signatures.column(number)[members]) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        order = np.argsort(mixed, kind="stable")
        is_first = np.diff(mixed[order], prepend=~mixed[order[:1]]) != 0
        bucket = np.cumsum(is_first) - 1
        return members[order], bucket, np.bincount(bucket)

    def _keep_alike(self, waiting: list[tuple[_Some, _Some]], least: float, found: _Nearest) -> None:
        """Add the pairs whose signatures are alike to what is found; none is waiting then."""
        if not waiting:
            return
        ones, twos = (np.concatenate([pairs[side] for pairs in waiting]).astype(np.int64) for side in range(2))
        waiting.clear()
        for start in range(0, len(ones), COMPARED):
            one, two = ones[start : start + COMPARED], twos[start : start + COMPARED]
            equal = np.zeros(len(one), dtype=np.int64)
            for number in range(HASHES):
                column = self._signatures.column(number)
                equal += column[one] == column[two]
            alike = equal >= least * HASHES
            first, second = self._places[one[alike]], self._places[two[alike]]
            found.add(np.stack((np.minimum(first, second), np.maximum(first, second), equal[alike]), axis=1))


class _Signatures:
    """Signatures of rows, one after the other, of which a hash of all of them is asked for at a time.

    Many are written to a temporary file without a name. May raise OSError.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=SPOOLED)  # noqa: SIM115 - closed with the object
        self._new = np.empty((HASHES, BLOCK), dtype=np.uint32)
        self._rows = 0

    def add(self, signature: NDArray[np.uint64]) -> None:
        at = self._rows % BLOCK
        self._new[:, at] = signature
        self._rows += 1
        if at == BLOCK - 1:
            self._file.write(self._new.tobytes())

    def column(self, number: int) -> NDArray[np.uint32]:
        """Return one hash of all rows."""
        written, left = divmod(self._rows, BLOCK)
        column = np.empty(self._rows, dtype=np.uint32)
        for block in range(written):
            self._file.seek((block * HASHES + number) * BLOCK * 4)
            column[block * BLOCK : (block + 1) * BLOCK] = np.frombuffer(self._file.read(BLOCK * 4), np.uint32)
        column[written * BLOCK :] = self._new[number, :left]
        self._file.seek(0, 2)
        return column


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
        self._new = array("I")
        places = np.searchsorted(self._values, new)
        known = np.zeros(len(new), dtype=bool)
        inside = places < len(self._values)
        known[inside] = self._values[places[inside]] == new[inside]
        self._counts[places[known]] += counts[known]
        self._values = np.insert(self._values, places[~known], new[~known])
        self._counts = np.insert(self._counts, places[~known], counts[~known])

    def find_rarest(self, values: Collection[int]) -> list[int]:
        """Return count and value of the rarest of some values, one after the other."""
        if self._new:
            self._merge()
        some = np.fromiter(values, np.uint32, len(values))
        counts = self._counts[np.searchsorted(self._values, some)]
        order = np.lexsort((some, counts))[:RAREST]
        return [number for pair in zip(counts[order].tolist(), some[order].tolist(), strict=True) for number in pair]
