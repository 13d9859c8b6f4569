"""Scores of log-probabilities, one for each option, on values worked out by hand."""

import math

import pytest

from helm_ext.scoring.scores.likelihoods import acc, acc_bytes, acc_mutual_info, acc_norm, brier_score


def options(**logprobs):
    return [{"text": text, "logprob": logprob} for text, logprob in logprobs.items()]


def test_the_first_of_the_likeliest_options_wins():
    tied = options(fox=-2.0, owl=-1.0, bee=-1.0)
    assert [acc(tied, right) for right in ([1, 0, 0], [0, 1, 0], [0, 0, 1])] == [0, 1, 0]
    assert acc(tied, [0, 1, 1]) == acc(tied, [1, 1, 0]) == 1  # any right option


def test_lengths_are_characters_or_bytes_of_the_option():
    # "東港" has 2 characters and 6 bytes: -1.5 and -0.5; "Tallo" 5 and 5: -0.7 and -0.7
    row = [{"text": "Tallo", "logprob": -3.5}, {"text": "東港", "logprob": -3.0}]
    assert (acc(row, [0, 1]), acc_norm(row, [0, 1]), acc_bytes(row, [0, 1])) == (1, 0, 1)


def test_an_empty_option_cannot_win_by_its_length():
    row = [{"text": "", "logprob": -0.1}, {"text": "no", "logprob": -9.0}]
    assert (acc(row, [1, 0]), acc_norm(row, [1, 0]), acc_bytes(row, [1, 0])) == (1, 0, 0)


def test_mutual_information_needs_all_options_without_the_question():
    row = [{"text": "a", "logprob": -3.0, "alone": -1.0}, {"text": "b", "logprob": -4.0, "alone": -3.0}]
    assert acc_mutual_info(row, [0, 1]) == 1  # -2 and -1
    row[0]["alone"] = None
    assert acc_mutual_info(row, [0, 1]) is None


def test_the_brier_score_is_of_the_softmax_over_the_options():
    # e^-1 : e^-1 : e^-1-ln 2 = 2 : 2 : 1
    row = options(a=-1.0, b=-1.0, c=-1.0 - math.log(2))
    assert brier_score(row, [0, 0, 1]) == pytest.approx(0.4**2 + 0.4**2 + 0.8**2)
    assert brier_score(row, [1, 0, 0]) == pytest.approx(0.6**2 + 0.4**2 + 0.2**2)
    assert brier_score(options(a=-1e100, b=-3.0), [0, 1]) == 0
    assert brier_score(row, [1, 1, 0]) is None
