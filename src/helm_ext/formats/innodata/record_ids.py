"""The ids of a split's records, 20 bytes each: which place a reply belongs to."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left


def hash_id(record_id: str) -> bytes:
    """Return 16 bytes, of which nobody can find two ids that share them: equal ones are taken for equal ids."""
    return hashlib.blake2b(record_id.encode(), digest_size=16).digest()


class RecordIds:
    """Which record has an id. All are added before the first is looked for."""

    def __init__(self) -> None:
        self._hashes = bytearray()
        self._firsts = array("Q")
        """The first halves of the hashes, sorted; beside them the second halves, and the places."""
        self._seconds = array("Q")
        self._places = array("I")

    def __len__(self) -> int:
        return len(self._hashes) // 16 + len(self._places)

    def add(self, record_id: str) -> None:
        """Add the id of the next record."""
        self._hashes += hash_id(record_id)

    def find(self, hashed: bytes) -> int | None:
        """Return the place of the record with an id of this hash, from 0; None where there is none."""
        if self._hashes:
            self._sort()
        first, second = int.from_bytes(hashed[:8], "little"), int.from_bytes(hashed[8:], "little")
        at = bisect_left(self._firsts, first)
        while at < len(self._firsts) and self._firsts[at] == first:
            if self._seconds[at] == second:
                return self._places[at]
            at += 1
        return None

    def _sort(self) -> None:
        import numpy as np

        halves = np.frombuffer(bytes(self._hashes), "<u8").astype(np.uint64).reshape(-1, 2)
        order = np.argsort(halves[:, 0], kind="stable")
        self._firsts = array("Q", halves[order, 0].tobytes())
        self._seconds = array("Q", halves[order, 1].tobytes())
        self._places = array("I", order.astype(np.uint32).tobytes())
        self._hashes = bytearray()
