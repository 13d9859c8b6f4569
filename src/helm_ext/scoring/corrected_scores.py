"""A judge's score of a run, and the same corrected by people's labels: which of them count, and how they were drawn.

Judgements of a row's first completion are looked at. A row's verdict is that of its jury (`jury_value`), its label is
the mean of what people said. docs/judging.md says which design is corrected how; what cannot be corrected is refused
with a reason, in words.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from helm_ext.judging.judgement import HowDrawn, judge_values, jury_value
from helm_ext.scoring.statistics.agreement import (
    Agreement,
    Rated,
    Scale,
    agree,
    alpha,
    compare_halves,
    find_sides,
    rater_variance,
)
from helm_ext.scoring.statistics.corrected import (
    Corrected,
    Refused,
    correct_balanced,
    correct_by_verdict,
    correct_graded,
)
from helm_ext.scoring.statistics.intervals import (
    LEVEL,
    Interval,
    are_clusters,
    find_groups,
    mean_interval,
    number_clusters,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from helm_ext.judging.judgement import Judgement
    from helm_ext.scoring.statistics.intervals import Floats

RANDOM, BY_VERDICT, BY_LABEL = "random", "by_verdict", "by_label"
_HALF = 0.5
_SIDES = {1.0: "passed by most", 0.0: "failed by most", 0.5: "a tie"}
_FEW_GRADES = 11
"""Grades that are taken for steps in an order rather than for any number."""


def join_designs(design: str) -> str:
    """Return the design; one word for those whose draws may be joined: all rows of a verdict have one chance."""
    return BY_VERDICT if design == RANDOM else design


def _how(label: Judgement) -> HowDrawn:
    assert label.drawn is not None
    return label.drawn


def kind_of(label: Judgement) -> str:
    """Return the design that a label was drawn by, as `join_designs` has it."""
    return join_designs(_how(label).design)


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
    labels: tuple[Judgement, ...] = ()
    """Those of people whose design is recorded (`drawn`)."""
    undesigned: int = 0
    """Labels that do not say how their rows were drawn."""


class Chosen(NamedTuple):
    """The labels of rows that a correction can be made of."""

    gold: Floats
    """NaN where a row has none."""
    chances: Floats | None
    """None: one chance for all."""
    labels: list[tuple[Judgement, ...]]
    """Of each row, those that count."""
    is_balanced: bool = False
    """Whether rows were drawn by the labels themselves."""

    @property
    def drawn(self) -> NDArray[np.intp]:
        """The places of the rows that have a label."""
        return np.flatnonzero(~np.isnan(self.gold))


def see(judgements: Iterable[Judgement]) -> Seen | None:
    """Return what a row's judgements by one criterion come to; None where neither a verdict nor a label counts.

    Those that are not `ok` must be among them: a jury does not become smaller by a judge without a verdict.
    """
    found = [one for one in judgements if one.completion == 0]
    human = [one for one in found if one.kind == "human" and one.value is not None]
    labels = tuple(one for one in human if one.drawn is not None)
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
        latest[kind_of(label)] = max(latest.get(kind_of(label), ""), label.at or "")
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
    labels = [tuple(label for label in row.labels if kind_of(label) == kind) for row in rows]
    gold = np.array([_mean_label(one) for one in labels])
    if kind == BY_LABEL:
        return Chosen(gold, None, labels, is_balanced=True)
    drawn = [[_how(label) for label in one] for one in labels]
    if all(how.design == RANDOM for one in drawn for how in one):
        return Chosen(gold, None, labels)
    by_verdict = kind == BY_VERDICT
    strata: dict[tuple[str, str], set[tuple[str, float | None]]] = {}
    named: set[tuple[str, str]] = set()
    for row, one in zip(rows, drawn, strict=True):
        for how in one:
            strata.setdefault((row.cell if by_verdict else "", how.stratum), set()).add((how.draw, how.p))
            if how.stratum and how.design != RANDOM:
                named.add((row.cell, how.stratum))
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
        for row, one in zip(rows, drawn, strict=True)
    ]
    return Chosen(gold, np.array(of_rows), labels)


def _mean_label(labels: Sequence[Judgement]) -> float:
    return math.fsum(label.value or 0.0 for label in labels) / len(labels) if labels else math.nan


class JudgedRows:
    """Rows with a verdict, and what it is worth by their labels: each number is made when it is asked for."""

    def __init__(
        self, rows: Sequence[Seen], clusters: Sequence[Hashable] | None = None, *, level: float = LEVEL
    ) -> None:
        """Rows without a verdict are left out. `clusters` as in `intervals.find_groups`; `level` is the score's."""
        places = [place for place, row in enumerate(rows) if row.verdict is not None]
        self.rows = [rows[place] for place in places]
        self.clusters = None if clusters is None else [clusters[place] for place in places]
        self.level = level
        self.verdicts = np.array([row.verdict for row in self.rows], dtype=np.float64)
        self.is_binary = all(row.is_binary for row in self.rows)
        self.chosen = choose_labels(self.rows)
        self.undesigned = sum(row.undesigned for row in self.rows)
        """Labels that do not say how their rows were drawn."""
        known = sum(bool(row.labels) for row in self.rows)
        self.labels = known if isinstance(self.chosen, Refused) else len(self.chosen.drawn)
        """Rows with a label that says how it was drawn."""
        self.set_aside = known - self.labels
        """Rows whose labels were drawn in another way than those that count."""

    @cached_property
    def raw(self) -> Interval:
        """What judges say."""
        bounds = self._bounds or (-math.inf, math.inf)
        return mean_interval(self.verdicts, self.clusters, level=self.level).within(bounds)

    @cached_property
    def corrected(self) -> Corrected | Refused:
        """What people would have said of all rows; or why their labels do not tell."""
        if isinstance(self.chosen, Refused):
            return self.chosen
        return self.correct(self.chosen, rater_variance(self._ratings))

    @cached_property
    def bias(self) -> Corrected | Refused:
        """By how much judges overrate the rows: the mean of verdict - label."""
        if isinstance(self.chosen, Refused):
            return self.chosen
        if self.chosen.is_balanced:
            return Refused("labels balanced on the human verdict do not tell")
        errors = self.chosen._replace(gold=self.verdicts - self.chosen.gold)
        return self.correct(errors, rater_variance(self._ratings), is_difference=True)

    def correct(self, chosen: Chosen, variance: float, *, is_difference: bool = False) -> Corrected | Refused:
        """Return the mean of what labels say, or of a difference, over all rows. `variance`: `rater_variance`."""
        is_jury, gold = any(row.side for row in self.rows), chosen.gold
        if self._bounds is None:
            return Refused("labels and verdicts are not all on one scale")
        if chosen.is_balanced:
            if are_clusters(find_groups(self.clusters, len(gold))) or not self.is_binary or is_jury:
                return Refused("labels balanced on the human verdict correct one judge's right and wrong alone")
            return correct_balanced(self.verdicts, gold, level=self.level)
        how: dict[str, Any] = {
            "chances": chosen.chances, "clusters": self.clusters, "rater_variance": variance, "level": self.level,
        }  # fmt: skip
        if self.is_binary:
            # A row that one judge of a jury alone has seen has no side but its verdict.
            sides = [row.side or row.cell for row in self.rows] if is_jury else None
            cells = [row.cell for row in self.rows]
            found = correct_by_verdict(cells, gold, sides=sides, is_difference=is_difference, **how)
        else:
            found = correct_graded(self.verdicts, gold, **how)
        if isinstance(found, Refused):
            return found
        # The interval, and a mean that extrapolation took beyond the scale, are cut to what there can be.
        low, high = self._bounds
        low, high = (low - high, high - low) if is_difference else (low, high)
        cut = {name: min(high, max(low, getattr(found.interval, name))) for name in ("mean", "low", "high")}
        return found._replace(interval=replace(found.interval, **cut))

    @cached_property
    def scale(self) -> Scale:
        """What alphas take the values for."""
        if self.is_binary:
            return "nominal"
        return "ordinal" if len(np.unique(self.verdicts)) <= _FEW_GRADES else "interval"

    @cached_property
    def agreement(self) -> Agreement | None:
        """Of judges and people, weighted so that it is that of all rows; None where labels do not tell."""
        if isinstance(self.chosen, Refused) or self.chosen.is_balanced:  # it would be that of other rows
            return None
        return agree(self._rate(self.chosen, decides=self.is_binary), self.scale)

    @cached_property
    def raters(self) -> Interval | None:
        """Krippendorff's alpha of people who labelled the same rows."""
        groups = find_groups(self.clusters, len(self.rows))
        return alpha(self._ratings, groups, scale=self.scale) if self._ratings.shape[1] > 1 else None

    @cached_property
    def sides(self) -> tuple[Interval | None, Interval | None]:
        """Of the rows that people call right, the share that judges pass; of the wrong ones, that they fail.

        None for grades, and where labels do not tell.
        """
        if isinstance(self.chosen, Refused) or not self.is_binary:
            return None, None
        rated, passed = self._rate(self.chosen, decides=True), self.verdicts > _HALF
        return find_sides(rated, by_verdict=rated.weights is not None and len({*passed}) > 1)

    def compare_lengths(self, lengths: Sequence[float]) -> Interval | None:
        """Return by how much more judges overrate the longer half of the labelled rows; None where it is not known."""
        if isinstance(self.chosen, Refused) or self.chosen.is_balanced:
            return None
        rated, long = self._rate(self.chosen, decides=False), np.array(lengths)[self.chosen.drawn]
        found = compare_halves(rated, long, are_grades=not self.is_binary)
        return found if found is not None and math.isfinite(found.low) else None

    def _rate(self, chosen: Chosen, *, decides: bool) -> Rated:
        """Return what is said of the labelled rows; with `decides` what most judges, or raters, say: 1 or 0."""
        said = (self.verdicts[chosen.drawn], chosen.gold[chosen.drawn])
        judge, people = (np.where(one > _HALF, 1.0, 0.0) if decides else one for one in said)
        groups = number_clusters(find_groups(self.clusters, len(self.rows))[chosen.drawn])
        return Rated(judge, people, groups, None if chosen.chances is None else 1 / chosen.chances[chosen.drawn])

    @cached_property
    def _ratings(self) -> Floats:
        """A line a row, a column a rater, NaN where one said nothing."""
        labels = [] if isinstance(self.chosen, Refused) else self.chosen.labels
        raters = {name: place for place, name in enumerate(sorted({label.by for row in labels for label in row}))}
        matrix = np.full((len(labels), len(raters)), math.nan)
        for place, row in enumerate(labels):
            for label in row:
                matrix[place, raters[label.by]] = label.value
        return matrix

    @property
    def _bounds(self) -> tuple[float, float] | None:
        """The lowest and the highest value; None where the rows have not one scale."""
        found = {row.scale for row in self.rows}
        return found.pop() if len(found) == 1 else None


