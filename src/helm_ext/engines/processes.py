"""Batches in processes of this machine: `HELM_EXT_WORKERS=N`.

Each worker is a pool of one process, so that what a lost process takes along is its own: a pool of several ends all its
processes, and gives up all that waits. Processes are spawned, not forked: HELM has threads.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from typing import Any

from helm_ext.engines.engine import LostError, ThisProcess, Workers, read_number

WORKERS_ENV = "HELM_EXT_WORKERS"
"""Processes that read and score the rows of large files; 1, the default: this one."""


def find_engine() -> ProcessEngine | ThisProcess:
    """Return the processes that HELM_EXT_WORKERS asks for. Raises HelmExtError for a number that is none.

    A daemonic process cannot start others (multiprocessing), so it does all itself.
    """
    workers = int(read_number(WORKERS_ENV, 1, least=1))
    return ProcessEngine(workers) if workers > 1 and not multiprocessing.current_process().daemon else ThisProcess()


class ProcessEngine(Workers):
    """Does tasks in so many processes."""

    start_hint = f"is there memory for them? {WORKERS_ENV}=1 starts none"

    def __init__(self, workers: int) -> None:
        super().__init__()
        self._most = workers

    def count_workers(self) -> int:
        """Return how many there are."""
        return self._most

    def _start(self, packed: bytes) -> tuple[ProcessPoolExecutor, Future[None]]:
        spawn = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_begin)
        try:
            return pool, pool.submit(_make, packed)  # an argument of the initializer would stay in the process's memory
        except (RuntimeError, OSError, MemoryError) as error:  # no process, or no thread that waits for it (`ulimit`)
            for process in (pool._processes or {}).values():  # noqa: SLF001 - nobody else would end them
                process.kill()
                process.join()
            raise LostError(str(error)) from error

    def _submit(self, handle: ProcessPoolExecutor, task: Any) -> Future[Any]:
        try:
            return handle.submit(_work, task)
        except BrokenProcessPool as error:
            raise LostError from error

    def _wait(self, calls: list[Future[Any]]) -> Collection[Future[Any]]:
        return wait(calls, return_when=FIRST_COMPLETED).done

    def _take(self, call: Future[Any]) -> Any:
        try:
            return call.result()
        except BrokenProcessPool as error:
            raise LostError from error

    def _end(self, handle: ProcessPoolExecutor) -> None:
        handle.shutdown(wait=True, cancel_futures=True)


# In a worker process

_worker: dict[str, Callable[[Any], Any]] = {}
"""`work`: what does the tasks."""


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for all processes of a terminal; who started this ends it
    parent = multiprocessing.parent_process()
    assert parent is not None

    def leave_with_parent() -> None:
        """End this process when the one that started it has ended, however: nobody else would."""
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=leave_with_parent, daemon=True).start()


def _make(packed: bytes) -> None:
    try:
        _worker["work"] = pickle.loads(packed)()  # noqa: S301 - from our own driver
    except MemoryError:
        os._exit(1)


def _work(task: Any) -> Any:
    try:
        return _worker["work"](task)
    except MemoryError:  # a limit (`ulimit -v`), where else the system would end the process: so it is lost, too
        os._exit(1)
