"""A judge's score of a run, and the same corrected by people's labels: which of them count, and how they were drawn.

Judgements of a row's first completion are looked at. A row's verdict is that of its jury (`judging.jury`), its label is
the mean of what people said. docs/judging.md says which design is corrected how; what cannot be corrected is refused
with a reason, in words.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from helm_ext.judging.jury import judge_values, jury_value
from helm_ext.scoring.statistics.agreement import Agreement, Scale, agree, alpha, rater_variance
from helm_ext.scoring.statistics.corrected import (
    Corrected,
    Refused,
    correct_balanced,
    correct_by_verdict,
)
from helm_ext.scoring.statistics.graded import correct_graded
from helm_ext.scoring.statistics.intervals import Interval, mean_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from helm_ext.judging.judgement import Judgement

__all__ = [
    "Chosen",
    "JudgedScore",
    "Seen",
    "choose_labels",
    "compare_judged",
    "measure_bias",
    "measure_judged",
    "see",
    "to_right",
]

RANDOM, BY_VERDICT, BY_LABEL = "random", "by_verdict", "by_label"
_HALF = 0.5
_SIDES = {1.0: "passed by most", 0.0: "failed by most", 0.5: "a tie"}
_FEW_GRADES = 11
"""Grades that are taken for steps in an order rather than for any number."""


class Seen(NamedTuple):
    """What was said of one row by one criterion."""

    verdict: float | None
    """Of the judge, or the jury; None where it has none."""
    cell: str
    """The verdict, in words; of several judges the number of votes. Rows of one cell had one chance of a label, but for
    chances that labels state."""
    side: str
    """What most votes of a jury say; "" of one judge."""
    scale: tuple[float, float] | None
    """The lowest and the highest value; None where judges and people have not one scale."""
    is_binary: bool
    labels: tuple[tuple[str, float], ...] = ()
    """Rater and value, of labels whose design is recorded."""
    drawn: tuple[str, str, float | None] | None = None
    """Design, stratum and chance of the labels."""
    undesigned: int = 0
    """Labels that do not say how their rows were drawn."""

    @property
    def gold(self) -> float:
        """The label; NaN where there is none."""
        return math.fsum(value for _, value in self.labels) / len(self.labels) if self.labels else math.nan


class Chosen(NamedTuple):
    """The labels of rows that a correction can be made of."""

    gold: NDArray[np.float64]
    """NaN where a row has none."""
    chances: NDArray[np.float64] | None
    """None: one chance for all."""
    is_balanced: bool = False
    """Whether rows were drawn by the labels themselves."""


class JudgedScore(NamedTuple):
    """What judges say of a run, and what that is worth."""

    raw: Interval
    corrected: Corrected | Refused
    labels: int
    """Rows with a label that says how it was drawn."""
    undesigned: int
    agreement: Agreement | None
    """Of judge and people, weighted so that it is that of all rows; None without labels."""
    raters: Interval | None
    """Krippendorff's alpha of people who labelled the same rows."""


def see(judgements: Iterable[Judgement]) -> Seen | None:
    """Return what a row's judgements by one criterion come to; None where neither a verdict nor a label counts.

    Those that are not `ok` must be among them: a jury does not become smaller by a judge without a verdict.
    """
    found = [one for one in judgements if one.completion == 0]
    human = [one for one in found if one.kind == "human" and one.value is not None]
    designed = [one for one in human if one.drawn is not None]
    is_binary = all(one.is_binary for one in found)
    values = [*judge_values(found).values()]
    verdict = jury_value(values, is_binary=is_binary)
    if verdict is None and not human:
        return None
    votes = math.fsum(value for value in values if value is not None)
    drawn = designed[0].drawn if designed else None
    lows, highs = zip(*(one.bounds for one in found), strict=True)
    return Seen(
        verdict,
        f"{votes:g} of {len(values)}" if len(values) > 1 else f"{votes:g}",
        _SIDES.get(verdict or 0.0, "") if len(values) > 1 else "",
        (min(lows), max(highs)) if len({*lows}) == len({*highs}) == 1 else None,
        is_binary,
        tuple((one.by, one.value) for one in designed if one.value is not None),
        None if drawn is None else (drawn.design, drawn.stratum, drawn.p),
        len(human) - len(designed),
    )


