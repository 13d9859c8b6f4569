"""The garbage collector and objects that live until the end of a run.

A run makes millions of objects and frees few before it ends. Python's collector looks for cycles among all of them
again and again, and finds none. Reference counts free what is dropped.

Plain equivalent: nothing, `contextlib.nullcontext()`. `paused` saves 30 % of a recorded run (10,000 rows), `relaxed`
40 % of a run that builds prompts (1,500 rows of W1, a client that answers at once). Held by
tests/unit/running/test_runner.py: the collector is left as it was, and what a failed run left is freed by the next one.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = 50_000, 20, 100
_runs: dict[str, bool] = {"begun": False}
"""Whether this process has frozen anything for a run; `gc.get_freeze_count` walks through all that is frozen."""


def relax() -> None:
    """Let the collector look less often, and not at what is there already: from now on, in this process."""
    _free_left_behind()
    gc.freeze()
    _runs["begun"] = True
    gc.set_threshold(*_THRESHOLDS)


def _free_left_behind() -> None:
    """Free what earlier runs left in cycles: a failed one can leave all of its rows, in the frames of its exception.

    What is frozen is never looked at again, so this comes before. It is quick: only what is new since the last time is
    looked at. The first time there was no run.
    """
    if _runs["begun"]:
        gc.collect()


@contextmanager
def relaxed() -> Iterator[None]:
    """Do so for a while. What was frozen stays so, for the next time."""
    thresholds = gc.get_threshold()
    relax()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def paused() -> Iterator[None]:
    """Look for nothing at all, where nothing has cycles; what was made meanwhile counts as old afterwards."""
    was_enabled = gc.isenabled()
    if was_enabled:
        _free_left_behind()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            if not _runs["begun"]:
                gc.unfreeze()  # into the oldest generation: the youngest would be looked through at once
            gc.enable()
