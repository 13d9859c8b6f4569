"""How often intervals hold and gates are right: the tables of docs/uncertainty.md, by 20,000 simulations of each case.

    python tools/coverage_table.py

Minutes. The draws are seeded, so the tables are the same every time. A test makes some of their numbers again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binom

from helm_ext.scoring.statistics import MarginTest, compare_rows, judge_margin
from helm_ext.scoring.statistics.intervals import clustered_interval, t_interval, wilson_interval
from helm_ext.scoring.statistics.paired import tango_score

PAGE = Path(__file__).resolve().parents[1] / "docs" / "uncertainty.md"
RUNS = 20_000
COUNTS = (30, 100, 1000)
SHARES = (0.02, 0.5, 0.98)
CLUSTERS = {30: 10, 100: 40, 1000: 50}
AGREE = 4.0
"""Clusters' shares are drawn from a beta distribution with a + b = 4: rows of a cluster correlate by 1 / 5."""
NUMBERS = (5, 10, 20, 40, 100)
CLUSTER_SHARES = (0.01, 0.02, 0.05, 0.1, 0.5)
CLUSTER_ROWS = 20

MARGIN = 0.02
GATES = tuple((rows, differing) for rows in (200, 1000) for differing in (0.1, 0.3))
TRUE = (-0.08, -0.04, -MARGIN, 0.0)
GROUPED = ((10, 20, 0.1), (10, 20, 0.3), (20, 10, 0.1), (40, 5, 0.1), (40, 5, 0.3), (50, 20, 0.3))
"""Clusters, rows of each, and the share of rows that differ."""
GRADED = (100, 200, 1000)
FEW_RUNS = 5_000


def cover_wilson(count: int, share: float) -> float:
    """Return how often Wilson's interval of right and wrong rows holds."""
    holds = [_holds(wilson_interval(k, count), share) for k in range(count + 1)]
    return float(np.mean(np.array(holds)[_generator(count, share).binomial(count, share, RUNS)]))


def cover_t(count: int, share: float) -> float:
    """Return how often Student's interval of scores of 0, 0.5 and 1 holds."""
    generator = _generator(count, share)
    return _mean(lambda: _holds(t_interval(generator.binomial(2, share, count) / 2), share))


def cover_clusters(count: int, share: float) -> float:
    """Return how often the clustered interval of right and wrong rows holds."""
    return _cover_groups(np.sort(np.arange(count) % CLUSTERS[count]), _generator(count, share), share)


def cover_rare(number: int, share: float) -> float:
    """Return the same of so many clusters of 20 rows."""
    return _cover_groups(np.repeat(np.arange(number), CLUSTER_ROWS), _generator(number, share), share)


def _cover_groups(groups: NDArray[np.intp], generator: np.random.Generator, share: float) -> float:
    number, count = int(groups.max()) + 1, len(groups)

    def draw() -> bool:
        shares = generator.beta(AGREE * share, AGREE * (1 - share), number)
        return _holds(clustered_interval((generator.random(count) < shares[groups]).astype(float), groups), share)

    return _mean(draw)


def cover_difference(count: int, share: float) -> float:
    """Return how often the interval of the difference of two models that err independently holds."""
    generator = _generator(count, share)
    known: dict[tuple[int, int], bool] = {}

    def draw() -> bool:
        first, second = generator.random((2, count)) < share
        key = int((second & ~first).sum()), int((first & ~second).sum())
        if key not in known:
            known[key] = _holds(compare_rows(first.astype(float), second.astype(float)).difference, 0.0)
        return known[key]

    return _mean(draw)


def judge_alike(rows: int, differing: float, true: float) -> tuple[float, float, float]:
    """Return how often a model is called worse by more than the margin, not worse, and worse by its mean alone.

    `differing`: the share of rows that one model alone gets right; `true`: the true difference.
    """
    generator = np.random.default_rng([rows, round(differing * 100), round(-true * 100)])
    shares = [(differing + true) / 2, (differing - true) / 2, 1 - differing]
    known: dict[tuple[int, int], MarginTest] = {}
    worse = not_worse = by_mean = 0
    for greater, less, _ in generator.multinomial(rows, shares, RUNS):
        key = int(greater), int(less)
        if key not in known:
            known[key] = judge_margin(*_to_rows(*key, rows), margin=MARGIN)
        p = known[key].p_worse
        assert p is not None
        worse, not_worse = worse + (p < 0.05), not_worse + (p > 0.95)
        by_mean += known[key].gain < -MARGIN
    return worse / RUNS, not_worse / RUNS, by_mean / RUNS


def count_outcomes(rows: int, differing: float, true: float) -> tuple[float, float]:
    """Return how often a model is worse for certain and not worse, by the chances of all outcomes."""
    z, worse, not_worse = float(ndtri(0.95)), 0.0, 0.0
    for differ in range(rows + 1):
        chance = binom.pmf(differ, rows, differing)
        if chance < 1e-9:
            continue
        greater = np.arange(differ + 1)
        chances = chance * binom.pmf(greater, differ, (differing + true) / 2 / differing)
        scores = np.array([tango_score(k, differ - k, rows, -MARGIN) for k in greater])
        worse, not_worse = worse + chances[scores < -z].sum(), not_worse + chances[scores > z].sum()
    return float(worse), float(not_worse)


