"""Rows that were asked by log-probabilities: how those of a row's options become its score. Pure functions.

Scores of one sum for each option are those of lm-evaluation-harness (`ConfigurableTask.process_results` of its
lm_eval/api/task.py, `brier_score` of its lm_eval/api/metrics.py). The first of several largest values wins, as
`numpy.argmax` has it. A function gets the row's likelihoods in the order of its references (`RowExtra["likelihoods"]`)
and which of these are right; it returns None where the score is not defined for the row. A row with one option alone
asks whether the model would have written it: only `acc` is defined for it.

The rules of UltraEval's PPL tasks (docs/ultraeval.md) get one list of token log-probabilities for each option: those of
the *whole* string (prompt + option) but its first token.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Callable, Sequence
from functools import partial
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


def _acc_per(measure: Callable[[str], int], options: Sequence[Likelihood], right: Sequence[bool]) -> float | None:
    """Return 1.0 if the option with the largest log-probability by its length is right; an empty one cannot be it."""
    if len(options) == 1:
        return None
    lengths = [measure(option["text"]) for option in options]
    values = [option["logprob"] / one if one else -math.inf for option, one in zip(options, lengths, strict=True)]
    return float(right[find_winner(values)])


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


acc_norm, acc_bytes = partial(_acc_per, len), partial(_acc_per, _count_bytes)


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


SCORES = tuple(
    Score(
        name,
        likelihood_function=function,
        display_name=title,
        short_display_name=short,
        description=description,
        lower_is_better=name == "brier_score",
        bounds=(0.0, 2.0 if name == "brier_score" else 1.0),
    )
    for name, function, title, short, description in (
        ("acc", acc, "Accuracy (likeliest option)", "acc",
         "Rows whose likeliest option is right; of rows with one option, those whose option the model would write."),
        ("acc_norm", acc_norm, "Accuracy (per character)", "acc_norm",
         "Rows whose likeliest option is right, by its log-probability divided by its length in characters."),
        ("acc_bytes", acc_bytes, "Accuracy (per byte)", "acc_bytes",
         "Rows whose likeliest option is right, by its log-probability divided by its length in bytes of UTF-8."),
        ("acc_mutual_info", acc_mutual_info, "Accuracy (mutual information)", "acc_mutual_info",
         "Rows in which the option is right that the question makes likelier by the largest factor."),
        ("brier_score", brier_score, "Brier score", "Brier",
         "Mean squared distance of the options' probabilities from the right ones, summed over a row (0 to 2)."),
    )
)  # fmt: skip


# ---- UltraEval

MAIN_STATS = {"ppl": "ppl_accuracy", "ppl_norm": "ppl_norm_accuracy", "mc2": "mc2", "mc2_norm": "mc2_norm"}
"""Rule to the stat on the leaderboard."""

MEANS = frozenset({"ppl_norm", "mc2_norm"})
"""Rules that compare options by the means of `ppl_norm`. The others compare sums."""

RULES = tuple(MAIN_STATS)

Logprobs = Sequence[Sequence[float]]


def ppl(options: Logprobs) -> list[float]:
    """Return the negative log-likelihood of each string. No length normalisation."""
    return [-sum(option) for option in options]


_REPLACEMENT = "\ufffd"
"""What a token's text holds where the token is part of a character only. Any two such tokens look alike."""

_RELATIVE, _ABSOLUTE = 1e-4, 1e-5
"""How far two log-probabilities of one token may lie apart that were computed in two requests (batch, padding)."""


def common_prefix(options: Logprobs, tokens: Sequence[Sequence[str]] | None = None) -> int:
    """Return how many leading tokens all options have in common.

    Upstream compares log-probabilities and nothing else: equal ones are common. The same token after the same tokens
    has the same log-probability, but computed in two requests it can differ in the last digits. So nearly equal ones
    are common too, unless the tokens' texts are known to differ; and so are tokens of the same text, as long as it is
    a text: parts of characters are all shown as U+FFFD.
    """
    length = 0
    for position, values in enumerate(zip(*options, strict=False)):
        texts = {option[position] for option in tokens} if tokens is not None else {""}
        if any(value != values[0] for value in values):
            readable = tokens is not None and not any(_REPLACEMENT in text for text in texts)
            nearly = all(math.isclose(v, values[0], rel_tol=_RELATIVE, abs_tol=_ABSOLUTE) for v in values)
            if (readable and len(texts) > 1) or not (readable or nearly):
                break
        length += 1
    return length


def ppl_norm(options: Logprobs, tokens: Sequence[Sequence[str]] | None = None) -> list[float]:
    """Return the mean negative log-probability of each option's tokens beyond the common prefix.

    Upstream divides by zero where an option has none (it is the beginning of all others, or the only one). Here it has
    no value, NaN, and cannot win; such rows are counted.
    """
    prefix = common_prefix(options, tokens)
    return [-sum(option[prefix:]) / len(option[prefix:]) if option[prefix:] else math.nan for option in options]


def mc2(negative_logprobs: Sequence[float], worth: Sequence[float]) -> float:
    """Return the share of the probability of all options that lies on those worth more than 0.

    Computed with log-sum-exp: the probabilities themselves are far below the smallest float. NaN is no probability.
    """
    import numpy as np  # the names of the rules are read where nothing is computed

    scores = np.array([-math.inf if math.isnan(value) else -value for value in negative_logprobs])
    correct = np.array([value > 0 for value in worth])
    highest = scores.max(initial=-math.inf)
    if not math.isfinite(highest):
        return 0.0
    shares = np.exp(scores - highest)
    return float(shares[correct].sum() / shares.sum())


def argmin(values: Sequence[float]) -> int | None:
    """Return the index of the lowest value; NaN counts as +inf, None if all are NaN.

    Ties are broken as upstream does: by the SHA-256 of the values' bytes, so that the choice is arbitrary but the same
    in every run.
    """
    if all(math.isnan(value) for value in values):
        return None
    numbers = array("d", [math.inf if math.isnan(value) else value for value in values])
    least = min(numbers)
    lowest = [index for index, value in enumerate(numbers) if value == least]
    digest = int(hashlib.sha256(numbers.tobytes()).hexdigest(), 16)
    return lowest[digest % len(lowest)]


def count_reference_tokens(tokens: Sequence[str], reference: str) -> int | None:
    """Return how many of the last tokens spell `reference` (the space before it belongs to its first token).

    None when the tokens do not end with it: the log-probability of this option is then unknown.
    """
    wanted = reference.strip()
    tail = ""
    for count, token in enumerate(reversed(tokens), start=1):
        # SentencePiece writes its word boundary as U+2581.
        tail = token.replace("▁", " ") + tail
        if tail.strip() == wanted:
            return count
        if len(tail.strip()) > len(wanted):
            break
    return None
