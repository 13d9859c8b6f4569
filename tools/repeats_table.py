"""How often the intervals of repeated answers hold: a table of docs/uncertainty.md, by 10,000 runs of each case.

    python tools/repeats_table.py

A minute. The draws are seeded, so the table is the same every time. A test makes some of its numbers again.

Rows' chances of a right answer are drawn from a beta distribution. "These rows": they are drawn once, and the answers
again for each run; the truth is the mean over these rows. "Rows like these": both are drawn again; the truth is the
mean over all rows that there could be.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from helm_ext.scoring.reducers import find_noise, find_reducer
from helm_ext.scoring.statistics import Interval, answers_interval, mean_interval

PAGE = Path(__file__).resolve().parents[1] / "docs" / "uncertainty.md"
RUNS = 10_000


class Case(NamedTuple):
    """One line of the table."""

    reducer: str
    rows: int
    answers: int
    alpha: float
    beta: float
    """Of the rows' chances."""

    @property
    def spread(self) -> float:
        """The correlation of two answers to one row: 0 where all rows are alike, 1 where answers always agree."""
        return 1 / (self.alpha + self.beta + 1)


CASES = (
    Case("mean", 100, 5, 0.5, 0.5),
    Case("mean", 200, 2, 2.0, 2.0),
    Case("mean", 400, 5, 0.5, 0.5),
    Case("mean", 400, 5, 20.0, 20.0),
    Case("pass_at_2", 200, 5, 0.5, 0.5),
    Case("pass_at_2", 200, 5, 2.0, 2.0),
    Case("pass_at_5", 200, 10, 0.5, 1.5),
    Case("pass_k_2", 200, 5, 0.5, 0.5),
    Case("pass_k_5", 200, 10, 1.5, 0.5),
    Case("pass_at_3", 200, 4, 0.5, 0.5),
)


def simulate(case: Case, runs: int = RUNS) -> tuple[float, float, float]:
    """Return how often three claims hold: of these rows; of rows like these; the first interval taken for the second.

    A run whose interval is not known counts as held.
    """
    generator = np.random.default_rng([case.rows, case.answers, round(100 * case.spread), len(case.reducer)])
    fixed = generator.beta(case.alpha, case.beta, case.rows)
    here, anywhere = float(_truth(case, fixed).mean()), _truth_of_all(case)
    these, like_these, mistaken = [], [], []
    for _ in range(runs):
        first, _ = _measure(case, generator.binomial(case.answers, fixed))
        these.append(_holds(first, here))
        drawn = generator.binomial(case.answers, generator.beta(case.alpha, case.beta, case.rows))
        first, second = _measure(case, drawn)
        like_these.append(_holds(second, anywhere))
        mistaken.append(_holds(first, anywhere))
    return float(np.mean(these)), float(np.mean(like_these)), float(np.mean(mistaken))


def make_table() -> str:
    """Return the table as Markdown."""
    lines = [
        "| score | rows x answers | answers correlate by | these rows | rows like these | first taken for second |",
        "|---|---|---|---|---|---|",
    ]
    for case in CASES:
        numbers = " | ".join(f"{share:.1%}".replace("%", " %") for share in simulate(case))
        lines.append(f"| `{case.reducer}` | {case.rows} x {case.answers} | {case.spread:.2f} | {numbers} |")
    return "\n".join(lines)


def main() -> None:
    """Write the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    block = re.compile(r"(<!-- repeats -->\n\n).*?(\n\n<!-- end of repeats -->)", re.DOTALL)
    made = make_table()
    PAGE.write_text(block.sub(lambda found: found[1] + made + found[2], page), encoding="utf-8")
    print(made)


@lru_cache(maxsize=1000)
def _of_row(reducer: str, right: int, answers: int) -> tuple[float, float]:
    """Return a row's score and its variance, as a run would write them."""
    reduce = find_reducer(reducer)
    scores = [1.0] * right + [0.0] * (answers - right)
    score, noise = reduce(scores) if reduce else None, find_noise(reducer)(scores)
    assert score is not None
    return score, math.nan if noise is None else noise


def _measure(case: Case, right: NDArray[np.int64]) -> tuple[Interval, Interval]:
    table = np.array([_of_row(case.reducer, number, case.answers) for number in range(case.answers + 1)])
    values, noise = table[right].T
    return answers_interval(values, noise, np.full(case.rows, case.answers)), mean_interval(values)


def _truth(case: Case, chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what rows score in the long run, given the chances that an answer is right."""
    kind, _, number = case.reducer.rpartition("_")
    if kind == "pass_at":
        return 1 - (1 - chances) ** int(number)
    return chances ** int(number) if kind == "pass_k" else chances


def _truth_of_all(case: Case) -> float:
    """Return the mean of `_truth` over all rows: moments of the beta distribution."""
    kind, _, number = case.reducer.rpartition("_")
    a, b = (case.beta, case.alpha) if kind == "pass_at" else (case.alpha, case.beta)
    moment = math.prod((a + i) / (a + b + i) for i in range(int(number) if kind else 1))
    return 1 - moment if kind == "pass_at" else moment


def _holds(interval: Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


if __name__ == "__main__":
    main()
