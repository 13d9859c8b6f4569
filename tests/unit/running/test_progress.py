"""How a run that asks models says how far it is, what it costs, and when it stops."""

import io
import sys
import threading

import pytest

from helm_ext.engines.progress import Counts, describe
from helm_ext.running.spending import Budget, LimitReached, LiveProgress, Prices

PRICES = Prices(prompt=2.0, completion=10.0, cached=0.5)


def test_what_is_left_is_foreseen_from_rows_that_were_asked():
    # 900 of the 1,000 came from the cache at once; 10 rows a second are asked for. 3,000 are left.
    counts = Counts(rows=1000, cached=900, tokens_in=100_000, tokens_out=10_000, cost=0.3, seconds=10.0)
    assert describe(counts, 4000, "rows", 10.0) == (
        "1,000 of 4,000 rows, 900 cached, 10.0/s, 5:00 min left, 100,000 tokens in, 10,000 out, cost 0.3 of about 9.30"
    )


def test_at_the_end_the_rate_is_that_of_the_whole_run():
    counts = Counts(rows=1000, cached=900, failed=2, seconds=50.0)
    assert describe(counts, 1000, "rows", None) == "1,000 of 1,000 rows, 900 cached, 2 failed, 2.0/s"


def test_cost_is_counted_with_the_price_of_kept_tokens():
    progress = LiveProgress(10, stream=io.StringIO(), prices=PRICES)
    progress.done(tokens_in=1_000_000, tokens_cached=400_000, tokens_out=100_000)
    # 0.6 million at 2, 0.4 at 0.5, 0.1 at 10
    assert progress.counts().cost == pytest.approx(1.2 + 0.2 + 1.0)


def test_without_a_price_of_their_own_kept_tokens_cost_what_others_cost():
    assert Prices(2.0, 10.0).cost(1_000_000, 0, 400_000) == 2.0


@pytest.mark.parametrize(("budget", "said"), [
    (Budget(cost=0.004), "0.005 spent, and the limit is 0.004"),
    (Budget(tokens=1500), "2,000 tokens in and out, and the limit is 1,500"),
])  # fmt: skip
def test_a_spent_budget_stops(budget, said):
    progress = LiveProgress(10, stream=io.StringIO(), prices=Prices(1.0, 4.0), budget=budget)
    progress.done(tokens_in=500, tokens_out=500)
    with pytest.raises(LimitReached, match=said):
        progress.done(tokens_in=500, tokens_out=500)
    # the next run of the process has nothing left
    with pytest.raises(LimitReached):
        LiveProgress(10, stream=io.StringIO(), prices=Prices(1.0, 4.0), budget=budget).done(tokens_in=1)


def test_a_budget_that_is_spent_by_the_last_row_stops_nothing():
    progress = LiveProgress(1, stream=io.StringIO(), budget=Budget(tokens=5))
    progress.done(tokens_in=500)
    assert progress.counts().rows == 1


def test_rows_from_the_cache_spend_nothing():
    progress = LiveProgress(10, stream=io.StringIO(), prices=PRICES, budget=Budget(cost=0.0, tokens=0))
    progress.done(rows=5, cached=5)
    counts = progress.counts()
    assert (counts.rows, counts.cached, counts.cost) == (5, 5, 0)


def test_threads_lose_no_count():
    progress = LiveProgress(None, stream=io.StringIO(), budget=Budget())
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:

        def count() -> None:
            for _ in range(5000):
                progress.done(rows=1, cached=1, tokens_in=2, tokens_out=3)
                progress.retrying(+1)
                progress.retrying(-1)

        threads = [threading.Thread(target=count) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    counts = progress.counts()
    assert (counts.rows, counts.cached, counts.tokens_in, counts.tokens_out, counts.retrying) == (
        40_000, 40_000, 80_000, 120_000, 0,
    )  # fmt: skip
    assert progress.budget.spent_tokens == 200_000
