"""What comes again among many hashes: eight bytes each, and no object. Of very many, most stand in a file."""

from __future__ import annotations

import tempfile
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import IO

__all__ = ["HashLog", "Seen", "SortedHashes", "find_frequent", "order_by"]

COUNTED = 20_000
"""So many are counted without numpy, whose import takes longer."""
RECENT = 50_000
"""So many hashes are kept as a set, until they are sorted into the others."""
LOGGED = 2_000_000
"""So many hashes are kept in memory (16 MB), until they are written."""
PARTS = 32
"""Parts of the file, each of hashes of its own, that are sorted one after the other."""


class SortedHashes(AbstractSet[int]):
    """A set of hashes: eight bytes each."""

    def __init__(self, values: array[int]) -> None:
        """`values`: in ascending order, each once."""
        self.values = values

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int):
            return False
        at = bisect_left(self.values, value)
        return at < len(self.values) and self.values[at] == value

    def __iter__(self) -> Iterator[int]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)


class Seen:
    """Says of each hash whether it came before."""

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._before = SortedHashes(array("q"))

    def add(self, value: int) -> bool:
        """Note a hash; return whether it is new."""
        if value in self._recent or value in self._before:
            return False
        self._recent.add(value)
        if len(self._recent) >= max(RECENT, len(self._before) // 8):
            self._before = SortedHashes(_sort(array("q", self._before.values) + array("q", self._recent)))
            self._recent = set()
        return True


class HashLog:
    """Hashes, one after the other, of which those are asked for in the end that stand there often.

    Beyond some millions they are written to a temporary file without a name, in parts by their value. May raise
    OSError.
    """

    def __init__(self) -> None:
        self._new = array("q")
        self._file: IO[bytes] | None = None
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]
        """Where the pieces of each part stand in the file: offset and length in bytes."""

    def extend(self, values: Iterable[int]) -> None:
        """Note hashes."""
        self._new.extend(values)
        if len(self._new) >= LOGGED:
            self._write()

    def _write(self) -> IO[bytes]:
        import numpy as np

        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the object
        ordered = np.sort(np.frombuffer(self._new, np.int64))
        edges = np.linspace(-(2.0**63), 2.0**63, PARTS + 1)[1:-1].astype(np.int64)
        for part, piece in enumerate(np.split(ordered, np.searchsorted(ordered, edges))):
            self._pieces[part].append((self._file.tell(), piece.nbytes))
            self._file.write(piece.tobytes())
        self._new = array("q")
        return self._file

    def find_frequent(self, least: int) -> AbstractSet[int]:
        """Return those that stand there `least` times or more, and forget all."""
        if self._file is None:
            found = find_frequent(self._new, least)
            self._new = array("q")
            return found
        file = self._write()
        frequent = array("q")
        for pieces in self._pieces:  # in ascending order
            values = array("q")
            for offset, size in pieces:
                file.seek(offset)
                values.frombytes(file.read(size))
            frequent.extend(_find_frequent(values, least))
        file.close()
        self._file = None
        return _to_set(frequent)


def find_frequent(hashes: array[int], least: int) -> AbstractSet[int]:
    """Return those that stand there `least` times or more, as a set."""
    if len(hashes) <= COUNTED:
        return frozenset(value for value, number in Counter(hashes).items() if number >= least)
    return _to_set(_find_frequent(hashes, least))


def _find_frequent(hashes: array[int], least: int) -> array[int]:
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, np.int64))
    again = ordered[least - 1 :] == ordered[: max(0, len(ordered) - least + 1)]
    return array("q", np.unique(ordered[least - 1 :][again]).tobytes())


def _to_set(values: array[int]) -> AbstractSet[int]:
    """Return sorted values as a set; of few one that says at once what it holds."""
    return frozenset(values) if len(values) <= COUNTED else SortedHashes(values)


def _sort(values: array[int]) -> array[int]:
    import numpy as np

    return array("q", np.sort(np.frombuffer(values, np.int64)).tobytes())


def order_by(keys: array[int]) -> array[int]:
    """Return the places of keys in ascending order of the keys, and of the places."""
    if len(keys) <= COUNTED:
        return array("q", sorted(range(len(keys)), key=keys.__getitem__))
    import numpy as np

    return array("q", np.argsort(np.frombuffer(keys, np.int64), kind="stable").tobytes())
