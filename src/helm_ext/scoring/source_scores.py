"""The scores that another tool gave the same rows, as stats beside ours: `lm_eval_exact_match`.

They are what the tool wrote, never computed again, and one of them may be the run's main metric. Of each, a second
stat says how many rows it scored otherwise than our own reading (of log-probabilities: our metric of that name): an
importer that misread a file, or two rules that differ, is seen there. A third counts the rows that the tool could not
score: of a judge, the judgements that it could not read. What the tool reports, and is no mean of rows, is one stat of
all rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Instance

from helm_ext.evalset import row_extra
from helm_ext.scoring.basic.row_stats import select
from helm_ext.scoring.basic.tally import Column, Totals, to_columns
from helm_ext.scoring.folding import make_row, name_in
from helm_ext.scoring.score import DIFFERS, UNSCORED, StatInfo, describe_count

_CLOSE = 1e-9
"""Two scores that differ by no more are equal: both are sums of floats."""


def find_left_out(instances: Iterable[Instance]) -> list[PerInstanceStats]:
    """Return the source's scores of the rows that are left out of ours: what the source scored is its own affair."""
    left_out = [(instance, row_extra(instance)) for instance in instances if "left_out" in row_extra(instance)]
    return [make_row(instance, extra["source_scores"]) for instance, extra in left_out if extra.get("source_scores")]


class SourceSummary(NamedTuple):
    """What a batch says."""

    columns: Sequence[Column]
    """The source's scores, and whether ours differ, of rows that ours can be compared on."""
    unscored: Counter[MetricName]
    """Rows that the source could not score."""


class SourceMeasure:
    """Compares the source's scores with ours, batch by batch."""

    def __init__(
        self, source: Mapping[str, Any], own_metric: str, *, same: Collection[str] = (), measured: Collection[str] = ()
    ) -> None:
        """The source's headline, or each score where it names none, is compared with `own_metric`.

        Other scores are compared with our metric of the same name: a score by another rule is another score, and no
        difference. Those of `same` are computed by the source's own rule: they go before `own_metric`. "" is no metric.
        `measured` are all metrics of ours. `source` is `Source.to_args()`.
        """
        self.source = source
        self.partners = {}
        self.same_scale: set[str] = set()
        """Stats that are computed by one rule here and there, whatever values it gives."""
        self.reported = {}
        """Stat to value, of what the source reports that is no mean of rows."""
        for name, score in source["scores"].items():
            metric = name.partition(",")[0]  # lm-eval's names go on with the filter
            partner = own_metric if source.get("main", score["stat"]) == score["stat"] else ""
            if metric in same or (not partner and metric in measured):
                partner = metric
            if metric in same:
                self.same_scale.add(score["stat"])
            self.partners[score["stat"]] = partner
            if score.get("no_mean") and score["mean"] is not None:
                self.reported[score["stat"]] = float(score["mean"])

    def measure(self, rows: Iterable[PerInstanceStats], instances: Iterable[Instance] = ()) -> SourceSummary:
        """Compare; rows that are left out of our scores are among them. `instances`: those of the rows."""
        made: list[list[Stat]] = []
        differs: dict[int, MetricName] = {}
        """By the id of the score's name, of which a context has one."""
        wanted = {*self.partners, *self.partners.values()}
        for row in rows:
            stats = {stat.name.name: stat for stat in select(row.stats, wanted)}
            for theirs, partner in self.partners.items():
                stat, ours = stats.get(theirs), stats.get(partner)
                if stat is None or stat.mean is None:
                    continue
                found = [stat]
                if ours is not None and ours.mean is not None:
                    name = differs.get(id(stat.name))
                    if name is None:
                        name = differs[id(stat.name)] = replace(stat.name, name=f"{theirs}{DIFFERS}")
                    found.append(Stat(name).add(float(abs(stat.mean - ours.mean) > _CLOSE)))
                made.append(found)
        unscored = Counter(
            name_in(instance, f"{name}{UNSCORED}")
            for instance in instances
            for name in row_extra(instance).get("source_unscored", ())
        )
        return SourceSummary(to_columns(made), unscored)


class SourceTotal:
    """Adds up the batches: the source's scores over all rows that have them (`count` is their number).

    With each comes on how many rows ours differs: `sum`, of `count` that have both. A score that no row can be compared
    by has no such stat, nor has one of another scale than ours, 0 to 1: a judge's 1 to 5. Where the source could not
    score some rows, a stat is their number.
    """

    def __init__(self, measure: SourceMeasure) -> None:
        self._reported = measure.reported
        self._compared = measure.partners.keys() - measure.same_scale
        self._totals = Totals()
        self._unscored = Counter[MetricName]()

    def add(self, summary: SourceSummary) -> None:
        self._totals.add(summary.columns)
        self._unscored.update(summary.unscored)

    def to_stats(self, splits: Iterable[str | None] = ()) -> list[Stat]:
        """Return the scores, the counts of rows that differ, and of those that have no score.

        What is reported and no mean of rows is said of each of the `splits`.
        """
        added = self._totals.to_stats()
        known = [(stat.name.name, stat.min, stat.max) for stat in added if stat.name.name in self._compared]
        apart = {f"{name}{DIFFERS}" for name, low, high in known if low < 0 or high > 1}
        made = [stat for stat in added if stat.name.name not in apart]
        made += [Stat(name).add(count) for name, count in self._unscored.items()]
        for split in splits:
            made += [Stat(MetricName(name, split=split)).add(value) for name, value in self._reported.items()]
        return made


def describe_source_scores(source: Mapping[str, Any]) -> list[StatInfo]:
    """Return how reports present the source's scores, the counts of rows that differ and of those without a score."""
    tool, described = source["tool"], []
    for name, score in source["scores"].items():
        no_mean = f" No mean of rows: {score['no_mean']}." if score.get("no_mean") else ""
        stat = score["stat"]
        described += [
            StatInfo(stat, f"{name} ({tool})", f"{name}, as {tool} scored the same completions.{no_mean}",
                     lower_is_better=score["lower_is_better"], group="source_scores"),
            StatInfo(f"{stat}{DIFFERS}", f"Differs: {name} ({tool})",
                     f"Fraction of rows that {tool}'s {name} and our own reading score differently.",
                     lower_is_better=None, group="source_scores"),
            describe_count(f"{stat}{UNSCORED}", f"# unscored: {name} ({tool})", f"Rows without a {name} of {tool}, as "
                           "where a cell is empty or a judgement cannot be read: no part of its mean."),
        ]  # fmt: skip
    return described
