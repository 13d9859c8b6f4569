"""Model b against model a on one dataset, or on one slice of it: the numbers, and what reports show of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from helm_ext.analysis.run_scores import RunScores, ScoredRow
from helm_ext.errors import count
from helm_ext.scoring.stat_names import CORRECTED
from helm_ext.scoring.statistics.paired import Comparison

if TYPE_CHECKING:
    from helm_ext.scoring.statistics.corrected import Corrected, Refused
    from helm_ext.scoring.statistics.intervals import Interval

RowPair = tuple[str, ScoredRow, ScoredRow]
"""A row's id, and the row of either model."""


@dataclass(slots=True)
class Flip:
    """A row that the two models score differently."""

    instance_id: str
    score_a: float
    score_b: float
    question: str = ""
    gold: list[str] = field(default_factory=list)
    answer_a: str = ""
    answer_b: str = ""


@dataclass(slots=True)
class PairResult:
    """Model b against model a on one dataset, or on one slice of it."""

    a: RunScores
    b: RunScores
    slice: str
    """`attribute=value`; "" for all rows."""
    rows: int
    """Rows that both models have a score of."""
    unpaired: int
    """Rows that only one of them has a score of, or that ask something else: no part of the comparison."""
    comparison: Comparison
    corrected: Corrected | Refused | None = None
    """The difference, corrected by people's labels, or why not, where the scores are a judge's verdicts."""
    p_corrected: float | None = None
    """Of the corrected difference."""
    p_holm: float = 1.0
    """Corrected for its family."""
    family: int = 1
    """Comparisons of the family: those of all rows of the dataset, or those of its slices."""

    @property
    def is_stale(self) -> bool:
        """Whether one of the runs was made of a file that has changed since."""
        return self.a.is_stale or self.b.is_stale

    @property
    def is_corrected(self) -> bool:
        """Whether people's labels correct the difference."""
        return self.p_corrected is not None

    @property
    def metric(self) -> str:
        """What the difference is of: the metric of both, or a judge's score as labels correct it."""
        return f"{self.a.metric}{CORRECTED}" if self.is_corrected else self.a.metric

    @property
    def difference(self) -> Interval:
        """B - a, corrected where it can be."""
        found: Interval = getattr(self.corrected, "interval", self.comparison.difference)
        return found

    @property
    def gain(self) -> float:
        """How much better b is than a: the difference, its sign turned where lower is better."""
        return -self.difference.mean if self.a.lower_is_better else self.difference.mean

    @property
    def refusal(self) -> str | None:
        """Why a judge's verdicts are not corrected; None where they are, and for other scores."""
        return getattr(self.corrected, "reason", None)

    def correct(self, level: float) -> Corrected | Refused | None:
        """Return the difference on all rows, corrected, with an interval of this level; None as `corrected`."""
        return None if self.corrected is None else correct_pairs(pair_rows(self.a, self.b)[0], level)

    @property
    def p(self) -> float:
        """The p that decides: that of the corrected difference, where there is one."""
        return self.comparison.p if self.p_corrected is None else self.p_corrected

    @property
    def verdict(self) -> str:
        """In one word which model is better at 95 %, corrected: `a`, `b` or `undecided`."""
        if self.p_holm >= 0.05 or self.gain == 0:
            return "undecided"
        return "b" if self.gain > 0 else "a"

    def scores(self) -> tuple[list[float], list[float], list[str] | None]:
        """Return both models' scores of all rows that are compared, and the rows' clusters where they have some."""
        return to_scores(pair_rows(self.a, self.b)[0])

    def describe_unpaired(self) -> str:
        """Return in words how many rows are no part of the comparison; "" where all are."""
        rows = count(self.unpaired, "row was", "rows were")
        why = "scored for one of the models only, or asked otherwise"
        return f"{rows} not compared: {why}" if self.unpaired else ""

    def flips(self) -> list[Flip]:
        """Return the rows that differ, the largest differences first; their texts are read by `read_flips`."""
        pairs = pair_rows(self.a, self.b)[0]
        found = [Flip(key, one.score, other.score) for key, one, other in pairs if one.score != other.score]
        return sorted(found, key=lambda flip: (-abs(flip.score_b - flip.score_a), flip.instance_id))

    def to_json(self) -> dict[str, Any]:
        """Return the numbers, for programs.

        Where labels correct a judge's verdicts, `metric`, `difference`, `low`, `high`, `p` and `p_holm` are those of
        the corrected score; `raw` has the numbers of the verdicts themselves, some of which have no corrected one.
        """
        c = self.comparison
        numbers = {
            "mean_a": c.mean_a,
            "mean_b": c.mean_b,
            **_to_json(c.difference),
            "test": c.test,
            "p": c.p,
            "greater": c.greater,
            "less": c.less,
            "detectable": c.detectable if np.isfinite(c.detectable) else None,
        }
        corrected: dict[str, Any] = {}
        if self.is_corrected:
            corrected = {"raw": numbers, "corrected": {**_to_json(self.difference), "labels": self.labels, "p": self.p}}
            numbers = {**dict.fromkeys(numbers), **_to_json(self.difference), "test": "corrected", "p": self.p}
        elif self.corrected is not None:
            corrected = {"corrected": {"refused": self.refusal}}
        return {
            "dataset": self.a.title,
            "metric": self.metric,
            "lower_is_better": self.a.lower_is_better,
            "slice": self.slice or None,
            "model_a": self.a.model,
            "model_b": self.b.model,
            "run_a": self.a.run.name,
            "run_b": self.b.run.name,
            "rows": self.rows,
            "unpaired": self.unpaired,
            **numbers,
            "clusters": c.difference.clusters,
            "p_holm": self.p_holm,
            "family": self.family,
            "verdict": self.verdict,
            **corrected,
            "stale": self.is_stale,
        }

    @property
    def labels(self) -> int:
        """The number of rows whose labels correct the difference; 0 where none do."""
        return getattr(self.corrected, "labels", 0)

    def to_lines(self) -> list[list[str]]:
        """Return what reports show, in columns: rows, a, b, b - a, 95 % interval, rows greater/less, p, p (Holm).

        Of a judge's score the corrected difference comes first, where there is one, and the verdicts' own is called
        raw.
        """
        c, name = self.comparison, f"{self.slice or 'all'} ({self.rows})"
        own = [f"{c.mean_a:.4g}", f"{c.mean_b:.4g}", *_show(c.difference), f"{c.greater}/{c.less}", show_p(c.p)]
        if self.is_corrected:
            first = [f"{name}, corrected by {count(self.labels, 'label')}", "", "", *_show(self.difference), ""]
            return [[*first, show_p(self.p), show_p(self.p_holm)], ["  raw: the judge's own", *own, ""]]
        return [[f"{name}, raw: not corrected" if self.refusal else name, *own, show_p(self.p_holm)]]


