"""The scores that another tool gave the same rows, as stats beside ours: `lm_eval_exact_match`.

They are what the tool wrote, never computed again. Of each, a second stat says how many rows it scored otherwise than
our main metric (of log-probabilities: our metric of that name): an importer that misread a file, or two rules that
differ, is seen there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats, add_context
from helm.benchmark.metrics.metric_name import MetricContext, MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Instance

from helm_ext.evalset import quick, row_extra

__all__ = ["DIFFERS", "average", "count_differences", "describe_source_scores", "find_left_out"]

DIFFERS = "_differs"
"""Ends the name of the stat that says on which part of the rows a source's score and our main metric differ."""

_CLOSE = 1e-9
"""Two scores that differ by no more are equal: both are sums of floats."""


def find_left_out(instances: Iterable[Instance]) -> list[PerInstanceStats]:
    """Return the source's scores of the rows that are left out of ours: what the source scored is its own affair."""
    found = []
    for instance in instances:
        extra = row_extra(instance)
        if "left_out" in extra and extra.get("source_scores"):
            context = MetricContext.from_instance(instance)
            stats = [
                add_context(Stat(MetricName(name)).add(value), context)
                for name, value in extra["source_scores"].items()
            ]
            found.append(quick.PerInstanceStats(str(instance.id), instance.perturbation, 0, stats))
    return found


def average(source: Mapping[str, Any], aggregated: Sequence[Stat], rows: Iterable[PerInstanceStats]) -> list[Stat]:
    """Return the run's stats with the source's scores as means over all rows that have them: `count` is their number.

    Rows that are left out of our scores are among `rows` (`find_left_out`).
    """
    names = {score["stat"] for score in source["scores"].values()}
    means: dict[MetricName, Stat] = {}
    for row in rows:
        for stat in row.stats:
            if stat.name.name in names:
                means.setdefault(stat.name, Stat(stat.name)).merge(stat)
    return [*(stat for stat in aggregated if stat.name.name not in names), *means.values()]


def count_differences(
    source: Mapping[str, Any], main_metric: str, rows: Iterable[PerInstanceStats], *, same: Collection[str] = ()
) -> list[Stat]:
    """Return for each score of the source on how many rows ours differs: `sum`, of `count` that have both.

    `source` is `Source.to_args()`. Ours is the metric of the same name if it is one of `same`, else the main metric. A
    score that no row can be compared by has no such stat.
    """
    partners = {}
    for name, score in source["scores"].items():
        metric = name.partition(",")[0]  # lm-eval's names go on with the filter
        partners[score["stat"]] = metric if metric in same else main_metric
    wanted = {*partners, *partners.values()}
    compared: dict[MetricName, Stat] = {}
    for row in rows:  # written for speed
        found = {}
        for stat in row.stats:
            name = stat.name.name
            if name in wanted and stat.count:
                found[name] = stat
        for theirs, ours in partners.items():
            if theirs in found and ours in found:
                one, other = found[theirs].mean, found[ours].mean
                assert one is not None
                assert other is not None
                key = found[theirs].name
                if key not in compared:
                    compared[key] = Stat(replace(key, name=f"{theirs}{DIFFERS}"))
                compared[key].add(int(abs(one - other) > _CLOSE))
    return list(compared.values())


def describe_source_scores(source: Mapping[str, Any]) -> list[MetricMetadata]:
    """Return the metadata of the source's scores, and of the counts of rows that differ."""
    tool, described = source["tool"], []
    for name, score in source["scores"].items():
        described += [
            MetricMetadata(
                name=score["stat"],
                display_name=f"{name} ({tool})",
                description=f"{name}, as {tool} scored the same completions.",
                lower_is_better=score["lower_is_better"],
                group="source_scores",
            ),
            MetricMetadata(
                name=f"{score['stat']}{DIFFERS}",
                display_name=f"Differs: {name} ({tool})",
                description=f"Fraction of rows that {tool}'s {name} and the main metric score differently.",
                lower_is_better=None,
                group="source_scores",
            ),
        ]
    return described
