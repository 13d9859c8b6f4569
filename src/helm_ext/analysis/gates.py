"""May a build go on? Each comparison of all rows judged against a margin: worse for certain, not worse, or cannot tell.

Each comparison is tested once, one-sided, at a difference of -margin (`scoring.statistics.judge_margin`). Several are
several chances to fail by chance, so p is corrected (Holm) before one of them is called worse; that all are not worse
needs no correction, because each must be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from helm_ext.analysis.comparing import PairResult, show_p
from helm_ext.scoring.bounds import find_bounds
from helm_ext.scoring.statistics import MarginTest, holm, judge_margin

__all__ = ["Gate", "Outcome", "judge"]

Outcome = Literal["fail", "pass", "cannot tell"]

_LEVEL = 0.95


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
        one, test = self.result, self.test
        who = f"{self.outcome}: {one.b.model} against {one.a.model} on {one.a.title}"
        seen = "better" if test.gain > 0 else "worse"
        mean = f"{seen} by {abs(test.gain):.4g}" if test.gain else "as good"
        if self.by_mean:
            than = "more than" if self.outcome == "fail" else "not worse by more than"
            return f"{who}: {mean} in the mean, {than} {test.margin:g}; the noise of {one.rows} rows is not looked at"
        said = {
            "fail": f"worse by more than {test.margin:g} for certain",
            "pass": f"not worse by more than {test.margin:g}",
            "cannot tell": f"the rows do not tell whether it is worse by more than {test.margin:g}",
        }[self.outcome]
        if test.p_worse is None:
            return f"{who}: {mean}, and how sure that is is not known; {said}"
        p = f"one-sided p {show_p(test.p_worse)}"
        if self.p_holm != test.p_worse and self.p_holm is not None:
            p += f", {show_p(self.p_holm)} corrected"
        limits = f"limits {test.low:+.3g} and {test.high:+.3g}, of 95 % each"
        return f"{who}: {said}; {mean}, {limits}; {p}" + (
            f"; {self._describe_rows()}" if self.outcome == "cannot tell" else ""
        )

    def _describe_rows(self) -> str:
        test = self.test
        if test.rows_needed is None:
            return "no number of rows would tell it of an equal model"
        if not test.assumed:
            which = "that an equal model is not worse"
        else:
            which = f"it, were it {'better' if test.assumed > 0 else 'worse'} by {abs(test.assumed):.3g}, as it looks"
        return f"{test.rows_needed:,} rows would tell {which}, in 8 of 10 cases"

    def to_json(self) -> dict[str, Any]:
        """Return the numbers, for programs. `gain`, `low` and `high` are positive where model b is better."""
        test = self.test
        return {
            "outcome": self.outcome,
            "rule": "mean" if self.by_mean else "limits",
            "margin": test.margin,
            "gain": test.gain,
            "low": test.low if math.isfinite(test.low) else None,
            "high": test.high if math.isfinite(test.high) else None,
            "p_worse": test.p_worse,
            "p_worse_holm": self.p_holm,
            "rows_needed": test.rows_needed,
        }


def judge(results: Sequence[PairResult], margin: float, *, by_mean: bool = False) -> list[Gate]:
    """Judge the comparisons of all rows among these: model b may be worse than model a by `margin`."""
    whole = [one for one in results if not one.slice]
    tests = [_test(one, margin) for one in whole]
    known = [test.p_worse for test in tests if test.p_worse is not None]
    corrected = iter(holm(known))
    gates = []
    for one, test in zip(whole, tests, strict=True):
        p_holm = None if test.p_worse is None else next(corrected)
        outcome = _decide_by_mean(test) if by_mean else _decide(test.p_worse, p_holm)
        gates.append(Gate(one, test, p_holm, outcome, by_mean))
    return gates


def _test(one: PairResult, margin: float) -> MarginTest:
    a, b, clusters = one.scores()
    lowest, highest = find_bounds(one.a.metric, one.a.run.metric_arguments.get("source"))
    worse, better = (b, a) if one.a.lower_is_better else (a, b)
    return judge_margin(worse, better, clusters, margin=margin, level=_LEVEL, span=highest - lowest)


def _decide(p_worse: float | None, p_holm: float | None) -> Outcome:
    if p_holm is not None and p_holm < 1 - _LEVEL:
        return "fail"
    return "pass" if p_worse is not None and p_worse > _LEVEL else "cannot tell"


def _decide_by_mean(test: MarginTest) -> Outcome:
    return "fail" if test.gain < -test.margin else "pass"
