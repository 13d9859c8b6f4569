"""May a build go on? Each comparison of all rows judged against a margin: worse for certain, not worse, or cannot tell.

Each comparison is tested once, one-sided, at a difference of -margin (`scoring.statistics.judge_margin`). Several are
several chances to fail by chance, so p is corrected (Holm) before one of them is called worse; that all are not worse
needs no correction, because each must be.

Several runs of one model over time make a series: each later run is compared row by row with the first one, and judged
as a gate judges it, corrected for the number of later runs. Of a model that never changes, a whole series is called
worse in 5 % of cases at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from helm_ext.analysis.comparing import PairResult, compare_pair, correct_pairs, find_p_of, show_p, to_scores
from helm_ext.analysis.run_scores import RunScores, measure_headline
from helm_ext.analysis.siblings import read_time
from helm_ext.errors import RunEntryError, count
from helm_ext.scoring.statistics import LEVEL, Interval, MarginTest, holm, judge_margin

if TYPE_CHECKING:
    from helm_ext.scoring.statistics.corrected import Corrected

Outcome = Literal["fail", "pass", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Gate:
    """What is decided of model b, compared with its baseline, model a."""

    result: PairResult
    test: MarginTest
    p_holm: float | None
    """`test.p_worse`, corrected for all that were judged together."""
    outcome: Outcome
    by_mean: bool
    """Whether the mean difference decided, whatever its noise."""

    def describe(self) -> str:
        """Return in words what was decided, and why."""
        return "; ".join(filter(None, [*self._explain(), self.result.describe_unpaired()]))

    def _explain(self) -> list[str]:
        one, test = self.result, self.test
        margin = f" by more than {test.margin:g}" if test.margin else ""
        on = f"{one.a.model} on {one.a.title}{margin}"
        if self.by_mean and one.refusal is None:
            said = "worse" if self.outcome == "fail" else "not worse"
            means = f"{self.outcome}: the mean of {one.b.model} is {said} than that of {on}: {test.gain:+.4g}"
            return [means, "the means alone were compared, which may differ by chance"]
        said = {
            "fail": f"fail: {one.b.model} is worse than {on}, for certain: ",
            "pass": f"pass: {one.b.model} is not worse than {on}: ",
            "cannot tell": f"cannot tell whether {one.b.model} is worse than {on}: ",
        }[self.outcome]
        gain = f"{test.gain:+.4g}" + (" (a gain is positive)" if one.a.lower_is_better else "")
        if one.refusal is not None:
            return [f"{said}by the judge's own verdicts {gain}, which are not corrected: {one.refusal}"]
        if test.p_worse is None:
            return [f"{said}{gain}", "the rows do not say how sure that is"]
        p = f"one-sided p {show_p(test.p_worse)}"
        if self.p_holm != test.p_worse and self.p_holm is not None:
            p += f", {show_p(self.p_holm)} corrected"
        limits = f"one-sided 95 % limits {test.low:+.3g} and {test.high:+.3g}"
        return [f"{said}{gain}, {limits}, {p}", self._describe_rows() if self.outcome == "cannot tell" else ""]

    def _describe_rows(self) -> str:
        test = self.test
        if test.rows_needed is not None:
            how = f"{abs(test.assumed):.3g} {'better' if test.assumed > 0 else 'worse'}, as observed"
            how = how if test.assumed else "equally good"
            return f"if it is {how}, {test.rows_needed:,} rows settle it in 8 of 10 cases"
        if test.assumed + test.margin:
            return "how many rows would settle it cannot be estimated"
        return "if both are equally good, no number of rows settles it"

    def to_json(self) -> dict[str, Any]:
        """Return the numbers, for programs. `gain`, `low` and `high` are positive where model b is better.

        `raw_gain` is that of a judge's own verdicts, which no labels correct: they decide nothing.
        """
        test = self.test
        return {
            "outcome": self.outcome,
            "rule": "mean" if self.by_mean else "limits",
            "margin": test.margin,
            **({"gain": test.gain} if self.result.refusal is None else {"gain": None, "raw_gain": test.gain}),
            "low": test.low if math.isfinite(test.low) else None,
            "high": test.high if math.isfinite(test.high) else None,
            "p_worse": test.p_worse,
            "p_worse_holm": self.p_holm,
            "rows_needed": test.rows_needed,
        }


def judge(results: Sequence[PairResult], margin: float, *, by_mean: bool = False) -> list[Gate]:
    """Judge the comparisons of all rows among these: model b may be worse than model a by `margin`.

    Raises RunEntryError for a margin that no model can be worse by.
    """
    whole = [one for one in results if not one.slice]
    for one in whole:
        if margin >= one.a.span:
            lowest, highest = one.a.bounds
            hint = f"{margin / 100:g} is {margin:g} %" if (lowest, highest) == (0, 1) else "a difference of two scores"
            raise RunEntryError(
                f"--fail-if-worse {margin:g}: {one.a.metric} of {one.a.title} goes from {lowest:g} to {highest:g}, "
                f"so no model can be worse by more\n  hint: {hint}"
            )
    tests = [_test(one, margin) for one in whole]
    known = [test.p_worse for test in tests if test.p_worse is not None]
    corrected = iter(holm(known))
    gates = []
    for one, test in zip(whole, tests, strict=True):
        p_holm = None if test.p_worse is None else next(corrected)
        outcome: Outcome = "cannot tell"
        if by_mean and one.refusal is None:
            outcome = "fail" if test.gain < -test.margin else "pass"
        elif p_holm is not None and p_holm < 1 - LEVEL:
            outcome = "fail"
        elif test.p_worse is not None and test.p_worse > LEVEL:
            outcome = "pass"
        gates.append(Gate(one, test, p_holm, outcome, by_mean))
    return gates


def find_not_judged(scores: Sequence[RunScores], results: Sequence[PairResult], baseline: str) -> list[tuple[str, str]]:
    """Return each other model and dataset of the baseline that no comparison is of: there the gate can tell nothing."""
    judged = {(one.b.model, id(one.a)) for one in results}
    models = [model for model in dict.fromkeys(run.model for run in scores) if model != baseline]
    mine = [run for run in scores if run.model == baseline]
    return [(model, run.title) for run in mine for model in models if (model, id(run)) not in judged]


def _test(one: PairResult, margin: float) -> MarginTest:
    """Return the test of the scores; of a judge's verdicts as labels correct them. Uncorrected, they tell nothing."""
    gain = one.gain.mean
    if one.refusal is not None:
        return MarginTest(margin, gain, None, -math.inf, math.inf, None, 0.0)
    if one.corrected is None:
        a, b, clusters = to_scores(one.pairs)
        worse, better = (b, a) if one.a.lower_is_better else (a, b)
        return judge_margin(worse, better, clusters, margin=margin, level=LEVEL, span=one.a.span)
    interval = cast("Corrected", correct_pairs(one.pairs, 2 * LEVEL - 1)).interval
    limits, bound = (-interval, margin) if one.a.lower_is_better else (interval, -margin)
    p = find_p_of(one.pairs, bound)
    return MarginTest(margin, gain, p / 2 if gain < -margin else 1 - p / 2, limits.low, limits.high, None, gain)


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
            f"{show_p(worse.gate.p_holm)}, corrected for {count(len(self.points) - 1, 'comparison')}"
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
                **one.interval.to_json(),
                "gate": None if one.gate is None else one.gate.to_json(),
                "first_worse": one is worse,
            }
            for one in self.points
        ]


def show_minute(time: str) -> str:
    """Return when a run was finished for people, in UTC: to the minute."""
    return time[:16].replace("T", " ") or "not recorded"


def find_series(runs: Sequence[RunScores], over: str = "time", *, margin: float = 0.0) -> list[Series]:
    """Return the series of each model and dataset that has several runs.

    `over`: what they are ordered by, `time`, when they were finished, or `suite`, the names of their suites.
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


def _in_order(runs: list[RunScores], over: str) -> list[RunScores]:
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
    pairs = [next(compare_pair(runs[0], run, [], chosen=())) for run in runs[1:]]
    headline, intervals = measure_headline(runs)
    gates = [None, *judge(pairs, margin)]
    times = [read_time(run.run.folder) for run in runs]
    points = list(map(Point, runs, times, intervals, gates))
    return Series(runs[0].title, headline, runs[0].model, points)
