"""A file's bytes: opened, decompressed, hashed; whole or line by line in constant memory; and the JSON in its lines."""

from __future__ import annotations

import csv
import hashlib
import os
import stat
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal

from typing_extensions import Self

from helm_ext.errors import DatasetError, DatasetNotFoundError, DatasetSyntaxError, Problem, Problems, did_you_mean
from helm_ext.files.json_text import decode, parse_json

if TYPE_CHECKING:
    from helm_ext.engines.progress import Measured, Progress


MAX_DOCUMENT_BYTES = 1 << 30
"""A file that is one document must be held in memory; 1 GiB, decompressed. Larger data: JSON Lines."""

MAX_LINE_BYTES = 1 << 28
"""One line of JSON Lines: 256 MiB, decompressed. Lines are read in memory for one line at a time."""

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

_ZSTD_CHUNK = 1 << 11
"""zstd can expand 4 bytes to 128 KiB: with this much input at a time, at most 64 MiB come out at once."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def format_size(count: int) -> str:
    """Write a number of bytes for people: `256 MiB`."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return f"{count} bytes"


def open_raw(path: str | Path) -> BinaryIO:
    """Open a file of bytes. Raises DatasetNotFoundError, or DatasetSyntaxError for 0 bytes."""
    shown = str(path)
    try:
        status = Path(path).stat()
        file = Path(path).open("rb") if stat.S_ISREG(status.st_mode) else None  # noqa: SIM115 - closed by Reader
    except (FileNotFoundError, NotADirectoryError):
        raise DatasetNotFoundError.at(shown, "no such file", near_files(Path(path)), code="not-found") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"the file cannot be read: {reason}"
        raise DatasetNotFoundError.at(shown, message, code="unreadable") from error
    if file is None:
        is_folder = stat.S_ISDIR(status.st_mode)
        message = "this is a folder, not a file" if is_folder else "this is no regular file"
        hint = "name the file inside it" if is_folder else "a dataset is read more than once: save it as a file first"
        raise DatasetNotFoundError.at(shown, message, hint, code="not-a-file")
    if status.st_size == 0:
        file.close()
        raise DatasetSyntaxError.at(shown, "the file is empty (0 bytes)", code="empty-file")
    return file


def near_files(path: Path) -> str:
    """Return a hint for a file that does not exist: names like it in its folder, or that there is no such folder."""
    if path.is_symlink():
        return f"it is a link to {path.readlink()}, which leads to no file"
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return f"there is no folder {str(path.parent)!r}"
    return did_you_mean(path.name, names)


class Hashing:
    """A file whose bytes are hashed and counted as they are read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.hash = hashlib.sha256()
        self.count = 0

    def read_chunk(self, size: int = READ_BYTES) -> bytes:
        """Return the next bytes, b"" at the end."""
        data = self._file.read(size)
        self.hash.update(data)
        self.count += len(data)
        return data

    def drain(self) -> None:
        while self.read_chunk():
            pass


def _decompress(raw: Hashing, compression: str) -> Iterator[bytes]:
    """Yield what streams, one behind the other, hold. Raises EOFError where the last one is truncated."""
    make: Callable[[], Any] = partial(zlib.decompressobj, 16 + zlib.MAX_WBITS)
    size, padding = READ_BYTES, b"\0"
    if compression == "zstd":
        import zstandard

        make, size, padding = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj, _ZSTD_CHUNK, b""
    stream = None
    while data := raw.read_chunk(size):
        while data := data if stream else data.lstrip(padding):
            stream = stream or make()
            if out := stream.decompress(data):
                yield out
            data, stream = (stream.unused_data, None) if stream.eof else (b"", stream)
    if stream is not None:
        raise EOFError


class Reader:
    """A file's bytes, decompressed, with errors that name it and limits on what comes out. A context manager."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._file = open_raw(path)
        self._raw = Hashing(self._file)
        self.decompressed = 0
        """Bytes that came out so far."""
        start = self._file.read(4)
        self._file.seek(0)
        self.compression = "gzip" if start.startswith(_GZIP_MAGIC) else "zstd" if start == _ZSTD_MAGIC else ""
        is_plain = not self.compression
        self._chunks = iter(self._raw.read_chunk, b"") if is_plain else _decompress(self._raw, self.compression)

    def read_chunk(self) -> bytes:
        """Return the next bytes, b"" at the end. Raises DatasetSyntaxError."""
        try:
            data = next(self._chunks, b"")
        except EOFError as error:
            hint = "the file was not copied or written completely"
            raise self._broken("the compressed data is truncated", hint) from error
        except OSError as error:
            raise self._broken(f"the file cannot be read: {error.strerror}", code="unreadable") from error
        except Exception as error:
            if not isinstance(error, zlib.error) and type(error).__name__ != "ZstdError":
                raise
            hint = "compress it with a window of 128 MiB or less" if "memory" in str(error) else ""
            raise self._broken(f"this is no valid {self.compression} file", hint) from error
        self.decompressed += len(data)
        if self.compression and self.decompressed > max(RATIO_FREE_BYTES, MAX_RATIO * self._raw.count):
            message = f"data of {self._raw.count} bytes expands to more than {self.decompressed - 1} bytes"
            hint = "if this is meant to be so, decompress the file first"
            raise self._broken(f"{self.compression} {message}", hint, code="too-large")
        return data

    def _broken(self, message: str, hint: str = "", code: str = "compression") -> DatasetError:
        return DatasetSyntaxError.at(self.path, message, hint, code=code)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the file on disk, lower-case hex. Reads to the end of the file if need be."""
        self._raw.drain()
        return self._raw.hash.hexdigest()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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

    def text(self) -> str:
        """Return the content as text. Raises DatasetSyntaxError with line and column if it is not UTF-8."""
        return decode(self.data, self.path)


def read_source(path: str | Path) -> Source:
    """Read a file whole. Raises DatasetError for anything that keeps it from being read."""
    chunks = []
    with Reader(path) as reader:
        while chunk := reader.read_chunk():
            if reader.decompressed > MAX_DOCUMENT_BYTES:
                most, hint = format_size(MAX_DOCUMENT_BYTES), "write it as JSON Lines: one record per line"
                message = f"the file is larger than {most}, the limit for a file that is one JSON document"
                raise DatasetSyntaxError.at(reader.path, message, hint, code="too-large")
            chunks.append(chunk)
        return Source(reader.path, b"".join(chunks), reader.digest)


def read_json(path: str | Path) -> Any:
    """Read a file that is one JSON value. Raises DatasetError."""
    source = read_source(path)
    return parse_json(source.data, source.path)


def split_lines(read_chunk: Callable[[], bytes], max_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    r"""Yield the lines of a file that `read_chunk` reads a piece of at a time, b"" at the end.

    Lines end at b"\n" only, and a b"\r" before it goes; U+2028 and the like are text. There is no line after the last
    b"\n". A line of more than `max_bytes` comes as None, as soon as that many are read, and is not held in memory.
    """
    number, size = 1, 0
    parts: list[bytes] = []
    while chunk := read_chunk():
        for place, piece in enumerate(chunk.split(b"\n")):
            if place:  # the line before it has ended
                if size <= max_bytes:
                    yield number, b"".join(parts).removesuffix(b"\r")
                number, size, parts = number + 1, 0, []
            before, size = size, size + len(piece)
            if size <= max_bytes:
                parts.append(piece)
            elif before <= max_bytes:
                parts.clear()
                yield number, None
    if 0 < size <= max_bytes:
        yield number, b"".join(parts).removesuffix(b"\r")


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


def iter_csv(lines: Iterable[str], path: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line at which it begins, cells) of every record that is not a blank line. Raises DatasetSyntaxError."""
    # Python's limit of 131,072 characters a cell is one for the whole process: it is raised, and put back.
    before = csv.field_size_limit(MAX_LINE_BYTES)
    line = 1
    try:
        parser = csv.reader(lines, delimiter=delimiter, strict=True)
        for cells in parser:
            if cells:
                yield line, cells
            line = parser.line_num + 1
    except csv.Error as error:
        hint = r"each double quote that opens is closed, and written twice inside; lines end with \n"
        message = f"the row that begins here cannot be read: {str(error).partition(' - ')[0]}"
        raise DatasetSyntaxError.at(path, message, hint, line, code="csv") from None
    finally:
        csv.field_size_limit(before)


