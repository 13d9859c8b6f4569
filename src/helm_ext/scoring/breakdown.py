"""The main metric for each value of an attribute, and how sure it is: a leaderboard per severity, per task, ...

A dataset's attributes (`EvalSet.attributes`) become stats such as `refusal_match@severity=high`, in a metric group of
their own, so that `helm-summarize --auto-generate-schema` shows a table "By severity" with a column a value.

HELM's `Instance.sub_split` is one of them. Where stats are told apart by sub-split, HELM's tables show the mean over
sub-splits, however many rows each has (`get_unique_stat_by_matcher` of helm/benchmark/presentation/summarize.py). So
our runs compute every stat over all rows, and report the sub-splits beside it.

The ends of 95 % intervals stand beside each: `exact_match@ci_low`, `exact_match@severity=high@ci_low`. The rules are
those of `statistics.intervals`. A row counts once, with the mean over its trials; rows of one cluster (`cluster=`,
`RowExtra`) are not independent. Perturbed copies of a row are no part of it, as they are none of the mean that
leaderboards show.

That interval is of questions like these. Where rows were answered several times (completions, trials), a second one,
`exact_match@these_rows_low` and `exact_match@these_rows_high`, is of exactly these.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Instance

from helm_ext.evalset import row_extra
from helm_ext.scoring.basic.row_stats import find_mean
from helm_ext.scoring.registry import find_bounds
from helm_ext.scoring.score import ANSWERS, ENDS, NOISE, THESE_ROWS, StatInfo
from helm_ext.scoring.statistics import Interval, answers_interval, mean_interval, trials_interval

SUB_SPLIT = "sub_split"
"""The attribute that HELM's instances have themselves."""
END_WORDS = ("from", "to")
"""End the short names of both ends."""


def without_sub_splits(scenario_state: ScenarioState) -> ScenarioState:
    """Return the same request states, of instances without `sub_split`: their stats are those of all rows."""
    if all(instance.sub_split is None for instance in scenario_state.instances):
        return scenario_state
    states = scenario_state.request_states
    plain = {id(state.instance): replace(state.instance, sub_split=None) for state in states}
    states = [replace(state, instance=plain[id(state.instance)]) for state in states]
    return ScenarioState(adapter_spec=scenario_state.adapter_spec, request_states=states)


def attributes_of(instance: Instance) -> dict[str, str]:
    """Return the row's attributes, and their values."""
    attributes = row_extra(instance).get("attributes", {})
    return attributes if instance.sub_split is None else {SUB_SPLIT: instance.sub_split, **attributes}


def describe_breakdown(
    described: Mapping[str, MetricMetadata], main_metric: str, attributes: Mapping[str, Sequence[str]]
) -> list[MetricMetadata]:
    """Return the metadata of the main metric's mean over the rows of each attribute value."""
    main: Any = described.get(main_metric)
    title = (main and (main.display_name or main.name)) or main_metric
    return [
        MetricMetadata(
            name=f"{main_metric}@{attribute}={value}",
            display_name=f"{title}, {attribute} {value}",
            short_display_name=f"{attribute}={value} ({main_metric})",  # a suite may have several main metrics
            description=f"{title} over the rows whose {attribute} is {value}.",
            lower_is_better=main.lower_is_better if main else None,
            group="by_" + re.sub(r"[^\w.-]+", "_", attribute),  # helm-summarize makes file names of groups
        )
        for attribute, values in attributes.items()
        for value in values
    ]


# ---- Intervals

Group = tuple[str, str, "str | None"]
"""A metric; "", or "@" and an attribute with its value; and the split."""


def _floats(values: Iterable[float] = ()) -> array[float]:
    return array("d", values)


