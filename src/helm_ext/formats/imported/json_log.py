"""Logs in JSON: lines checked by msgspec structs, and documents larger than one wants in memory, cut into pieces.

What is wrong with a line that does not fit its struct is said for each field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from hashlib import sha256
from mmap import ACCESS_READ, mmap
from os import SEEK_END
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import orjson

from helm_ext import files
from helm_ext.errors import DatasetError, DatasetSchemaError, DatasetSyntaxError, Problems, format_path
from helm_ext.files import parse_json
from helm_ext.files.content import MAX_DOCUMENT_BYTES, open_raw
from helm_ext.formats.format import look
from helm_ext.formats.request_states.checking import conform

_SPACE = re.compile(rb"[\s,]*")
_BEFORE_MEMBER = re.compile(rb'[\s,]*"(?:[^"\\]|\\.)*"\s*:\s*', re.DOTALL)
_COUNTED = 1 << 20

V = TypeVar("V")


class JsonPieces:
    """A file that is one JSON object or list, cut into its values.

    Logs may have gigabytes: what is larger than documents may be in memory is mapped, and only looked at. Not others:
    a file that is cut off while it is mapped ends the process. Raises DatasetError for a file that cannot be read, and
    for what is no such document.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        with open_raw(path) as file:
            is_large = file.seek(0, SEEK_END) > MAX_DOCUMENT_BYTES
            mapped = mmap(file.fileno(), 0, access=ACCESS_READ) if is_large else None
        if mapped is not None:
            self._data, self.digest = memoryview(mapped), sha256(mapped).hexdigest()
        else:
            source = files.read_source(path)
            self._data, self.digest = memoryview(source.data), source.digest
            """What it holds, and the SHA-256 of the bytes on disk."""
        self._text = self._data
        """The same; of a document with NaN or Infinity a copy with as many characters of a number for each."""

    def members(self) -> dict[str, tuple[int, int]]:
        """Return where the values of an object begin and end, by key."""
        start = len(files.BOM) if self._data[:3] == files.BOM else 0
        found = self._decode(dict[str, msgspec.Raw], start, len(self._data), "a log is a JSON object")
        places = list(self._walk(found.values(), _BEFORE_MEMBER, start))
        end = _SPACE.match(self._text, places[-1][1] if places else start + 1).end()  # type: ignore[union-attr]
        if places and bytes(self._text[end : end + 1]) != b"}":
            raise self._wrong("a key is given twice in one object", end)
        return dict(zip(found, places, strict=True))

    def elements(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield line and bytes of the elements of a list: of the one that begins there, else of the document."""
        if not start and self._data[:3] == files.BOM:
            start = len(files.BOM)
        found = self._decode(list[msgspec.Raw], start, end or len(self._data), "a list is expected here")
        line, counted = 1, 0
        for at, stop in self._walk(found, _SPACE, start):
            line, counted = line + self._count_lines(counted, at), at
            yield line, bytes(self._data[at:stop])

    def get(self, place: tuple[int, int]) -> tuple[bytes, int]:
        """Return the bytes of a value, and its line."""
        return bytes(self._data[slice(*place)]), 1 + self._count_lines(0, place[0])

    def _decode(self, kind: type[V], start: int, end: int, expected: str) -> V:
        try:
            return msgspec.json.decode(self._text[start:end], type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            if self._text is self._data:
                text = bytearray(self._data)
                for word, number in ((b"NaN", b"0e0"), (b"Infinity", b"0.000000")):
                    for found in re.finditer(word, self._data):
                        text[slice(*found.span())] = number
                self._text = memoryview(text)
                return self._decode(kind, start, end, expected)
            raise self._wrong(expected, start) from None

    def _walk(self, pieces: Iterable[msgspec.Raw], before: re.Pattern[bytes], start: int) -> Iterator[tuple[int, int]]:
        """Yield where the pieces of an object or list begin and end; `before`: what stands before each."""
        end = _SPACE.match(self._text, start).end() + 1  # type: ignore[union-attr] # it matches nothing too
        for piece in pieces:
            if (match := before.match(self._text, end)) is None:
                raise self._wrong("a key is given twice in one object", end)
            at, end = match.end(), match.end() + len(memoryview(piece))
            yield at, end

    def _count_lines(self, start: int, end: int) -> int:
        pieces = (self._data[at : min(at + _COUNTED, end)] for at in range(start, end, _COUNTED))
        return sum(bytes(piece).count(b"\n") for piece in pieces)

    def _wrong(self, message: str, at: int) -> DatasetError:
        """Return what is wrong; where that is known once the whole document is parsed, raise it with its line."""
        if len(self._data) <= MAX_DOCUMENT_BYTES:
            parse_json(bytes(self._data).removeprefix(files.BOM), self.path, allow_nan=True)
        line = 1 + self._count_lines(0, at)
        return DatasetSyntaxError.at(self.path, message, line=line, code="shape")


class JsonRows:
    """The values of a file of JSON Lines, or of one list; iterate once. `digest` is complete after the last."""

    digest = ""
    """SHA-256 of the bytes on disk."""

    def __init__(self, path: str | Path, problems: Problems, *, is_lenient: bool = False) -> None:
        """What is no JSON goes to `problems`. `is_lenient`: NaN and Infinity are read, blank lines are refused."""
        self._path, self._problems, self._is_lenient = str(path), problems, is_lenient

    def values(self) -> Iterator[tuple[int, Any]]:
        """Yield the line at which each value begins, and the value. Raises DatasetError."""
        lenient = self._is_lenient
        is_list = look(self._path).start.removeprefix(files.BOM).lstrip().startswith(b"[")
        with nullcontext(JsonPieces(self._path)) if is_list else files.LineSource(self._path) as source:
            found = source.elements() if isinstance(source, JsonPieces) else source
            lines = ((number, line.removeprefix(files.BOM) if number == 1 else line) for number, line in found)
            yield from files.iter_json_lines(
                lines, self._path, self._problems, blank="error" if lenient else "skip", allow_nan=lenient
            )
            self.digest = source.digest


T = TypeVar("T", bound=msgspec.Struct)


class StructLines(JsonRows, Generic[T]):
    """A file of JSON Lines, or one list, of one kind of struct; iterate once."""

    def __init__(
        self,
        path: Path,
        kind: type[T],
        what: str,
        problems: Problems,
        *,
        is_lenient: bool = False,
        complete: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        """`kind`: what each line must have; `what`: what it is then. What is wrong with lines goes to `problems`.

        `complete`: makes values of those of an older version.
        """
        super().__init__(path, problems, is_lenient=is_lenient)
        self._kind, self._what, self._complete = kind, what, complete

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any], T]]:
        """Yield number, value and struct of each line that has the right shape. Raises DatasetError."""
        for number, given in self.values():
            value = self._complete(given)
            if (made := convert(value, self._kind, self._what, self._problems, number)) is not None:
                yield number, value, made


def convert(value: Any, kind: type[T], what: str, problems: Problems, line: int | None = None) -> T | None:
    """Return a JSON value as a struct, or None and add a problem for each field that does not fit.

    `what`: what the value is if it has all required fields, for the message about those that are missing.
    """
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError) as error:
        found = conform(value, kind)[1]
        missing = [one.path for one in found if one.code == "missing-key"]
        if missing:
            place, names = missing[0] if len(missing) == 1 else (), ", ".join(map(format_path, missing))
            problems.add(place, f"no {what}: without {names}", line=line, code="shape")
        elif not found:
            problems.add((), f"no {what}: {error}", line=line, code="shape")
        for one in found if not missing else ():
            problems.add(one.path, one.message, one.hint, line=line, code="shape")
        return None


def to_struct(value: Any, kind: type[T], what: str, path: str, line: int | None = None) -> T:
    """Return a JSON value as a struct. Raises DatasetSchemaError with all that is wrong with it."""
    problems = Problems(path)
    if (made := convert(value, kind, what, problems, line)) is None:
        raise DatasetSchemaError(problems.finish())
    return made


def without_nan(value: Any) -> Any:
    """Return a JSON value with null for NaN and Infinity, which no browser reads."""
    try:
        data = orjson.dumps(value)
    except TypeError:  # an integer of more than 64 bits
        return json.loads(json.dumps(value), parse_constant=lambda _: None)
    return orjson.loads(data) if b"null" in data else value  # as which they are written
