"""The elements of a JSON array, one at a time, from files in the layout that HELM writes (`indent=2`).

A line that holds nothing but the closing brace at an element's own indentation ends the element: a string cannot hold
a line break. Files in another layout are read whole.

Plain equivalent: `json.loads(path.read_bytes())`. Saves half of the time of reading, 15 µs a row of each file, and the
memory of all rows but one. Held equal by tests/unit/running/test_display.py, test_elements_of_an_array.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

Place = tuple[int, int]
"""Where an element stands in its file: its first byte, and how many there are."""


@dataclass
class BytesRead:
    """How much was read, for whoever waits for it: counted chunk by chunk."""

    number: int = 0


CHUNK = 4 << 20
_DIGITS = bytes(ord("0") if ord("0") <= byte <= ord("9") else ord(" ") for byte in range(256))
_BEYOND_64_BITS = b"0" * 19
"""That many digits in a row may be an integer that orjson would turn into a float."""


def read_array(path: Path, key: str | None = None, read: BytesRead | None = None) -> Iterator[Any]:
    """Yield the elements (objects) of the top-level array, or of the array under `key` of the top-level object.

    `read` is added to. Raises ValueError where the file is not JSON, and KeyError where the object has no such key.
    """
    for _, element in read_elements(path, key, read):
        yield element


def read_elements(
    path: Path, key: str | None = None, read: BytesRead | None = None
) -> Iterator[tuple[Place | None, Any]]:
    """Yield what `read_array` yields, and where it stands, for `read_element`; None in files of another layout."""
    indent = b"  " if key is None else b"    "
    opening = b"[\n  {" if key is None else b'\n  "' + key.encode() + b'": [\n    {'
    read = BytesRead() if read is None else read
    with path.open("rb") as file:
        buffer = file.read(CHUNK)
        read.number += len(buffer)
        found = 0 if key is None else buffer.find(opening)
        while found < 0 and (more := file.read(CHUNK)):
            buffer += more
            read.number += len(more)
            found = buffer.find(opening)
        if found < 0 or not buffer.startswith(opening if key is None else b"{\n"):
            document = json.loads(buffer + file.read())
            yield from ((None, element) for element in (document if key is None else document[key]))
            return
        start, position = 0, found + len(opening) - 1
        """Where the buffer begins in the file, and where the next element begins in the buffer."""
        closing = b"\n" + indent + b"}"
        while True:
            last = buffer.find(closing, position) + len(closing)
            if last < len(closing) or last == len(buffer):  # what follows decides whether there is another
                more = file.read(CHUNK)
                if not more:
                    raise ValueError(f"{path}: the file ends in the middle of an array: it is not complete")
                read.number += len(more)
                start += position
                buffer, position = buffer[position:] + more, 0
                continue
            yield (start + position, last - position), _parse(buffer[position:last])
            if buffer[last : last + 1] != b",":
                return
            position = last + 1


def read_element(file: BinaryIO, place: Place) -> Any:
    """Return the element at a place that `read_elements` gave."""
    file.seek(place[0])
    return _parse(file.read(place[1]))


def _parse(data: bytes) -> Any:
    """Parse as Python's json does, NaN, infinities and long integers included, mostly at orjson's speed."""
    if _BEYOND_64_BITS not in data.translate(_DIGITS):
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
    return json.loads(data)
