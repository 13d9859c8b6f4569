"""How sure a run's main metric is: the ends of its 95 % interval, as stats beside it.

`exact_match@ci_low`, `exact_match@ci_high`; the same of each attribute value: `exact_match@severity=high@ci_low`. The
rules are those of `statistics.intervals`. A row counts once, with the mean over its trials; rows of one cluster
(`cluster=`, `RowExtra`) are not independent. Perturbed copies of a row are no part of it, as they are none of the mean
that leaderboards show.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Instance

from helm_ext.evalset import row_extra
from helm_ext.scoring.bounds import find_bounds
from helm_ext.scoring.breakdown import attributes_of
from helm_ext.scoring.stat_names import ENDS
from helm_ext.scoring.statistics import mean_interval

__all__ = [
    "END_WORDS",
    "IntervalSummary",
    "IntervalTotal",
    "describe_interval",
    "measure_uncertainty",
    "to_interval_stats",
]

END_WORDS = ("from", "to")
"""End the short names of both ends."""


@dataclass(slots=True)
class _Rows:
    """The values of one group of rows: the mean over trials of each."""

    values: dict[str, float] = field(default_factory=dict)
    trials: dict[str, int] = field(default_factory=dict)

    def add(self, row_id: str, value: float) -> None:
        number = self.trials[row_id] = self.trials.get(row_id, 0) + 1
        known = self.values.get(row_id, 0.0)
        self.values[row_id] = known + (value - known) / number


Group = tuple[str, "str | None"]
"""Name of the main metric, perhaps of one attribute value, and the split."""
IntervalSummary = dict[Group, tuple["array[float]", "list[str | None] | None"]]
"""Of each group the values of its rows, and the clusters that they belong to; None where no row has one."""


def measure_uncertainty(
    main_metric: str, rows: Iterable[PerInstanceStats], instances: Iterable[Instance]
) -> IntervalSummary:
    """Return a batch's values of the main metric in each split, and of each value of the rows' attributes."""
    groups, clusters = {}, {}
    for instance in instances:
        extra = row_extra(instance)
        groups[instance.id] = attributes_of(instance)
        if "cluster" in extra:
            clusters[instance.id] = extra["cluster"]
    found: dict[Group, _Rows] = {}
    for row in rows:
        if row.perturbation is not None:
            continue
        for stat in row.stats:
            if stat.name.name == main_metric and stat.mean is not None and stat.name.split != "train":
                of_row = groups[row.instance_id]
                for name in (main_metric, *(f"{main_metric}@{key}={value}" for key, value in of_row.items())):
                    group = found.get((name, stat.name.split))
                    if group is None:
                        group = found[name, stat.name.split] = _Rows()
                    group.add(row.instance_id, stat.mean)
    return {
        group: (
            array("d", rows.values.values()),
            [clusters.get(row_id) for row_id in rows.values] if clusters else None,
        )
        for group, rows in found.items()
    }


class IntervalTotal:
    """Adds up the batches: the ends of each group's interval.

    None where the main metric is no mean over rows (a score of all rows together), and where one row or one cluster is
    all there is.
    """

    def __init__(self) -> None:
        self._values: dict[Group, array[float]] = {}
        self._clusters: dict[Group, list[int]] = {}
        """Of each row, the number of its cluster. Absent while no row has one."""
        self._numbers: dict[str, int] = {}
        self._alone = itertools.count(-1, -1)
        """Numbers for rows that belong to nothing."""

    def add(self, summary: IntervalSummary) -> None:
        """Add a batch."""
        for group, (values, clusters) in summary.items():
            known = self._values.setdefault(group, array("d"))
            if clusters is not None or group in self._clusters:
                numbers = self._clusters.setdefault(group, list(itertools.islice(self._alone, len(known))))
                numbers += [self._number(cluster) for cluster in clusters or [None] * len(values)]
            known.extend(values)

    def _number(self, cluster: str | None) -> int:
        return next(self._alone) if cluster is None else self._numbers.setdefault(cluster, len(self._numbers))

    def to_stats(self, source: Mapping[str, Any] | None = None) -> list[Stat]:
        """Return the ends of the intervals. `source`: `Source.to_args()` of a file that another tool wrote."""
        return [
            stat
            for group, values in self._values.items()
            for stat in to_interval_stats(
                MetricName(group[0], split=group[1]), values, self._clusters.get(group), find_bounds(group[0], source)
            )
        ]


def to_interval_stats(
    name: MetricName,
    values: Sequence[float],
    clusters: Sequence[Hashable] | None,
    bounds: tuple[float, float] | None = None,
) -> Iterator[Stat]:
    """Yield both ends of the interval of the mean of these rows; `clusters` says what each row belongs to.

    `bounds`: the least and the greatest value, where the name does not tell.

    None where a value is infinite or NaN (a perplexity beyond all numbers).
    """
    if not np.isfinite(values).all():
        return
    interval = mean_interval(values, clusters)
    lowest, highest = bounds or find_bounds(name.name)
    for end, value in zip(ENDS, (max(interval.low, lowest), min(interval.high, highest)), strict=True):
        if interval.method != "none" and math.isfinite(value):
            yield Stat(MetricName(f"{name.name}{end}", split=name.split)).add(value)


def describe_interval(described: Mapping[str, MetricMetadata], main_metric: str) -> list[MetricMetadata]:
    """Return the metadata of both ends. They are columns of a table of their own: "Main metric interval"."""
    main = described.get(main_metric)
    short = (main and (main.short_display_name or main.display_name)) or main_metric
    return [
        MetricMetadata(
            name=f"{main_metric}{end}",
            display_name=f"{short}, {which} end of the 95 % interval",
            short_display_name=f"{short} {word}",
            description=f"The {which} end of the 95 % confidence interval of {main_metric}, over rows.",
            lower_is_better=None,
            group=None,
        )
        for end, which, word in zip(ENDS, ("lower", "upper"), END_WORDS, strict=True)
    ]
