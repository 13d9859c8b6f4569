"""Which rows are demonstrations and which are evaluated, where the file does not say, and caps.

Rows are ordered by a keyed hash of their content, so a draw depends on the seed and on what the rows are, never on
their order in the file or on a library's random numbers; another row more changes little.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from helm_ext.formats.request_states.rows import Row
from helm_ext.sources import canonical_json

__all__ = ["draw_order"]


def draw_order(rows: Sequence[Row], seed: int) -> list[Row]:
    """Return the rows in a random order that only the seed and their contents decide."""
    key = str(seed).encode()[:64]

    def place(row: Row) -> tuple[bytes, int]:
        instance = row.instance
        content = [instance["input"], row.references, instance.get("id"), instance.get("perturbation")]
        return blake2b(canonical_json(content), digest_size=16, key=key).digest(), row.index

    return sorted(rows, key=place)
