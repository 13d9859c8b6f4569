"""How often corrected scores hold: the tables of docs/judging.md, by 10,000 simulations of each case.

    python tools/judging_table.py

Some minutes. The draws are seeded, so the tables are the same every time; a test makes some of their numbers again.
truescore, where it is installed (`pip install truescore==0.7.4`), is asked of the first 300 draws of each case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from helm_ext.scoring.statistics.corrected import (
    FEWEST_IN_CELL,
    Corrected,
    Refused,
    combine_cells,
    correct_balanced,
    correct_by_verdict,
    correct_graded,
    difference_limits,
    share_limits,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "judging.md"
RUNS = 10_000
THEIRS = 300
ROWS = 1_000
Z = 1.959963984540054
LABELS = (30, 100, 300)
SHARES, SENSITIVITIES, SPECIFICITIES = (0.5, 0.7, 0.9, 0.95), (0.9, 0.98), (0.5, 0.8, 0.95)
JUDGES = tuple(product(SHARES, SENSITIVITIES, SPECIFICITIES))
"""Share of right rows, and of right and of wrong rows that the judge calls so."""
DESIGNS = {"random": None, "by verdict": 0.5, "three quarters failed": 0.75}
"""The share of labels of rows that the judge failed."""
SEED = 20261123

Floats = NDArray[np.float64]


class Draws(NamedTuple):
    """Runs of one case: an axis of runs, and one of verdicts (passed, failed)."""

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    right: NDArray[np.int64]
    """Of the labels."""
    asked: int
    """Runs, also those that are refused for a verdict with too few labels."""


def draw(share: float, sensitivity: float, specificity: float, labels: int, failed: float | None) -> Draws:
    """Draw rows, verdicts and labels."""
    generator = _generator(share, sensitivity, specificity, labels, failed or 0)
    chances = [
        share * sensitivity,
        (1 - share) * (1 - specificity),
        share * (1 - sensitivity),
        (1 - share) * specificity,
    ]
    cells = generator.multinomial(ROWS, chances, RUNS)
    rows = np.stack([cells[:, :2].sum(axis=1), cells[:, 2:].sum(axis=1)], axis=1)
    if failed is None:
        passed = generator.hypergeometric(rows[:, 0], rows[:, 1], labels)
    else:
        passed = labels - np.minimum(rows[:, 1], round(labels * failed))
        passed = np.minimum(passed, rows[:, 0])
    drawn = np.stack([passed, labels - passed], axis=1)
    kept = ((drawn >= FEWEST_IN_CELL) | (drawn == rows)).all(axis=1) & (drawn > 0).all(axis=1)
    cells, rows, drawn = cells[kept], rows[kept], drawn[kept]
    right = [generator.hypergeometric(cells[:, 2 * k], cells[:, 2 * k + 1], drawn[:, k]) for k in (0, 1)]
    return Draws(rows, drawn, np.stack(right, axis=1), RUNS)


def correct(draws: Draws) -> tuple[Floats, Floats]:
    """Return the limits of each run, by the functions that `correct_by_verdict` is made of."""
    counts, means = draws.labels.astype(float), draws.right / draws.labels
    _, low, high = combine_cells(draws.rows.astype(float), means, *share_limits(means, counts, Z), Z)
    return low, high


def to_rows(draws: Draws, run: int) -> tuple[Floats, Floats]:
    """Return the verdicts and labels (NaN: none) of one run."""
    verdicts, gold = [], []
    for verdict, rows, labels, right in zip(
        (1.0, 0.0), draws.rows[run], draws.labels[run], draws.right[run], strict=True
    ):
        verdicts += [verdict] * rows
        gold += [1.0] * right + [0.0] * (labels - right) + [math.nan] * (rows - labels)
    return np.array(verdicts), np.array(gold)


def ask_truescore(name: str, draws: Draws) -> Iterator[tuple[float, float]]:
    """Yield truescore's limits of the first runs; none where it is not installed, or refuses."""
    try:
        import truescore
    except ImportError:
        return
    for run in range(min(THEIRS, len(draws.rows))):
        verdicts, gold = to_rows(draws, run)
        chosen = np.flatnonzero(~np.isnan(gold))
        try:
            found = getattr(truescore, name)(verdicts, gold[chosen], chosen)
        except ValueError:
            continue
        yield found.low, found.high


def wilson(right: Floats, count: Floats) -> tuple[Floats, Floats]:
    """Return Wilson's limits."""
    share, squared = right / count, Z**2 / count
    middle, half = (
        (share + squared / 2) / (1 + squared),
        Z * np.sqrt(share * (1 - share) / count + squared / (4 * count)),
    )
    return middle - half / (1 + squared), middle + half / (1 + squared)


def cover(limits: tuple[Floats, Floats], truth: float) -> float:
    """Return how many of these intervals hold the truth."""
    return float(np.mean((limits[0] <= truth) & (truth <= limits[1])))


