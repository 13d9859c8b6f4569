"""Completions to predictions: extraction, cleaning and lists (docs/adapter_spec.md, "`scoring`")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

__all__ = [
    "apply_pattern",
    "clean",
    "compile_pattern",
    "extract",
    "list_prediction",
    "split_segments",
    "without_thinking",
]

SEPARATOR = ";"
"""What stands between the segments of a list."""


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


def extract(text: str, pattern: str | re.Pattern[str]) -> str:
    """Return the first group of the last match (the whole match if the pattern has no group), or "" without a match.

    The key `extract` of `scoring` (docs/adapter_spec.md): the last, because reasoning comes before the answer.
    """
    compiled = compile_pattern(pattern) if isinstance(pattern, str) else pattern
    last = None
    for last in compiled.finditer(text):  # noqa: B007 - only the last one is wanted
        pass
    return "" if last is None else _captured(last)


def apply_pattern(text: str, pattern: str | re.Pattern[str]) -> str:
    """Return the first group of the *first* match, the whole match if the pattern has no group, or "" without a match.

    HELM's rule for `output_mapping_pattern` (evaluate_reference_metrics.py), but for a group that took no part in the
    match: HELM returns None there.
    """
    compiled = compile_pattern(pattern) if isinstance(pattern, str) else pattern
    match = compiled.search(text)
    return "" if match is None else _captured(match)


def clean(text: str, *, extract: str | None = None, strip: bool = False, lower: bool = False) -> str:
    """Apply the options of `scoring`, in this order: extract, strip, lower."""
    if extract is not None:
        text = _extract(text, extract)
    if strip:
        text = text.strip()
    return text.lower() if lower else text


def without_thinking(text: str) -> str:
    """Return what a reasoning model says after it has thought: the text behind the last `</think>`.

    Many chat templates open `<think>` in the prompt, so the completion has the end only. Thinking that never ends (the
    completion, or what is behind, starts with `<think>` and was cut off) has no answer behind it: "".
    """
    _, _, behind = text.rpartition("</think>")
    return "" if behind.lstrip().startswith("<think>") else behind


_extract = extract  # `clean` has an argument of that name, after the key in the file


def split_segments(text: str) -> list[str]:
    """Split a list written as text on `;`, every segment stripped.

    Empty segments at the end are no segments (`a; b;` has two, "" has none). Elsewhere they are kept: they shift what
    follows, and an ordered comparison must see that.
    """
    segments = [segment.strip() for segment in text.split(SEPARATOR)]
    while segments and not segments[-1]:
        segments.pop()
    return segments


def list_prediction(completions: Sequence[str]) -> list[str]:
    """Return the predicted list: the stripped texts of all completions in recorded order when there is more than one,
    else the only one's text split on `;`. No completion at all is the empty list.
    """
    if len(completions) == 1:
        return split_segments(completions[0])
    return [text.strip() for text in completions]
