"""What was made of texts that come again: of short ones many are remembered, of long ones the last few.

Labels, options and short answers come again in other rows. A long answer does not: it is asked for again by the other
scores of its own row, and thousands of them would fill memory. Plain equivalent: the function itself.
"""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

SHORT = 128
"""Characters of a text that many are remembered of."""
_MANY, _FEW = 4096, 32

T = TypeVar("T")
P = ParamSpec("P")


def remember_short(function: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Return a function of a text, and of options, that remembers what it returned."""
    of_short, of_long = lru_cache(_MANY)(function), lru_cache(_FEW)(function)

    @wraps(function)
    def remembered(text: str, /, *args: P.args, **options: P.kwargs) -> T:
        return (of_short if len(text) <= SHORT else of_long)(text, *args, **options)  # type: ignore[arg-type] # hashable

    return remembered
