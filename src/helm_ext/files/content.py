"""A file's content: whole, or line by line in constant memory, and the JSON values in its lines."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from typing_extensions import Self

from helm_ext.errors import DatasetError, DatasetSyntaxError, Problem, Problems
from helm_ext.files.json_text import decode, parse_json
from helm_ext.files.opening import MAX_DOCUMENT_BYTES, MAX_LINE_BYTES, MAX_RATIO, Reader, format_size

if TYPE_CHECKING:
    from helm_ext.engines.progress import Measured, Progress, WorkerState

BOM = b"\xef\xbb\xbf"
"""UTF-8's byte order mark. Whether it is allowed is each format's own decision."""


Line = tuple[int, bytes | None]
"""The number of a line, from 1, and its bytes without the line end; None for a line beyond the limit."""


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


def read_json(path: str | Path) -> Any:
    """Read a file that is one JSON value. Raises DatasetError."""
    source = read_source(path)
    return parse_json(source.data, source.path)


def too_large(path: str, max_bytes: int) -> DatasetError:
    """Return the error for a document beyond the limit."""
    return DatasetSyntaxError.at(
        path,
        f"the file is larger than {format_size(max_bytes)}, the limit for a file that is one JSON document",
        "write it as JSON Lines: one record per line",
        code="too-large",
    )


def split_lines(read_chunk: Callable[[], bytes], max_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    r"""Yield the lines of a file that `read_chunk` reads a piece of at a time, b"" at the end.

    Lines end at b"\n" only, and a b"\r" before it goes; U+2028 and the like are text. There is no line after the last
    b"\n". A line of more than `max_bytes` comes as None, as soon as that many are read, and is not held in memory.
    """
    number = 1
    pending: list[bytes] = []
    size = 0  # of the line so far, where a chunk ended in it
    while chunk := read_chunk():
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:  # `split` looks at each byte, `find` at many at once
            before, size = size, size + end - start
            if size > max_bytes:
                if before <= max_bytes:  # else it has been yielded
                    yield number, None
            elif before:
                pending.append(chunk[start:end])
                yield number, _join(pending)
            else:
                yield number, chunk[start : end - 1 if chunk[end - 1 : end] == b"\r" else end]
            if before:
                pending = []
            size = 0
            number += 1
            start = end + 1
        if start < len(chunk):
            before, size = size, size + len(chunk) - start
            if size <= max_bytes:
                pending.append(chunk[start:])
            elif before <= max_bytes:
                pending = []
                yield number, None
    if 0 < size <= max_bytes:
        yield number, _join(pending)


def _join(parts: list[bytes]) -> bytes:
    return b"".join(parts).removesuffix(b"\r")


def too_long(path: str, number: int, max_bytes: int = MAX_LINE_BYTES) -> Problem:
    """Return the problem of a line beyond the limit."""
    message, hint = f"the line is longer than {format_size(max_bytes)}, the limit", "JSON Lines has one record per line"
    return DatasetSyntaxError.problem_at(path, message, hint, number, code="too-large")


def iter_rows(
    lines: Iterable[Line], path: str, problems: Problems | list[Problem], *, blank: Literal["skip", "error"] = "skip"
) -> Iterator[Line]:
    """Yield the lines that are not blank; blank ones at the end are accepted, those before as `blank` says.

    A line beyond the limit is noted in `problems` and yielded as None.
    """
    blanks = range(0)
    for number, line in lines:
        if line is not None and not line.strip():
            blanks = range(blanks.start or number, number + 1)
            continue
        if blank == "error":
            for at in blanks:
                problems.extend([DatasetSyntaxError.problem_at(path, "blank line", "remove it", at, code="blank-line")])
        blanks = range(0)
        if line is None:
            problems.extend([too_long(path, number)])
        yield number, line


def iter_json_lines(
    lines: Iterable[Line],
    path: str,
    problems: Problems | list[Problem],
    *,
    blank: Literal["skip", "error"] = "skip",
    allow_nan: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) for each line that is JSON; what is not goes to `problems`, and reading goes on.

    `lines` is a LineSource or what `split_lines` yields. Blank lines at the end are always accepted, others as `blank`
    says.
    """
    for number, line in iter_rows(lines, path, problems, blank=blank):
        if line is None:
            continue
        try:
            value = parse_json(line, path, number, allow_nan=allow_nan)
        except DatasetError as error:
            problems.extend(error.problems)
            continue
        yield number, value


class LineSource:
    """A file's lines, streamed: memory for one line at a time. A context manager; iterate once.

    Iteration yields `(number, bytes)` as `split_lines` does; a line beyond the limit ends it with DatasetSyntaxError.
    After the last line, `digest` is the SHA-256 of the bytes on disk.
    """

    latest: ClassVar[weakref.ref[LineSource] | None] = None
    """The one whose lines were asked for last: what is shown of a reading that takes long (`show_reading`)."""
    lines_read = 0

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
        """Bytes on disk read so far."""
        return self._reader._raw.count  # noqa: SLF001 - one unit

    @property
    def size(self) -> int:
        """Bytes on disk, as the open file has them; 0 when it is closed."""
        try:
            return os.fstat(self._reader._file.fileno()).st_size  # noqa: SLF001 - one unit
        except ValueError:
            return 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        LineSource.latest = weakref.ref(self)
        for number, line in split_lines(self._reader.read_chunk, self.max_line_bytes):
            self.lines_read = number
            if line is None:
                raise DatasetSyntaxError([too_long(self.path, number, self.max_line_bytes)])
            yield number, line
        self._digest = self._reader.finish()


def show_reading(path: str | Path, workers: Sequence[WorkerState] = ()) -> Progress:
    """Return what shows how far this process is with a file, and with the files that it stands for.

    `workers`: those who are given what it reads. The lines that there will be are foreseen from the bytes on disk; what
    is no file of lines shows how long it takes.
    """
    from helm_ext.engines.progress import Measured, Progress

    source, size = None, 0

    def measure() -> Measured:
        """Look at the file whose lines are being read; at its end, at the last one."""
        nonlocal source, size
        latest = None if LineSource.latest is None else LineSource.latest()
        if latest is not None and latest.size:  # it is open
            source, size = latest, latest.size
        if source is None or not source.lines_read:
            return Measured(0, None)
        lines, read = source.lines_read, source.bytes_read
        return Measured(lines, lines * size // max(1, read), is_about=read < size)

    return Progress(None, "lines", title=f"reading {Path(path).name or path}", measure=measure, workers=workers)
