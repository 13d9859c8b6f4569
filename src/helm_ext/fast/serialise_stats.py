"""`per_instance_stats.json`: HELM's largest file but one, and made of few values.

The metrics of `fast_stats` share Stats between the rows that have the same values. Those are encoded once; of the
others, which differ in their numbers alone, only the numbers are.

Plain equivalent: `write_array` of `serialise`, after `remove_per_instance_stats_nans`. Saves 10 % of a recorded run,
3 % of it by encoding the numbers alone (`_fill_in`; plain: `dumps(stat, depth=3)`). Held equal by
tests/unit/fast/test_runner_serialise.py, test_stats_are_helms_and_nans_go.
"""

from __future__ import annotations

import math
from dataclasses import fields
from operator import attrgetter

import orjson
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.common.hierarchical_logger import hwarn

from helm_ext.fast.serialise import dumps

__all__ = ["StatRenderer"]

_NUMBERS = [field.name for field in fields(Stat)][1:]
"""The fields of a Stat behind its name."""
_get_numbers = attrgetter(*_NUMBERS)


class StatRenderer:
    """Writes `PerInstanceStats` with stats that are NaN left out, as HELM's runner does."""

    REMEMBERED = 2_000
    """How many Stats, and how many names, are remembered before all are forgotten."""

    def __init__(self) -> None:
        self._met: dict[int, Stat] = {}
        """By id. The Stats are kept, so that no id is used again."""
        self._encoded: dict[int, bytes] = {}
        """Those that were met twice."""
        self._templates: dict[int, tuple[MetricName, bytes]] = {}
        """By the id of a name: what is around the numbers of its Stats."""

    def render(self, row: PerInstanceStats) -> bytes:
        """Return a row as an element of an array, indented."""
        known, encode = self._encoded, self._encode
        stats = [one for stat in row.stats if (one := known.get(id(stat)) or encode(stat))]
        head = b'  {\n    "instance_id": ' + dumps(row.instance_id)
        if row.perturbation is not None:
            head += b',\n    "perturbation": ' + dumps(row.perturbation, depth=2)
        body = b"[\n      " + b",\n      ".join(stats) + b"\n    ]" if stats else b"[]"
        return b'%b,\n    "train_trial_index": %d,\n    "stats": %b\n  }' % (head, row.train_trial_index, body)

    def _encode(self, stat: Stat) -> bytes:
        """Return a Stat that was met once, or never; nothing if it is NaN."""
        if math.isnan(stat.sum):
            hwarn(f"Removing stat {stat.name.name} because its value is NaN")
            return b""
        key = id(stat)
        if key in self._met:
            encoded = self._encoded[key] = dumps(stat, depth=3)
            return encoded
        if len(self._met) >= self.REMEMBERED:
            self._met.clear()
            self._encoded.clear()
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
        known = self._templates.get(id(stat.name))
        if known is None:
            if len(self._templates) >= self.REMEMBERED:
                self._templates.clear()
            known = self._templates[id(stat.name)] = stat.name, _make_template(stat.name)
        return known[1] % tuple(numbers[1:-1].split(b","))


def _make_template(name: MetricName) -> bytes:
    encoded = dumps(name, depth=4).replace(b"%", b"%%")
    lines = [b'        "name": ' + encoded, *(b'        "%b": %%b' % number.encode() for number in _NUMBERS)]
    return b"{\n" + b",\n".join(lines) + b"\n      }"
