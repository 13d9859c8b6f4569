"""The limits and sizes that files are read and written with. Each stands here once."""

from __future__ import annotations

MAX_DOCUMENT_BYTES = 1 << 30
"""A file that is one document must be held in memory; 1 GiB, decompressed. Larger data: JSON Lines."""

MAX_LINE_BYTES = 1 << 28
"""One line of JSON Lines: 256 MiB, decompressed. Lines are read in memory for one line at a time."""

MAX_DEPTH = 254
"""Levels of objects and lists inside one another. As deep as orjson writes; Python's recursion, on which HELM's own
writing and copying rely, goes about twice as deep."""

MAX_RATIO = 1_000
"""Decompressed to compressed size of a file, past RATIO_FREE_BYTES: what no real dataset reaches."""

RATIO_FREE_BYTES = 1 << 26
"""124 kB of zstd can be 4 GB of blank lines, over which a check would sit for minutes."""

READ_BYTES = 1 << 16
"""Read at a time where the bytes are looked at: they stay in the processor's cache."""

COPY_BYTES = 1 << 20
"""Read at a time where bytes are only copied or hashed."""

STALE_SECONDS = 24 * 3600
"""A file that is being written and to which nobody wrote for a day was left behind by a process that was killed."""


def format_size(count: int) -> str:
    """Write a number of bytes for people: `256 MiB`."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return f"{count} bytes"