@dataclass(slots=True)
class GroupRows:
    """The rows of one group: of a batch, then of all that were added."""

    values: array[float] = field(default_factory=_floats)
    """Of each row the mean over its trials."""
    clusters: list[str | None] = field(default_factory=list)
    """What each row belongs to; empty where none belongs to anything."""
    answers: array[float] = field(default_factory=_floats)
    """How many answers each value is made of; empty where only the first answer counts."""
    noise: array[float] = field(default_factory=_floats)
    """The variance of each value, NaN where that is not known; or empty."""
    trials: dict[int, array[float]] = field(default_factory=dict)
    """The rows' values in each trial; empty where there is one alone, whose values are the rows'."""

    def add(self, rows: GroupRows, names: dict[str, str]) -> None:
        """Add those of a batch. `names`: one object for each cluster's name, for there may be a million rows."""
        if rows.clusters or self.clusters:
            self.clusters += [None] * (len(self.values) - len(self.clusters))
            self.clusters += [None if one is None else names.setdefault(one, one) for one in rows.clusters]
            self.clusters += [None] * (len(rows.values) - len(rows.clusters))
        if rows.trials or self.trials:
            self.trials = self.trials or ({0: self.values[:]} if self.values else {})
            for trial, values in (rows.trials or {0: rows.values}).items():
                self.trials.setdefault(trial, _floats()).extend(values)
        self.values += rows.values
        self.answers += rows.answers
        self.noise += rows.noise

    def by_trial(self) -> list[array[float]]:
        """Return the rows' values in each trial, in the order of the trials."""
        return [values for _, values in sorted(self.trials.items())] or [self.values]

    def measure_these(self) -> Interval | None:
        """Return the interval of exactly these rows; None where each was answered once."""
        rows, is_repeated = len(self.values), max(self.answers, default=1) > 1
        if not np.isfinite(self.values).all() or not (self.trials or is_repeated):
            return None
        if not self.trials:
            return answers_interval(self.values, self.noise, self.answers)
        if any(len(values) != rows for values in self.trials.values()):
            return None
        return trials_interval([math.fsum(values) / rows for values in self.trials.values()], rows)


def measure_intervals(
    metrics: Sequence[str],
    rows: Sequence[PerInstanceStats],
    instances: Iterable[Instance],
    *,
    is_repeated: bool = False,
) -> dict[Group, GroupRows]:
    """Return a batch's values of some metrics in each split; of the first also for each value of the rows' attributes.

    `is_repeated`: whether rows say how many answers their values are made of, and how noisy those are.
    """
    suffixes, clusters = {}, {}
    for instance in instances:
        suffixes[instance.id] = [f"@{key}={value}" for key, value in attributes_of(instance).items()]
        clusters[instance.id] = row_extra(instance).get("cluster")
    found: dict[Group, dict[int, dict[str, float]]] = {}
    """Of each group and trial the rows' values."""
    repeats: dict[tuple[str, str], tuple[float, float]] = {}
    for metric in metrics:
        for row in rows:
            if row.perturbation is not None:
                continue
            mean = find_mean(row.stats, metric)
            if mean is None or mean[0].split == "train":
                continue
            name, value = mean
            for suffix in ("", *(suffixes[row.instance_id] if metric == metrics[0] else ())):
                trials = found.setdefault((metric, suffix, name.split), {})
                trials.setdefault(row.train_trial_index, {})[row.instance_id] = value
            if is_repeated:
                answers, noise = (find_mean(row.stats, f"{metric}{what}") for what in (ANSWERS, NOISE))
                repeats[metric, row.instance_id] = answers[1] if answers else 1.0, noise[1] if noise else math.nan
    made = {}
    for group, trials in found.items():
        of_rows: dict[str, list[float]] = {}
        for values in trials.values():
            for row_id, value in values.items():
                of_rows.setdefault(row_id, []).append(value)
        known = [repeats[group[0], row_id] for row_id in of_rows] if is_repeated else []
        made[group] = GroupRows(
            _floats(sum(values) / len(values) for values in of_rows.values()),
            [clusters[row_id] for row_id in of_rows] if any(one is not None for one in clusters.values()) else [],
            _floats(answers for answers, _ in known),
            _floats(noise for _, noise in known),
            {trial: _floats(values.values()) for trial, values in trials.items()} if len(trials) > 1 else {},
        )
    return made