def choose_labels(rows: Sequence[Seen], cells: Sequence[Hashable]) -> Chosen | Refused:
    """Return the labels that count, by how they were drawn. `cells`: each row's verdict, or both of two models."""
    gold = np.array([row.gold for row in rows])
    designs = {row.drawn[0] for row in rows if row.drawn is not None}
    undesigned = sum(row.undesigned for row in rows)
    if not designs:
        if undesigned:
            return Refused(f"{undesigned} labels do not say how their rows were drawn")
        return Refused("no labels")
    if designs == {BY_LABEL}:
        return Chosen(gold, None, is_balanced=True)
    others = designs - {BY_LABEL}  # of two kinds of labels, those that were not drawn by what they say
    gold[[row.drawn is not None and row.drawn[0] == BY_LABEL for row in rows]] = math.nan
    if others == {RANDOM}:
        return Chosen(gold, None)
    chances = np.array([math.nan if row.drawn is None or row.drawn[2] is None else row.drawn[2] for row in rows])
    drawn = ~np.isnan(gold)
    if not np.isnan(chances[drawn]).any():
        return Chosen(gold, chances)
    if others <= {RANDOM, BY_VERDICT}:  # each verdict had one chance, which the labels' number tells
        names = np.unique(np.array([str(cell) for cell in cells]), return_inverse=True)[1]
        of_cell = np.bincount(names, weights=drawn) / np.bincount(names)
        return Chosen(gold, of_cell[names])
    named = ", ".join(sorted(others - {RANDOM, BY_VERDICT}))
    return Refused(f"labels drawn by {named} do not say with which chance")


def measure_judged(
    rows: Sequence[Seen], clusters: Sequence[Hashable] | None = None, *, level: float = 0.95
) -> JudgedScore | None:
    """Return the score of rows that judges and people saw; None where no row has a verdict.

    Rows without a verdict are no part of either number. `clusters`: what each row belongs to.
    """
    places = [place for place, row in enumerate(rows) if row.verdict is not None]
    if not places:
        return None
    rows = [rows[place] for place in places]
    belongs = None if clusters is None else [clusters[place] for place in places]
    verdicts = np.array([row.verdict for row in rows], dtype=np.float64)
    raw = mean_interval(verdicts, belongs, level=level)
    cells, undesigned = [row.cell for row in rows], sum(row.undesigned for row in rows)
    chosen = choose_labels(rows, cells)
    if isinstance(chosen, Refused):
        return JudgedScore(raw, chosen, sum(bool(row.labels) for row in rows), undesigned, None, None)
    drawn = ~np.isnan(chosen.gold)
    is_binary = all(row.is_binary for row in rows)
    ratings = _to_matrix([row.labels for row in rows])
    corrected = _correct(
        rows, cells, verdicts, chosen, belongs, rater_variance(ratings), is_binary=is_binary, level=level
    )
    scale: Scale = "nominal" if is_binary else "ordinal" if len(np.unique(verdicts)) <= _FEW_GRADES else "interval"
    weights = None if chosen.chances is None else 1 / chosen.chances[drawn]
    of_labels = None if belongs is None else [one for one, is_one in zip(belongs, drawn, strict=True) if is_one]
    agreement = None
    if not chosen.is_balanced:  # else it would be that of other rows
        pair = (to_right(one[drawn], is_binary=is_binary) for one in (verdicts, chosen.gold))
        agreement = agree(*pair, weights=weights, clusters=of_labels, scale=scale)
    raters = alpha(ratings, clusters=belongs, scale=scale) if ratings.shape[1] > 1 else None
    return JudgedScore(raw, corrected, int(drawn.sum()), undesigned, agreement, raters)


def _correct(
    rows: Sequence[Seen],
    cells: Sequence[str],
    verdicts: NDArray[np.float64],
    chosen: Chosen,
    clusters: Sequence[Hashable] | None,
    variance: float,
    *,
    is_binary: bool,
    is_difference: bool = False,
    level: float,
) -> Corrected | Refused:
    scale = _find_scale(rows)
    if scale is None:
        return Refused("labels and verdicts are not all on one scale")
    if chosen.is_balanced:
        if clusters is not None or not is_binary or _are_juries(rows):
            return Refused("labels balanced on the human verdict correct one judge's right and wrong alone")
        return correct_balanced(verdicts, chosen.gold, level=level)
    if is_binary:
        sides = [row.side for row in rows] if _are_juries(rows) else None
        found = correct_by_verdict(
            cells, chosen.gold, sides=sides, chances=chosen.chances, clusters=clusters,
            rater_variance=variance, is_difference=is_difference, level=level,
        )  # fmt: skip
    else:
        found = correct_graded(
            verdicts, chosen.gold, chances=chosen.chances, clusters=clusters, rater_variance=variance, level=level
        )
    low, high = scale
    return _within(found, (low - high, high - low) if is_difference else (low, high))


