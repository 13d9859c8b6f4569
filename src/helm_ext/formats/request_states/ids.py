"""The ids of a file's rows, 16 bytes each: which are missing or taken, and what such rows are called.

Ids are compared as hashes, equal in every process (Python's own `hash` is not): rows are read by several.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash

from helm_ext.files import canonical_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from helm_ext.formats.request_states.drawing import Fetch
    from helm_ext.formats.request_states.reading import Place
    from helm_ext.formats.request_states.rows import Row

__all__ = ["Ids", "Repeated", "hash_content"]


_MANY = 100_000
"""Rows from which on numpy is worth its import: it takes a tenth of a second, and sets take 70 bytes a row."""


def hash_content(content: str | bytes) -> int:
    """Return 63 bits of a text, for arrays of signed numbers; never 0. Equal hashes are taken for equal texts."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return (xxhash.xxh3_64_intdigest(data) >> 1) or 1


class Repeated(NamedTuple):
    """A row that cannot have the id that the file gives."""

    place: Place
    given: Any
    twin: int | None
    """Line or position of the first row with its id; None: the file gives it none."""


class Ids:
    """What is kept of the ids of some rows that follow one another, and where the rows stand."""

    def __init__(self) -> None:
        self.hashes = array("q")
        """Of what must be unique, id and perturbation; 0 for rows without an id."""
        self.indexes = array("I")
        """`Place.index`."""
        self.numbers = array("I")
        """`Place.number`."""
        self.absent = 0
        """How many rows have no id."""
        self.first: Repeated | None = None
        """The first row whose id is missing or taken, once the rows were merged."""
        self._names: dict[int, int] = {}
        """The hashes of the ids alone, of rows with a perturbation, by ordinal."""
        self._given: list[Any] = []
        """The ids, until they were compared with those of earlier rows."""
        self._place: Place | None = None
        """Of the first row."""
        self._sorted: list[NDArray[np.int64]] = []
        """All hashes but those that were added last, sorted, each list more than twice as long as the next."""

    @property
    def has_perturbations(self) -> bool:
        """Whether there is a row with an id and a perturbation."""
        return bool(self._names)

    def see(self, row: Row) -> None:
        """Note a row. Written for speed: this runs once a row."""
        place = row.place
        if self._place is None:
            self._place = place
        self.indexes.append(place.index)
        self.numbers.append(place.number)
        given = row.instance.get("id")
        self._given.append(given)
        if given is None or given == "":
            self.absent += 1
            self.hashes.append(0)
            return
        hashed = hash_content(str(given))
        perturbation = row.instance.get("perturbation")
        if perturbation:
            self._names[len(self.hashes)] = hashed
            hashed = hash_content(canonical_json([str(given), perturbation]))
        self.hashes.append(hashed)

    def merge(self, other: Ids, rows: int) -> None:
        """Add the rows that follow, which were merged with no others. `rows`: how many lines of rows come before."""
        if self.first is None:
            self.first = self._find_repeated(other)
        ordinals = len(self.hashes)
        self._names.update({ordinal + ordinals: hashed for ordinal, hashed in other._names.items()})
        self.hashes.extend(other.hashes)
        self.numbers.extend(other.numbers)
        self.indexes.extend(other.indexes if not rows else array("I", [index + rows for index in other.indexes]))
        self.absent += other.absent

    def _find_repeated(self, other: Ids) -> Repeated | None:
        """Return the first of the rows that follow whose id is missing or taken."""
        taken = self._find_taken(other.hashes) if self.hashes else set()
        if not taken and not other.absent and len({*other.hashes}) == len(other.hashes):
            return None
        met: set[int] = set()
        for position, hashed in enumerate(other.hashes):
            if not hashed or hashed in met or hashed in taken:
                return self._describe(other, position)
            met.add(hashed)
        return None

    def _find_taken(self, hashes: Sequence[int]) -> set[int]:
        """Return those of the hashes that a row here has."""
        import numpy as np  # a small file needs none

        runs = self._sorted
        if late := len(self.hashes) - sum(map(len, runs)):
            runs.append(np.sort(np.frombuffer(self.hashes, np.int64)[-late:]))
        while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]):
            runs[-2:] = [np.sort(np.concatenate(runs[-2:]), kind="stable")]  # which finds that both are sorted
        wanted = np.sort(np.array(hashes, np.int64))  # neighbours are looked for among neighbours: five times as fast
        taken: set[int] = set()
        for run in runs:
            places = np.minimum(run.searchsorted(wanted), len(run) - 1)
            taken.update(wanted[run[places] == wanted].tolist())
        return taken

    def _describe(self, other: Ids, position: int) -> Repeated:
        assert other._place is not None
        number, index, hashed = other.numbers[position], other.indexes[position], other.hashes[position]
        path = tuple(index if isinstance(step, int) else step for step in other._place.path)
        place = replace(other._place, index=index, line=None if other._place.line is None else number, path=path)
        twin = None
        if hashed:
            ids = self if hashed in self.hashes else other
            twin = ids.numbers[ids.hashes.index(hashed)]
        return Repeated(place, other._given[position], twin)

    def count_repeated(self) -> int:
        """Return how many rows cannot have the id that the file gives."""
        if self.first is None:
            return 0
        if len(self.hashes) < _MANY:
            return len(self.hashes) - len({*self.hashes} - {0})
        import numpy as np

        hashes = np.frombuffer(self.hashes, np.int64)
        return len(hashes) - len(np.unique(hashes[hashes != 0]))

    def rename(self, fetch: Fetch) -> Mapping[int, str]:
        """Return the ids of rows that HELM could not tell apart, by ordinal: unique but for perturbations of one row.

        The first row with an id keeps it, the next get `-2`, `-3`, ...; rows without one are `id<position>`, as HELM
        numbers them.
        """
        import numpy as np

        ids = np.frombuffer(self.hashes, np.int64)
        _, firsts = np.unique(ids, return_index=True)
        is_first = np.zeros(len(ids), bool)
        is_first[firsts] = True
        is_first &= ids != 0
        if is_first.all():
            return {}
        names = ids.copy()
        for ordinal, hashed in self._names.items():
            names[ordinal] = hashed
        taken = np.unique(names[is_first])
        waiting = np.flatnonzero(~is_first).tolist()
        repeated = np.flatnonzero(~is_first & (ids != 0)).tolist()
        given = {ordinal: str(row.instance["id"]) for ordinal, row in zip(repeated, fetch(repeated), strict=True)}
        new: set[int] = set()
        last: dict[str, int] = {}
        renamed = {}
        for ordinal in waiting:
            base = given.get(ordinal) or f"id{self.indexes[ordinal]}"
            number = last.get(base, 1)
            name = base
            while (hashed := hash_content(name)) in new or _holds(taken, hashed):
                number += 1
                name = f"{base}-{number}"
            if name != base:
                renamed[ordinal] = name
                last[base] = number
                new.add(hashed)
        return renamed


def _holds(values: NDArray[Any], value: int) -> bool:
    """Whether a sorted array holds a value."""
    place = int(values.searchsorted(value))
    return place < len(values) and int(values[place]) == value
