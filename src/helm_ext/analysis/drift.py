"""Several runs of one model over time: the series of its scores, and the first run that is worse for certain.

Each later run is compared row by row with the first one, and judged as a gate judges it (`gates`). p is corrected for
the number of later runs (Holm): of a model that never changes, a whole series is called worse in 5 % of cases at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from helm_ext.analysis.comparing import compare_runs, show_p
from helm_ext.analysis.gates import Gate, judge
from helm_ext.analysis.judged import correct_intervals, list_judged
from helm_ext.analysis.run_scores import RunScores
from helm_ext.analysis.siblings import read_time
from helm_ext.errors import RunEntryError
from helm_ext.scoring.statistics import Interval

Over = Literal["time", "suite"]
"""What runs are ordered by: when they were finished, or the names of their suites."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a series."""

    run: RunScores
    time: str
    """When it was finished, in UTC; "" where it does not say."""
    interval: Interval
    gate: Gate | None
    """What is decided of it against the first run; None of the first one."""


@dataclass(frozen=True, slots=True)
class Series:
    """All runs of one model on one dataset, in order."""

    title: str
    metric: str
    model: str
    points: Sequence[Point]

    @property
    def first_worse(self) -> Point | None:
        """The first run that is worse than the first one for certain."""
        return next((one for one in self.points if one.gate is not None and one.gate.outcome == "fail"), None)

    def describe(self) -> str:
        """Return in words whether the model got worse, and when."""
        worse = self.first_worse
        if worse is None or worse.gate is None or worse.gate.p_holm is None:
            return f"{self.model} on {self.title}: no run is worse than the first for certain"
        by = "" if not worse.gate.test.margin else f" by more than {worse.gate.test.margin:g}"
        return (
            f"{self.model} on {self.title}: {worse.run.run.suite} is the first run that is worse than "
            f"{self.points[0].run.run.suite}{by} for certain: {worse.gate.test.gain:+.4g}, one-sided p "
            f"{show_p(worse.gate.p_holm)}, corrected for {len(self.points) - 1}"
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return the runs, for programs."""
        worse = self.first_worse
        return [
            {
                "dataset": self.title,
                "metric": self.metric,
                "model": self.model,
                "suite": one.run.run.suite,
                "run": one.run.run.name,
                "finished": one.time or None,
                "rows": len(one.run.rows),
                "mean": one.interval.mean,
                "low": one.interval.low if math.isfinite(one.interval.low) else None,
                "high": one.interval.high if math.isfinite(one.interval.high) else None,
                "gate": None if one.gate is None else one.gate.to_json(),
                "first_worse": one is worse,
            }
            for one in self.points
        ]


def show_minute(time: str) -> str:
    """Return when a run was finished for people, in UTC: to the minute."""
    return time[:16].replace("T", " ") or "not recorded"


def find_series(runs: Sequence[RunScores], over: Over = "time", *, margin: float = 0.0) -> list[Series]:
    """Return the series of each model and dataset that has several runs.

    `margin`: by how much a run may be worse than the first. Raises RunEntryError where no model has several runs, or
    their order is not known; what `compare_runs` raises for runs of different rows.
    """
    found: dict[tuple[str, ...], list[RunScores]] = {}
    for run in runs:
        found.setdefault((run.dataset, run.metric, run.completions, run.model), []).append(run)
    several = [_in_order(of_one, over) for of_one in found.values() if len(of_one) > 1]
    if not several:
        raise RunEntryError(f"--over {over}: no model has several runs of one dataset\n  hint: name several suites")
    return [_to_series(of_one, margin) for of_one in several]


def _in_order(runs: list[RunScores], over: Over) -> list[RunScores]:
    keys = [read_time(run.run.folder) if over == "time" else run.run.suite for run in runs]
    for key, run in zip(keys, runs, strict=True):
        if not key:
            raise RunEntryError(
                f"--over time: {run.run.folder} does not say when it was finished\n  hint: --over suite, by their names"
            )
        if keys.count(key) > 1:
            raise RunEntryError(f"--over {over}: two runs of {run.model} on {run.title} are of {key}: which is first?")
    return [run for _, run in sorted(zip(keys, runs, strict=True), key=lambda pair: pair[0])]


def _to_series(runs: Sequence[RunScores], margin: float) -> Series:
    first, *later = runs
    model, pairs = first.model, []
    for run in later:
        # Two runs of one model are no two models: here they are told apart by their suites.
        run.model = f"{model} ({run.run.suite})"
        try:
            pairs += compare_runs([first, run], slices=[])[0]
        finally:
            run.model = model
    gates = [None, *judge(pairs, margin)]
    judged = [list_judged(run.run, run.split) for run in runs]
    headline, intervals = correct_intervals(first.metric, judged, [run.measure() for run in runs])
    points = [
        Point(run, read_time(run.run.folder), interval, gate)
        for run, interval, gate in zip(runs, intervals, gates, strict=True)
    ]
    return Series(first.title, headline, model, points)
