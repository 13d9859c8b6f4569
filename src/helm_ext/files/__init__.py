"""A file's bytes, once: decompression, SHA-256, JSON with good positions, limits.

Small or document-shaped files are read whole (`read_source`); JSON Lines are streamed in constant memory
(`LineSource`, `iter_json_lines`). Both hash the bytes on disk on the way, so that a digest costs no second reading.
Line numbers of values inside a document are looked up only when there is something to report (`locate`).
"""

from __future__ import annotations

from helm_ext.files.content import (
    BOM,
    MAX_DOCUMENT_BYTES,
    MAX_LINE_BYTES,
    LineSource,
    Source,
    iter_csv,
    iter_json_lines,
    iter_rows,
    open_raw,
    read_json,
    read_source,
    show_reading,
    split_lines,
)
from helm_ext.files.json_text import (
    MAX_DEPTH,
    canonical_json,
    decode,
    is_deeper,
    is_faithful,
    is_finite,
    locate,
    parse_json,
    parse_relaxed_json,
)

__all__ = [
    "BOM",
    "MAX_DEPTH",
    "MAX_DOCUMENT_BYTES",
    "MAX_LINE_BYTES",
    "LineSource",
    "Source",
    "canonical_json",
    "decode",
    "is_deeper",
    "is_faithful",
    "is_finite",
    "iter_csv",
    "iter_json_lines",
    "iter_rows",
    "locate",
    "open_raw",
    "parse_json",
    "parse_relaxed_json",
    "read_json",
    "read_source",
    "show_reading",
    "split_lines",
]