def make_gates() -> str:
    """Return the table of the gate as Markdown: simulated, and counted over all outcomes."""
    heads = "rows", "differ", "true difference", "worse for certain", "counted", "not worse", "counted", "mean below"
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for rows, differing in GATES:
        for true in TRUE:
            worse, not_worse, by_mean = judge_alike(rows, differing, true)
            counted = count_outcomes(rows, differing, true)
            numbers = map(show, (worse, counted[0], not_worse, counted[1], by_mean))
            lines += [f"| {' | '.join([f'{rows:,}', f'{differing:.0%}'.replace('%', ' %'), f'{true:g}', *numbers])} |"]
    return "\n".join(lines)


def judge_others(pairs: Callable[[], tuple[NDArray[np.float64], ...]]) -> tuple[float, float]:
    """Return how often a model is worse for certain, and not worse, of drawn differences and perhaps clusters."""
    found = []
    for _ in range(FEW_RUNS):
        differences, *groups = pairs()
        clusters = [int(group) for group in groups[0]] if groups else None
        first = (differences < 0).astype(float)
        found.append(judge_margin(first, first + differences, clusters, margin=MARGIN).p_worse or 0.0)
    return float(np.mean(np.array(found) < 0.05)), float(np.mean(np.array(found) > 0.95))


def draw_groups(
    number: int, rows: int, differing: float, true: float
) -> Callable[[], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return a draw of right and wrong rows in clusters, whose shares are Dirichlet's: they correlate by 1 / 5."""
    generator = np.random.default_rng([number, rows, round(differing * 100), round(-true * 100)])
    shares = AGREE * np.array([(differing + true) / 2, (differing - true) / 2, 1 - differing])
    groups = np.repeat(np.arange(float(number)), rows)

    def draw() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        edges, drawn = generator.dirichlet(shares, number).cumsum(axis=1), generator.random((number, rows))
        return np.where(drawn < edges[:, :1], 1.0, np.where(drawn < edges[:, 1:2], -1.0, 0.0)).ravel(), groups

    return draw


def draw_graded(rows: int, true: float) -> Callable[[], tuple[NDArray[np.float64]]]:
    """Return a draw of graded rows, whose differences are normal with a deviation of 0.3."""
    generator = np.random.default_rng([rows, round(-true * 100)])
    return lambda: (generator.normal(true, 0.3, rows),)


def make_other_gates() -> str:
    """Return the table of the gate of graded rows and of clusters as Markdown."""
    heads = "rows", "worse, at -0.02", "not worse, at -0.02", "worse, unchanged", "not worse, unchanged"
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for rows in GRADED:
        shares = [show(one) for true in (-MARGIN, 0.0) for one in judge_others(draw_graded(rows, true))]
        lines += [f"| {' | '.join([f'{rows:,}, graded', *shares])} |"]
    for number, rows, differing in GROUPED:
        draws = [draw_groups(number, rows, differing, true) for true in (-MARGIN, 0.0)]
        shares = [show(one) for draw in draws for one in judge_others(draw)]
        name = f"{number} groups of {rows}, {differing:.0%} differ".replace("%", " %")
        lines += [f"| {' | '.join([name, *shares])} |"]
    return "\n".join(lines)


def make_clusters() -> str:
    """Return the table of clusters near 0 and 1 as Markdown."""
    lines = [
        "| clusters of 20 rows | " + " | ".join(f"share {share}" for share in CLUSTER_SHARES) + " |",
        "|---" * (1 + len(CLUSTER_SHARES)) + "|",
    ]
    for number in NUMBERS:
        shares = [show(cover_rare(number, share)) for share in CLUSTER_SHARES]
        lines += [f"| {' | '.join([str(number), *shares])} |"]
    return "\n".join(lines)


def make_table() -> str:
    """Return the table as Markdown."""
    lines = [
        "| rows | share that is right | Wilson, 0/1 | t, graded | clustered, 0/1 | difference, 0/1 |",
        "|---|---|---|---|---|---|",
    ]
    covers: tuple[Callable[[int, float], float], ...] = (cover_wilson, cover_t, cover_clusters, cover_difference)
    for count in COUNTS:
        for share in SHARES:
            numbers = " | ".join(show(cover(count, share)) for cover in covers)
            clusters = f"{count:,} ({CLUSTERS[count]} clusters)"
            lines.append(f"| {clusters} | {share} | {numbers} |")
    return "\n".join(lines)


def main() -> None:
    """Write the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    tables = {"coverage": make_table, "clusters": make_clusters, "gate": make_gates, "other-gates": make_other_gates}
    for name, make in tables.items():
        block = re.compile(rf"(<!-- {name} -->\n\n).*?(\n\n<!-- end of {name} -->)", re.DOTALL)
        made = make()
        page = block.sub(lambda found, made=made: found[1] + made + found[2], page)
        print(made, end="\n\n", flush=True)
    PAGE.write_text(page, encoding="utf-8")


def show(share: float) -> str:
    """Return a share as the tables have it."""
    return f"{share:.1%}".replace("%", " %")


def _to_rows(greater: int, less: int, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = np.ones(rows), np.ones(rows)
    first[:greater] = 0
    second[greater : greater + less] = 0
    return first, second


def _generator(count: int, share: float) -> np.random.Generator:
    return np.random.default_rng([count, round(share * 100)])


def _mean(draw: Callable[[], bool]) -> float:
    outcomes: NDArray[np.bool_] = np.array([draw() for _ in range(RUNS)])
    return float(outcomes.mean())


def _holds(interval: object, truth: float) -> bool:
    return bool(interval.low <= truth <= interval.high)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
