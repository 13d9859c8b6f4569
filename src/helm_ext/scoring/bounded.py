"""What texts of data may take is bounded: the time of a pattern, and the memory of what was made of them.

Regular expressions (`extract`, `extract_all`, `output_mapping_pattern`) are applied by Python's `re`, whose meaning no
other engine has (`$` before a line feed, which characters are words and digits, lookbehind), and which looks for
signals while it matches. The limit is one of CPU time, so that a busy machine does not reach it sooner.

Labels, options and short answers come again in other rows: of short texts many are remembered. A long answer does not
come again: it is asked for by the other scores of its own row, and thousands of them would fill memory, so of long
texts the last few are. Plain equivalent: the function itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from types import FrameType
from typing import Concatenate, ParamSpec, TypeVar

from helm_ext.errors import HelmExtError, count, show

PATTERN_SECONDS = 10.0
"""CPU seconds for one text. A pattern that is not hopeless takes microseconds."""

SHORT = 128
"""Characters of a text that many are remembered of."""
_MANY, _FEW = 4096, 32

T = TypeVar("T")
P = ParamSpec("P")


class PatternTimeoutError(HelmExtError):
    """A pattern takes too long with a text. It ends the run: a row without an answer would be a wrong score."""


@contextmanager
def limit_pattern(pattern: str | None, text: str = "") -> Iterator[None]:
    """Raise PatternTimeoutError in a block that applies the pattern to this text for more than PATTERN_SECONDS.

    Blocks are not nested. Without a pattern, outside of the main thread (Python handles signals there alone) and on
    Windows there is no limit.
    """
    if pattern is None or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise PatternTimeoutError(
            f"the regular expression {show(pattern)} takes more than {PATTERN_SECONDS:g} seconds with a text of "
            f"{count(len(text), 'character')}: {show(text)}\n"
            "  hint: repetitions inside repetitions, (a+)+, try every way to divide a text; write it without them"
        )

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATTERN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def remember_short(function: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Return a function of a text, and of options, that remembers what it returned."""
    of_short, of_long = lru_cache(_MANY)(function), lru_cache(_FEW)(function)

    @wraps(function)
    def remembered(text: str, /, *args: P.args, **options: P.kwargs) -> T:
        return (of_short if len(text) <= SHORT else of_long)(text, *args, **options)  # type: ignore[arg-type] # hashable

    return remembered
