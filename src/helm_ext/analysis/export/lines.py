"""JSON that every reader takes: strict, and a line of it is one line to all."""

from __future__ import annotations

import json
import math
from typing import Any

_LINE_ENDS = {ord(character): f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}
"""Python's `str.splitlines`, as Every Eval Ever's validator uses it, ends a line at these; JSON leaves them raw."""


def to_json(value: Any) -> str:
    """Return a value as JSON on one line. NaN and infinities, which JSON has no numbers for, are written as text."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_name_nonfinite(value), ensure_ascii=False, allow_nan=False)


def to_line(value: Any) -> bytes:
    """Return a line of JSON Lines. Half of a surrogate pair, which no file can hold, becomes a question mark."""
    return to_json(value).translate(_LINE_ENDS).encode("utf-8", "replace") + b"\n"


def _name_nonfinite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _name_nonfinite(item) for key, item in value.items()}
    return [_name_nonfinite(item) for item in value] if isinstance(value, list) else value
