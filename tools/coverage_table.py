"""How often the intervals hold: the table of docs/uncertainty.md, by 20,000 simulated runs of each case.

    python tools/coverage_table.py

Minutes. The draws are seeded, so the table is the same every time. A test makes some of its numbers again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helm_ext.scoring.statistics import compare_rows
from helm_ext.scoring.statistics.intervals import clustered_interval, t_interval, wilson_interval

PAGE = Path(__file__).resolve().parents[1] / "docs" / "uncertainty.md"
RUNS = 20_000
COUNTS = (30, 100, 1000)
SHARES = (0.02, 0.5, 0.98)
CLUSTERS = {30: 10, 100: 40, 1000: 50}
AGREE = 4.0
"""Clusters' shares are drawn from a beta distribution with a + b = 4: rows of a cluster correlate by 1 / 5."""


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
    generator, number = _generator(count, share), CLUSTERS[count]
    groups = np.sort(np.arange(count) % number)

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


def make_table() -> str:
    """Return the table as Markdown."""
    lines = [
        "| rows | share that is right | Wilson, 0/1 | t, graded | clustered, 0/1 | difference, 0/1 |",
        "|---|---|---|---|---|---|",
    ]
    covers: tuple[Callable[[int, float], float], ...] = (cover_wilson, cover_t, cover_clusters, cover_difference)
    for count in COUNTS:
        for share in SHARES:
            numbers = " | ".join(f"{cover(count, share):.1%}".replace("%", " %") for cover in covers)
            clusters = f"{count:,} ({CLUSTERS[count]} clusters)"
            lines.append(f"| {clusters} | {share} | {numbers} |")
    return "\n".join(lines)


def main() -> None:
    """Write the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    block = re.compile(r"(<!-- coverage -->\n\n).*?(\n\n<!-- end of coverage -->)", re.DOTALL)
    made = make_table()
    PAGE.write_text(block.sub(lambda found: found[1] + made + found[2], page), encoding="utf-8")
    print(made)


def _generator(count: int, share: float) -> np.random.Generator:
    return np.random.default_rng([count, round(share * 100)])


def _mean(draw: Callable[[], bool]) -> float:
    outcomes: NDArray[np.bool_] = np.array([draw() for _ in range(RUNS)])
    return float(outcomes.mean())


def _holds(interval: object, truth: float) -> bool:
    return bool(interval.low <= truth <= interval.high)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
