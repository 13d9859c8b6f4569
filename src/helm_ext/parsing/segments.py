"""Texts to lists of segments (`output_format: "list"`), and where a text is cut at a stop sequence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from helm_ext.parsing.predictions import compile_pattern

__all__ = ["SEPARATOR", "cut_at_stops", "find_segments", "list_prediction", "split_segments"]

SEPARATOR = ";"
"""What stands between the segments of a list, unless a file names something else."""

BETWEEN_PARTS = "\x1f"
"""Stands between the parts of a segment that is a tuple. White space to Python, so it separates words too."""
_NO_PART = "\x00"
"""Stands for an empty part, so that ("", "a") is not ("a", "")."""

_FINAL_STOP = re.compile(r"(?<![.。．])[.。．]\Z")


def split_segments(text: str, separator: str = SEPARATOR) -> list[str]:
    """Split a list written as text on the separator. Segments are stripped; a final full stop is no part of one.

    Empty segments at the end are no segments (`a; b;` has two, "" has none). Elsewhere they are kept: they shift what
    follows, and an ordered comparison must see that.
    """
    segments = [_trim(segment) for segment in text.split(separator)]
    while segments and not segments[-1]:
        segments.pop()
    return segments


def find_segments(text: str, pattern: str | re.Pattern[str], *, positions: bool = False) -> list[str]:
    """Return each match of a pattern as a segment, trimmed as in `split_segments`.

    A pattern without a group gives the whole match, one with a group that group, one with several a tuple: its parts
    are trimmed, and joined by a character that no text has. With `positions` the number of words before the match is
    a further part; what earlier matches hold outside of their first group is no word.
    Raises ValueError for what is no regular expression.
    """
    compiled = compile_pattern(pattern) if isinstance(pattern, str) else pattern
    segments = []
    words = end = 0
    for match in compiled.finditer(text):
        parts = [_trim(part or "") for part in (match.groups() if compiled.groups else (match.group(),))]
        if positions:
            words += len(text[end : match.start()].split())
            end = match.end()
            parts.append(str(words))
            words += len((match.group(min(1, compiled.groups)) or "").split())
        segments.append(parts[0] if len(parts) == 1 else BETWEEN_PARTS.join([part or _NO_PART for part in parts]))
    return segments


def list_prediction(completions: Sequence[str], separator: str = SEPARATOR) -> list[str]:
    """Return the predicted list: the trimmed texts of all completions in recorded order when there is more than one,
    else the only one's text split on the separator. No completion at all is the empty list.
    """
    if len(completions) == 1:
        return split_segments(completions[0], separator)
    return [_trim(text) for text in completions]


def cut_at_stops(text: str, stops: Iterable[str]) -> str:
    """Return what stands before the first of some stop sequences.

    One of white space alone counts only behind other text: completions begin with blank lines.
    """
    end = len(text)
    for stop in stops:
        start = 0 if stop.strip() else len(text) - len(text.lstrip())
        found = text.find(stop, start)
        if found != -1:
            end = min(end, found)
    return text[:end]


def _trim(segment: str) -> str:
    segment = segment.strip()
    if segment.endswith((".", "。", "．")):
        segment = _FINAL_STOP.sub("", segment).rstrip()
    return segment
