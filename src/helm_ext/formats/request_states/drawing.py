"""Which rows become demonstrations, and which a cap leaves: decided by their contents alone.

Rows are ordered by a keyed hash of their content, never by their order in the file or by a library's random numbers;
another row more changes little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from helm_ext.files import canonical_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from helm_ext.formats.request_states.plan import Plan
    from helm_ext.formats.request_states.rows import Row

__all__ = ["Draw", "Fetch"]

Fetch = Callable[[Sequence[int]], "Iterable[Row]"]
"""Returns the rows of these ordinals (ascending): their place among the rows of the file."""

_HASH = 16


class Draw:
    """Sees all rows, then orders them at random, as `seed` says: 17 bytes a row."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._hashes = bytearray()
        self._empty = bytearray()
        """Whether one of the row's right answers is empty."""

    @cached_property
    def _keyed(self) -> Any:
        return blake2b(digest_size=_HASH, key=str(self._seed).encode()[:64])

    def __getstate__(self) -> dict[str, Any]:
        """Return what can be sent to another process: a hash that was begun cannot."""
        return {name: value for name, value in vars(self).items() if name != "_keyed"}

    def merge(self, other: Draw) -> None:
        """Add the rows that follow."""
        self._hashes += other._hashes
        self._empty += other._empty

    def see(self, row: Row) -> None:
        """Note a row."""
        given, name = row.instance["input"], row.instance.get("id")
        text = given.get("text")
        content = f"{name}\0{text}" if text is not None else f"{name}\0\0{_in_order(given.get('messages') or ())}"
        digest = self._keyed.copy()
        digest.update(content.encode("utf-8", "surrogatepass"))
        self._hashes += digest.digest()
        self._empty.append("" in row.golds)

    def order(self, fetch: Fetch) -> NDArray[np.intp]:
        """Return the ordinals of the rows in their random order.

        Where id and input of two rows are the same, the rest of the row decides: those are fetched.
        """
        halves = np.frombuffer(bytes(self._hashes), ">u8").reshape(-1, 2)
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        same = (halves[order][1:] == halves[order][:-1]).all(axis=1)
        if not same.any():
            return order
        repeated = np.zeros(len(order), bool)
        repeated[1:] |= same
        repeated[:-1] |= same
        ordinals = np.sort(order[repeated]).tolist()
        rest = {ordinal: _rest(row) for ordinal, row in zip(ordinals, fetch(ordinals), strict=True)}
        start = 0
        for end in [*(np.flatnonzero(~same) + 1).tolist(), len(order)]:
            if end - start > 1:
                order[start:end] = sorted(order[start:end].tolist(), key=lambda ordinal: (rest[ordinal], ordinal))
            start = end
        return order

    def choose(
        self, plan: Plan, evaluated: NDArray[np.bool_], fetch: Fetch
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the ordinals of rows that are drawn as demonstrations, and of those beyond the cap.

        `evaluated`: which rows are of a split that is evaluated. Rows that are not are drawn first; those with an empty
        answer last, for HELM cannot show them.
        """
        order = self.order(fetch)
        rank = np.empty(len(order), np.intp)
        rank[order] = np.arange(len(order))
        order = np.lexsort((rank, evaluated, np.frombuffer(bytes(self._empty), np.uint8)))
        drawn = order[: plan.demonstrations]
        rest = order[plan.demonstrations :]
        rest = rest[evaluated[rest]]
        return np.sort(drawn), rest[:0] if plan.cap is None else rest[plan.cap :]


def _rest(row: Row) -> bytes:
    return canonical_json([row.references, row.instance.get("perturbation"), row.instance])


def _in_order(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages with their keys in one order, in whichever they were read."""
    return [{"role": message["role"], "content": message["content"], **message} for message in messages]
