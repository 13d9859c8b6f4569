"""Completions to predictions: extraction and cleaning (docs/adapter_spec.md, `scoring`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a user's regular expression; ValueError says what is wrong with it and where."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        reason = error.msg if isinstance(error, re.error) else "too deeply nested or too large"
        position = getattr(error, "pos", None)
        place = "" if position is None else f" at character {position + 1}"
        shown = pattern if len(pattern) <= 80 else pattern[:79] + "…"
        raise ValueError(f"not a regular expression: {reason}{place}: {shown}") from error


def _captured(match: re.Match[str]) -> str:
    """Return the first group, or the whole match where there is no group; "" for a group that took no part."""
    return (match.group(1) if match.re.groups else match.group(0)) or ""


def extract(text: str, pattern: str | re.Pattern[str]) -> str | None:
    """Return the first group of the last match (the whole match if the pattern has no group); None without a match.

    The last, because reasoning comes before the answer. A group that took no part in the match is "". A match of no
    character that captures none is passed over: a pattern that can be empty has one at the end of every text.
    """
    compiled = compile_pattern(pattern) if isinstance(pattern, str) else pattern
    last = None
    for match in compiled.finditer(text):
        if match.end() > match.start() or _captured(match):
            last = match
    return None if last is None else _captured(last)


def apply_pattern(text: str, pattern: str | re.Pattern[str]) -> str:
    """Return the first group of the *first* match, the whole match if the pattern has no group, or "" without a match.

    HELM's rule for `output_mapping_pattern` (evaluate_reference_metrics.py), but for a group that took no part in the
    match: HELM returns None there.
    """
    compiled = compile_pattern(pattern) if isinstance(pattern, str) else pattern
    match = compiled.search(text)
    return "" if match is None else _captured(match)


def clean(text: str, *, extract: str | None = None, strip: bool = False, lower: bool = False) -> str | None:
    """Apply the options of `scoring`, in this order: extract, strip, lower. None where `extract` matches nothing."""
    if extract is not None:
        extracted = _extract(text, extract)
        if extracted is None:
            return None
        text = extracted
    if strip:
        text = text.strip()
    return text.lower() if lower else text


def is_cut_off(finish_reason: Mapping[str, str] | None) -> bool:
    """Tell whether a completion was stopped at its limit of tokens: no option is guessed from what had been said."""
    return finish_reason is not None and finish_reason.get("reason") in _LIMITS


_LIMITS = frozenset({"length", "max_tokens", "model_length"})
"""OpenAI's and HELM's word for it, Anthropic's, and inspect's for the model's window."""


_extract = extract  # `clean` has an argument of that name, after the key in the file