class IntervalTotal:
    """Adds up the batches: the ends of each group's interval.

    None where the metric is no mean over rows (a score of all rows together), and where one row or one cluster is all
    there is.
    """

    def __init__(self, metrics: Sequence[str]) -> None:
        self._metrics = metrics
        self._groups: dict[Group, GroupRows] = {}
        self._names: dict[str, str] = {}

    def add(self, summary: Mapping[Group, GroupRows]) -> None:
        for group, rows in summary.items():
            self._groups.setdefault(group, GroupRows()).add(rows, self._names)

    def break_down(self) -> list[Stat]:
        """Return the main metric's mean over the rows of each attribute value: per trial, then over trials, as HELM."""
        made = []
        for (metric, suffix, split), rows in self._groups.items():
            if suffix:
                stat = Stat(MetricName(f"{metric}{suffix}", split=split))
                for values in rows.by_trial():
                    stat.add(reduce(add, values) / len(values))  # value by value, as all sums
                made.append(stat)
        return made

    def to_stats(self, arguments: Mapping[str, Any] | None = None) -> list[Stat]:
        """Return the ends of the intervals. `arguments`: those of the run's metric that `find_bounds` reads."""
        made: list[Stat] = []
        for group in sorted(self._groups, key=lambda group: self._metrics.index(group[0])):
            name, rows = MetricName(f"{group[0]}{group[1]}", split=group[2]), self._groups[group]
            bounds = find_bounds(name.name, arguments)
            made += to_interval_stats(name, rows.values, rows.clusters or None, bounds)
            these = rows.measure_these()
            if these is not None:
                made += _to_stats(name, these, THESE_ROWS, bounds)
        return made


def to_interval_stats(
    name: MetricName,
    values: Sequence[float],
    clusters: Sequence[Hashable] | None,
    bounds: tuple[float, float] | None = None,
) -> Iterator[Stat]:
    """Yield both ends of the interval of the mean of these rows; `clusters` says what each row belongs to.

    `bounds`: the least and the greatest value, where the name does not tell. None where a value is infinite or NaN (a
    perplexity beyond all numbers).
    """
    if np.isfinite(values).all():
        yield from _to_stats(name, mean_interval(values, clusters), ENDS, bounds or find_bounds(name.name))


def _to_stats(
    name: MetricName, interval: Interval, ends: tuple[str, str], bounds: tuple[float, float]
) -> Iterator[Stat]:
    lowest, highest = bounds
    for end, value in zip(ends, (max(interval.low, lowest), min(interval.high, highest)), strict=True):
        if interval.method != "none" and math.isfinite(value):
            yield Stat(MetricName(f"{name.name}{end}", split=name.split)).add(value)


def describe_ends(name: str, title: str, short: str, group: str | None) -> list[StatInfo]:
    """Return how reports present both ends of a stat's interval; `title` and `short` are those of the stat."""
    return [
        StatInfo(
            f"{name}{end}",
            f"{title}, {which} end of the 95 % interval",
            f"The {which} end of the 95 % interval of {name}.",
            f"{short} {word}",
            lower_is_better=None,
            group=group,
        )
        for end, which, word in zip(ENDS, ("lower", "upper"), END_WORDS, strict=True)
    ]


def describe_interval(described: Mapping[str, MetricMetadata], main_metric: str) -> list[MetricMetadata]:
    """Return the metadata of both ends. They are columns of a table of their own: "Main metric interval"."""
    main = described.get(main_metric)
    short = (main and (main.short_display_name or main.display_name)) or main_metric
    return [info.to_metadata() for info in describe_ends(main_metric, short, short, None)]
