"""The event loop on which a process waits for all servers: one thread, started when it is first needed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_running: dict[int, tuple[asyncio.AbstractEventLoop, threading.Thread]] = {}
"""By process: a forked one has no threads of its parent, and starts a loop of its own."""

_starting = threading.Lock()


def _get_loop() -> asyncio.AbstractEventLoop:
    with _starting:
        if os.getpid() not in _running:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="helm-ext-event-loop", daemon=True)
            thread.start()
            _running[os.getpid()] = loop, thread
        return _running[os.getpid()][0]


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop and wait for its result. May be called by any thread but the loop's own.

    Where the waiting is interrupted (Ctrl-C), the coroutine is cancelled and has ended when this returns.
    """
    ended = threading.Event()

    async def to_the_end() -> T:
        try:
            return await coroutine
        finally:
            ended.set()

    future = asyncio.run_coroutine_threadsafe(to_the_end(), _get_loop())
    try:
        return future.result()
    except BaseException:
        if future.cancel():
            ended.wait(timeout=10)
        raise


def run_last(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine that tidies up: when an object goes, or the process ends. Waits a second for it at most."""
    loop, thread = _running.get(os.getpid(), (None, None))
    if loop is None or not loop.is_running():
        coroutine.close()
        return
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    if threading.current_thread() is not thread:
        with contextlib.suppress(Exception):
            future.result(timeout=1)
