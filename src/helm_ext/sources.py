"""A file's bytes, once: decompression, SHA-256, JSON with good positions, limits.

Small or document-shaped files are read whole (`read_source`); JSON Lines are streamed in constant memory
(`LineSource`, `iter_json_lines`). Both hash the bytes on disk on the way, so that a digest costs no second reading.
Line numbers of values inside a document are looked up only when there is something to report (`locate`).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

import orjson

from helm_ext.errors import (
    DatasetError,
    DatasetNotFoundError,
    DatasetSchemaError,
    DatasetSyntaxError,
    Location,
    Problem,
    did_you_mean,
)

__all__ = [
    "BOM",
    "MAX_DOCUMENT_BYTES",
    "MAX_LINE_BYTES",
    "LineSource",
    "Source",
    "canonical_json",
    "iter_json_lines",
    "locate",
    "parse_json",
    "parse_relaxed_json",
    "read_source",
]

BOM = b"\xef\xbb\xbf"
"""UTF-8's byte order mark. Whether it is allowed is each format's own decision."""

MAX_DOCUMENT_BYTES = 1 << 30
"""A file that is one document must be held in memory; 1 GiB, decompressed. Larger data: JSON Lines."""

MAX_LINE_BYTES = 1 << 28
"""One line of JSON Lines: 256 MiB, decompressed."""

MAX_RELAXED_BYTES = 1 << 20
"""JSON5 in full is parsed by a slow library (about a minute per MB)."""

MAX_RATIO = 1_000
"""Decompressed to compressed size, past RATIO_FREE_BYTES: what no real dataset reaches."""

RATIO_FREE_BYTES = 1 << 30
_CHUNK = 1 << 16
_ZSTD_CHUNK = 1 << 11
"""zstd can expand 4 bytes to 128 KiB: with this much input at a time, at most 64 MiB come out at once."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}


def _problem(
    path: str,
    message: str,
    hint: str = "",
    line: int | None = None,
    code: str = "syntax",
    kind: type[DatasetError] = DatasetSyntaxError,
) -> Problem:
    return Problem(message, Location(path, line), hint, code=code, kind=kind)


def _stop(*args: Any, **kwargs: Any) -> DatasetError:
    problem = _problem(*args, **kwargs)
    assert problem.kind is not None
    return problem.kind([problem])


# Opening


