"""How values, numbers, names and places are written in messages."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from typing import Any

SHOWN_VALUE_LENGTH = 80
"""At most this many characters of a value are shown: data may be private, and terminals are narrow."""

Path = tuple[str | int, ...]
"""A place inside a document: ("request_states", 3, "instance", "id")."""

_COMPARED_LENGTH = 100
"""Longer names are not compared: the time grows with the product of two lengths, and nobody mistypes so long a name."""


def show(value: Any) -> str:
    """Return `value` as JSON (or its repr), shortened to SHOWN_VALUE_LENGTH characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    text = printable(text)
    return text if len(text) <= SHOWN_VALUE_LENGTH else text[: SHOWN_VALUE_LENGTH - 1] + "…"


_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 without tab and line feed, DEL, C1, what changes the direction of a line, and lone surrogates (not UTF-8)."""


def printable(text: str) -> str:
    """Return `text` with JSON's escapes for the characters that a terminal would obey: JSON keeps its meaning."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def count(number: int, one: str, many: str = "") -> str:
    """Return `1 row` or `2 rows`; `many` where it is not `one` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def near_words(word: str, known: Iterable[str]) -> list[str]:
    """Return up to three of the known words that are spelt nearly as `word`, the nearest first."""
    if len(word) > _COMPARED_LENGTH:
        return []
    by_lower = {name.lower(): name for name in known if len(name) <= _COMPARED_LENGTH}
    return [by_lower[name] for name in difflib.get_close_matches(word.lower(), by_lower, n=3, cutoff=0.6)]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?" for the known words nearest to `word`, or "" when none is near."""
    near = near_words(word, known)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def format_path(path: Path) -> str:
    """Write a path as the reader would: `request_states[3].instance.id`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier():
            text += f".{part}" if text else part
        else:
            text += f"[{show(part)}]"
    return text
