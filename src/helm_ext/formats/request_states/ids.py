"""The ids of a file's rows, 16 bytes each: which are missing or taken, and what such rows are called.

Ids are compared as hashes, equal in every process (Python's own `hash` is not): rows are read by several.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
import xxhash

from helm_ext.files import canonical_json
from helm_ext.formats.request_states.tally import Tally

if TYPE_CHECKING:
    from helm_ext.formats.request_states.reading import Place
    from helm_ext.formats.request_states.rows import Fetch, Row

_MANY = 100_000
"""Rows from which on numpy is worth its import: it takes a tenth of a second, and sets take 70 bytes a row."""


def hash_content(content: str | bytes) -> int:
    """Return 63 bits of a text, for arrays of signed numbers; never 0. Equal hashes are taken for equal texts."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return (xxhash.xxh3_64_intdigest(data) >> 1) or 1


class Ids(Tally):
    """What is kept of the ids of some rows that follow one another, and where the rows stand."""

    def __init__(self, *, keeps_texts: bool) -> None:
        """`keeps_texts`: whether nobody else keeps the rows, so that the ids themselves must be remembered."""
        self.hashes = array("q")
        """Of what must be unique, id and perturbation; 0 for rows without an id."""
        self.indexes = array("I")
        """`Place.index`."""
        self.numbers = array("I")
        """`Place.number`."""
        self._names: dict[int, int] = {}
        """The hashes of the ids alone, of rows with a perturbation, by ordinal."""
        self._texts = bytearray() if keeps_texts else None
        self._place: Place | None = None
        """Of the first row."""

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
        if self._texts is not None:
            self._texts += msgspec.json.encode(given) + b"\n"
        if given is None or given == "":
            self.hashes.append(0)
            return
        hashed = hash_content(str(given))
        perturbation = row.instance.get("perturbation")
        if perturbation:
            self._names[len(self.hashes)] = hashed
            hashed = hash_content(canonical_json([str(given), perturbation]))
        self.hashes.append(hashed)

    def merge(self, other: Ids) -> None:
        """Add the rows that follow: of a file without errors, whose positions go on."""
        rows = len(self.hashes)
        other.indexes = array("I", range(rows, rows + len(other.indexes)))
        other._names = {ordinal + rows: hashed for ordinal, hashed in other._names.items()}
        super().merge(other)

    def find_repeated(self) -> Sequence[int]:
        """Return the ordinals of rows whose id is missing, or taken by an earlier row."""
        if len(self.hashes) < _MANY:
            seen = {0}
            return [n for n, one in enumerate(self.hashes) if one in seen or seen.add(one)]  # type: ignore[func-returns-value]
        import numpy as np

        hashes = np.frombuffer(self.hashes, np.int64)
        is_first = np.zeros(len(hashes), bool)
        is_first[np.unique(hashes, return_index=True)[1]] = True
        found: list[int] = np.flatnonzero(~is_first | (hashes == 0)).tolist()
        return found

    def locate(self, ordinal: int) -> Place:
        """Return where a row stands."""
        assert self._place is not None
        index, first = self.indexes[ordinal], self._place
        path = tuple(index if isinstance(step, int) else step for step in first.path)
        return replace(first, index=index, line=None if first.line is None else self.numbers[ordinal], path=path)

    def read_id(self, ordinal: int, fetch: Fetch | None) -> Any:
        """Return the id of a row as the file has it. `fetch`: where rows are kept."""
        if fetch is not None:
            return next(iter(fetch([ordinal]))).instance["id"]
        return msgspec.json.decode(next(islice(BytesIO(self._texts or b""), ordinal, None)))

    def rename(self, fetch: Fetch) -> Mapping[int, str]:
        """Return the ids of rows that HELM could not tell apart, by ordinal: unique but for perturbations of one row.

        The first row with an id keeps it, the next get `-2`, `-3`, ...; rows without one are `id<position>`, as HELM
        numbers them.
        """
        waiting = self.find_repeated()
        if not waiting:
            return {}
        import numpy as np

        names = np.frombuffer(self.hashes, np.int64).copy()
        for ordinal, hashed in self._names.items():
            names[ordinal] = hashed
        taken = np.sort(np.delete(names, waiting))
        repeated = [ordinal for ordinal in waiting if self.hashes[ordinal]]
        given = {ordinal: str(row.instance["id"]) for ordinal, row in zip(repeated, fetch(repeated), strict=True)}
        new: set[int] = set()
        last: dict[str, int] = {}
        renamed = {}
        for ordinal in waiting:
            base = given.get(ordinal) or f"id{self.indexes[ordinal]}"
            number = last.get(base, 1)
            name = base
            while (hashed := hash_content(name)) in new or hashed in taken[taken.searchsorted(hashed) :][:1]:
                number += 1
                name = f"{base}-{number}"
            if name != base:
                renamed[ordinal] = name
                last[base] = number
                new.add(hashed)
        return renamed
