"""The scores that another tool gave the same rows, as stats beside ours: `lm_eval_exact_match`.

They are what the tool wrote, never computed again. Of each, a second stat says how many rows it scored otherwise than
our main metric (of log-probabilities: our metric of that name): an importer that misread a file, or two rules that
differ, is seen there.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats, add_context
from helm.benchmark.metrics.metric_name import MetricContext, MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Instance

from helm_ext.evalset import row_extra
from helm_ext.scoring.stat_names import DIFFERS

__all__ = ["SourceMeasure", "SourceSummary", "SourceTotal", "describe_source_scores", "find_left_out"]

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
            found.append(PerInstanceStats(str(instance.id), instance.perturbation, 0, stats))
    return found


SourceSummary = dict[MetricName, tuple["array[float]", "array[int]"]]
"""Of each score of the source: its values, and for those that ours can be compared with, whether it differs."""


class SourceMeasure:
    """Compares the source's scores with ours, batch by batch."""

    def __init__(self, source: Mapping[str, Any], main_metric: str, *, same: Collection[str] = ()) -> None:
        """Ours is the metric of the same name if it is one of `same`, else the main metric.

        `source` is `Source.to_args()`.
        """
        self.partners = {}
        for name, score in source["scores"].items():
            metric = name.partition(",")[0]  # lm-eval's names go on with the filter
            self.partners[score["stat"]] = metric if metric in same else main_metric
        self._names = list(dict.fromkeys([*self.partners, *self.partners.values()]))
        self._pairs = [(self._names.index(theirs), self._names.index(ours)) for theirs, ours in self.partners.items()]

    def measure(self, rows: Iterable[PerInstanceStats]) -> SourceSummary:
        """Compare; rows that are left out of our scores are among them. Written for speed: this runs over all rows."""
        found: dict[int, tuple[MetricName, array[float], array[int]]] = {}
        """By the id of the stat's name, of which a context has one."""
        for stats in _pick(rows, self._names):
            for place, partner in self._pairs:
                stat, ours = stats[place], stats[partner]
                if stat is None or stat.mean is None:
                    continue
                _, values, differ = found.setdefault(id(stat.name), (stat.name, array("d"), array("b")))
                values.append(stat.mean)
                if ours is not None and ours.mean is not None:
                    differ.append(abs(stat.mean - ours.mean) > _CLOSE)
        summary: SourceSummary = {}
        for name, values, differ in found.values():
            known = summary.setdefault(name, (array("d"), array("b")))
            known[0].extend(values)
            known[1].extend(differ)
        return summary


class SourceTotal:
    """Adds up the batches: the source's scores over all rows that have them (`count` is their number).

    With each comes on how many rows ours differs: `sum`, of `count` that have both. A score that no row can be compared
    by has no such stat.
    """

    def __init__(self) -> None:
        self._found: SourceSummary = {}

    def add(self, summary: SourceSummary) -> None:
        """Add a batch."""
        for name, (values, differ) in summary.items():
            known = self._found.setdefault(name, (array("d"), array("b")))
            known[0].extend(values)
            known[1].extend(differ)

    def to_stats(self) -> list[Stat]:
        """Return the scores and the counts of rows that differ."""
        made: list[Stat] = []
        for name, (values, differ) in self._found.items():
            made.append(_to_stat(name, values))
            if differ:
                made.append(_to_stat(replace(name, name=f"{name.name}{DIFFERS}"), differ))
        return made


def _pick(rows: Iterable[PerInstanceStats], names: Sequence[str]) -> Iterator[list[Stat | None]]:
    """Yield for each row its stats of these names, None for what it has not. They stand where the last row has them."""
    places = [0] * len(names)
    for row in rows:
        stats = row.stats
        picked: list[Stat | None] = []
        for number, name in enumerate(names):
            at = places[number]
            if at >= len(stats) or stats[at].name.name != name:
                at = next((place for place, stat in enumerate(stats) if stat.name.name == name), -1)
                if at < 0:
                    picked.append(None)
                    continue
                places[number] = at
            picked.append(stats[at])
        yield picked


def _to_stat(name: MetricName, values: Sequence[float]) -> Stat:
    squares = math.fsum(value * value for value in values)
    return Stat(name).merge(Stat(name, len(values), math.fsum(values), squares, min(values), max(values)))


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
