"""HELM's large files: the elements of a JSON array, one at a time, and the stats of a row, found without holding all.

In the layout that HELM writes (`indent=2`), a line that holds nothing but the closing brace at an element's own
indentation ends the element: a string cannot hold a line break. Files in another layout are read whole.

Plain equivalent: `json.loads(path.read_bytes())`. Saves half of the time of reading, 15 µs a row of each file, and the
memory of all rows but one. Held equal by tests/unit/running/test_display.py, test_elements_of_an_array.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import orjson

Place = tuple[int, int]
"""Where an element stands in its file: its first byte, and how many there are."""


@dataclass
class BytesRead:
    """How much was read, for whoever waits for it: counted chunk by chunk."""

    number: int = 0


CHUNK = 1 << 18


def read_array(path: Path, key: str | None = None, read: BytesRead | None = None) -> Iterator[Any]:
    """Yield the elements (objects) of the top-level array, or of the array under `key` of the top-level object.

    `read` is added to. Raises ValueError where the file is not JSON, and KeyError where the object has no such key.
    """
    for place, element in read_elements(path, key, read):
        yield element if place is None else parse_element(element)


def read_elements(
    path: Path, key: str | None = None, read: BytesRead | None = None
) -> Generator[tuple[Place | None, Any]]:
    """Yield the bytes of what `read_array` yields, and where they stand.

    None and what was parsed in files of another layout.
    """
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
            yield (start + position, last - position), buffer[position:last]
            if buffer[last : last + 1] != b",":
                return
            position = last + 1


def parse_element(data: bytes) -> Any:
    """Parse as Python's json does: NaN and infinities, which msgspec refuses, included."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return json.loads(data)


_STATS = b',\n    "stats": [\n'
_STATS_END = b"\n      }\n    ]\n  }"


def split_stats(element: bytes) -> list[bytes]:
    """Return the stats of an element of `per_instance_stats.json`, each as JSON: equal ones need be parsed once."""
    start = element.find(_STATS)
    if start < 0 or not element.endswith(_STATS_END):
        return [json.dumps(stat).encode() for stat in parse_element(element)["stats"]]
    stats = element[start + len(_STATS) : -len(_STATS_END)].split(b"\n      },\n")
    return [stat + b"}" for stat in stats]


RowKey = tuple[str, str, int]
"""Instance id, perturbation (canonical JSON; "" for none) and trial."""

JSONObject = dict[str, Any]


def row_key(instance_id: Any, perturbation: JSONObject | None, trial: Any) -> RowKey:
    """Return what tells the rows of a run apart."""
    return str(instance_id), stat_key(perturbation) if perturbation else "", int(trial)


def state_key(state: JSONObject) -> RowKey:
    """Return the key of a request state as HELM wrote it."""
    instance = state["instance"]
    return row_key(instance["id"], instance.get("perturbation"), state["train_trial_index"])


def read_key(element: bytes) -> RowKey:
    """Return the key of an element of `per_instance_stats.json`, in HELM's layout without parsing its stats."""
    start = element.find(_STATS)
    return _key_of(parse_element(element if start < 0 else element[:start] + b"}"))


def _key_of(element: JSONObject) -> RowKey:
    return row_key(element["instance_id"], element.get("perturbation"), element["train_trial_index"])


class StatsIndex:
    """An index of one `per_instance_stats.json`. Raises ValueError, KeyError or OSError for what is no such file.

    The file has the rows in the order of the metrics, `scenario_state.json` in that of the requests; a run of several
    metrics has several elements a row. So it is read once, and of each element is kept where it stands: 24 bytes. It
    is read again when its row is asked for.
    """

    def __init__(self, path: Path) -> None:
        self.names: dict[str, None] = {}
        """Names of the stats that a row has a number for, in the order in which they come."""
        self.kinds: dict[str, JSONObject] = {}
        """HELM's full names (split, sub-split, perturbation), by their canonical JSON, of those stats."""
        self._path = path
        self._file: BinaryIO | None = None
        self._in_memory: dict[RowKey, list[JSONObject]] = {}
        """Rows of a file that is not laid out as HELM lays it out."""
        hashes, starts, sizes = array("Q"), array("Q"), array("Q")
        for place, found in read_elements(path):
            element = found if place is None else parse_element(found)
            key = _key_of(element)
            self._note(element)
            if place is None:
                self._in_memory.setdefault(key, []).append(element)
            else:
                hashes.append(_hash(key))
                starts.append(place[0])
                sizes.append(place[1])
        unsorted = np.frombuffer(hashes, dtype=np.uint64)
        order = np.argsort(unsorted, kind="stable")
        self._hashes = unsorted[order]
        self._places = np.stack([np.frombuffer(of, dtype=np.uint64)[order] for of in (starts, sizes)], axis=1)

    def get(self, key: RowKey) -> dict[str, JSONObject]:
        """Return the stats of a row by name, as HELM wrote them; of two of one name the later one, as in its pages."""
        elements = self._in_memory.get(key) or self._find(key)
        return {stat["name"]["name"]: stat for element in elements for stat in element["stats"]}

    def close(self) -> None:
        """Close the file; the next `get` opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _find(self, key: RowKey) -> Iterator[JSONObject]:
        """Yield the elements of a row: one a metric."""
        if self._file is None:
            self._file = self._path.open("rb")
        wanted = np.uint64(_hash(key))
        first, end = (np.searchsorted(self._hashes, wanted, side) for side in ("left", "right"))
        for start, size in self._places[first:end].tolist():
            self._file.seek(start)
            element = parse_element(self._file.read(size))
            if _key_of(element) == key:  # two keys may have one hash
                yield element

    def _note(self, element: JSONObject) -> None:
        for stat in element["stats"]:
            if stat.get("mean") is not None:
                name = stat["name"]["name"]
                if not isinstance(name, str):
                    raise TypeError(f"a stat is called {name!r}")
                self.names[name] = None
                self.kinds.setdefault(stat_key(stat["name"]), stat["name"])


def stat_key(name: JSONObject) -> str:
    """Return a text that stands for a stat's full name, or a perturbation, as a key."""
    return orjson.dumps(name, option=orjson.OPT_SORT_KEYS).decode()


def _hash(key: RowKey) -> int:
    text = "\0".join(map(str, key)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
