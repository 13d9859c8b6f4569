"""The main metric for each value of an attribute: a leaderboard per severity, per task, ...

A dataset's attributes (`EvalSet.attributes`) become stats such as `refusal_match@severity=high`, in a metric group of
their own, so that `helm-summarize --auto-generate-schema` shows a table "By severity" with a column a value.

HELM's `Instance.sub_split` is one of them. Where stats are told apart by sub-split, HELM's tables show the mean over
sub-splits, however many rows each has (`get_unique_stat_by_matcher` of helm/benchmark/presentation/summarize.py). So
our runs compute every stat over all rows, and report the sub-splits beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat, merge_stat
from helm.benchmark.scenarios.scenario import Instance

from helm_ext.evalset import row_extra
from helm_ext.scoring.basic.tally import Column, Totals, to_columns

BreakdownSummary = dict[int, list[Column]]
"""By trial."""


SUB_SPLIT = "sub_split"
"""The attribute that HELM's instances have themselves."""


def without_sub_splits(scenario_state: ScenarioState) -> ScenarioState:
    """Return the same request states, of instances without `sub_split`: their stats are those of all rows."""
    if all(instance.sub_split is None for instance in scenario_state.instances):
        return scenario_state
    plain: dict[int, Instance] = {}
    states = []
    for state in scenario_state.request_states:
        key = id(state.instance)
        if key not in plain:
            plain[key] = replace(state.instance, sub_split=None)
        states.append(replace(state, instance=plain[key]))
    return ScenarioState(adapter_spec=scenario_state.adapter_spec, request_states=states)


class BreakdownMeasure:
    """Takes the main metric apart by the values of attributes, batch by batch."""

    def __init__(self, main_metric: str) -> None:
        self._main_metric = main_metric
        self._names: dict[tuple[MetricName, str, str], MetricName] = {}

    def measure(self, rows: Iterable[PerInstanceStats], instances: Iterable[Instance]) -> BreakdownSummary:
        """Return the main metric's values for each attribute value, by trial."""
        own = {(i.id, i.perturbation): attributes_of(i) for i in instances}
        trials: dict[int, list[list[Stat]]] = {}
        for row in rows:
            found = trials.setdefault(row.train_trial_index, [])
            for stat in row.stats:
                if stat.name.name == self._main_metric:
                    attributes = own[row.instance_id, row.perturbation]
                    found.append([Stat(self._name(stat.name, *one)).merge(stat) for one in attributes.items()])
        return {trial: to_columns(found) for trial, found in trials.items()}

    def _name(self, name: MetricName, attribute: str, value: str) -> MetricName:
        key = name, attribute, value
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = replace(name, name=_stat_name(self._main_metric, attribute, value))
        return known


class BreakdownTotal:
    """Adds up the batches: the main metric's mean over the rows of each attribute value."""

    def __init__(self) -> None:
        self._trials: dict[int, Totals] = {}

    def add(self, summary: BreakdownSummary) -> None:
        """Add a batch."""
        for trial, columns in summary.items():
            self._trials.setdefault(trial, Totals()).add(columns)

    def to_stats(self) -> list[Stat]:
        """Return the means: per trial, then over trials, as HELM."""
        means: dict[MetricName, Stat] = {}
        for _, totals in sorted(self._trials.items()):
            for stat in totals.to_stats():
                merge_stat(means, stat.take_mean())
        return list(means.values())


def describe_breakdown(
    described: Mapping[str, MetricMetadata], main_metric: str, attributes: Mapping[str, Sequence[str]]
) -> list[MetricMetadata]:
    """Return the metadata of every stat that `BreakdownTotal` can make."""
    main: Any = described.get(main_metric)
    title = (main and (main.display_name or main.name)) or main_metric
    return [
        MetricMetadata(
            name=_stat_name(main_metric, attribute, value),
            display_name=f"{title}, {attribute} {value}",
            short_display_name=f"{attribute}={value} ({main_metric})",  # a suite may have several main metrics
            description=f"{title} over the rows whose {attribute} is {value}.",
            lower_is_better=main.lower_is_better if main else None,
            group="by_" + re.sub(r"[^\w.-]+", "_", attribute),  # helm-summarize makes file names of groups
        )
        for attribute, values in attributes.items()
        for value in values
    ]


def attributes_of(instance: Instance) -> dict[str, str]:
    attributes = row_extra(instance).get("attributes", {})
    return attributes if instance.sub_split is None else {SUB_SPLIT: instance.sub_split, **attributes}


def _stat_name(main_metric: str, attribute: str, value: str) -> str:
    return f"{main_metric}@{attribute}={value}"