def _to_json(interval: Interval) -> dict[str, float | None]:
    ends = {"low": interval.low, "high": interval.high}
    return {"difference": interval.mean, **{name: end if np.isfinite(end) else None for name, end in ends.items()}}


def _show(interval: Interval) -> list[str]:
    ends = f"{interval.low:+.3g} to {interval.high:+.3g}" if np.isfinite(interval.low) else "not known"
    return [f"{interval.mean:+.4g}", ends]


def pair_rows(a: RunScores, b: RunScores) -> tuple[list[RowPair], int, list[str]]:
    """Return the rows of both, how many are of one alone, and the ids of those that ask different questions."""
    pairs, different = [], []
    for key, one in a.rows.items():
        other = b.rows.get(key)
        if other is None:
            continue
        if one.question == other.question:
            pairs.append((key, one, other))
        else:
            different.append(key)
    common = len(pairs) + len(different)
    return pairs, len(a.rows) + len(b.rows) - 2 * common, different


def correct_pairs(pairs: Sequence[RowPair], level: float = 0.95) -> Corrected | Refused:
    """Return the difference of judges' verdicts, corrected by labels; or why it is not."""
    from helm_ext.scoring.corrected_scores import compare_judged
    from helm_ext.scoring.statistics.corrected import Refused

    both = [(one.seen, other.seen) for _, one, other in pairs]
    a, b = [one for one, _ in both if one is not None], [other for _, other in both if other is not None]
    if min(len(a), len(b)) < len(both):
        return Refused("not each row was judged once for each model")
    return compare_judged(a, b, to_scores(pairs)[2], level=level)


def to_scores(pairs: Sequence[RowPair]) -> tuple[list[float], list[float], list[str] | None]:
    belongs = [one.cluster or other.cluster for _, one, other in pairs]
    clusters = [name or f"\0{key}" for name, (key, _, _) in zip(belongs, pairs, strict=True)] if any(belongs) else None
    return [one.score for _, one, _ in pairs], [other.score for _, _, other in pairs], clusters


def show_p(p: float) -> str:
    """Return a p-value as all reports show it."""
    return "<0.0001" if p < 0.0001 else f"{p:.2g}" if p < 0.095 else f"{p:.2f}"
