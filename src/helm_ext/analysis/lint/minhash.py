"""Pairs of rows that share many words, in time that grows with the rows and not with the pairs.

MinHash (Broder 1997, "On the resemblance and containment of documents") over words and pairs of words, in bands
(Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4). Of two questions that share half of what they consist
of, 94 % fall into one bucket of a band of three hashes; of two that share a tenth, 2 %. A bucket may hold many rows, of
one template say: so its rows stand in the order of eight further hashes, and each is compared with those behind it.
Rows that are nearly equal stand side by side in the order of some band.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

HASHES = 63
BAND = 3
"""Hashes of a band."""
NEIGHBOURS = 3
"""Of a bucket, each row is compared with this many behind it."""
AT_ONCE = 4_096
"""Words that are hashed together."""
BLOCK = 16_384
"""Signatures that are written together, all first hashes first."""
SPOOLED = 32_000_000
"""Bytes of signatures that are kept in memory; more are written to a temporary file."""

_random = np.random.default_rng(1)
_FACTORS, _SHIFTS = (_random.integers(0, 2**64, HASHES, np.uint64) | np.uint64(1) for _ in range(2))
"""Of the hash functions: multiply, add, and take the upper bits (Dietzfelbinger 1996)."""

_MIX = np.uint64(0x9E3779B97F4A7C15)


class MinHashPairs:
    """Proposes pairs of rows as far as MinHash tells. Writes a signature of each view of a row: 126 bytes."""

    def __init__(self, nearest: int) -> None:
        """`nearest`: of a row's pairs this many are proposed."""
        self._views = _Signatures(), _Signatures()
        self._nearest, self._seen = nearest, 0

    def see(self, views: Sequence[set[int]]) -> None:
        """Look at a row."""
        for signatures, shingles in zip(self._views, views, strict=True):
            if shingles:
                signatures.add(self._seen, shingles)
        self._seen += 1

    def find(self, classes: Sequence[int], least: Sequence[float]) -> list[tuple[int, int]]:
        """Return pairs of rows of one class that share at least so much, the nearest ones, in order of the second."""
        rows = np.full((self._nearest, self._seen), -1, dtype=np.int32)
        equal = np.zeros(rows.shape, dtype=np.uint8)
        """Of each row the rows that are most like it, and how many hashes they have in common."""
        wanted = np.array(least, dtype=np.float32) * HASHES
        for signatures in self._views:
            for ones, others, number in signatures.find(np.array(classes, dtype=np.int64), wanted):
                is_new = ~(rows[:, ones] == others).any(axis=0)
                worst = equal[:, ones].argmin(axis=0)
                is_nearer = is_new & (number > equal[worst, ones])
                place = worst[is_nearer], ones[is_nearer]
                rows[place], equal[place] = others[is_nearer], number[is_nearer]
        pairs = np.stack([rows, np.broadcast_to(np.arange(self._seen, dtype=np.int32), rows.shape)])
        first, second = np.sort(pairs[:, rows >= 0], axis=0)
        two, one = np.divmod(np.unique(second * np.int64(self._seen) + first), np.int64(self._seen))
        return list(zip(one.tolist(), two.tolist(), strict=True))


class _Signatures:
    """The signatures of one view of the rows, of which a hash of all of them is asked for at a time.

    Many are written to a temporary file without a name. May raise OSError.
    """

    def __init__(self) -> None:
        self.rows = array("q")
        """Which rows are compared in this view."""
        self._file = tempfile.SpooledTemporaryFile(max_size=SPOOLED)  # noqa: SIM115 - closed with the object
        self._new = np.empty((HASHES, BLOCK), dtype=np.uint16)

    def add(self, row: int, shingles: set[int]) -> None:
        """Look at a row."""
        numbers = np.array([*shingles], dtype=np.uint64)[:, None]
        some = (numbers[at : at + AT_ONCE] for at in range(0, len(numbers), AT_ONCE))
        least = np.min([(part * _FACTORS + _SHIFTS).min(axis=0) for part in some], axis=0)
        at = len(self.rows) % BLOCK
        self._new[:, at] = least * _MIX >> np.uint64(48)  # least numbers have many zeros in front
        self.rows.append(row)
        if at == BLOCK - 1:
            self._file.write(self._new.tobytes())

    def find(
        self, classes: NDArray[np.int64], least: NDArray[np.float32]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]]:
        """Yield pairs of rows of one class that have at least `least` hashes in common, from both sides, and how many.

        Of what is yielded together, no two pairs begin with the same row.
        """
        rows = np.array(self.rows, dtype=np.int64)
        for start in range(0, HASHES, BAND):
            bucket = classes[rows].astype(np.uint64)
            for number in range(start, start + BAND):
                bucket = (bucket ^ self._column(number)) * _MIX
                bucket ^= bucket >> np.uint64(32)
            order = np.argsort(self._four_columns(start + BAND + 4), kind="stable").astype(np.int32)
            order = order[np.argsort(self._four_columns(start + BAND)[order], kind="stable")]
            order = order[np.argsort(bucket[order], kind="stable")]  # np.lexsort would hold all of this at once
            bucket = bucket[order]
            for step in range(1, NEIGHBOURS + 1):
                at = np.flatnonzero(bucket[:-step] == bucket[step:])
                one, two = order[at], order[at + step]
                equal = np.zeros(len(at), dtype=np.uint8)
                for number in range(HASHES if len(at) else 0):
                    column = self._column(number)
                    equal += column[one] == column[two]
                is_alike = equal >= least[rows[one]]
                first, second, equal = rows[one[is_alike]], rows[two[is_alike]], equal[is_alike]
                yield first, second, equal
                yield second, first, equal

    def _four_columns(self, number: int) -> NDArray[np.uint64]:
        """Return four hashes of all rows, in one number each."""
        packed = np.zeros(len(self.rows), dtype=np.uint64)
        for one in range(number, number + 4):
            packed = packed << np.uint64(16) | self._column(one % HASHES)
        return packed

    def _column(self, number: int) -> NDArray[np.uint16]:
        """Return one hash of all rows."""
        written, left = divmod(len(self.rows), BLOCK)
        column = np.empty(len(self.rows), dtype=np.uint16)
        for block in range(written):
            self._file.seek((block * HASHES + number) * BLOCK * 2)
            column[block * BLOCK : (block + 1) * BLOCK] = np.frombuffer(self._file.read(BLOCK * 2), np.uint16)
        column[written * BLOCK :] = self._new[number, :left]
        self._file.seek(0, 2)
        return column
