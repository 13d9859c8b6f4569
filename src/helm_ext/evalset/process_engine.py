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

from helm_ext.errors import HelmExtError, count
from helm_ext.evalset.engines import FAILED_STARTS, BatchLostError, Job, Jobs, read_number
from helm_ext.evalset.interrupts import held_back
from helm_ext.evalset.worker_state import WorkerState, take_state

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
    starting: Future[None] | None
    """The call that makes what does the tasks; None when it is there. A worker gets tasks from then on, so that one
    that is lost while it starts says nothing of any task."""
    state: WorkerState
    jobs: dict[Future[Any], Job[Any]] = field(default_factory=dict)
    is_lost: bool = False

    def pending(self) -> list[Future[Any]]:
        """Return what is waited for."""
        return [*self.jobs, *([self.starting] if self.starting is not None else [])]

    def collect(self) -> Iterator[tuple[Job[Any], Any]]:
        """Yield what is done, of a lost worker too, and take note if it is lost. Raises what a task raises."""
        for future in [future for future in self.jobs if future.done()]:
            try:
                result = future.result()
            except BrokenProcessPool:
                self.is_lost = True
            else:
                job = self.jobs.pop(future)
                self.state.finish(job.task)
                yield job, result

    def note(self) -> None:
        """Say what it does now: it starts, or the first of its jobs."""
        first = next((job.task for job in self.jobs.values()), None)
        self.state.begin("starting" if self.starting is not None else first)


class ProcessEngine:
    """Does tasks in so many processes. See `engines.Engine`."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.states: list[WorkerState] = []
        """What the workers do, for who looks; those of the last call of `map`."""

    def map(
        self,
        make_worker: Callable[[], Callable[[Task], Result]],
        tasks: Iterable[Task],
        *,
        split: Callable[[Task], Sequence[Task]] = lambda _: (),
        following: deque[Any] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield the results in the order of the tasks; of a task that had to be split, those of its parts.

        Raises what a task raises, BatchLostError for one that ends each process that does it, and HelmExtError where
        no process can be started.
        """
        jobs: Jobs[Task] = Jobs(tasks, split, following)
        self.states.clear()
        workers = _Workers(self.workers, pickle.dumps(make_worker, pickle.HIGHEST_PROTOCOL), self.states)
        done: list[tuple[tuple[int, ...], Any]] = []  # a heap; no two keys are equal
        try:
            while True:
                workers.start(jobs)
                workers.give_out(jobs, may_be_new=len(done) < 2 * AHEAD * self.workers)
                if not any(slot.is_lost for slot in workers.slots):
                    pending = [future for slot in workers.slots for future in slot.pending()]
                    if not pending:
                        return
                    wait(pending, return_when=FIRST_COMPLETED)
                for slot in workers.slots:
                    for job, result in slot.collect():
                        jobs.finish(job)
                        if job.has_result:
                            heapq.heappush(done, (job.key, result))
                workers.take_starts()
                workers.bury(jobs)
                while done and jobs.is_next(done[0][0]):
                    yield heapq.heappop(done)[1]
        finally:
            workers.end()


class _Workers:
    """The workers of one call of `map`: as many as there is work for."""

    def __init__(self, most: int, packed: bytes, states: list[WorkerState]) -> None:
        self.slots: list[_Slot] = []
        self._most = most
        self._packed = packed
        self._states = states
        self._failed_starts = 0
        """In a row."""

    def start(self, jobs: Jobs[Any]) -> None:
        """Start workers for what there is to do. Raises HelmExtError where none can be started, several times.

        Those that are there go on where no other can be started.
        """
        while len(self.slots) < self._most and self._failed_starts < FAILED_STARTS * self._most:
            idle = sum(not slot.jobs for slot in self.slots)
            if jobs.ahead(idle + 1) <= idle:
                return
            pool = _make_pool(self._packed)
            state = take_state(self._states, [slot.state for slot in self.slots], "worker")
            try:
                with held_back():  # the process is started here
                    starting = pool.submit(_make)
            except (RuntimeError, OSError, MemoryError):  # no process, or no thread that waits for it (`ulimit`)
                for process in (pool._processes or {}).values():  # noqa: SLF001 - nobody else would end them
                    process.kill()
                    process.join()
                self._failed_starts += 1
                continue
            self.slots.append(_Slot(pool, starting, state))
        if not self.slots and jobs.ahead(1):
            raise HelmExtError(
                f"workers cannot start: {count(self._failed_starts, 'process', 'processes')}, one after another, "
                f"ended before they could do anything\n  hint: is there memory for them? {WORKERS_ENV}=1 starts none"
            )

    def take_starts(self) -> None:
        """Take note of workers that are ready, or lost. Raises what making one raised."""
        for slot in self.slots:
            if slot.starting is not None and slot.starting.done():
                try:
                    slot.starting.result()
                except BrokenProcessPool:
                    self._failed_starts += 1
                    slot.is_lost = True
                else:
                    self._failed_starts = 0
                    slot.starting = None

    def give_out(self, jobs: Jobs[Any], *, may_be_new: bool) -> None:
        """Give those that are ready their next tasks, first those that have none."""
        for depth in range(AHEAD):
            for slot in self.slots:
                is_ready = slot.starting is None and not slot.is_lost
                if not is_ready or len(slot.jobs) > depth or any(job.lone for job in slot.jobs.values()):
                    continue
                job = jobs.take(may_be_lone=not slot.jobs, may_be_new=may_be_new)
                if job is None:
                    continue
                try:
                    slot.jobs[slot.pool.submit(_work, job.task)] = job
                except BrokenProcessPool:  # it died while it waited for work, or since
                    jobs.put_back(job)
                    slot.is_lost = True
        for slot in self.slots:
            slot.note()

    def bury(self, jobs: Jobs[Any]) -> None:
        """Let lost workers go, and take back what they had. Raises BatchLostError."""
        for slot in [slot for slot in self.slots if slot.is_lost]:
            self.slots.remove(slot)
            slot.state.restart()
            slot.pool.shutdown(wait=False, cancel_futures=True)
            if slot.starting is not None:
                hwarn("a worker process was lost while it started; no row had been given to it")
                continue
            again = ", ".join(str(job.task) for job in slot.jobs.values())
            hwarn(f"a worker process was lost{again and f'; done again: {again}'}")
            for job in slot.jobs.values():
                if not jobs.lose(job):
                    raise BatchLostError(f"{job.task}: this batch ends each process that does it")

    def end(self) -> None:
        """Return when all have ended: what they write into may be removed next."""
        for slot in self.slots:
            slot.pool.shutdown(wait=True, cancel_futures=True)


def _make_pool(packed: bytes) -> ProcessPoolExecutor:
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=spawn, initializer=_begin, initargs=(packed,))


# In a worker process

_worker: dict[str, Any] = {}
"""`packed`: how to make what does the tasks; `work`: that."""


def _begin(packed: bytes) -> None:
    _worker["packed"] = packed
    parent = multiprocessing.parent_process()
    assert parent is not None

    def leave_with_parent() -> None:
        """End this process when the one that started it has ended, however: nobody else would."""
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=leave_with_parent, daemon=True).start()


def _make() -> None:
    try:
        _worker["work"] = pickle.loads(_worker["packed"])()  # noqa: S301 - from our own driver
    except MemoryError:
        os._exit(1)


def _work(task: Any) -> Any:
    try:
        return _worker["work"](task)
    except MemoryError:  # a limit (`ulimit -v`), where else the system would end the process: so it is lost, too
        os._exit(1)
