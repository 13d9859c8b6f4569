"""The scores that another tool gave the same rows, as stats beside ours: `lm_eval_exact_match`.

They are what the tool wrote, never computed again. Of each, a second stat says how many rows it scored otherwise than
our main metric (of log-probabilities: our metric of that name): an importer that misread a file, or two rules that
differ, is seen there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat

__all__ = ["DIFFERS", "count_differences", "describe_source_scores"]

DIFFERS = "_differs"
"""Ends the name of the stat that says on which part of the rows a source's score and our main metric differ."""

_CLOSE = 1e-9
"""Two scores that differ by no more are equal: both are sums of floats."""


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
    compared: dict[MetricName, Stat] = {}
    for row in rows:
        ours = {stat.name.name: stat.mean for stat in row.stats if stat.count}
        for stat in row.stats:
            partner = partners.get(stat.name.name)
            if partner is None or stat.mean is None or (mine := ours.get(partner)) is None:
                continue
            name = replace(stat.name, name=f"{stat.name.name}{DIFFERS}")
            compared.setdefault(name, Stat(name)).add(int(abs(stat.mean - mine) > _CLOSE))
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
