"""Which rows are demonstrations and which are evaluated, where the file does not say, and caps.

Rows are ordered by a keyed hash of their content, so a draw depends on the seed and on what the rows are, never on
their order in the file or on a library's random numbers; another row more changes little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from helm_ext.files import canonical_json
from helm_ext.formats.request_states.rows import Row

__all__ = ["draw_order"]


def draw_order(rows: Sequence[Row], seed: int) -> list[Row]:
    """Return the rows in a random order that only the seed and their contents decide."""
    keyed = blake2b(digest_size=16, key=str(seed).encode()[:64])

    def place(row: Row) -> bytes:
        given, name = row.instance["input"], row.instance.get("id")
        text = given.get("text")
        content = f"{name}\0{text}" if text is not None else f"{name}\0\0{_in_order(given.get('messages') or ())}"
        digest = keyed.copy()
        digest.update(content.encode("utf-8", "surrogatepass"))
        return digest.digest()

    places = [place(row) for row in rows]
    if len(set(places)) < len(places):
        counts = Counter(places)
        # The same input and id: the rest of the row decides.
        places = [one + _rest(row) if counts[one] > 1 else one for one, row in zip(places, rows, strict=True)]
    return [rows[index] for index in sorted(range(len(rows)), key=places.__getitem__)]


def _rest(row: Row) -> bytes:
    return canonical_json([row.references, row.instance.get("perturbation"), row.instance])


def _in_order(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages with their keys in one order, in whichever they were read."""
    return [{"role": message["role"], "content": message["content"], **message} for message in messages]
