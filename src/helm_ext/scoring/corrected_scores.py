"""A judge's score of a run, and the same corrected by people's labels: which of them count, and how they were drawn.

Judgements of a row's first completion are looked at. A row's verdict is that of its jury (`jury_value`), its label is
the mean of what people said. docs/judging.md says which design is corrected how; what cannot be corrected is refused
with a reason, in words.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from helm_ext.judging.judgement import judge_values, jury_value
from helm_ext.scoring.statistics.agreement import Agreement, Scale, agree, alpha, rater_variance
from helm_ext.scoring.statistics.corrected import (
    Corrected,
    Refused,
    correct_balanced,
    correct_by_verdict,
    correct_graded,
)
from helm_ext.scoring.statistics.intervals import LEVEL, Interval, find_groups, mean_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from helm_ext.judging.judgement import Judgement

RANDOM, BY_VERDICT, BY_LABEL = "random", "by_verdict", "by_label"
_HALF = 0.5
_SIDES = {1.0: "passed by most", 0.0: "failed by most", 0.5: "a tie"}
_FEW_GRADES = 11
"""Grades that are taken for steps in an order rather than for any number."""


def join_designs(design: str) -> str:
    """Return the design; one word for those whose draws may be joined: all rows of a verdict have one chance."""
    return BY_VERDICT if design == RANDOM else design


class Label(NamedTuple):
    """What a person said of a row that was drawn in a known way."""

    by: str
    value: float
    design: str
    stratum: str
    p: float | None
    at: str
    draw: str = ""

    @property
    def kind(self) -> str:
        """The design, one word for those whose draws may be joined."""
        return join_designs(self.design)


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
    labels: tuple[Label, ...] = ()
    """Those whose design is recorded."""
    undesigned: int = 0
    """Labels that do not say how their rows were drawn."""


class Chosen(NamedTuple):
    """The labels of rows that a correction can be made of."""

    gold: NDArray[np.float64]
    """NaN where a row has none."""
    chances: NDArray[np.float64] | None
    """None: one chance for all."""
    labels: list[tuple[Label, ...]]
    """Of each row, those that count."""
    is_balanced: bool = False
    """Whether rows were drawn by the labels themselves."""


class JudgedScore(NamedTuple):
    """What judges say of a run, and what that is worth."""

    raw: Interval
    corrected: Corrected | Refused
    labels: int
    """Rows with a label that says how it was drawn."""
    undesigned: int
    set_aside: int
    """Rows whose labels were drawn in another way than those that count."""
    agreement: Agreement | None
    """Of judge and people, weighted so that it is that of all rows; None without labels."""
    raters: Interval | None
    """Krippendorff's alpha of people who labelled the same rows."""
    scale: Scale
    """What both alphas take the values for."""


def see(judgements: Iterable[Judgement]) -> Seen | None:
    """Return what a row's judgements by one criterion come to; None where neither a verdict nor a label counts.

    Those that are not `ok` must be among them: a jury does not become smaller by a judge without a verdict.
    """
    found = [one for one in judgements if one.completion == 0]
    human = [one for one in found if one.kind == "human" and one.value is not None]
    labels = tuple(
        Label(one.by, one.value, one.drawn.design, one.drawn.stratum, one.drawn.p, one.at or "", one.drawn.draw)
        for one in human
        if one.drawn is not None and one.value is not None
    )
    is_binary = all(one.is_binary for one in found)
    values = [*judge_values(found).values()]
    verdict = jury_value(values, is_binary=is_binary)
    if verdict is None and not human:
        return None
    votes = math.fsum(value for value in values if value is not None)
    lows, highs = zip(*(one.bounds for one in found), strict=True)
    return Seen(
        verdict,
        f"{votes:g} of {len(values)}" if len(values) > 1 else f"{votes:g}",
        _SIDES.get(verdict or 0.0, "") if len(values) > 1 else "",
        (min(lows), max(highs)) if len({*lows}) == len({*highs}) == 1 else None,
        is_binary,
        labels,
        len(human) - len(labels),
    )


