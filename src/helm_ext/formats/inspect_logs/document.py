"""A log that is one JSON document, in pieces: its top-level values, and its samples one by one.

Logs may have gigabytes, so no more than one piece is held in memory. As inspect_ai writes them, documents are indented:
a value ends at the first bracket that stands as far left as the line it begins on, because a line break inside a string
is always escaped. That is a guess, which counts only if the piece is JSON. Where it is not (or is not strict: NaN), or
where a document is written otherwise, brackets are counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from typing_extensions import Self

from helm_ext.errors import DatasetError, DatasetSyntaxError
from helm_ext.files import parse_json
from helm_ext.files.limits import MAX_LINE_BYTES, format_size
from helm_ext.files.opening import Reader

T = TypeVar("T")

_NO_SPACE = re.compile(rb"[^ \t\r\n]")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_END_OF_SCALAR = re.compile(rb"[,\]}\s]")
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|([{\[])|[}\]]', re.DOTALL)
"""A string may go on behind what was read so far."""
_INDENT = re.compile(rb"[ \t]*")


@dataclass(frozen=True, slots=True)
class Piece(Generic[T]):
    """A value of the document, as bytes."""

    key: str
    """The top-level key: of the value, or of the list that it is an element of."""
    data: bytes
    line: int
    """Where it begins, from 1."""
    element: bool = False
    value: T | None = None
    """What the quick reader of elements made of it; None where it could not read it."""


class Document(Generic[T]):
    """A JSON file whose document is an object, read once, from its beginning to its end. A context manager.

    `listed` is the key of a list whose elements come one by one; `read` reads an element quickly, and returns None for
    what it cannot read. Raises DatasetError for a file that cannot be read, and for what is no such document.
    """

    def __init__(self, path: str | Path, listed: str, read: Callable[[bytes], T | None]) -> None:
        self.path = str(path)
        self._listed = listed
        self._read = read
        self._reader = Reader(path)
        self._buffer = b""
        self._at = 0
        self._lines = 1
        """The number of the line at `_counted`."""
        self._counted = 0
        self._is_indented = True

    def pieces(self) -> Iterator[Piece[T]]:
        """Yield the top-level values in their order, of `listed` the elements."""
        self._expect(b"{", "a log is a JSON object")
        if self._peek() == b"}":
            self._at += 1
        else:
            yield from self._members()
        if self._peek():
            raise self._error("not JSON: there is more after the end of the JSON value")

    def digest(self) -> str:
        """Return the SHA-256 of the bytes on disk."""
        return self._reader.finish()

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _members(self) -> Iterator[Piece[T]]:
        while True:
            if self._peek() != b'"':
                raise self._error("not JSON: a key in double quotes is expected here")
            line = self._line()
            key = str(parse_json(self._cut_scalar(), self.path, line))
            self._expect(b":", "a colon is expected here")
            if key == self._listed and self._peek() == b"[":
                yield from self._elements(key)
            else:
                yield Piece(key, self._cut_value(), line)
            if self._expect(b",}", "a comma is expected here") == b"}":
                return

    def _elements(self, key: str) -> Iterator[Piece[T]]:
        self._expect(b"[", "a list is expected here")
        if self._peek() == b"]":
            self._at += 1
            return
        while True:
            self._peek()
            line = self._line()
            data, value = self._cut_element()
            yield Piece(key, data, line, element=True, value=value)
            if self._expect(b",]", "a comma is expected here") == b"]":
                return

    def _cut_element(self) -> tuple[bytes, T | None]:
        guess = self._guess_end() if self._peek() == b"{" else None
        if guess is not None:
            data = self._buffer[self._at : guess]
            value = self._read(data)
            if value is not None:
                self._at = guess
                return data, value
        start = self._at
        data = self._cut_value()
        if guess is not None and len(data) != guess - start:
            self._is_indented = False
        return data, None if guess is not None and self._is_indented else self._read(data)

    def _cut_value(self) -> bytes:
        if self._peek() not in (b"{", b"["):
            return self._cut_scalar()
        end = self._grow_until(self._find_closing)
        data, self._at = self._buffer[self._at : end], end
        return data

    def _cut_scalar(self) -> bytes:
        if self._peek() == b'"':
            end = self._grow_until(lambda: _end_of(_STRING.match(self._buffer, self._at)))
        else:
            end = self._grow_until(lambda: _start_of(_END_OF_SCALAR.search(self._buffer, self._at)))
        data, self._at = self._buffer[self._at : end], end
        return data

    def _find_closing(self) -> int | None:
        """Return where the object or list that begins here ends; None where that is not in the buffer."""
        depth = 0
        for match in _STRING_OR_BRACKET.finditer(self._buffer, self._at):
            if match.lastindex:
                depth += 1
            elif match[0][:1] != b'"':
                depth -= 1
                if not depth:
                    return match.end()
        return None

    def _guess_end(self) -> int | None:
        """Return where the object that begins here ends if the document is indented; None where it cannot be told."""
        if not self._is_indented:
            return None
        begin = self._buffer.rfind(b"\n", 0, self._at)
        indent = _INDENT.match(self._buffer, begin + 1)
        if begin < 0 or indent is None:
            return None
        closing = b"\n" + indent[0] + b"}"
        try:
            return self._grow_until(lambda: self._find_text(closing))
        except DatasetError:
            self._is_indented = False
            return None

    def _find_text(self, text: bytes) -> int | None:
        """Return where the next occurrence of `text` ends."""
        found = self._buffer.find(text, self._at)
        return found + len(text) if found >= 0 else None

    def _grow_until(self, find: Callable[[], int | None]) -> int:
        """Return what `find` finds in the buffer, which grows until then. Positions move with it."""
        size = 1 << 20
        while True:
            found = find()
            if found is not None:
                return found
            if len(self._buffer) - self._at > MAX_LINE_BYTES:
                message = f"this value has more than {format_size(MAX_LINE_BYTES)}, the limit"
                raise self._error(message, code="too-large")
            if not self._fill(size):
                raise self._error("not JSON: the text ends too early", "copy or download the file again")
            size *= 2

    def _fill(self, size: int) -> bool:
        """Read `size` further bytes or more, if there are any; forget those before the line that is read."""
        keep = self._buffer.rfind(b"\n", 0, self._at)
        keep = self._at if keep < 0 else keep
        self._count_lines(keep)
        chunks = [self._buffer[keep:]]
        read = 0
        while read < size and (chunk := self._reader.read_chunk()):
            chunks.append(chunk)
            read += len(chunk)
        self._buffer = b"".join(chunks)
        self._at -= keep
        self._counted -= keep
        return bool(read)

    def _peek(self) -> bytes:
        """Go to the next character that is no white space, and return it; b"" at the end."""
        while True:
            found = _NO_SPACE.search(self._buffer, self._at)
            if found:
                self._at = found.start()
                return found[0]
            self._at = len(self._buffer)
            if not self._fill(1 << 20):
                return b""

    def _expect(self, characters: bytes, message: str) -> bytes:
        """Go behind the next character and return it. Raises DatasetSyntaxError unless it is one of these."""
        found = self._peek()
        if not found or found not in characters:
            raise self._error(f"not JSON: {message if found else 'the text ends too early'}")
        self._at += 1
        return found

    def _line(self) -> int:
        self._count_lines(self._at)
        return self._lines

    def _count_lines(self, at: int) -> None:
        if at > self._counted:
            self._lines += self._buffer.count(b"\n", self._counted, at)
            self._counted = at

    def _error(self, message: str, hint: str = "", code: str = "not-json") -> DatasetError:
        return DatasetSyntaxError.at(self.path, message, hint, self._line(), code=code)


def _end_of(found: re.Match[bytes] | None) -> int | None:
    return None if found is None else found.end()


def _start_of(found: re.Match[bytes] | None) -> int | None:
    return None if found is None else found.start()
