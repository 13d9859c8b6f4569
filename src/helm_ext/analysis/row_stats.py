"""The stats of each row of a finished run, found again by id, perturbation and trial without holding them.

`per_instance_stats.json` has the rows in the order of the metrics, `scenario_state.json` in that of the requests; a run
of several metrics has several elements a row. So the file is read once, and of each element is kept where it stands:
24 bytes. It is read again when its row is asked for.
"""

from __future__ import annotations

import hashlib
from array import array
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from helm_ext.analysis.json_arrays import read_element, read_elements

RowKey = tuple[str, str, int]
"""Instance id, perturbation (canonical JSON; "" for none) and trial."""

JSONObject = dict[str, Any]


def row_key(instance_id: Any, perturbation: JSONObject | None, trial: Any) -> RowKey:
    """Return what tells the rows of a run apart."""
    written = orjson.dumps(perturbation, option=orjson.OPT_SORT_KEYS).decode() if perturbation else ""
    return str(instance_id), written, int(trial)


class RowStats:
    """An index of one `per_instance_stats.json`. Raises ValueError, KeyError or OSError for what is no such file."""

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
        for place, element in read_elements(path):
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
        self._starts = np.frombuffer(starts, dtype=np.uint64)[order]
        self._sizes = np.frombuffer(sizes, dtype=np.uint64)[order]

    def get(self, key: RowKey) -> dict[str, JSONObject]:
        """Return the stats of a row by name, as HELM wrote them; of two of one name the later one, as in its pages."""
        return {stat["name"]["name"]: stat for element in self.find(key) for stat in element["stats"]}

    def close(self) -> None:
        """Close the file; the next `get` opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def find(self, key: RowKey) -> list[JSONObject]:
        """Return the elements of a row, as HELM wrote them: one a metric."""
        if self._in_memory:
            return self._in_memory.get(key, [])
        if self._file is None:
            self._file = self._path.open("rb")
        wanted = np.uint64(_hash(key))
        first = int(np.searchsorted(self._hashes, wanted, "left"))
        found = []
        while first < len(self._hashes) and self._hashes[first] == wanted:
            element = read_element(self._file, (int(self._starts[first]), int(self._sizes[first])))
            if _key_of(element) == key:  # two keys may have one hash
                found.append(element)
            first += 1
        return found

    def _note(self, element: JSONObject) -> None:
        for stat in element["stats"]:
            if stat.get("mean") is not None:
                name = stat["name"]["name"]
                if not isinstance(name, str):
                    raise TypeError(f"a stat is called {name!r}")
                self.names[name] = None
                self.kinds.setdefault(stat_key(stat["name"]), stat["name"])


def stat_key(name: JSONObject) -> str:
    """Return a text that stands for a stat's full name, as a key."""
    return orjson.dumps(name, option=orjson.OPT_SORT_KEYS).decode()


def _key_of(element: JSONObject) -> RowKey:
    return row_key(element["instance_id"], element.get("perturbation"), element["train_trial_index"])


def _hash(key: RowKey) -> int:
    text = "\0".join(map(str, key)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
