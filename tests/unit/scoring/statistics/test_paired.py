"""Two models on the same rows: p-values counted by hand, and 5 % false alarms where both are alike."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import ttest_1samp
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests

from helm_ext.scoring.statistics.paired import (
    compare_rows,
    discordant_share,
    holm,
    judge_margin,
    mcnemar,
    rows_needed,
    tango_limits,
    tango_score,
)


@pytest.mark.parametrize(("greater", "less"), [(90, 75), (0, 0), (5, 0), (1, 1), (12, 30)])
def test_mcnemar_is_that_of_statsmodels(greater, less):
    expected = reference_mcnemar([[0, greater], [less, 0]], exact=True).pvalue if greater + less else 1.0
    assert mcnemar(greater, less) == pytest.approx(expected, abs=1e-9)


def test_165_of_500_rows_differ_and_nothing_is_shown():
    first = np.array([0] * 90 + [1] * 75 + [1] * 335)
    second = np.array([1] * 90 + [0] * 75 + [1] * 335)
    found = compare_rows(first, second)
    assert (found.greater, found.less, found.test) == (90, 75, "mcnemar")
    assert found.p == pytest.approx(0.276, abs=5e-4)
    assert found.difference.mean == pytest.approx(0.03)
    assert found.difference.low < 0 < found.difference.high


def test_swapping_the_models_swaps_the_sign_alone():
    generator = np.random.default_rng(3)
    first, second = generator.random(40), generator.random(40)
    one, other = compare_rows(first, second), compare_rows(second, first)
    assert one.p == other.p
    assert one.difference.low == pytest.approx(-other.difference.high)


@pytest.mark.parametrize("rows", [20, 300, 3000])
def test_the_order_of_the_rows_changes_nothing(rows):
    generator = np.random.default_rng(rows)
    first, second = generator.random((2, rows))
    order = generator.permutation(rows)
    assert compare_rows(first[order], second[order]).p == pytest.approx(compare_rows(first, second).p, rel=1e-9)


@pytest.mark.parametrize(
    ("first", "second"), [([0, 1, 0, 0, 1, 0], [1, 1, 0, 1, 1, 0]), ([0] * 6, [1] * 6), ([0, 1] * 3, [0, 1] * 3)]
)
def test_swapping_the_models_swaps_the_ends_of_clusters(first, second):
    """Also where b is nowhere worse, so that all differences are 0 or 1."""
    groups = ["a", "a", "a", "b", "b", "c"]
    one, other = compare_rows(first, second, groups), compare_rows(second, first, groups)
    assert (one.difference.low, one.difference.high) == (
        pytest.approx(-other.difference.high),
        pytest.approx(-other.difference.low),
    )
    assert one.detectable == other.detectable
    assert one.difference.low < one.difference.mean <= one.difference.high


@pytest.mark.parametrize("groups", [None, ["a", "a", "b", "b"]])
def test_equal_answers_do_not_tell_what_could_be_seen(groups):
    assert compare_rows([1, 0, 1, 0], [1, 0, 1, 0], groups).detectable == math.inf
    assert compare_rows([0.5, 0.2, 0.3, 0.1], [0.5, 0.2, 0.3, 0.1], groups).difference.method == "none"


def test_few_graded_rows_are_counted_in_all_ways():
    differences = np.array([0.5, 0.25, -0.125, 1.0])
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in product((1, -1), repeat=4)]
    expected = sum(one >= 1.625 for one in sums) / 16
    assert compare_rows(np.zeros(4), differences).p == expected


def test_p_that_no_draw_reaches_is_that_of_the_draws():
    assert compare_rows(np.zeros(100), np.full(100, 0.5)).p == 1 / 20_001  # 2 of 2^100 ways are as uneven


@pytest.mark.long
@pytest.mark.parametrize("rows", [30, 150, 3000])
def test_models_that_are_alike_are_told_apart_by_chance_alone(rows):
    """5 % of 400 pairs, of graded scores; within three standard deviations."""
    generator = np.random.default_rng(rows)
    found = [compare_rows(*generator.integers(0, 4, (2, rows)) / 3).p < 0.05 for _ in range(400)]
    assert 0.05 - 0.033 < np.mean(found) < 0.05 + 0.033


def test_clusters_that_agree_make_a_difference_less_sure():
    first = np.repeat([0, 0, 0, 1, 1, 0, 0, 0], 20)
    second = np.repeat([1, 1, 1, 0, 0, 1, 0, 0], 20)
    groups = np.repeat(np.arange(8), 20)
    assert compare_rows(first, second).p < 0.001
    found = compare_rows(first, second, list(groups))
    assert found.test == "sign flips"
    assert found.p == 44 / 64  # six clusters differ, 4 to 2: as uneven or more in 44 of 64 ways
    assert found.difference.clusters == 8


def test_no_difference_is_no_evidence():
    found = compare_rows([1, 0, 1], [1, 0, 1])
    assert (found.p, found.greater, found.less) == (1.0, 0, 0)


@pytest.mark.parametrize("values", [[0.01, 0.04, 0.03], [0.5], [], [1.0, 1.0], [0.001, 0.2, 0.2, 0.04]])
def test_holm_is_that_of_statsmodels(values):
    expected = multipletests(values, method="holm")[1] if values else []
    assert holm(values) == pytest.approx(list(expected))


def test_unequal_rows_are_refused():
    with pytest.raises(ValueError, match="the rows must be the same"):
        compare_rows([1], [1, 0])
    with pytest.raises(ValueError, match="2 rows, and clusters of 1"):
        compare_rows([1, 0], [1, 1], ["a"])


@pytest.mark.parametrize(("difference", "discordant"), [(0.05, 0.3), (0.1, 0.2), (0.03, 0.33)])
def test_as_many_rows_as_needed_tell_the_difference_in_80_of_100_runs(difference, discordant):
    count = rows_needed(difference, discordant)
    generator = np.random.default_rng(5)
    shares = [(discordant + difference) / 2, (discordant - difference) / 2, 1 - discordant]
    told = [mcnemar(up, down) < 0.05 for up, down, _ in generator.multinomial(count, shares, 4_000)]
    assert 0.77 < np.mean(told) < 0.83


def test_models_that_err_independently():
    assert discordant_share(0.8, 0.1) == pytest.approx(0.8 * 0.1 + 0.9 * 0.2)
    with pytest.raises(ValueError, match="both models' shares"):
        discordant_share(0.95, 0.1)
    with pytest.raises(ValueError, match="expected"):
        rows_needed(0.3, 0.1)


@pytest.mark.parametrize("seed", range(40))
def test_the_score_is_that_of_the_most_likely_shares(seed):
    """Written elsewhere: the likelihood of the three shares is maximised by search, with the difference held."""
    generator = np.random.default_rng(seed)
    count = int(generator.integers(3, 400))
    greater = int(generator.integers(0, count + 1))
    less = int(generator.integers(0, count - greater + 1))
    held = float(generator.uniform(-0.98, 0.98))
    counts = np.array([greater, less, count - greater - less])

    def unlikely(q):
        shares = np.array([q + held, q, 1 - 2 * q - held])
        return -float((counts[counts > 0] * np.log(np.maximum(shares[counts > 0], 1e-300))).sum())

    bounds = (max(0.0, -held), (1 - held) / 2)
    q = minimize_scalar(unlikely, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
    expected = (greater - less - count * held) / math.sqrt(count * (2 * q + held - held**2))
    assert tango_score(greater, less, count, held) == pytest.approx(expected, rel=1e-4, abs=1e-4)
    for limit, sign in zip(tango_limits(greater, less, count, 1.96), (1, -1), strict=True):
        if abs(limit) < 1:
            assert tango_score(greater, less, count, limit) == pytest.approx(sign * 1.96, abs=1e-6)


def test_without_a_margin_the_score_is_mcnemars_of_the_normal_distribution():
    assert tango_score(90, 75, 500, 0) == pytest.approx((90 - 75) / math.sqrt(90 + 75))


@pytest.mark.parametrize("rows", [5, 200])
def test_rows_that_never_differ_limit_the_difference(rows):
    """z^2 / (n + z^2), either way."""
    found = compare_rows(np.ones(rows), np.ones(rows)).difference
    assert found.high == pytest.approx(1.959964**2 / (rows + 1.959964**2), rel=1e-6)
    assert found.low == -found.high


def draw_pairs(discordant, true, rows, runs, seed):
    """Yield rows of two models, of which `discordant` is the share that differs and `true` the difference."""
    generator = np.random.default_rng(seed)
    shares = [(discordant + true) / 2, (discordant - true) / 2, 1 - discordant]
    for _ in range(runs):
        differs = generator.choice(3, rows, p=shares)
        yield (differs == 1).astype(float), (differs == 0).astype(float)


def test_as_many_rows_as_are_said_tell_that_an_equal_model_is_not_worse():
    """Half right for one model alone and half for the other, of 20 % that differ: z = 1.645 + 0.842, variance 0.2."""
    first, second = np.repeat([0, 1, 1], [20, 20, 160]), np.repeat([1, 0, 1], [20, 20, 160])
    found = judge_margin(first, second, margin=0.02)
    assert 0.05 < found.p_worse < 0.95
    assert (found.assumed, found.rows_needed) == (
        0.0,
        pytest.approx((1.644854 + 0.841621) ** 2 * 0.2 / 0.02**2, rel=0.01),
    )
    told = [judge_margin(*pair, margin=0.02).p_worse > 0.95 for pair in draw_pairs(0.2, 0, found.rows_needed, 1_000, 2)]
    assert 0.76 < np.mean(told) < 0.84
    assert (
        judge_margin(first, second, margin=0).rows_needed is None
    )  # no number tells that nothing is better than nothing


def test_rows_that_never_differ_are_not_worse_once_they_are_enough():
    """z^2 (1 / margin - 1) rows: 132.6."""
    same = judge_margin(np.ones(50), np.ones(50), margin=0.02)
    assert (same.p_worse < 0.95, same.rows_needed) == (True, 133)
    assert judge_margin([1], [1], margin=0.02).rows_needed == 133
    assert judge_margin([1], [0], margin=0.02).rows_needed is None  # one row says nothing of its variance
    assert judge_margin(np.ones(133), np.ones(133), margin=0.02).p_worse > 0.95
    graded = np.linspace(0, 1, 133)
    assert judge_margin(graded, graded, margin=0.02).p_worse is None  # by how much they may differ is not known
    assert judge_margin(graded, graded, margin=0.02, span=1).p_worse > 0.95
    assert judge_margin(graded[:132], graded[:132], margin=0.02, span=1).rows_needed == 133


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(50), 4)])
def test_graded_rows_and_clusters_are_judged_by_t(groups):
    generator = np.random.default_rng(4)
    first, second = generator.random(200), generator.random(200) + 0.05
    found = judge_margin(first, second, groups, margin=0.02)
    means = (second - first) if groups is None else (second - first).reshape(50, 4).mean(axis=1)
    expected = ttest_1samp(means, -0.02, alternative="less").pvalue
    assert found.p_worse == pytest.approx(expected, rel=0.02 if groups is not None else 1e-9)
    limits = compare_rows(first, second, groups, level=0.9).difference
    assert (found.low, found.high) == (limits.low, limits.high)


def test_a_margin_is_not_negative():
    with pytest.raises(ValueError, match="margin -1"):
        judge_margin([1], [0], margin=-1)
