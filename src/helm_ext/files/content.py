"""A file's content: whole, or line by line in constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from typing_extensions import Self

from helm_ext.errors import DatasetError, Problem
from helm_ext.files.json_text import decode, parse_json
from helm_ext.files.opening import MAX_RATIO, Reader, make_error

__all__ = ["BOM", "MAX_DOCUMENT_BYTES", "MAX_LINE_BYTES", "LineSource", "Source", "iter_json_lines", "read_source"]

BOM = b"\xef\xbb\xbf"
"""UTF-8's byte order mark. Whether it is allowed is each format's own decision."""

MAX_DOCUMENT_BYTES = 1 << 30
"""A file that is one document must be held in memory; 1 GiB, decompressed. Larger data: JSON Lines."""

MAX_LINE_BYTES = 1 << 28
"""One line of JSON Lines: 256 MiB, decompressed."""


@dataclass(frozen=True)
class Source:
    """A file's content. `data` is decompressed; `digest` is the SHA-256 of the bytes on disk, lower-case hex."""

    path: str
    data: bytes
    digest: str
    compression: str | None = None

    def text(self) -> str:
        """Return the content as text. Raises DatasetSyntaxError with line and column if it is not UTF-8."""
        return decode(self.data, self.path)


def read_source(path: str | Path, *, max_bytes: int = MAX_DOCUMENT_BYTES, max_ratio: int = MAX_RATIO) -> Source:
    """Read a file whole. Raises DatasetError for anything that keeps it from being read."""
    reader = Reader(path, max_ratio=max_ratio)
    try:
        chunks = []
        while chunk := reader.read_chunk():
            if reader.size > max_bytes:
                raise too_large(reader.path, max_bytes)
            chunks.append(chunk)
        return Source(reader.path, b"".join(chunks), reader.finish(), reader.compression)
    finally:
        reader.close()


def too_large(path: str, max_bytes: int) -> DatasetError:
    """Return the error for a document beyond the limit."""
    return make_error(
        path, f"the file is larger than {_size(max_bytes)}, the limit for a file that is one JSON document",
        "write it as JSON Lines: one record per line", code="too-large",
    )  # fmt: skip


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return f"{count} bytes"


class LineSource:
    r"""A file's lines, streamed: memory for one line at a time. A context manager; iterate once.

    Lines end at b"\n" only (a CR before it is dropped); U+2028 and the like are text. Iteration yields
    `(number, bytes)` from 1. After the last line, `digest` is the SHA-256 of the bytes on disk.
    """

    def __init__(self, path: str | Path, *, max_line_bytes: int = MAX_LINE_BYTES, max_ratio: int = MAX_RATIO) -> None:
        self.path = str(path)
        self.max_line_bytes = max_line_bytes
        self._reader = Reader(path, max_ratio=max_ratio)
        self._digest: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the file on disk, lower-case hex. Reads to the end of the file if need be."""
        if self._digest is None:
            self._digest = self._reader.finish()
        return self._digest

    @property
    def compression(self) -> str | None:
        """`gzip`, `zstd` or None."""
        return self._reader.compression

    @property
    def bytes_read(self) -> int:
        """Bytes on disk read so far: for progress bars."""
        return self._reader._raw.count  # noqa: SLF001 - one unit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        number = 1
        pending: list[bytes] = []
        pending_size = 0
        while chunk := self._reader.read_chunk():
            start = 0
            while (end := chunk.find(b"\n", start)) >= 0:  # `split` looks at each byte, `find` at many at once
                if pending:
                    pending.append(chunk[start:end])
                    yield number, self._line(pending, pending_size + end - start, number)
                    pending, pending_size = [], 0
                else:
                    if end - start > self.max_line_bytes:
                        raise self._too_long(number)
                    yield number, chunk[start : end - 1 if chunk[end - 1 : end] == b"\r" else end]
                number += 1
                start = end + 1
            if start < len(chunk):
                pending.append(chunk[start:])
                pending_size += len(chunk) - start
            if pending_size > self.max_line_bytes:
                raise self._too_long(number)
        if pending_size:
            yield number, self._line(pending, pending_size, number)
        self._digest = self._reader.finish()

    def _line(self, parts: list[bytes], size: int, number: int) -> bytes:
        if size > self.max_line_bytes:
            raise self._too_long(number)
        line = b"".join(parts) if len(parts) > 1 else parts[0]
        return line[:-1] if line.endswith(b"\r") else line

    def _too_long(self, number: int) -> DatasetError:
        return make_error(
            self.path, f"the line is longer than {_size(self.max_line_bytes)}, the limit",
            "JSON Lines has one record per line", number, code="too-large",
        )  # fmt: skip


def iter_json_lines(
    lines: Iterable[tuple[int, bytes]],
    path: str,
    problems: list[Problem],
    *,
    blank: Literal["skip", "error"] = "skip",
    allow_nan: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) for each line that is JSON; what is not goes to `problems`, and reading goes on.

    `lines` is a LineSource or any (number, bytes) pairs. Blank lines at the end are always accepted, others as `blank`
    says. Raises DatasetError only for what ends reading: limits, broken compression.
    """
    blanks: list[int] = []
    for number, line in lines:
        if not line.strip():
            blanks.append(number)
            continue
        if blanks and blank == "error":
            for at in blanks:
                problems.extend(make_error(path, "blank line", "remove it", at, code="blank-line").problems)
        blanks.clear()
        try:
            value = parse_json(line, path, number, allow_nan=allow_nan)
        except DatasetError as error:
            problems.extend(error.problems)
            continue
        yield number, value
