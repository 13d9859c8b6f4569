"""Batches in processes of this machine: `HELM_EXT_WORKERS=N`.

Each worker is a pool of one process, so that what a lost process takes along is its own: a pool of several gives up all
that waits (`BrokenProcessPool`). Processes are spawned, not forked: HELM has threads.
"""

from __future__ import annotations

import heapq
import multiprocessing
import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.connection import wait as wait_for
from typing import Any, TypeVar

from helm.common.hierarchical_logger import hwarn

from helm_ext.evalset.engines import BatchLostError, Job, Jobs, read_number

__all__ = ["WORKERS_ENV", "ProcessEngine", "find_engine"]

WORKERS_ENV = "HELM_EXT_WORKERS"
"""Processes that read and score the rows of large files; 1, the default: this one."""

Task = TypeVar("Task")
Result = TypeVar("Result")

AHEAD = 2
"""Tasks that a worker has at a time: one that it does, and one so that it need not wait."""


def find_engine() -> ProcessEngine | None:
    """Return the processes that HELM_EXT_WORKERS asks for; None: this process does all. Raises HelmExtError.

    A daemonic process cannot start others (multiprocessing), so it does all itself.
    """
    workers = int(read_number(WORKERS_ENV, 1, least=1))
    return ProcessEngine(workers) if workers > 1 and not multiprocessing.current_process().daemon else None


@dataclass(eq=False)
class _Slot:
    """A worker, and what it has to do."""

    pool: ProcessPoolExecutor
    jobs: dict[Future[Any], Job[Any]] = field(default_factory=dict)
    is_lost: bool = False

    def collect(self) -> Iterator[tuple[Job[Any], Any]]:
        """Yield what is done, of a lost worker too, and take note if it is lost. Raises what a task raises."""
        for future in [future for future in self.jobs if future.done()]:
            try:
                result = future.result()
            except BrokenProcessPool:
                self.is_lost = True
            else:
                yield self.jobs.pop(future), result


class ProcessEngine:
    """Does tasks in so many processes. See `engines.Engine`."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(
        self,
        make_worker: Callable[[], Callable[[Task], Result]],
        tasks: Iterable[Task],
        *,
        split: Callable[[Task], Sequence[Task]] = lambda _: (),
        following: deque[Any] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield the results in the order of the tasks; of a task that had to be split, those of its parts.

        Raises what a task raises, and BatchLostError for one that ends each process that does it.
        """
        packed = pickle.dumps(make_worker, pickle.HIGHEST_PROTOCOL)
        jobs: Jobs[Task] = Jobs(tasks, split, following)
        slots = [_Slot(_make_pool(packed)) for _ in range(self.workers)]
        done: list[tuple[tuple[int, ...], Any]] = []  # a heap; no two keys are equal
        try:
            while True:
                self._give_out(slots, jobs, may_be_new=len(done) < 2 * AHEAD * self.workers)
                if not any(slot.is_lost for slot in slots):
                    waiting = [future for slot in slots for future in slot.jobs]
                    if not waiting:
                        return
                    wait(waiting, return_when=FIRST_COMPLETED)
                for slot in slots:
                    for job, result in slot.collect():
                        jobs.finish(job)
                        if job.has_result:
                            heapq.heappush(done, (job.key, result))
                _replace_lost(slots, jobs, packed)
                while done and jobs.is_next(done[0][0]):
                    yield heapq.heappop(done)[1]
        finally:
            for slot in slots:  # until they have ended: what they write into may be removed next
                slot.pool.shutdown(wait=True, cancel_futures=True)

    def _give_out(self, slots: Sequence[_Slot], jobs: Jobs[Any], *, may_be_new: bool) -> None:
        """Give workers their next tasks, first those that have none."""
        for depth in range(AHEAD):
            for slot in slots:
                if slot.is_lost or len(slot.jobs) > depth or any(job.lone for job in slot.jobs.values()):
                    continue
                job = jobs.take(may_be_lone=not slot.jobs, may_be_new=may_be_new)
                if job is None:
                    continue
                try:
                    slot.jobs[slot.pool.submit(_work, job.task)] = job
                except BrokenProcessPool:  # it died while it waited for work, or since
                    jobs.put_back(job)
                    slot.is_lost = True


def _replace_lost(slots: Sequence[_Slot], jobs: Jobs[Any], packed: bytes) -> None:
    """Replace the workers that are lost. Raises BatchLostError."""
    for slot in slots:
        if slot.is_lost:
            _replace(slot, jobs, packed)


def _replace(slot: _Slot, jobs: Jobs[Any], packed: bytes) -> None:
    """Start another process, and take back what the lost one had. Raises BatchLostError."""
    lost, slot.jobs, slot.is_lost = list(slot.jobs.values()), {}, False
    slot.pool.shutdown(wait=False, cancel_futures=True)
    slot.pool = _make_pool(packed)
    hwarn(f"a worker process was lost, and is started again; {len(lost)} batches are done again")
    for job in lost:
        if not jobs.lose(job):
            raise BatchLostError(f"{job.task}: this batch ends each process that does it")


def _make_pool(packed: bytes) -> ProcessPoolExecutor:
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=spawn, initializer=_begin, initargs=(packed,))


# In a worker process

_worker: dict[str, Any] = {}
"""`packed`: how to make what does the tasks; `work`: that, once the first task came. Errors in making it are the
task's."""


def _begin(packed: bytes) -> None:
    _worker["packed"] = packed
    parent = multiprocessing.parent_process()
    assert parent is not None

    def leave_with_parent() -> None:
        """End this process when the one that started it has ended, however: nobody else would."""
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=leave_with_parent, daemon=True).start()


def _work(task: Any) -> Any:
    try:
        if "work" not in _worker:
            _worker["work"] = pickle.loads(_worker["packed"])()  # noqa: S301 - from our own driver
        return _worker["work"](task)
    except MemoryError:  # a limit (`ulimit -v`), where else the system would end the process: so it is lost, too
        os._exit(1)
