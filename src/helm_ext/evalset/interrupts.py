"""Processes that Ctrl-C leaves alone, because whoever started them ends them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["held_back"]


@contextmanager
def held_back() -> Iterator[None]:
    """Hold back Ctrl-C: here, and for good in processes that this thread starts meanwhile.

    A terminal interrupts all processes of a command, and each would print a traceback of its own. They cannot refuse
    that themselves early enough: it comes while they import, too.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