def choose_labels(rows: Sequence[Seen]) -> Chosen | Refused:
    """Return the labels that count, by how they were drawn.

    Of labels that were drawn in several ways, whose chances cannot be joined, the latest ones count: a later label of a
    rater replaces the earlier one, so that of the earlier draw some are missing.
    """
    latest: dict[str, str] = {}
    for label in (label for row in rows for label in row.labels):
        latest[label.kind] = max(latest.get(label.kind, ""), label.at)
    if not latest:
        undesigned = sum(row.undesigned for row in rows)
        return Refused(f"{undesigned} labels do not say how their rows were drawn" if undesigned else "no labels")
    if len(latest) > 1:
        latest.pop(BY_LABEL, None)
    kind = max(latest, key=lambda one: latest[one])
    if sum(at == latest[kind] for at in latest.values()) > 1:
        return Refused(
            f"labels were drawn in several ways, {', '.join(sorted(latest))}, and it is not known which later"
        )
    labels = [tuple(label for label in row.labels if label.kind == kind) for row in rows]
    gold = np.array([_mean_label(one) for one in labels])
    if kind == BY_LABEL:
        return Chosen(gold, None, labels, is_balanced=True)
    if all(label.design == RANDOM for one in labels for label in one):
        return Chosen(gold, None, labels)
    by_verdict = kind == BY_VERDICT
    strata: dict[tuple[str, str], set[tuple[str, float | None]]] = {}
    named: set[tuple[str, str]] = set()
    for row, one in zip(rows, labels, strict=True):
        for label in one:
            strata.setdefault((row.cell if by_verdict else "", label.stratum), set()).add((label.draw, label.p))
            if label.stratum and label.design != RANDOM:
                named.add((row.cell, label.stratum))
    if by_verdict and len({cell for cell, _ in named}) == len(named):
        # The verdicts are those by which rows were drawn: each had one chance, which the labels' number tells.
        verdicts, names = np.unique(np.array([row.cell for row in rows]), return_inverse=True)
        chances = np.bincount(names, weights=~np.isnan(gold)) / np.bincount(names)
        if not chances.all() and not all(row.is_binary for row in rows):  # of right and wrong `corrected` says it
            return Refused(f"no row with the verdict {verdicts[chances.argmin()]} has a label")
        return Chosen(gold, chances[names], labels)
    if any(p is None for chances in strata.values() for _, p in chances):
        return Refused(f"labels drawn by {kind} do not say with which chance")
    # Of several draws, the chance to be in one of them.
    joined = {name: 1 - math.prod(1 - (p or 0.0) for _, p in chances) for name, chances in strata.items()}
    of_rows = [
        joined[row.cell if by_verdict else "", one[0].stratum] if one else math.nan
        for row, one in zip(rows, labels, strict=True)
    ]
    return Chosen(gold, np.array(of_rows), labels)


def _mean_label(labels: Sequence[Label]) -> float:
    return math.fsum(label.value for label in labels) / len(labels) if labels else math.nan


def measure_judged(
    rows: Sequence[Seen], clusters: Sequence[Hashable] | None = None, *, level: float = LEVEL
) -> JudgedScore | None:
    """Return the score of rows that judges and people saw; None where no row has a verdict.

    Rows without a verdict are no part of either number. `clusters` as in `intervals.find_groups`.
    """
    places = [place for place, row in enumerate(rows) if row.verdict is not None]
    if not places:
        return None
    rows = [rows[place] for place in places]
    belongs = None if clusters is None else [clusters[place] for place in places]
    verdicts = np.array([row.verdict for row in rows], dtype=np.float64)
    raw = mean_interval(verdicts, belongs, level=level).within(_find_scale(rows) or (-math.inf, math.inf))
    undesigned = sum(row.undesigned for row in rows)
    chosen = choose_labels(rows)
    is_binary = all(row.is_binary for row in rows)
    scale: Scale = "nominal" if is_binary else "ordinal" if len(np.unique(verdicts)) <= _FEW_GRADES else "interval"
    if isinstance(chosen, Refused):
        return JudgedScore(raw, chosen, sum(bool(row.labels) for row in rows), undesigned, 0, None, None, scale)
    drawn = ~np.isnan(chosen.gold)
    ratings = _to_matrix(chosen.labels)
    corrected = _correct(rows, verdicts, chosen, belongs, rater_variance(ratings), level=level)
    weights = None if chosen.chances is None else 1 / chosen.chances[drawn]
    of_labels = None if belongs is None else [one for one, is_one in zip(belongs, drawn, strict=True) if is_one]
    agreement = None
    if not chosen.is_balanced:  # else it would be that of other rows
        pair = (to_right(one[drawn], is_binary=is_binary) for one in (verdicts, chosen.gold))
        agreement = agree(*pair, weights=weights, clusters=of_labels, scale=scale)
    raters = alpha(ratings, clusters=belongs, scale=scale) if ratings.shape[1] > 1 else None
    aside = sum(bool(row.labels) for row in rows) - int(drawn.sum())
    return JudgedScore(raw, corrected, int(drawn.sum()), undesigned, aside, agreement, raters, scale)


