"""Columns of values add up to what HELM's `merge_stat` makes of the same Stats, to the last bit and type."""

import math
import pickle

import pytest
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat, merge_stat
from hypothesis import given
from hypothesis import strategies as st

from helm_ext.scoring.basic.row_stats import Names, RowStats
from helm_ext.scoring.basic.tally import Totals, to_columns

NAMES = [MetricName(name, split="test") for name in ("a", "b", "c")]
VALUES = st.one_of(
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from([None, 0.1, 0.2, 0.3, -0.0, 0.0, 1, 1.0, 2**60, -(2**70), 1e150, math.nan, math.inf, True]),
)
ROWS = st.lists(st.lists(st.tuples(st.sampled_from(range(3)), st.lists(VALUES, max_size=3)), max_size=3), max_size=30)


def to_stat(name, values):
    stat = Stat(NAMES[name])
    for value in values:
        stat.add(value)
    return stat


def by_helm(rows):
    sums = {}
    for row in rows:
        for stat in row:
            merge_stat(sums, stat)
    return list(sums.values())


def in_batches(rows, sizes, *, sent=False):
    totals, rows = Totals(), list(rows)
    while rows:
        size = next(sizes)
        columns = to_columns(rows[:size])
        totals.add(pickle.loads(pickle.dumps(columns)) if sent else columns)
        del rows[:size]
    return totals


def plain(stats):
    # repr tells 1 from 1.0 and -0.0 from 0.0, and NaN is equal to itself. HELM's first Stat keeps its own mean.
    # What is NaN is no stat of the run: `remove_stats_nans`.
    return [
        repr(
            (s.name.name, s.count) if math.isnan(s.sum) else (s.name.name, s.count, s.sum, s.sum_squared, s.min, s.max)
        )
        for s in stats
    ]


@given(ROWS, st.integers(1, 7), st.booleans())
def test_any_values_in_any_batches(rows, size, sent):
    stats = [[to_stat(name, values) for name, values in row] for row in rows]
    assert plain(in_batches(stats, iter(lambda: size, 0), sent=sent).to_stats()) == plain(by_helm(stats))


@given(st.lists(st.tuples(st.sampled_from([(0, 1), (1, 2), (2, 0, 1)]), st.lists(VALUES, min_size=3, max_size=3)),
                max_size=30), st.integers(1, 7))  # fmt: skip
def test_rows_of_values(given, size):
    """Rows of several sets of names, which share some: values are added in the order of the rows."""
    names = {places: Names([NAMES[place] for place in places]) for places in {places for places, _ in given}}
    rows = [RowStats(names[places], values[: len(places)]) for places, values in given]
    assert plain(in_batches(rows, iter(lambda: size, 0)).to_stats()) == plain(by_helm(map(list, rows)))


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_the_lowest_value_of_each_row(batch):
    """What a worst case is, where no row is perturbed: the lowest of the values that a row brings."""
    rows = [[to_stat(0, values)] for values in ([0.1], [0.3, 0.2], [0.7], [5, 4, 6], [0.4])]
    (lowest,) = in_batches(rows, iter(lambda: batch, 0)).lowest()
    assert (lowest.count, lowest.min, lowest.max) == (5, 0.1, 4)
    assert lowest.sum == 0.1 + 0.2 + 0.7 + 4 + 0.4
