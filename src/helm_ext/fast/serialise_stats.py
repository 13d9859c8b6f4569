"""`per_instance_stats.json`: HELM's largest file but one, and made of few values.

The metrics of `fast_stats` share Stats between the rows that have the same values. Those are encoded once.

Plain equivalent: `write_array` of `serialise`, after `remove_per_instance_stats_nans`. Saves 7 % of a recorded run.
Held equal by tests/unit/fast/test_runner_serialise.py, test_stats_are_helms_and_nans_go.
"""

from __future__ import annotations

import math

from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.statistic import Stat
from helm.common.hierarchical_logger import hwarn

from helm_ext.fast.serialise import dumps


class StatRenderer:
    """Writes `PerInstanceStats` with stats that are NaN left out, as HELM's runner does."""

    REMEMBERED = 2_000
    """How many Stats are remembered before all are forgotten."""

    def __init__(self) -> None:
        self._met: dict[int, Stat] = {}
        """By id. The Stats are kept, so that no id is used again."""
        self._encoded: dict[int, bytes] = {}
        """Those that were met twice."""

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
        key, encoded = id(stat), dumps(stat, depth=3)
        if key in self._met:
            self._encoded[key] = encoded
            return encoded
        if len(self._met) >= self.REMEMBERED:
            self._met.clear()
            self._encoded.clear()
        self._met[key] = stat
        return encoded