def _correct(
    rows: Sequence[Seen],
    verdicts: NDArray[np.float64],
    chosen: Chosen,
    clusters: Sequence[Hashable] | None,
    variance: float,
    *,
    is_difference: bool = False,
    level: float = LEVEL,
) -> Corrected | Refused:
    scale, is_binary, cells = _find_scale(rows), all(row.is_binary for row in rows), [row.cell for row in rows]
    if scale is None:
        return Refused("labels and verdicts are not all on one scale")
    if chosen.is_balanced:
        if find_groups(clusters, len(rows)) is not None or not is_binary or _are_juries(rows):
            return Refused("labels balanced on the human verdict correct one judge's right and wrong alone")
        return correct_balanced(verdicts, chosen.gold, level=level)
    if is_binary:
        # A row that one judge of a jury alone has seen has no side but its verdict.
        sides = [row.side or row.cell for row in rows] if _are_juries(rows) else None
        found = correct_by_verdict(
            cells, chosen.gold, sides=sides, chances=chosen.chances, clusters=clusters,
            rater_variance=variance, is_difference=is_difference, level=level,
        )  # fmt: skip
    else:
        found = correct_graded(
            verdicts, chosen.gold, chances=chosen.chances, clusters=clusters, rater_variance=variance, level=level
        )
    if isinstance(found, Refused):
        return found
    # The interval, and a mean that extrapolation took beyond the scale, are cut to what there can be.
    low, high = (scale[0] - scale[1], scale[1] - scale[0]) if is_difference else scale
    cut = {name: min(high, max(low, getattr(found.interval, name))) for name in ("mean", "low", "high")}
    return found._replace(interval=replace(found.interval, **cut))


def measure_bias(rows: Sequence[Seen], clusters: Sequence[Hashable] | None = None) -> Corrected | Refused:
    """Return by how much the judge overrates these rows, each of which has a verdict: the mean of verdict - label."""
    verdicts, chosen = np.array([row.verdict for row in rows], dtype=np.float64), choose_labels(rows)
    if isinstance(chosen, Refused):
        return chosen
    if chosen.is_balanced:
        return Refused("labels balanced on the human verdict do not tell")
    variance = rater_variance(_to_matrix(chosen.labels))
    errors = chosen._replace(gold=verdicts - chosen.gold)
    return _correct(rows, verdicts, errors, clusters, variance, is_difference=True)


def _are_juries(rows: Sequence[Seen]) -> bool:
    return any(row.side for row in rows)


def _find_scale(rows: Sequence[Seen]) -> tuple[float, float] | None:
    found = {row.scale for row in rows}
    return found.pop() if len(found) == 1 else None


def compare_judged(
    a: Sequence[Seen], b: Sequence[Seen], clusters: Sequence[Hashable] | None = None, *, level: float = LEVEL
) -> Corrected | Refused:
    """Return by how much b is better than a on the same rows, by labels of rows of which both answers are labelled."""
    both = [(one, other) for one, other in zip(a, b, strict=True)]
    if any(row.verdict is None for pair in both for row in pair):
        raise ValueError("a row has no verdict")
    if not any(one.labels and other.labels for one, other in both):
        return Refused("no row has a label of both answers")
    matching = [
        [label for label in one.labels if any(_are_one_draw(label, its) for its in other.labels)] for one, other in both
    ]
    if not any(matching):
        return Refused("the labels of both answers were drawn in different ways")
    are_juries = _are_juries([*a, *b])
    rows = [
        one._replace(
            cell=f"{one.cell} and {other.cell}",
            side=f"{one.side or one.cell} and {other.side or other.cell}" if are_juries else "",
            is_binary=one.is_binary and other.is_binary, labels=tuple(labels), undesigned=0,
        )
        for (one, other), labels in zip(both, matching, strict=True)
    ]  # fmt: skip
    chosen = choose_labels(rows)
    if isinstance(chosen, Refused):
        return chosen
    if chosen.is_balanced:
        return Refused("labels balanced on the human verdict correct no difference of two models")
    if _find_scale([*a, *b]) is None:
        return Refused("labels and verdicts of both models are not all on one scale")
    others = [
        [its for its in other.labels if any(_are_one_draw(label, its) for label in labels)]
        for (_, other), labels in zip(both, chosen.labels, strict=True)
    ]
    chosen = chosen._replace(gold=np.array([_mean_label(one) for one in others]) - chosen.gold)
    verdicts = np.array([other.verdict for other in b], np.float64) - np.array([one.verdict for one in a], np.float64)
    return _correct(rows, verdicts, chosen, clusters, 0.0, is_difference=True, level=level)


def _are_one_draw(one: Label, other: Label) -> bool:
    """Whether the labels of both answers tell the chance of the pair: each by its own verdict, or drawn together."""
    return one.kind == other.kind == BY_VERDICT or (one.design, one.stratum, one.p) == (
        other.design, other.stratum, other.p,
    )  # fmt: skip


def to_right(values: NDArray[np.float64], *, is_binary: bool) -> NDArray[np.float64]:
    """Return what most of a row's judges, or raters, say where that is right or wrong; grades as they are."""
    return np.where(values > _HALF, 1.0, 0.0) if is_binary else values


def _to_matrix(labels: Sequence[Sequence[Label]]) -> NDArray[np.float64]:
    """Return a line a row, a column a rater, NaN where one said nothing."""
    raters = {name: place for place, name in enumerate(sorted({label.by for row in labels for label in row}))}
    matrix = np.full((len(labels), len(raters)), math.nan)
    for place, row in enumerate(labels):
        for label in row:
            matrix[place, raters[label.by]] = label.value
    return matrix
