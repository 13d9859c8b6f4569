"""`per_instance_stats.json`: HELM's largest file but one, and made of few values.

Metrics of ours share Stats between all rows that have the same values. Those are encoded once; of the others, which
differ in their numbers alone, the rest is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from operator import attrgetter
from typing import IO

import orjson
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.common.hierarchical_logger import hwarn

from helm_ext.fast.one_pass import SharedStats
from helm_ext.fast.serialise import CHUNK, dumps

__all__ = ["StatRenderer"]

_NUMBERS = [field.name for field in fields(Stat)][1:]
"""The fields of a Stat behind its name."""
_get_numbers = attrgetter(*_NUMBERS)
_BETWEEN = b",\n      "
"""Between the Stats of a row."""


class StatRenderer:
    """Writes `PerInstanceStats` with stats that are NaN left out, as HELM's runner does."""

    REMEMBERED = 2_000
    """How many Stats are remembered. Shared ones are met early; the rest would only fill the memory."""

    def __init__(self) -> None:
        self._met: dict[int, Stat] = {}
        """By id. The Stats are kept, so that no id is used again."""
        self._shared: dict[int, bytes] = {}
        """Those that were met twice, encoded."""
        self._templates: dict[int, tuple[MetricName, bytes]] = {}
        """By the id of a name: what is around the numbers of its Stats."""

    def write_array(self, file: IO[bytes], rows: Iterable[PerInstanceStats]) -> None:
        """Write the rows as a JSON array."""
        separator = b"[\n"
        pending: list[bytes] = []
        for row in rows:
            pending.append(self.render(row))
            if len(pending) == CHUNK:
                file.write(separator + b",\n".join(pending))
                pending.clear()
                separator = b",\n"
        if pending:
            file.write(separator + b",\n".join(pending))
            separator = b",\n"
        file.write(b"\n]" if separator == b",\n" else b"[]")

    def render(self, row: PerInstanceStats) -> bytes:
        """Return a row as an element of an array, indented."""
        stats = self._render_stats(row.stats)
        head = b'  {\n    "instance_id": ' + _dump_text(row.instance_id)
        if row.perturbation is not None:
            head += b',\n    "perturbation": ' + dumps(row.perturbation, depth=2)
        body = b"[\n      " + _BETWEEN.join(stats) + b"\n    ]" if stats else b"[]"
        return b'%b,\n    "train_trial_index": %d,\n    "stats": %b\n  }' % (head, row.train_trial_index, body)

    def _render_stats(self, row: list[Stat]) -> list[bytes]:
        shared, render = self._shared, self._render
        encoded: list[bytes] = []
        place = 0
        for piece in getattr(row, "pieces", row):
            if isinstance(piece, SharedStats):
                end = place + len(piece)
                if row[place:end] != piece:
                    return self._render_stats(list(row))  # somebody changed it: its pieces say what it was
                if not piece.encoded:
                    piece.encoded = _BETWEEN.join([dumps(stat, depth=3) for stat in piece])
                encoded.append(piece.encoded)
                place = end
            else:
                if place >= len(row) or row[place] is not piece:
                    return self._render_stats(list(row))
                encoded.append(shared.get(id(piece)) or render(piece))
                place += 1
        if place != len(row):
            return self._render_stats(list(row))
        return encoded if all(encoded) else [one for one in encoded if one]

    def _render(self, stat: Stat) -> bytes:
        """Return a Stat that is not shared, or not known to be; nothing if it is NaN."""
        if math.isnan(stat.sum):
            hwarn(f"Removing stat {stat.name.name} because its value is NaN")
            return b""
        key = id(stat)
        if key in self._met:
            encoded = self._shared[key] = dumps(stat, depth=3)
            return encoded
        if len(self._met) < self.REMEMBERED:
            self._met[key] = stat
        return self._fill_in(stat)

    def _fill_in(self, stat: Stat) -> bytes:
        """Return a Stat with only its numbers encoded, where all of them are there and finite."""
        try:
            numbers = orjson.dumps(_get_numbers(stat))
        except TypeError:  # of numpy
            return dumps(stat, depth=3)
        if b"null" in numbers or stat.__class__ is not Stat:
            return dumps(stat, depth=3)
        name = stat.name
        known = self._templates.get(id(name))
        if known is None:
            known = name, _make_template(name)
            if len(self._templates) < self.REMEMBERED:
                self._templates[id(name)] = known
        return known[1] % tuple(numbers[1:-1].split(b","))


def _dump_text(text: str) -> bytes:
    """Return what `dumps` does, quickly for plain text."""
    if text.isascii() and "\x7f" not in text:
        return orjson.dumps(text)
    return dumps(text)


def _make_template(name: MetricName) -> bytes:
    encoded = dumps(name, depth=4).replace(b"%", b"%%")
    lines = [b'        "name": ' + encoded, *(b'        "%b": %%b' % number.encode() for number in _NUMBERS)]
    return b"{\n" + b",\n".join(lines) + b"\n      }"
