"""Scores of rows that were asked by log-probabilities: one sum for each option instead of a text.

As lm-evaluation-harness computes them (`ConfigurableTask.process_results` of its lm_eval/api/task.py, `brier_score` of
its lm_eval/api/metrics.py). The first of several largest values wins, as `numpy.argmax` has it. A function gets the
row's likelihoods in the order of its references (`RowExtra["likelihoods"]`) and which of these are right; it returns
None where the score is not defined for the row. A row with one option alone asks whether the model would have written
it: only `acc` is defined for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from helm_ext.scoring.score import Score

if TYPE_CHECKING:
    from helm_ext.evalset import Likelihood


def find_winner(values: Sequence[float]) -> int:
    """Return the position of the largest value, the first of several."""
    return values.index(max(values))


def acc(options: Sequence[Likelihood], right: Sequence[bool]) -> float | None:
    """Return 1.0 if the likeliest option is right; of one option, if the model would have written it (greedily)."""
    if len(options) == 1:
        greedy = options[0].get("greedy")
        return None if greedy is None else float(greedy)
    return float(right[find_winner([option["logprob"] for option in options])])


def acc_norm(options: Sequence[Likelihood], right: Sequence[bool]) -> float | None:
    """Return 1.0 if the option with the largest log-probability per character is right."""
    return _compare_per(options, right, [len(option["text"]) for option in options])


def acc_bytes(options: Sequence[Likelihood], right: Sequence[bool]) -> float | None:
    """Return 1.0 if the option with the largest log-probability per byte of UTF-8 is right."""
    return _compare_per(options, right, [_count_bytes(option["text"]) for option in options])


def acc_mutual_info(options: Sequence[Likelihood], right: Sequence[bool]) -> float | None:
    """Return 1.0 if the option that the question makes likelier by the largest factor is right.

    None where it is not known how likely an option is without the question.
    """
    gains = [option["logprob"] - alone for option in options if (alone := option.get("alone")) is not None]
    return float(right[find_winner(gains)]) if len(gains) == len(options) > 1 else None


def brier_score(options: Sequence[Likelihood], right: Sequence[bool]) -> float | None:
    """Return the squared distance between the options' probabilities, which sum up to 1, and those of the right answer.

    0 is best, 2 worst. None where not exactly one option is right.
    """
    if len(options) == 1 or sum(right) != 1:
        return None
    logprobs = [option["logprob"] for option in options]
    largest = max(logprobs)
    weights = [math.exp(logprob - largest) for logprob in logprobs]
    total = sum(weights)
    return sum([(weight / total - is_right) ** 2 for weight, is_right in zip(weights, right, strict=True)])


def _compare_per(options: Sequence[Likelihood], right: Sequence[bool], lengths: Sequence[int]) -> float | None:
    """Return 1.0 if the option with the largest log-probability by its length is right; an empty one cannot be it."""
    if len(options) == 1:
        return None
    values = [
        option["logprob"] / length if length else -math.inf for option, length in zip(options, lengths, strict=True)
    ]
    return float(right[find_winner(values)])


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


SCORES = (
    Score(
        "acc",
        likelihood_function=acc,
        display_name="Accuracy (likeliest option)",
        short_display_name="acc",
        description="Fraction of rows whose likeliest option is right; where rows have one option, fraction of rows in "
        "which the model would have written it.",
    ),
    Score(
        "acc_norm",
        likelihood_function=acc_norm,
        display_name="Accuracy (per character)",
        short_display_name="acc_norm",
        description="Fraction of rows whose likeliest option is right, by its log-probability divided by its length in "
        "characters.",
    ),
    Score(
        "acc_bytes",
        likelihood_function=acc_bytes,
        display_name="Accuracy (per byte)",
        short_display_name="acc_bytes",
        description="Fraction of rows whose likeliest option is right, by its log-probability divided by its length in "
        "bytes of UTF-8.",
    ),
    Score(
        "acc_mutual_info",
        likelihood_function=acc_mutual_info,
        display_name="Accuracy (mutual information)",
        short_display_name="acc_mutual_info",
        description="Fraction of rows in which the option is right that the question makes likelier by the largest "
        "factor.",
    ),
    Score(
        "brier_score",
        likelihood_function=brier_score,
        display_name="Brier score",
        short_display_name="Brier",
        description="Mean squared distance between the probabilities of the options and those of the right answer, "
        "summed over the options of a row (0 is best, 2 worst).",
        lower_is_better=True,
    ),
)
