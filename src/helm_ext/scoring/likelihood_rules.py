"""How log-probabilities of a row's options become its score: pure functions (docs/ultraeval.md).

The input of a row is one list of token log-probabilities for each option: those of the *whole* string (prompt + option)
but its first token.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Sequence

MAIN_STATS = {"ppl": "ppl_accuracy", "ppl_norm": "ppl_norm_accuracy", "mc2": "mc2"}
"""Rule to the stat on the leaderboard."""

RULES = tuple(MAIN_STATS)

Logprobs = Sequence[Sequence[float]]


def ppl(options: Logprobs) -> list[float]:
    """Return the negative log-likelihood of each string. No length normalisation."""
    return [-sum(option) for option in options]


REPLACEMENT = "\ufffd"
"""What a token's text holds where the token is part of a character only. Any two such tokens look alike."""

REL_TOLERANCE, ABS_TOLERANCE = 1e-4, 1e-5
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
            readable = tokens is not None and not any(REPLACEMENT in text for text in texts)
            if (readable and len(texts) > 1) or not (readable or _nearly_equal(values)):
                break
        length += 1
    return length


def _nearly_equal(values: Sequence[float]) -> bool:
    return all(math.isclose(value, values[0], rel_tol=REL_TOLERANCE, abs_tol=ABS_TOLERANCE) for value in values)


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