def measure_bias(rows: Sequence[Seen], clusters: Sequence[Hashable] | None = None) -> Corrected | Refused:
    """Return by how much the judge overrates these rows, each of which has a verdict: the mean of verdict - label."""
    cells, verdicts = [row.cell for row in rows], np.array([row.verdict for row in rows], dtype=np.float64)
    chosen = choose_labels(rows, cells)
    if isinstance(chosen, Refused):
        return chosen
    if chosen.is_balanced:
        return Refused("labels balanced on the human verdict do not tell")
    variance = rater_variance(_to_matrix([row.labels for row in rows]))
    errors = chosen._replace(gold=verdicts - chosen.gold)
    is_binary = all(row.is_binary for row in rows)
    return _correct(
        rows, cells, verdicts, errors, clusters, variance, is_binary=is_binary, is_difference=True, level=0.95
    )


def _are_juries(rows: Sequence[Seen]) -> bool:
    return any(row.side for row in rows)


def _find_scale(rows: Sequence[Seen]) -> tuple[float, float] | None:
    found = {row.scale for row in rows}
    return found.pop() if len(found) == 1 else None


def compare_judged(
    a: Sequence[Seen], b: Sequence[Seen], clusters: Sequence[Hashable] | None = None, *, level: float = 0.95
) -> Corrected | Refused:
    """Return by how much b is better than a on the same rows, by labels of rows of which both answers are labelled."""
    both = [(one, other) for one, other in zip(a, b, strict=True)]
    if any(row.verdict is None for pair in both for row in pair):
        raise ValueError("a row has no verdict")
    labelled = [(one, other) for one, other in both if one.labels and other.labels]
    if not labelled:
        return Refused("no row has a label of both answers")
    unlike = sum(one.drawn != other.drawn for one, other in labelled)
    if unlike and any(row.drawn is not None and row.drawn[0] != RANDOM for pair in labelled for row in pair):
        return Refused(f"on {unlike} rows the labels of both answers were drawn in different ways")
    rows = [
        one if one.labels and other.labels else one._replace(labels=(), drawn=None, undesigned=0) for one, other in both
    ]
    cells = [f"{one.cell} and {other.cell}" for one, other in both]
    chosen = choose_labels(rows, cells)
    if isinstance(chosen, Refused):
        return chosen
    if chosen.is_balanced:
        return Refused("labels balanced on the human verdict correct no difference of two models")
    scale = _find_scale([*a, *b])
    if scale is None:
        return Refused("labels and verdicts of both models are not all on one scale")
    gold = np.array([other.gold for _, other in both]) - chosen.gold
    low, high = scale
    if all(row.is_binary for pair in both for row in pair):
        sides = (
            [(one.side or one.cell, other.side or other.cell) for one, other in both] if _are_juries([*a, *b]) else None
        )
        found = correct_by_verdict(
            cells, gold, sides=sides, chances=chosen.chances, clusters=clusters,
            is_difference=True, level=level,
        )  # fmt: skip
    else:
        grades = [other.verdict - one.verdict for one, other in both]  # type: ignore[operator]
        found = correct_graded(grades, gold, chances=chosen.chances, clusters=clusters, level=level)
    return _within(found, (low - high, high - low))


def to_right(values: NDArray[np.float64], *, is_binary: bool) -> NDArray[np.float64]:
    """Return what most of a row's judges, or raters, say where that is right or wrong; grades as they are."""
    return np.where(values > _HALF, 1.0, 0.0) if is_binary else values


def _within(found: Corrected | Refused, bounds: tuple[float, float]) -> Corrected | Refused:
    """Cut the interval, and a mean that extrapolation took beyond the scale, to what there can be."""
    if isinstance(found, Refused):
        return found
    low, high = bounds
    cut = {name: min(high, max(low, getattr(found.interval, name))) for name in ("mean", "low", "high")}
    return found._replace(interval=replace(found.interval, **cut))


def _to_matrix(labels: Sequence[Sequence[tuple[str, float]]]) -> NDArray[np.float64]:
    """Return a line a row, a column a rater, NaN where one said nothing."""
    raters = {name: place for place, name in enumerate(sorted({by for row in labels for by, _ in row}))}
    matrix = np.full((len(labels), len(raters)), math.nan)
    for place, row in enumerate(labels):
        for by, value in row:
            matrix[place, raters[by]] = value
    return matrix
