"""Where the batches of a run are done: in this process, in processes of this machine, or on a Ray cluster.

A batch is a pure function of what it is given: it may be done twice, anywhere, and in any order. So one rule holds for
whatever ends a worker, and `Workers` has it; `ProcessEngine` and `ray_engine` know how one is started, asked and ended.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.connection import wait as wait_for
from typing import Any, TypeVar

from helm.common.hierarchical_logger import hwarn

from helm_ext.errors import HelmExtError, count, read_number

Task = TypeVar("Task")
Result = TypeVar("Result")

WORKERS_ENV = "HELM_EXT_WORKERS"
"""Processes that read and score the rows of large files; 1, the default: this one."""

LONE_TRIES = 3
"""A task that takes down the worker that does nothing else, and cannot be split, is given up after so many times."""

FAILED_STARTS = 3
"""Workers that may be lost in a row before they are ready, times the number of workers."""


class BatchLostError(HelmExtError):
    """A task ends the worker that does it, each time."""


class LostError(Exception):
    """A worker is lost, and whatever it was doing; the text says why, where that is known."""


class ThisProcess:
    """Does tasks one after the other, here. Nobody survives what ends this process."""

    def map(
        self,
        make_worker: Callable[[], Callable[[Task], Result]],
        tasks: Iterable[Task],
        *,
        split: Callable[[Task], Sequence[Task]] = lambda _: (),  # noqa: ARG002 - one interface
    ) -> Generator[Result, None, None]:
        """Yield the results, in the order of the tasks."""
        yield from map(make_worker(), tasks)


@dataclass(eq=False)
class _Job:
    """A task on its way."""

    task: Any
    is_waiting: bool = True
    is_lone: bool = False
    """Whether its worker may do nothing else meanwhile: it, or a neighbour, has taken a worker down."""
    lone_losses: int = 0
    """Workers that were lost while they did nothing else."""
    is_done: bool = False
    result: Any = None

    def finish(self, result: Any) -> None:
        """Keep what came of it, and the task no longer: it may hold many rows."""
        self.is_done, self.result, self.task = True, result, None


class _Jobs:
    """The tasks of which nothing was yielded yet, in their order: those that were begun, and a few that were read."""

    def __init__(self, tasks: Iterable[Any], split: Callable[[Any], Sequence[Any]], most: int) -> None:
        """`most`: tasks that are here at a time. Where the first one takes long, what comes of the others waits."""
        self._source = iter(tasks)
        self._split = split
        self._most = most
        self._open: list[_Job] = []
        self.failure: Exception | None = None
        """What a task has raised: then no other is begun."""

    def has_waiting(self, number: int) -> bool:
        """Whether so many jobs can be taken, by whoever does nothing else."""
        return sum(1 for _ in itertools.islice(self._iter_waiting(), number)) == number

    def find_next(self, *, may_be_lone: bool) -> _Job | None:
        """Return the next job, None where there is none. `may_be_lone`: the worker does nothing else."""
        return next((job for job in self._iter_waiting() if may_be_lone or not job.is_lone), None)

    def _iter_waiting(self) -> Iterator[_Job]:
        """Yield jobs that can be taken; tasks are read when they are asked for."""
        if self.failure is not None:
            return
        yield from [job for job in self._open if job.is_waiting]
        for task in itertools.islice(self._source, max(0, self._most - len(self._open))):
            self._open.append(_Job(task))
            yield self._open[-1]

    def lose(self, job: _Job) -> bool:
        """Take back a job whose worker is lost. Returns False if it is given up."""
        if job.is_lone:
            if len(parts := self._split(job.task)) > 1:
                place = self._open.index(job)
                self._open[place : place + 1] = [_Job(part, is_lone=True) for part in parts]
                return True
            job.lone_losses += 1
        job.is_lone = True
        job.is_waiting = job.lone_losses < LONE_TRIES
        return job.is_waiting

    def take_done(self, *, in_order: bool) -> Iterator[Any]:
        """Yield results, and forget their jobs."""
        while done := next((job for job in self._open[: 1 if in_order else None] if job.is_done), None):
            self._open.remove(done)
            yield done.result


@dataclass(eq=False)
class _Worker:
    """A worker, and what it has to do."""

    handle: Any
    """The process or the actor."""
    starting: Any
    """The call that makes what does the tasks; None when that is there. A worker gets tasks from then on, so that one
    that is lost while it starts says nothing of any task."""
    jobs: dict[Any, _Job] = field(default_factory=dict)
    """By the calls that do them."""
    lost: str | None = None
    """Why it can do nothing any more; may be empty."""


class Workers(ABC):
    """Does tasks in workers, which may be lost at any time: killed, out of memory, or with their machine.

    Workers stay for the next call of `map`, until `close`.

    A lost worker says little: it may have had several tasks, and none may be to blame. So each of them is done again,
    by a worker that does nothing else. A task that such a worker is lost with is split where that is possible, so that
    what is harmless gets done, and what cannot be split is given up after LONE_TRIES.
    """

    process = "worker process"
    """What is lost, in messages."""
    start_hint = ""

    def __init__(self, concurrency: int = 1) -> None:
        """`concurrency`: tasks that a worker does at once."""
        self.concurrency = concurrency
        self.is_busy = False
        self._workers: list[_Worker] = []
        self._packed = b""
        """How to make what does the tasks."""
        self._failed_starts: list[str] = []
        """Why the last ones failed, since a worker could be started."""

    def map(
        self,
        make_worker: Callable[[], Callable[[Task], Result]],
        tasks: Iterable[Task],
        *,
        split: Callable[[Task], Sequence[Task]] = lambda _: (),
        in_order: bool = True,
        give_up: Callable[[Task, str], Result] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield the results in the order of the tasks; of a task that had to be split, those of its parts.

        `make_worker` can be pickled, and is called once in each worker; what it returns does the tasks. `in_order`:
        else results come as they are there. `give_up`: returns what is the result of a task that ends each worker, and
        gets the reason; default: BatchLostError. Close what is returned, or go to its end: busy workers write into
        what may be removed next. When a task raises, no other is begun; what is being done comes first, and the
        exception last. Raises HelmExtError where no worker can be started.
        """
        packed = pickle.dumps(make_worker, pickle.HIGHEST_PROTOCOL)
        self._failed_starts.clear()
        self.is_busy = True
        try:
            if packed != self._packed:
                self._packed = packed
                self._renew()
            jobs = _Jobs(tasks, split, 4 * (self.concurrency + 1) * self.count_workers())
            while True:
                self._start_workers(jobs)
                self._give_out(jobs)
                calls = {call: worker for worker in self._workers for call in worker.jobs}
                if not calls and not jobs.has_waiting(1):
                    break
                calls |= {worker.starting: worker for worker in self._workers if worker.starting is not None}
                ready = self._wait(list(calls)) if calls else ()
                for call in ready:
                    self._collect(calls[call], call, jobs)
                self._replace_lost(jobs, give_up, has_happened=bool(ready))
                yield from jobs.take_done(in_order=in_order)
        except BaseException:
            self.close()
            raise
        finally:
            self.is_busy = False
        if jobs.failure is not None:
            raise jobs.failure

    def close(self) -> None:
        """Return when all workers have ended: what they write into may be removed next."""
        for worker in self._workers:
            self._end(worker.handle)
        self._workers.clear()

    @abstractmethod
    def count_workers(self) -> int:
        """Return how many workers there are, given enough to do."""

    @abstractmethod
    def _start(self, packed: bytes) -> tuple[Any, Any]:
        """Start a worker; return it, and the call that makes what does its tasks. Raises LostError."""

    @abstractmethod
    def _submit(self, handle: Any, task: Any) -> Any:
        """Let a worker do a task; return the call. Raises LostError."""

    @abstractmethod
    def _wait(self, calls: list[Any]) -> Collection[Any]:
        """Return the calls that are done, once there is one; none after a while, where workers must be looked at."""

    @abstractmethod
    def _take(self, call: Any) -> Any:
        """Return what came of a call that is done. Raises LostError, and what the task has raised."""

    @abstractmethod
    def _end(self, handle: Any) -> None:
        """End a worker, which may be busy, or lost."""

    def _renew(self) -> None:
        """Let the workers do something else next: the default is to end them, and with them what they hold."""
        self.close()

    def _are_all_lost(self) -> bool:
        """Whether all workers are lost at once, though nobody says so. Asked when one is, or nothing has happened."""
        return False

    def _start_workers(self, jobs: _Jobs) -> None:
        """Start workers for what there is to do. Those that are there go on where no other can be started.

        Raises HelmExtError where there is none, and none can be started, several times.
        """
        most = self.count_workers()
        while len(self._workers) < most and len(self._failed_starts) < FAILED_STARTS * most:
            if not jobs.has_waiting(1 + sum(not worker.jobs for worker in self._workers)):
                return
            try:
                self._workers.append(_Worker(*self._start(self._packed)))
            except LostError as error:
                self._failed_starts.append(str(error))
        if not self._workers and jobs.has_waiting(1):
            failed, why = count(len(self._failed_starts), "process", "processes"), self._failed_starts[-1]
            raise HelmExtError(
                f"workers cannot start: {failed}, one after another, ended before they could do anything"
                f"{why and f': {why}'}\n  hint: {self.start_hint}"
            )

    def _give_out(self, jobs: _Jobs) -> None:
        """Give workers that are ready their next tasks, first those that have none.

        Each has one more than it does at once, so that it need not wait.
        """
        for depth in range(self.concurrency + 1):
            for worker in self._workers:
                is_ready = worker.starting is None and worker.lost is None
                if not is_ready or len(worker.jobs) > depth or any(job.is_lone for job in worker.jobs.values()):
                    continue
                if (job := jobs.find_next(may_be_lone=not worker.jobs)) is None:
                    continue
                try:
                    worker.jobs[self._submit(worker.handle, job.task)] = job
                    job.is_waiting = False
                except LostError as error:  # it died while it waited for work, or since
                    worker.lost = str(error)

    def _collect(self, worker: _Worker, call: Any, jobs: _Jobs) -> None:
        """Take what came of a call. Raises what making a worker raised."""
        is_start = call is worker.starting
        try:
            result = self._take(call)
        except LostError as error:
            worker.lost = str(error)
            self._failed_starts += [worker.lost] * is_start
        except Exception as error:
            if is_start:
                raise
            del worker.jobs[call]
            jobs.failure = error
        else:
            if is_start:
                worker.starting = None
                self._failed_starts.clear()
            else:
                worker.jobs.pop(call).finish(result)

    def _replace_lost(self, jobs: _Jobs, give_up: Callable[[Any, str], Any] | None, *, has_happened: bool) -> None:
        """Let lost workers go, and take back what they had. Raises BatchLostError."""
        lost = [worker for worker in self._workers if worker.lost is not None]
        if (lost or not has_happened) and self._are_all_lost():
            lost = list(self._workers)
        for worker in lost:
            self._workers.remove(worker)
            self._end(worker.handle)
            why = f": {worker.lost}" if worker.lost else ""
            when = "" if worker.starting is None else " while it started; no row had been given to it"
            again = ", ".join(str(job.task) for job in worker.jobs.values())
            hwarn(f"a {self.process} was lost{when}{why}{again and f'; done again: {again}'}")
            for job in worker.jobs.values():
                if jobs.lose(job):
                    continue
                if give_up is None:
                    raise BatchLostError(f"{job.task}: this batch ends each process that does it{why}")
                job.finish(give_up(job.task, worker.lost or "no more is known"))