class Case(NamedTuple):
    """How often the intervals of one case held."""

    held: dict[str, float]
    refused: float
    wider: float
    """Mean width over that of truescore's PPI++, NaN where that holds in less than 94 %."""


@cache
def simulate(design: str, labels: int, judge: tuple[float, float, float]) -> Case:
    """Simulate one case of the first table."""
    draws, truth = draw(*judge, labels, DESIGNS[design]), judge[0]
    refused = 1 - len(draws.rows) / draws.asked
    if refused > 0.5:
        return Case({}, refused, math.nan)
    low, high = correct(draws)
    held = {
        "judge": cover(wilson(draws.rows[:, 0], np.full(len(draws.rows), ROWS)), truth),
        "labels": cover(wilson(draws.right.sum(axis=1), draws.labels.sum(axis=1)), truth),
        "corrected": cover((low, high), truth),
    }
    wider = math.nan
    for name in ("ppi", "rogan_gladen"):
        theirs = np.array(list(ask_truescore(f"{name}_estimate", draws))).T
        if len(theirs):
            held[name] = cover((theirs[0], theirs[1]), truth)
            if name == "ppi" and held[name] >= 0.94:
                wider = float((high - low)[: theirs.shape[1]].mean() / (theirs[1] - theirs[0]).mean())
    return Case(held, refused, wider)


def make_binary() -> str:
    """Return the table of right and wrong verdicts: the least and the greatest share over all judges."""
    names = {"judge": "judge alone", "labels": "labels alone", "ppi": "PPI++", "rogan_gladen": "Rogan-Gladen"}
    heads = ("labels drawn", "labels", *names.values(), "**corrected**", "refused", "width")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for design, labels in product(DESIGNS, LABELS):
        cases = [simulate(design, labels, judge) for judge in JUDGES]
        shown = [show_range([case.held[name] for case in cases if name in case.held]) for name in (*names, "corrected")]
        refused = show_range([case.refused for case in cases])
        wider = [case.wider for case in cases if not math.isnan(case.wider)]
        width = f"{min(wider):.2f} to {max(wider):.2f}" if wider else ""
        lines.append(f"| {' | '.join([design, str(labels), *shown, refused, width])} |")
    return "\n".join(lines)


