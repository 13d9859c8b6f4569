"""Opening a file of bytes: what can go wrong, decompression, the digest of what is on disk, limits and sizes."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from helm_ext.errors import DatasetError, DatasetNotFoundError, DatasetSyntaxError, did_you_mean

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

_ZSTD_CHUNK = 1 << 11
"""zstd can expand 4 bytes to 128 KiB: with this much input at a time, at most 64 MiB come out at once."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZIP_MAGIC = b"PK\x03\x04"
_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}


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
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return f"there is no folder {str(path.parent)!r}"
    return did_you_mean(path.name, names)


class Hashing(io.RawIOBase):
    """A file whose bytes are hashed and counted as they are read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.hash = hashlib.sha256()
        self.count = 0

    def readable(self) -> bool:
        return True

    def read_chunk(self, size: int = READ_BYTES) -> bytes:
        """Return the next bytes, b"" at the end. `read` would copy them twice."""
        data = self._file.read(size)
        self.hash.update(data)
        self.count += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read_chunk(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def drain(self) -> None:
        while self.read_chunk():
            pass


def _plain_chunks(raw: Hashing) -> Callable[[], bytes]:
    return raw.read_chunk


def _gzip_chunks(raw: Hashing) -> Callable[[], bytes]:
    file = gzip.GzipFile(fileobj=io.BufferedReader(raw, READ_BYTES), mode="rb")
    return lambda: file.read1(READ_BYTES)


def _zstd_chunks(raw: Hashing) -> Callable[[], bytes]:
    import zstandard

    context = zstandard.ZstdDecompressor(max_window_size=1 << 27)

    def generate() -> Iterator[bytes]:
        frame = None
        while data := raw.read_chunk(_ZSTD_CHUNK):
            while data:
                frame = frame or context.decompressobj()
                out = frame.decompress(data)
                if out:
                    yield out
                data = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
        if frame is not None:
            raise EOFError

    chunks = generate()
    return lambda: next(chunks, b"")


class Reader:
    """Decompressed chunks of a file, with errors that name it and limits on what comes out."""

    def __init__(
        self, path: str | Path, *, max_ratio: int = MAX_RATIO, ratio_free_bytes: int = RATIO_FREE_BYTES
    ) -> None:
        self.path = str(path)
        self._file = open_raw(path)
        self._raw = Hashing(self._file)
        self._max_ratio = max_ratio
        self._ratio_free_bytes = ratio_free_bytes
        self.size = 0
        """Decompressed bytes so far."""
        start = self._file.read(4)
        self._file.seek(0)
        suffix = Path(self.path).suffix.lower()
        self.compression = (
            "gzip" if start.startswith(_GZIP_MAGIC) else "zstd" if start == _ZSTD_MAGIC else _SUFFIXES.get(suffix)
        )
        self._is_text = start.isascii() and start.lstrip()[:1] in (b"{", b"[")
        make = {"gzip": _gzip_chunks, "zstd": _zstd_chunks, None: _plain_chunks}[self.compression]
        self._next = make(self._raw)

    def read_chunk(self) -> bytes:
        """Return the next bytes, b"" at the end. Raises DatasetSyntaxError."""
        try:
            data = self._next()
        except EOFError as error:
            raise self._broken(
                "the compressed data is truncated", "the file was not copied or written completely"
            ) from error
        except OSError as error:
            if isinstance(error, gzip.BadGzipFile):
                raise self._broken(f"this is no valid {self.compression} file", self._suffix_hint()) from error
            raise DatasetSyntaxError.at(
                self.path, f"the file cannot be read: {error.strerror}", code="unreadable"
            ) from error
        except Exception as error:
            if isinstance(error, zlib.error) or type(error).__name__ == "ZstdError":
                is_window = "memory" in str(error)
                hint = "compress it with a window of 128 MiB or less" if is_window else self._suffix_hint()
                raise self._broken(f"this is no valid {self.compression} file", hint) from error
            raise
        self.size += len(data)
        if self.compression and self.size > max(self._ratio_free_bytes, self._max_ratio * self._raw.count):
            raise self._broken(
                f"{self.compression} data of {self._raw.count} bytes expands to more than {self.size - 1} bytes",
                "if this is meant to be so, decompress the file first",
                code="too-large",
            )
        return data

    def _suffix_hint(self) -> str:
        path = Path(self.path)
        return f"it is not compressed: rename it to {path.stem}" if self._is_text else ""

    def _broken(self, message: str, hint: str = "", code: str = "compression") -> DatasetError:
        return DatasetSyntaxError.at(self.path, message, hint, code=code)

    def finish(self) -> str:
        """Read what is left on disk and return the digest of all of it."""
        self._raw.drain()
        return self._raw.hash.hexdigest()

    def close(self) -> None:
        self._file.close()
