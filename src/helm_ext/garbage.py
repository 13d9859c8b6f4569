"""The garbage collector and objects that live until the end of a run.

A run makes millions of objects and frees few before it ends. Python's collector looks for cycles among all of them
again and again, and finds none: a quarter of the time of HELM's own runner. Reference counts free what is dropped.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["paused", "relax", "relaxed"]

_THRESHOLDS = 50_000, 20, 100


def relax() -> None:
    """Let the collector look less often, and not at what is there already: from now on, in this process.

    Frozen once only: what a run leaves behind is found when the next one starts.
    """
    if gc.get_freeze_count():
        _find_left_behind()
    else:
        gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def _find_left_behind() -> None:
    """Free what runs left in cycles: a failed one can leave all of its rows, in the frames of its exception.

    Nobody else would look in time, and what is frozen stays for good. It is quick: the frozen objects are left alone.
    """
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
    was_enabled, frozen = gc.isenabled(), gc.get_freeze_count()
    if was_enabled and frozen:
        _find_left_behind()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            if not frozen:
                gc.unfreeze()  # into the oldest generation: the youngest would be looked through at once
            gc.enable()