def show_range(shares: Sequence[float]) -> str:
    """Return the least and the greatest of some shares, in percent."""
    if not shares:
        return ""
    low, high = (f"{100 * end:.1f}" for end in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"


Limits = tuple[float, float]


def draw_difference(labels: int, noise: float) -> Callable[[np.random.Generator], Limits | None]:
    """Return a draw of two models, of which the judge passes wrong answers of b by a fifth more often.

    Of the labels, which are pairs of answers, two thirds are of rows that the judge has different verdicts of. The more
    `noise`, the less are the models right on the same rows.
    """

    def one(generator: np.random.Generator) -> Limits | None:
        hard = generator.random(ROWS)
        truth = np.stack([hard < 0.7, hard + generator.normal(0, noise, ROWS) < 0.7]).astype(int)
        passes = np.where(truth == 1, 0.93, np.array([[0.15], [0.35]]))
        verdict = (generator.random((2, ROWS)) < passes).astype(int)
        cell = 2 * verdict[0] + verdict[1]
        differ = (verdict[0] != verdict[1]).nonzero()[0]
        same = (verdict[0] == verdict[1]).nonzero()[0]
        many = min(len(differ), 2 * labels // 3)
        chosen = np.concatenate([generator.choice(differ, many, False), generator.choice(same, labels - many, False)])
        apart = truth[1] - truth[0]
        rows = np.bincount(cell, minlength=4).astype(float)
        counts = np.bincount(cell[chosen], minlength=4).astype(float)
        if ((counts < FEWEST_IN_CELL) & (counts < rows)).any() or (counts == 0).any():
            return None
        more, less = (np.bincount(cell[chosen], weights=sign * apart[chosen] > 0, minlength=4) for sign in (1, -1))
        limits = difference_limits(more / counts, less / counts, counts, Z)
        _, low, high = combine_cells(rows, (more - less) / counts, *limits, Z)
        return float(low) - one.truth, float(high) - one.truth  # type: ignore[attr-defined]

    hard = np.random.default_rng(0).random(4_000_000)
    noisy = hard + np.random.default_rng(1).normal(0, noise, len(hard))
    one.truth = float((noisy < 0.7).mean() - (hard < 0.7).mean())  # type: ignore[attr-defined]
    return one


def draw_graded(labels: int, *, by_grade: bool) -> Callable[[np.random.Generator], Limits | None]:
    """Return a draw of grades 1 to 5, which the judge gives half too kindly; perhaps low ones drawn likelier."""

    def one(generator: np.random.Generator) -> Limits | None:
        truth = generator.choice(5, ROWS, p=[0.1, 0.1, 0.2, 0.3, 0.3]) + 1.0
        grade = np.clip(np.round(truth + generator.normal(0.5, 0.8, ROWS)), 1, 5)
        chances = np.where(grade <= 3, 4.0, 1.0) if by_grade else np.ones(ROWS)
        chances *= labels / chances.sum()
        gold = np.where(generator.random(ROWS) < chances, truth, math.nan)
        return _limits(correct_graded(grade, gold, chances=chances if by_grade else None), 3.6)

    return one


def draw_clusters(clusters: int, labelled: int, *, is_graded: bool) -> Callable[[np.random.Generator], Limits | None]:
    """Return a draw of clusters of 5 rows, which correlate by 0.2; of some clusters all rows are labelled."""

    def one(generator: np.random.Generator) -> Limits | None:
        groups = np.repeat(np.arange(clusters), 5)
        truth = (generator.random(len(groups)) < generator.beta(2.8, 1.2, clusters)[groups]).astype(float)
        verdict = (generator.random(len(groups)) < np.where(truth == 1, 0.93, 0.3)).astype(float)
        gold = np.where(np.isin(groups, generator.choice(clusters, labelled, False)), truth, math.nan)
        if is_graded:
            return _limits(correct_graded(verdict, gold, clusters=groups.tolist()), 0.7)
        return _limits(correct_by_verdict(verdict.tolist(), gold, clusters=groups.tolist()), 0.7)

    return one


def draw_balanced(labels: int, share: float) -> Callable[[np.random.Generator], Limits | None]:
    """Return a draw of labels of which half are right by the human's own verdict."""

    def one(generator: np.random.Generator) -> Limits | None:
        truth = (generator.random(ROWS) < share).astype(int)
        verdict = (generator.random(ROWS) < np.where(truth == 1, 0.93, 0.3)).astype(float)
        gold = np.full(ROWS, math.nan)
        for value in (0, 1):
            places = (truth == value).nonzero()[0]
            gold[generator.choice(places, min(labels // 2, len(places)), False)] = value
        return _limits(correct_balanced(verdict, gold), share)

    return one


def _limits(found: Corrected | Refused, truth: float) -> Limits | None:
    return None if isinstance(found, Refused) else (found.interval.low - truth, found.interval.high - truth)


OTHERS: dict[str, Callable[[], Callable[[np.random.Generator], Limits | None]]] = {
    **{
        f"difference of two models {how}, judge favours one, two thirds of {labels} pairs from disagreements": (
            lambda labels=labels, noise=noise: draw_difference(labels, noise)
        )
        for how, noise in (("much alike", 0.15), ("little alike", 0.5))
        for labels in (100, 300)
    },
    **{
        f"grades, {labels} labels, {'low grades four times likelier' if by_grade else 'random'}": (
            lambda labels=labels, by_grade=by_grade: draw_graded(labels, by_grade=by_grade)
        )
        for labels in LABELS
        for by_grade in (False, True)
    },
    **{
        f"{labelled} of {clusters} clusters of 5 rows labelled{', as grades' if is_graded else ''}": (
            lambda c=clusters, n=labelled, g=is_graded: draw_clusters(c, n, is_graded=g)
        )
        for clusters, labelled in ((200, 25), (200, 60))
        for is_graded in (False, True)
    },
    **{
        f"half of {labels} labels *humanly* failed, {share:.0%} are right (Rogan-Gladen)".replace("%", " %"): (
            lambda labels=labels, share=share: draw_balanced(labels, share)
        )
        for labels, share in ((100, 0.5), (100, 0.9), (300, 0.7))
    },
}


def cover_other(name: str, runs: int = RUNS) -> tuple[float, float]:
    """Return how often the intervals of a case of the second table hold, and how many are refused."""
    generator = np.random.default_rng([SEED, *name.encode()])
    one = OTHERS[name]()
    found = [one(generator) for _ in range(runs)]
    held = [low <= 0 <= high for low, high in filter(None, found)]
    return float(np.mean(held)), 1 - len(held) / runs


def make_others() -> str:
    """Return the second table."""
    lines = ["| what | holds | refused |", "|---|---|---|"]
    for name in OTHERS:
        held, refused = cover_other(name)
        lines.append(f"| {name} | {100 * held:.1f} % | {100 * refused:.1f} % |")
    return "\n".join(lines)


def main() -> None:
    """Write the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, make in {"corrected": make_binary, "others": make_others}.items():
        made = make()
        block = re.compile(rf"(<!-- {name} -->\n\n).*?(\n\n<!-- end of {name} -->)", re.DOTALL)
        page = block.sub(lambda found, made=made: found[1] + made + found[2], page)
        print(made, end="\n\n", flush=True)
    PAGE.write_text(page, encoding="utf-8")


def _generator(*parts: Any) -> np.random.Generator:
    return np.random.default_rng([SEED, *(round(1000 * part) for part in parts)])


if __name__ == "__main__":
    main()