def compare_judged(
    a: Sequence[Seen], b: Sequence[Seen], clusters: Sequence[Hashable] | None = None, *, level: float = LEVEL
) -> Corrected | Refused:
    """Return by how much b is better than a on the same rows, by labels of rows of which both answers are labelled.

    Each row has a verdict of both.
    """
    both = [(one, other) for one, other in zip(a, b, strict=True)]
    if not any(one.labels and other.labels for one, other in both):
        return Refused("no row has a label of both answers")
    are_juries = any(row.side for pair in both for row in pair)
    rows = [
        one._replace(
            verdict=(other.verdict or 0.0) - (one.verdict or 0.0), cell=f"{one.cell} and {other.cell}",
            side=f"{one.side or one.cell} and {other.side or other.cell}" if are_juries else "",
            scale=one.scale if one.scale == other.scale else None, is_binary=one.is_binary and other.is_binary,
            labels=tuple(label for label in one.labels if _of_one_draw(label, other.labels)), undesigned=0,
        )
        for one, other in both
    ]  # fmt: skip
    if not any(row.labels for row in rows):
        return Refused("the labels of both answers were drawn in different ways")
    judged = JudgedRows(rows, clusters, level=level)
    chosen = judged.chosen
    if isinstance(chosen, Refused):
        return chosen
    if chosen.is_balanced:
        return Refused("labels balanced on the human verdict correct no difference of two models")
    others = [
        _mean_label([its for its in other.labels if _of_one_draw(its, labels)])
        for other, labels in zip(b, chosen.labels, strict=True)
    ]
    return judged.correct(chosen._replace(gold=np.array(others) - chosen.gold), 0.0, is_difference=True)


def _of_one_draw(one: Judgement, others: Iterable[Judgement]) -> bool:
    """Whether labels of both answers tell the chance of the pair: each by its own verdict, or drawn together."""
    is_by_verdict, how = kind_of(one) == BY_VERDICT, _how(one)
    return any(
        (is_by_verdict and kind_of(other) == BY_VERDICT)
        or (how.design, how.stratum, how.p) == (_how(other).design, _how(other).stratum, _how(other).p)
        for other in others
    )
