"""How sure a run's main metric is: the ends of its 95 % interval, as stats beside it.

`exact_match@ci_low`, `exact_match@ci_high`; the same of each attribute value: `exact_match@severity=high@ci_low`. The
rules are those of `statistics.intervals`. A row counts once, with the mean over its trials; rows of one cluster
(`cluster=`, `RowExtra`) are not independent. Perturbed copies of a row are no part of it, as they are none of the mean
that leaderboards show.

That interval is of questions like these. Where rows were answered several times (completions, trials), a second one,
`exact_match@these_rows_low` and `exact_match@these_rows_high`, is of exactly these (`statistics.repeated`).
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Instance

from helm_ext.evalset import row_extra
from helm_ext.scoring.bounds import find_bounds
from helm_ext.scoring.breakdown import attributes_of
from helm_ext.scoring.stat_names import ANSWERS, ENDS, NOISE, THESE_ROWS
from helm_ext.scoring.statistics import Interval, answers_interval, mean_interval, trials_interval

END_WORDS = ("from", "to")
"""End the short names of both ends."""


@dataclass(slots=True)
class _Rows:
    """The values of one group of rows: the mean over trials of each."""

    values: dict[str, float] = field(default_factory=dict)
    trials: dict[str, int] = field(default_factory=dict)
    repeats: dict[str, tuple[float, float]] = field(default_factory=dict)
    """How many answers each value is made of, and its variance, where a row says it."""
    sums: dict[int, float] = field(default_factory=dict)
    """Of the values of each trial."""
    counts: dict[int, int] = field(default_factory=dict)

    def add(self, row_id: str, value: float, trial: int) -> None:
        self.sums[trial] = self.sums.get(trial, 0.0) + value
        self.counts[trial] = self.counts.get(trial, 0) + 1
        number = self.trials[row_id] = self.trials.get(row_id, 0) + 1
        known = self.values.get(row_id, 0.0)
        self.values[row_id] = known + (value - known) / number


Group = tuple[str, "str | None"]
"""Name of the main metric, perhaps of one attribute value, and the split."""


class GroupRows(NamedTuple):
    """The rows of one group."""

    values: array[float]
    clusters: list[str | None] | None
    """What the rows belong to; None where no row belongs to anything."""
    repeats: tuple[array[float], array[float]] | None
    """How many answers each value is made of, and its variance, NaN where that is not known; None where no row says."""
    trials: dict[int, tuple[float, int]]
    """Sum and number of the values of each trial."""


IntervalSummary = dict[Group, GroupRows]

_UNKNOWN = (1.0, math.nan)
"""Of a row that does not say what its value is made of: the number of answers, and the variance."""


def measure_uncertainty(
    main_metric: str, rows: Iterable[PerInstanceStats], instances: Iterable[Instance], *, is_repeated: bool = False
) -> IntervalSummary:
    """Return a batch's values of the main metric in each split, and of each value of the rows' attributes.

    `is_repeated`: whether rows say how many answers their values are made of, and how noisy those are.
    """
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
                    group.add(row.instance_id, stat.mean, row.train_trial_index)
                    if is_repeated:
                        group.repeats[row.instance_id] = _find_repeats(main_metric, row.stats)
    return {
        group: GroupRows(
            array("d", rows.values.values()),
            [clusters.get(row_id) for row_id in rows.values] if clusters else None,
            _to_columns(rows) if any(answers > 1 for answers, _ in rows.repeats.values()) else None,
            {trial: (total, rows.counts[trial]) for trial, total in rows.sums.items()},
        )
        for group, rows in found.items()
    }


def _find_repeats(main_metric: str, stats: Iterable[Stat]) -> tuple[float, float]:
    names = (f"{main_metric}{ANSWERS}", f"{main_metric}{NOISE}")
    said = {stat.name.name: stat.mean for stat in stats if stat.name.name in names}
    answers, noise = map(said.get, names)
    return _UNKNOWN[0] if answers is None else answers, _UNKNOWN[1] if noise is None else noise


def _to_columns(rows: _Rows) -> tuple[array[float], array[float]]:
    found = [rows.repeats[row_id] for row_id in rows.values]
    return array("d", [answers for answers, _ in found]), array("d", [noise for _, noise in found])


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
        self._repeats: dict[Group, tuple[array[float], array[float]]] = {}
        """As `GroupRows.repeats`. Absent while no row is repeated."""
        self._trials: dict[Group, dict[int, tuple[float, int]]] = {}

    def add(self, summary: IntervalSummary) -> None:
        """Add a batch."""
        for group, (values, clusters, repeats, trials) in summary.items():
            known = self._values.setdefault(group, array("d"))
            if clusters is not None or group in self._clusters:
                numbers = self._clusters.setdefault(group, list(itertools.islice(self._alone, len(known))))
                numbers += [self._number(cluster) for cluster in clusters or [None] * len(values)]
            if repeats is not None or group in self._repeats:
                answers, noise = (array("d", [one]) * len(known) for one in _UNKNOWN)
                of_group = self._repeats.setdefault(group, (answers, noise))
                for column, new, unknown in zip(of_group, repeats or (None, None), _UNKNOWN, strict=True):
                    column.extend(array("d", [unknown]) * len(values) if new is None else new)
            known.extend(values)
            of_trials = self._trials.setdefault(group, {})
            for trial, (total, count) in trials.items():
                before, number = of_trials.get(trial, (0.0, 0))
                of_trials[trial] = (before + total, number + count)

    def _number(self, cluster: str | None) -> int:
        return next(self._alone) if cluster is None else self._numbers.setdefault(cluster, len(self._numbers))

    def to_stats(self, arguments: Mapping[str, Any] | None = None) -> list[Stat]:
        """Return the ends of the intervals. `arguments`: those of the run's metric that `find_bounds` reads."""
        made: list[Stat] = []
        for group, values in self._values.items():
            name, bounds = MetricName(group[0], split=group[1]), find_bounds(group[0], arguments)
            made += to_interval_stats(name, values, self._clusters.get(group), bounds)
            these = self._measure_these(group, values)
            if these is not None:
                made += _to_stats(name, these, THESE_ROWS, bounds)
        return made

    def _measure_these(self, group: Group, values: array[float]) -> Interval | None:
        """Return the interval of exactly these rows; None where each was answered once."""
        trials = self._trials[group]
        if not np.isfinite(values).all() or (len(trials) < 2 and group not in self._repeats):
            return None
        if len(trials) < 2:
            answers, noise = self._repeats[group]
            return answers_interval(values, noise, answers)
        if any(count != len(values) for _, count in trials.values()):
            return None
        return trials_interval([total / count for total, count in trials.values()], len(values))


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
    yield from _to_stats(name, mean_interval(values, clusters), ENDS, bounds or find_bounds(name.name))


def _to_stats(
    name: MetricName, interval: Interval, ends: tuple[str, str], bounds: tuple[float, float]
) -> Iterator[Stat]:
    lowest, highest = bounds
    for end, value in zip(ends, (max(interval.low, lowest), min(interval.high, highest)), strict=True):
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