def open_raw(path: str | Path) -> BinaryIO:
    """Open a file of bytes. Raises DatasetNotFoundError, DatasetSyntaxError (0 bytes) or DatasetError."""
    shown = str(path)
    try:
        status = os.stat(path)  # noqa: PTH116 - works for str and Path alike
        if stat.S_ISDIR(status.st_mode):
            raise _stop(
                shown,
                "this is a folder, not a file",
                "name the file inside it",
                code="not-a-file",
                kind=DatasetNotFoundError,
            )
        if not stat.S_ISREG(status.st_mode):
            raise _stop(
                shown, "this is no regular file", "a dataset is read more than once: save it as a file first",
                code="not-a-file", kind=DatasetNotFoundError,
            )  # fmt: skip
        if status.st_size == 0:
            raise _stop(shown, "the file is empty (0 bytes)", code="empty-file")
        return Path(path).open("rb")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _stop(
            shown, "no such file", _near_files(Path(path)), code="not-found", kind=DatasetNotFoundError
        ) from error
    except (OSError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _stop(
            shown, f"the file cannot be read: {reason}", code="unreadable", kind=DatasetNotFoundError
        ) from error


def _near_files(path: Path) -> str:
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return f"there is no folder {str(path.parent)!r}"
    return did_you_mean(path.name, names)


class _Hashing(io.RawIOBase):
    """A file whose bytes are hashed and counted as they are read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.hash = hashlib.sha256()
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.hash.update(data)
        self.count += len(data)
        return len(data)

    def drain(self) -> None:
        while self.read(_CHUNK):
            pass


class _Chunks(Protocol):
    def __call__(self) -> bytes: ...


def _plain_chunks(raw: _Hashing) -> Callable[[], bytes]:
    return lambda: raw.read(_CHUNK) or b""


def _gzip_chunks(raw: _Hashing) -> Callable[[], bytes]:
    file = gzip.GzipFile(fileobj=io.BufferedReader(raw, _CHUNK), mode="rb")
    return lambda: file.read1(_CHUNK)


def _zstd_chunks(raw: _Hashing) -> Callable[[], bytes]:
    import zstandard

    context = zstandard.ZstdDecompressor(max_window_size=1 << 31)

    def generate() -> Iterator[bytes]:
        frame = None
        while data := raw.read(_ZSTD_CHUNK):
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


class _Reader:
    """Decompressed chunks of a file, with errors that name it and limits on what comes out."""

    def __init__(
        self, path: str | Path, *, max_ratio: int = MAX_RATIO, ratio_free_bytes: int = RATIO_FREE_BYTES
    ) -> None:
        self.path = str(path)
        self._file = open_raw(path)
        self._raw = _Hashing(self._file)
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
                raise self._broken(f"this is no valid {self.compression} file") from error
            raise _stop(self.path, f"the file cannot be read: {error.strerror}", code="unreadable") from error
        except Exception as error:
            if isinstance(error, zlib.error) or type(error).__name__ == "ZstdError":
                raise self._broken(f"this is no valid {self.compression} file") from error
            raise
        self.size += len(data)
        if self.compression and self.size > max(self._ratio_free_bytes, self._max_ratio * self._raw.count):
            raise self._broken(
                f"{self.compression} data of {self._raw.count} bytes expands to more than {self.size - 1} bytes",
                "if this is meant to be so, decompress the file first",
                code="too-large",
            )
        return data

    def _broken(self, message: str, hint: str = "", code: str = "compression") -> DatasetError:
        return _stop(self.path, message, hint, code=code)

    def finish(self) -> str:
        """Read what is left on disk and return the digest of all of it."""
        self._raw.drain()
        return self._raw.hash.hexdigest()

    def close(self) -> None:
        self._file.close()


# Whole files


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
    reader = _Reader(path, max_ratio=max_ratio)
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
    return _stop(
        path, f"the file is larger than {_size(max_bytes)}, the limit for a file that is one JSON document",
        "write it as JSON Lines: one record per line", code="too-large",
    )  # fmt: skip


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return f"{count} bytes"


def decode(data: bytes, path: str, line: int = 1) -> str:
    """Decode UTF-8 that starts at `line` of the file. Raises DatasetSyntaxError with line and column."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[start : error.start].decode("utf-8")) + 1
        raise _stop(
            path,
            f"not UTF-8: byte 0x{data[error.start]:02x} at column {column}",
            "save the file as UTF-8",
            line + data.count(b"\n", 0, error.start),
            code="not-utf-8",
        ) from error


# Lines


class LineSource:
    """A file's lines, streamed: memory for one line at a time. A context manager; iterate once.

    Lines end at b"\\n" only (a CR before it is dropped); U+2028 and the like are text. Iteration yields
    `(number, bytes)` from 1. After the last line, `digest` is the SHA-256 of the bytes on disk.
    """

    def __init__(self, path: str | Path, *, max_line_bytes: int = MAX_LINE_BYTES, max_ratio: int = MAX_RATIO) -> None:
        self.path = str(path)
        self.max_line_bytes = max_line_bytes
        self._reader = _Reader(path, max_ratio=max_ratio)
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

    def __enter__(self) -> LineSource:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        number = 1
        pending: list[bytes] = []
        pending_size = 0
        while chunk := self._reader.read_chunk():
            parts = chunk.split(b"\n")
            if len(parts) == 1:
                pending.append(chunk)
                pending_size += len(chunk)
            else:
                pending.append(parts[0])
                yield number, self._line(pending, pending_size + len(parts[0]), number)
                number += 1
                for part in parts[1:-1]:
                    yield number, part[:-1] if part.endswith(b"\r") else part
                    number += 1
                pending, pending_size = [parts[-1]], len(parts[-1])
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
        return _stop(
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
            problems.extend(_problem(path, "blank line", "remove it", at, code="blank-line") for at in blanks)
        blanks.clear()
        try:
            value = parse_json(line, path, number, allow_nan=allow_nan)
        except DatasetError as error:
            problems.extend(error.problems)
            continue
        yield number, value


# JSON


def parse_json(data: bytes, path: str, line: int = 1, *, allow_nan: bool = False) -> Any:
    """Parse strict JSON that starts at `line` of the file.

    Refused, with line and column: what is not UTF-8 or not JSON, a key given twice in one object, NaN and Infinity
    unless `allow_nan`, and lone surrogates (text that cannot be written to a file again). An integer of more than 64
    bits comes back as a float.
    Raises DatasetSyntaxError, or DatasetSchemaError for the doubled key.
    """
    try:
        value = orjson.loads(data)
        # Parsing drops a key that is given twice. Each dropped key leaves at least two quotes less when written again,
        # and nothing adds any but an escape that the second test excludes: a cheap and exact test for "none dropped".
        if b"\\u0022" not in data and data.count(b'"') == orjson.dumps(value).count(b'"'):
            return value
    except (orjson.JSONDecodeError, TypeError, RecursionError):
        pass
    return _parse_carefully(decode(data, path, line), path, line, allow_nan=allow_nan)


def _parse_carefully(text: str, path: str, line: int, *, allow_nan: bool) -> Any:
    """Parse with the standard library: slower, and it knows where an error is."""
    constants: list[str] = []
    doubled: list[str] = []

    def pairs_to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            doubled.extend(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return made

    def constant(name: str) -> float:
        constants.append(name)
        return float(name)

    try:
        value = json.loads(text, object_pairs_hook=pairs_to_dict, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise _stop(
            path,
            f"not JSON: {_json_message(error)} (column {error.colno})",
            _json_hint(error),
            line + error.lineno - 1,
            code="not-json",
        ) from None
    except RecursionError:
        raise _stop(path, "not usable JSON: nested too deeply", line=line, code="not-json") from None
    except ValueError:  # sys.set_int_max_str_digits
        raise _stop(path, "not usable JSON: a number has too many digits", line=line, code="not-json") from None
    if doubled:
        at = line + _line_of_doubled(text, doubled[0])
        raise _stop(
            path, f"the key {json.dumps(doubled[0], ensure_ascii=False)} is given twice in one object",
            "remove one of the two", at, code="duplicate-key", kind=DatasetSchemaError,
        )  # fmt: skip
    if constants and not allow_nan:
        offset = re.search(rf"(?<![\w\"]){re.escape(constants[0])}\b", text)
        at = line + text.count("\n", 0, offset.start()) if offset else line
        raise _stop(path, f"{constants[0]} is not JSON", "write a number or null", at, code="not-json")
    surrogate = _LONE_SURROGATE.search(text)
    if surrogate:
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise _stop(
                path, "a string holds half of a surrogate pair, which is no character",
                "write the character itself, or both halves", line + _line_of_lone_surrogate(text), code="lone-surrogate",
            ) from None  # fmt: skip
    return value


_LONE_SURROGATE = re.compile(r"\\u[dD][89abAB-F]", re.ASCII)
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def _line_of_lone_surrogate(text: str) -> int:
    """Return how many lines after the first the first unpaired \\uD8xx escape stands."""
    high: re.Match[str] | None = None
    for match in _ESCAPED.finditer(text):
        code = int(match[1], 16) if match[1] else 0
        if high is not None and not (0xDC00 <= code < 0xE000 and match.start() == high.end()):
            return text.count("\n", 0, high.start())
        if 0xDC00 <= code < 0xE000 and high is None:
            return text.count("\n", 0, match.start())
        high = match if 0xD800 <= code < 0xDC00 else None
    return text.count("\n", 0, high.start()) if high else 0


def _line_of_doubled(text: str, key: str) -> int:
    """Return how many lines after the first `key` is given again in the same object."""
    stack: list[set[str]] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "{":
            stack.append(set())
        elif token == "}" and stack:
            stack.pop()
        elif token[0] == '"' and stack and _KEY_END.match(text, match.end()):
            if json.loads(token) == key and key in stack[-1]:
                return text.count("\n", 0, match.start())
            stack[-1].add(json.loads(token))
    return 0


_MESSAGES = {
    "Expecting value": "a value is expected here",
    "Expecting property name enclosed in double quotes": "a key in double quotes is expected here",
    "Expecting ':' delimiter": "a colon is expected here",
    "Expecting ',' delimiter": "a comma is expected here",
    "Extra data": "there is more after the end of the JSON value",
    "Unterminated string starting at": "this string has no end",
    "Invalid control character at": "a line break or control character stands inside a string",
    "Illegal trailing comma before end of object": "a comma stands before the closing brace",
    "Illegal trailing comma before end of array": "a comma stands before the closing bracket",
}


def _json_message(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()) and error.msg != "Extra data":
        return "the text ends too early"
    return _MESSAGES.get(error.msg, error.msg[:1].lower() + error.msg[1:])


def _json_hint(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data" and error.doc[error.pos : error.pos + 1] == "{":
        return "one record per line is JSON Lines: name the file .jsonl"
    if error.msg == "Invalid control character at":
        return "write \\n for a line break inside a string"
    return ""


def canonical_json(value: Any) -> bytes:
    """Return JSON bytes that are equal for equal values, keys sorted: for hashing and comparing."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer of more than 64 bits
        return json.dumps(value, sort_keys=True, ensure_ascii=False).encode("utf-8")


# JSON with comments, trailing commas and the rest of JSON5

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT_OR_COMMA = re.compile(rf"({_STRING})|(//[^\n]*|/\*.*?\*/)|,(?=(?:\s|//[^\n]*\n|/\*.*?\*/)*[\]}}])", re.DOTALL)


def parse_relaxed_json(data: bytes, path: str, *, max_bytes: int = MAX_RELAXED_BYTES) -> Any:
    """Parse JSON5 (comments, trailing commas, single quotes, ...), after the strict parse has failed.

    Comments and trailing commas are blanked out in place, so that any remaining error keeps its position; only what is
    still no JSON goes to the json5 library, if it has at most `max_bytes`. Raises DatasetError with the strict parse's
    error where that says more than the library's.
    """
    text = decode(data, path)

    def blank(match: re.Match[str]) -> str:
        return match[1] or re.sub(r"[^\n]", " ", match[0])

    stripped = _COMMENT_OR_COMMA.sub(blank, text)
    try:
        return parse_json(stripped.encode("utf-8"), path, allow_nan=True)
    except DatasetError as error:
        strict = error
    if strict.problems[0].code != "not-json" or len(data) > max_bytes:
        raise strict
    import json5

    try:
        return json5.loads(text, allow_duplicate_keys=False)
    except (ValueError, RecursionError):
        raise strict from None


# Places

_TOKEN = re.compile(rf"//[^\n]*|/\*.*?\*/|{_STRING}|'(?:[^'\\]|\\.)*'|[{{}}\[\]:,]|[^\s{{}}\[\]:,\"'/]+", re.DOTALL)
_KEY_END = re.compile(r"\s*:")


def locate(text: str, paths: Iterable[tuple[str | int, ...]]) -> dict[tuple[str | int, ...], int]:
    """Return the line (from 1) of each path such as ("request_states", 3, "instance", "id") in JSON or JSON5 text.

    A value stands where its key does; a path that is not there gets the line of the nearest ancestor that is. One pass
    for all paths, ended as soon as all are found.
    """
    wanted = {path: 1 for path in paths}
    if not wanted:
        return {}
    prefixes = {path[:length] for path in wanted for length in range(len(path) + 1)}
    found: dict[tuple[str | int, ...], int] = {}
    line, last = 1, 0
    stack: list[list[Any]] = []  # [kind, current key or index, path of the container]
    key: Any = None
    expect_key = False

    def here() -> tuple[str | int, ...] | None:
        if not stack:
            return ()
        base = stack[-1][2]
        return None if base is None else (*base, stack[-1][1])

    for match in _TOKEN.finditer(text):
        token = match[0]
        if token.startswith(("//", "/*")):
            continue
        line += text.count("\n", last, match.start())
        last = match.start()
        if token in "}]":
            if stack:
                stack.pop()
            expect_key = False
            continue
        if token == ",":
            if stack and stack[-1][0] == "[":
                stack[-1][1] += 1
            expect_key = bool(stack) and stack[-1][0] == "{"
            continue
        if token == ":":
            continue
        if expect_key:
            key = _unquote(token)
            stack[-1][1] = key
            expect_key = False
            place = here()
            if place in prefixes and place is not None:
                found[place] = line
            continue
        place = here()
        if place is not None and place in prefixes:
            found.setdefault(place, line)
            if len(found) == len(prefixes) and token not in "{[":
                break
        if token in "{[":
            stack.append([token, 0, place if place in prefixes else None])
            expect_key = token == "{"
    for path in wanted:
        wanted[path] = (
            next(found[path[:length]] for length in range(len(path), -1, -1) if path[:length] in found) if found else 1
        )
    return wanted


def _unquote(token: str) -> str:
    if token[0] == '"':
        try:
            return str(json.loads(token, strict=False))
        except json.JSONDecodeError:
            return token[1:-1]
    return re.sub(r"\\(.)", r"\1", token[1:-1]) if token[0] == "'" else token