class LineSource(Reader):
    """A file's lines, streamed: memory for one line at a time. A context manager; iterate once.

    Iteration yields `(number, bytes)` as `split_lines` does; a line beyond the limit ends it with DatasetSyntaxError.
    After the last line, `digest` is known also when the file is closed.
    """

    latest: ClassVar[weakref.ref[LineSource] | None] = None
    """The one whose lines were asked for last: what is shown of a reading that takes long (`show_reading`)."""
    lines_read = 0

    def __init__(self, path: str | Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        super().__init__(path)
        self.max_line_bytes = max_line_bytes

    @property
    def bytes_read(self) -> int:
        """Bytes on disk read so far."""
        return self._raw.count

    @property
    def size(self) -> int:
        """Bytes on disk, as the open file has them; 0 when it is closed."""
        return 0 if self._file.closed else os.fstat(self._file.fileno()).st_size

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        LineSource.latest = weakref.ref(self)
        for number, line in split_lines(self.read_chunk, self.max_line_bytes):
            self.lines_read = number
            if line is None:
                raise DatasetSyntaxError([too_long(self.path, number, self.max_line_bytes)])
            yield number, line
        _ = self.digest  # while the file is open

    def cut(self, size: int) -> Iterator[tuple[int, int, list[bytes]]]:
        """Yield whole lines of `size` bytes or more, as they were read, behind the number of the first and its place.

        Lines near the limit, which `__iter__` alone measures, end it with DatasetSyntaxError.
        """
        import numpy as np  # `bytes.count` looks at one byte after the other

        LineSource.latest = weakref.ref(self)
        start = held = 0
        chunks: list[bytes] = []
        for chunk in chain(iter(self.read_chunk, b""), [b""]):
            if held + len(chunk) > self.max_line_bytes:
                raise DatasetSyntaxError([too_long(self.path, self.lines_read + 1, self.max_line_bytes)])
            rest = chunk
            while (end := rest.find(b"\n", max(0, size - 1 - held)) + 1) or (held and not chunk):
                first, piece = self.lines_read + 1, [*chunks, rest[:end]]
                self.lines_read += sum(np.count_nonzero(np.frombuffer(one, np.uint8) == ord("\n")) for one in piece)
                yield first, start, piece
                start, held, chunks, rest = start + held + end, 0, [], rest[end:]
            chunks.append(rest)
            held += len(rest)
        _ = self.digest


def show_reading(path: str | Path) -> Progress:
    """Return what shows how far this process is with a file, and with the files that it stands for.

    The lines that there will be are foreseen from the bytes on disk; what is no file of lines shows how long it takes.
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

    return Progress(None, "lines", title=f"reading {Path(path).name or path}", measure=measure)
