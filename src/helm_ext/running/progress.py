"""How far a run is that asks models, what it costs, and when to stop.

    with LiveProgress(len(rows), prices=prices, budget=budget) as progress:
        for row in rows:
            ...
            progress.done(tokens_in=120, tokens_out=9)

What is drawn, and when: `helm_ext.engines.progress`. `done` and `retrying` cost a lock and some additions (0.3 µs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helm_ext.clients.estimate import Prices, format_cost
from helm_ext.engines.progress import Counts, Progress, describe
from helm_ext.errors import HelmExtError

if TYPE_CHECKING:
    from collections.abc import Sequence


class LimitReached(HelmExtError):  # noqa: N818 - no fault: what the user asked for
    """A limit that the user set (money, tokens) is met. What was answered is in the cache."""


@dataclass
class Budget:
    """What may be spent. One for all runs of a process, which spend from it together.

    Its numbers are changed by `LiveProgress` alone, under its lock: one run at a time.
    """

    cost: float | None = None
    """In the currency of the prices."""
    tokens: int | None = None
    """In and out."""
    spent_cost: float = 0.0
    spent_tokens: int = 0

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit, so that tokens must be counted."""
        return self.cost is not None or self.tokens is not None

    def spend(self, cost: float, tokens: int) -> None:
        """Count what was spent."""
        self.spent_cost += cost
        self.spent_tokens += tokens

    def require_left(self) -> None:
        """Raise LimitReached where nothing is left."""
        if self.cost is not None and self.spent_cost >= self.cost:
            raise LimitReached(f"stopped: {self.spent_cost:.4g} spent, and the limit is {self.cost:g} ({_HINT})")
        if self.tokens is not None and self.spent_tokens >= self.tokens:
            raise LimitReached(
                f"stopped: {self.spent_tokens:,} tokens in and out, and the limit is {self.tokens:,} ({_HINT})"
            )


_HINT = "what was answered is in the cache, unless that is disabled"


@dataclass
class LiveCounts(Counts):
    """What was counted until a moment. `rows` are finished, with the two of the next lines."""

    cached: int = 0
    failed: int = 0
    retrying: int = 0
    """Requests, not rows."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0

    @property
    def worked(self) -> int:
        """Rows that were not in the cache: on these the time and the money went."""
        return self.rows - self.cached


class LiveProgress(Progress):
    """Rows as they are answered: a context manager. Its methods may be called by any thread."""

    delay = 0.0
    """What is asked and what it cost is said of short runs, too."""
    _counts: LiveCounts

    def __init__(
        self, total: int | None, *, prices: Prices | None = None, budget: Budget | None = None, **options: Any
    ) -> None:
        """`prices`: with them, the cost is shown and counted. `budget`: where `done` raises LimitReached.

        `options`: those of Progress. Raises RunEntryError for a mode that is none.
        """
        super().__init__(total, **options)
        self.prices = prices
        self.budget = budget

    def done(
        self,
        rows: int = 1,
        cached: int = 0,
        failed: int = 0,
        tokens_in: int = 0,
        tokens_out: int = 0,
        tokens_cached: int = 0,
    ) -> None:
        """Count rows that are finished, those of them that came from the cache or failed, and tokens asked for now.

        `tokens_cached`: those of `tokens_in` that the provider had kept, and counts at a price of their own. Raises
        LimitReached where the budget is spent and rows are left.
        """
        with self._lock:
            counts = self._counts
            counts.rows += rows
            counts.cached += cached
            counts.failed += failed
            if not tokens_in and not tokens_out:
                return
            counts.tokens_in += tokens_in
            counts.tokens_out += tokens_out
            cost = 0.0
            if self.prices is not None:
                cost = self.prices.cost(tokens_in, tokens_out, tokens_cached)
                counts.cost += cost
            if self.budget is not None:
                self.budget.spend(cost, tokens_in + tokens_out)
                if counts.rows != self.total:
                    self.budget.require_left()

    def retrying(self, change: int) -> None:
        """Count requests that wait for another attempt: +1 when one begins to, -1 when it ends."""
        with self._lock:
            self._counts.retrying += change

    def _make_counts(self) -> LiveCounts:
        return LiveCounts()

    def _describe(self, counts: Counts, rate: float | None) -> str:
        assert isinstance(counts, LiveCounts)
        return describe_live(counts, self.total, self.unit, rate, self.prices)


def describe_live(
    counts: LiveCounts, total: int | None, unit: str, rate: float | None, prices: Prices | None = None
) -> str:
    """Return one line about what was counted. `rate`: rows asked for in a second of late; None at the end of a run.

    What is left is foreseen from rows that were asked for: those that came from the cache took neither time nor money.
    """
    notes: Sequence[str] = [
        f"{number:,} {what}"
        for number, what in ((counts.cached, "cached"), (counts.retrying, "retrying"), (counts.failed, "failed"))
        if number
    ]
    parts = [describe(counts, total, unit, rate, notes=notes)]
    if counts.tokens_in or counts.tokens_out:
        parts.append(f"{counts.tokens_in:,} tokens in, {counts.tokens_out:,} out")
    if prices is not None:
        spent = f"cost {format_cost(counts.cost)}"
        left = None if total is None else max(0, total - counts.rows)
        if left and counts.worked and rate is not None:
            expected = counts.cost * (counts.worked + left) / counts.worked
            spent = f"{spent} of about {format_cost(expected)}"
        parts.append(spent)
    return ", ".join(parts)
