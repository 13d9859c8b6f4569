"""The main metric for each value of an attribute: a leaderboard per severity, per task, ...

A dataset's attributes (`EvalSet.attributes`) become stats such as `refusal_match@severity=high`, in a metric group of
their own, so that `helm-summarize --auto-generate-schema` shows a table "By severity" with a column a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat, merge_stat
from helm.benchmark.scenarios.scenario import Instance

from helm_ext.evalset import row_extra

__all__ = ["break_down", "describe_breakdown"]


def break_down(
    main_metric: str,
    attributes: Mapping[str, Sequence[str]],
    rows: Iterable[PerInstanceStats],
    instances: Iterable[Instance],
) -> list[Stat]:
    """Return the main metric's mean over the rows of each attribute value: per trial, then over trials, as HELM."""
    if not attributes:
        return []
    own = {(i.id, i.perturbation): row_extra(i).get("attributes", {}) for i in instances}
    trials: dict[int, dict[MetricName, Stat]] = {}
    for row in rows:
        stats = trials.setdefault(row.train_trial_index, {})
        for stat in row.stats:
            if stat.name.name != main_metric:
                continue
            for attribute, value in own[row.instance_id, row.perturbation].items():
                name = replace(stat.name, name=_stat_name(main_metric, attribute, value))
                merge_stat(stats, Stat(name).merge(stat))
    means: dict[MetricName, Stat] = {}
    for stats in trials.values():
        for stat in stats.values():
            merge_stat(means, stat.take_mean())
    return list(means.values())


def describe_breakdown(
    described: Mapping[str, MetricMetadata], main_metric: str, attributes: Mapping[str, Sequence[str]]
) -> list[MetricMetadata]:
    """Return the metadata of every stat that `break_down` can make."""
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


def _stat_name(main_metric: str, attribute: str, value: str) -> str:
    return f"{main_metric}@{attribute}={value}"
