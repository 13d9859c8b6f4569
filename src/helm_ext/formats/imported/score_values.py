"""Values of scores that others gave: numbers, or words for them, as inspect_ai counts them (`value_to_float`)."""

from __future__ import annotations

import math
from typing import Any

from helm_ext.formats.imported.row import is_finite_number

_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partially correct, incorrect, no answer."""
_LOWER_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def to_number(value: Any) -> float | None:
    """Return a score's value as inspect_ai counts it; NaN for what was not scored, None for what is no number."""
    if isinstance(value, str):
        known = _WORDS.get(value, _LOWER_WORDS.get(value.lower()))
        if known is not None:
            return known
        try:
            number = float(value)
        except ValueError:
            return None
        return number if math.isfinite(number) else None
    if isinstance(value, int) and not is_finite_number(int(value)):
        return None
    return float(value) if isinstance(value, int | float) else None
