"""Logs in JSON: lines checked by msgspec structs, and documents larger than one wants in memory, read in pieces.

What is wrong with a line that does not fit its struct is said for each field.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import orjson
from typing_extensions import Self

from helm_ext import files
from helm_ext.errors import DatasetError, DatasetSchemaError, DatasetSyntaxError, Problems, format_path
from helm_ext.files import parse_json
from helm_ext.files.content import MAX_LINE_BYTES, Reader, format_size
from helm_ext.formats.format import look
from helm_ext.formats.request_states.checking import conform

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class JsonPieces:
    """A JSON file read once, from its beginning to its end, a value at a time. A context manager.

    Logs may have gigabytes, so no more than one value is held in memory. Iterates over the top-level values of an
    object in their order: key, bytes, line; of its list `listed` over the elements. Raises DatasetError for a file that
    cannot be read, and for what is no such document.
    """

    def __init__(self, path: str | Path, listed: str = "") -> None:
        self.path = str(path)
        self._listed = listed
        self._reader = Reader(path)
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        """Bytes that are no UTF-8 become surrogates, and bytes again in `_encode`: whoever parses them refuses them."""
        self._text = ""
        """What was read and not handed out."""
        self._at, self._line, self._counted = 0, 1, 0
        """Where in the text the next value begins; the line at `_counted`."""

    def __iter__(self) -> Iterator[tuple[str, bytes, int]]:
        self._expect("{", "a log is a JSON object")
        for _ in self._until("}"):
            if self._peek() != '"':
                raise self._error("a key in double quotes is expected here")
            data, line = self._cut()
            key = str(parse_json(data, self.path, line))
            self._expect(":", "a colon is expected here")
            if key == self._listed and self._peek() == "[":
                self._at += 1
                for _ in self._until("]"):
                    yield key, *self._cut()
            else:
                yield key, *self._cut()
        self._end()

    def items(self) -> Iterator[tuple[int, bytes]]:
        """Yield the elements of a document that is a list: line, bytes."""
        self._expect("[", "a list is expected here")
        for _ in self._until("]"):
            data, line = self._cut()
            yield line, data
        self._end()

    def _end(self) -> None:
        if self._peek():
            raise self._error("there is more after the end of the JSON value")

    def _until(self, bracket: str) -> Iterator[None]:
        """Stop before each value up to the closing bracket: who iterates takes it."""
        if self._peek() == bracket:
            self._at += 1
            return
        while True:
            yield
            if self._expect(f",{bracket}", "a comma is expected here") == bracket:
                return

    def _cut(self) -> tuple[bytes, int]:
        """Return the value that begins here, and its line; go behind it."""
        self._peek()
        size = 1 << 20
        while True:
            try:
                end = _DECODER.raw_decode(self._text, self._at)[1]
            except (ValueError, RecursionError):
                end = len(self._text)
            if end < len(self._text):
                break
            if len(self._text) - self._at > MAX_LINE_BYTES:
                message = f"this value has more than {format_size(MAX_LINE_BYTES)}, the limit"
                raise self._error(message, code="too-large")
            if not self._fill(size):  # it is the last value, which should be followed by a bracket
                parse_json(self._encode(len(self._text)), self.path, self._find_line(), allow_nan=True)
                raise self._error("the text ends too early")
            size *= 2
        found = self._encode(end), self._find_line()
        self._at = end
        return found

    def _encode(self, end: int) -> bytes:
        return self._text[self._at : end].encode("utf-8", "surrogateescape")

    def _fill(self, size: int) -> bool:
        """Read `size` further bytes or more, if there are any; forget what was handed out."""
        self._find_line()
        chunks, read = [self._text[self._at :]], 0
        while read < size and (chunk := self._reader.read_chunk()):
            chunks.append(self._decode(chunk))
            read += len(chunk)
        chunks.append(self._decode(b"", not read))
        self._text = "".join(chunks)
        self._at = self._counted = 0
        return bool(read or chunks[-1])

    def _peek(self) -> str:
        """Go to the next character that is no white space, and return it; "" at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr] # it matches nothing too
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill(1 << 20):
                return ""

    def _expect(self, characters: str, message: str) -> str:
        """Go behind the next character and return it. Raises DatasetSyntaxError unless it is one of these."""
        found = self._peek()
        if not found or found not in characters:
            raise self._error(message if found else "the text ends too early")
        self._at += 1
        return found

    def _find_line(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _error(self, message: str, code: str = "not-json") -> DatasetError:
        shown = message if code != "not-json" else f"not JSON: {message}"
        return DatasetSyntaxError.at(self.path, shown, line=self._find_line(), code=code)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the bytes on disk."""
        return self._reader.digest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()


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
        with JsonPieces(self._path) if is_list else files.LineSource(self._path) as source:
            found = source.items() if isinstance(source, JsonPieces) else source
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
