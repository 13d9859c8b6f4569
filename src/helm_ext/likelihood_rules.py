"""How log-probabilities of a row's options become its score: pure functions (formats.md, section 2).

The input of a row is one list of token log-probabilities for each option: those of the *whole* string (prompt + option)
but its first token.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

__all__ = ["MAIN_STATS", "RULES", "argmin", "common_prefix", "common_tokens", "mc2", "ppl", "ppl_norm"]

MAIN_STATS = {"ppl": "ppl_accuracy", "ppl_norm": "ppl_norm_accuracy", "mc2": "mc2"}
"""Rule to the stat on the leaderboard."""

RULES = tuple(MAIN_STATS)

Logprobs = Sequence[Sequence[float]]


def ppl(options: Logprobs) -> list[float]:
    """Return the negative log-likelihood of each string. No length normalisation."""
    return [-sum(option) for option in options]


def common_prefix(options: Logprobs, tokens: Sequence[Sequence[str]] | None = None) -> int:
    """Return how many leading tokens all options have in common.

    Upstream compares log-probabilities and nothing else. The same tokens after the same tokens have the same
    log-probability, but computed in two requests it can differ in the last digits: so the same token counts as well.
    """
    length = 0
    for position, values in enumerate(zip(*options, strict=False)):
        same_token = tokens is not None and len({option[position] for option in tokens}) == 1
        if not same_token and any(value != values[0] for value in values):
            break
        length += 1
    return length


def common_tokens(tokens: Sequence[Sequence[str]]) -> int:
    """Return how many leading tokens all options have in common, by their text."""
    return next((n for n, texts in enumerate(zip(*tokens, strict=False)) if len(set(texts)) > 1), min(map(len, tokens)))


def ppl_norm(options: Logprobs, tokens: Sequence[Sequence[str]] | None = None) -> list[float]:
    """Return the mean negative log-probability of each option's tokens beyond the common prefix."""
    prefix = common_prefix(options, tokens)
    return [-sum(option[prefix:]) / len(option[prefix:]) if option[prefix:] else math.nan for option in options]


def mc2(negative_logprobs: Sequence[float], worth: Sequence[float]) -> float:
    """Return the share of the probability of all options that lies on those worth more than 0.

    Computed with log-sum-exp: the probabilities themselves are far below the smallest float. NaN is no probability.
    """
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
    array = np.array([math.inf if math.isnan(value) else value for value in values], dtype=np.float64)
    lowest = np.flatnonzero(array == array.min())
    digest = int(hashlib.sha256(array.tobytes()).hexdigest(), 16)
    return int(lowest[digest % len(lowest)])
