"""Which instances are shown, where not all are: the same ones for every model, whatever their order in a file."""

from __future__ import annotations

import hashlib

__all__ = ["sampling_number"]


def sampling_number(instance_id: str) -> int:
    """Return a number of 64 bits that looks random, and is the same in every run."""
    return int.from_bytes(hashlib.blake2b(instance_id.encode(errors="surrogatepass"), digest_size=8).digest(), "big")