class ProcessEngine(Workers):
    """Does tasks in so many processes of this machine.

    Each worker is a pool of one process, so that what a lost process takes along is its own: a pool of several ends all
    its processes, and gives up all that waits. Processes are spawned, not forked: HELM has threads. What they import
    takes most of a second of CPU, so those that have read a file score its rows, too.
    """

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
            return pool, pool.submit(_do, "make", packed)  # as the initializer's argument it would stay in memory
        except (RuntimeError, OSError, MemoryError) as error:  # no process, or no thread that waits for it (`ulimit`)
            for process in (pool._processes or {}).values():  # noqa: SLF001 - nobody else would end them
                process.kill()
                process.join()
            raise LostError(str(error)) from error

    def _renew(self) -> None:
        for worker in self._workers:
            try:
                worker.starting = self._submit(worker.handle, self._packed, "make")
            except LostError as error:
                worker.lost = str(error)

    def _submit(self, handle: ProcessPoolExecutor, task: Any, step: str = "work") -> Future[Any]:
        try:
            return handle.submit(_do, step, task)
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


def _do(step: str, given: Any) -> Any:
    """Do a task, or make what does the next ones: `given` is how, pickled."""
    try:
        if step == "work":
            return _worker["work"](given)
        _worker.clear()  # before: it may hold much
        _worker["work"] = pickle.loads(given)()  # noqa: S301 - from our own driver
    except MemoryError:  # a limit (`ulimit -v`), where else the system would end the process: so it is lost, too
        os._exit(1)


# The engine that is asked for

Engine = ThisProcess | Workers


_engines: dict[tuple[int, int], ProcessEngine] = {}
"""By this process, for a fork has none of its parent's, and number of workers."""


def find_engine() -> ProcessEngine | ThisProcess:
    """Return the processes that HELM_EXT_WORKERS asks for. Raises HelmExtError for a number that is none.

    A daemonic process cannot start others (multiprocessing), so it does all itself.
    """
    workers = int(read_number(WORKERS_ENV, 1, least=1))
    if workers == 1 or multiprocessing.current_process().daemon:
        return ThisProcess()
    engine = _engines.setdefault((os.getpid(), workers), ProcessEngine(workers))
    return ProcessEngine(workers) if engine.is_busy else engine  # with what another thread does


def end_workers() -> None:
    """End the processes that wait for work, where there is none for long."""
    for (owner, _), engine in _engines.items():
        if owner == os.getpid():
            engine.close()
