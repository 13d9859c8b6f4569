"""Scores of which a judge read what our own reading could not: `exact_match_judged`, `refusal_match_judged`.

A row that was read clearly counts as the strict score has it. An unclear one (no option, no match of `extract`, a reply
of which `refusal_match` cannot tell whether it refuses) counts what the judge's verdict makes of it
(`judge_unclear_choice`, ...); without a verdict it stays as the strict score has it, and is counted:
`exact_match_judged_unscored`. The strict score is as ever, and stays the main metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat

from helm_ext.scoring.stat_names import JUDGED, REFUSAL, UNCLEAR, UNSCORED, judge_stat

_STRICT = ("exact_match", "quasi_exact_match")
"""Scores that say right or wrong of an answer."""


class JudgedUnclear(NamedTuple):
    """What makes the score beside a strict one."""

    criterion: str
    strict: str

    @property
    def name(self) -> str:
        """The score's stat."""
        return f"{self.strict.removesuffix('_low')}{JUDGED}"

    def add_to(self, rows: Iterable[PerInstanceStats]) -> Counter[MetricName]:
        """Give rows the score; returns how many unclear ones have no verdict."""
        unscored = Counter[MetricName]()
        for row in rows:
            known = {stat.name.name: stat for stat in row.stats}
            strict = known.get(self.strict)
            if strict is None or strict.mean is None:
                continue
            value, flag = strict.mean, known.get(UNCLEAR[self.criterion])
            if flag is not None and flag.mean:
                verdict = known.get(judge_stat(self.criterion))
                if verdict is None or verdict.mean is None:
                    unscored[replace(strict.name, name=f"{self.name}{UNSCORED}")] += 1
                else:
                    value = verdict.mean
            row.stats.append(Stat(replace(strict.name, name=self.name)).add(value))
        return unscored

    def describe(self) -> list[MetricMetadata]:
        """Return the metadata of the score, and of the number beside it."""
        return [
            MetricMetadata(
                name=self.name,
                display_name=f"{self.strict}, unclear rows judged",
                description=f"{self.strict} where the answer could be read; elsewhere what a judge read in it.",
                lower_is_better=False,
                group="judges",
            ),
            MetricMetadata(
                name=f"{self.name}{UNSCORED}",
                display_name=f"# unscored: {self.name}",
                description=f"Unclear rows without a verdict of the judge: in {self.name} as {self.strict} has them.",
                lower_is_better=True,
                group="general_information",
            ),
        ]


def find_strict(criterion: str, metrics: Sequence[str], main_metric: str) -> str | None:
    """Return the stat that a criterion's score stands beside; None where the run has none of that kind."""
    if criterion == REFUSAL:
        return "refusal_match_low" if "refusal_match" in metrics else None
    return next((name for name in (main_metric, *_STRICT) if name in _STRICT and name in metrics), None)


def find_judged_unclear(judged: Iterable[str], metrics: Sequence[str], main_metric: str) -> list[JudgedUnclear]:
    """Return what the criteria of a run make, one for each strict score."""
    found: dict[str, JudgedUnclear] = {}
    for criterion in judged:
        if criterion in UNCLEAR and (strict := find_strict(criterion, metrics, main_metric)) is not None:
            found.setdefault(strict, JudgedUnclear(criterion, strict))
    return [*found.values()]
