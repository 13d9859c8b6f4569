"""Several answers to a row: two intervals, of these rows and of rows like these."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from helm_ext.scoring.reducers import find_noise, find_reducer
from helm_ext.scoring.statistics import answers_interval, mean_interval, trials_interval


@pytest.mark.parametrize(
    ("name", "k", "n", "unbiased"),
    [("mean", 1, 2, True), ("pass_at_2", 2, 4, True), ("pass_k_2", 2, 5, True), ("pass_at_3", 3, 5, False)],
)
@pytest.mark.parametrize("right", [0.1, 0.5, 0.8])
def test_a_rows_noise_is_the_variance_of_its_score_over_all_answers_it_could_have_had(name, k, n, unbiased, right):
    """Counted: all 2^n answers, each with its chance. With fewer than 2 k answers the noise is too large, never less."""
    reduce, noise = find_reducer(name), find_noise(name)
    outcomes = list(itertools.product((0.0, 1.0), repeat=n))
    chances = [right ** sum(one) * (1 - right) ** (n - sum(one)) for one in outcomes]
    scores = [reduce(one) for one in outcomes]
    mean = math.fsum(c * s for c, s in zip(chances, scores, strict=True))
    expected = 1 - (1 - right) ** k if "at" in name else right**k
    assert mean == pytest.approx(expected)
    variance = math.fsum(c * (s - mean) ** 2 for c, s in zip(chances, scores, strict=True))
    said = math.fsum(c * noise(one) for c, one in zip(chances, outcomes, strict=True))
    assert said == pytest.approx(variance) if unbiased else said >= variance


@pytest.mark.parametrize(
    ("name", "scores"), [("mean", [1.0]), ("pass_at_2", [1.0, 0.0]), ("pass_k_3", [1.0, 1.0, 0.0]),
                         ("first", [1.0, 0.0]), ("max", [1.0, 0.0]), ("at_least_1", [1.0, 0.0])],
)  # fmt: skip
def test_noise_that_nobody_knows_is_not_known(name, scores):
    assert find_noise(name)(scores) is None


@pytest.mark.parametrize(
    ("noise", "answers"),
    [([0.1, math.nan], [2, 1]), ([0.0, 0.0], [5, 5]), ([0.1, 0.1], [2, 1])],
)
def test_an_interval_that_is_not_known_has_no_ends(noise, answers):
    found = answers_interval([0.5, 1.0], noise, answers)
    assert (found.method, found.low, found.high) == ("none", -math.inf, math.inf)


def test_trials_are_what_was_drawn():
    """Three trials' means 0.4, 0.5, 0.6: 0.5 +/- 4.302653 x 0.1 / sqrt 3."""
    found = trials_interval([0.4, 0.5, 0.6], 200)
    assert (found.count, found.method) == (200, "trials")
    assert found.half_width == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)


def test_both_intervals_are_those_of_a_mixed_model():
    """statsmodels' MixedLM, linear, REML: 400 rows of 5 answers; within 0.1 of its standard errors."""
    from scipy.special import stdtrit
    from statsmodels.regression.mixed_linear_model import MixedLM

    generator = np.random.default_rng(16)
    right = (generator.random((400, 5)) < generator.beta(1.2, 0.8, (400, 1))).astype(float)
    fitted = MixedLM(right.ravel(), np.ones(2000), groups=np.repeat(np.arange(400), 5)).fit(reml=True)
    error_like_these, error_these = float(fitted.bse_fe[0]), math.sqrt(float(fitted.scale) / 2000)
    values = right.mean(axis=1)
    like_these = mean_interval(values)
    these = answers_interval(values, [find_noise("mean")(list(row)) for row in right], [5] * 400)
    assert these.mean == pytest.approx(float(fitted.fe_params[0]))
    assert like_these.half_width / stdtrit(399, 0.975) == pytest.approx(error_like_these, abs=0.1 * error_like_these)
    assert these.half_width / 1.9606 == pytest.approx(error_these, abs=0.1 * error_these)
    assert error_these < 0.6 * error_like_these
