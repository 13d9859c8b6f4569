"""Where the batches of a run are done: in this process, in processes of this machine, on a Ray cluster.

A batch is a pure function of what it is given: it may be done twice, anywhere, and in any order. What comes out is put
in order by whoever asked.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from helm_ext.errors import HelmExtError, show
from helm_ext.evalset.worker_state import WorkerState

__all__ = ["FAILED_STARTS", "FOLLOWING", "BatchLostError", "Engine", "Job", "Jobs", "read_number"]

Task = TypeVar("Task")
Result = TypeVar("Result")

FOLLOWING = 2**62
"""Where jobs stand that follow from results: behind all tasks."""
LONE_TRIES = 3
"""So often a task may take down the worker that does nothing else. Then it is the task, and not the machine."""

FAILED_STARTS = 3
"""So many workers in a row may be lost before they are ready, times the number of workers."""


class Engine(Protocol):
    """Does tasks, somewhere."""

    states: list[WorkerState]
    """What its workers do, for who looks (`progress`). One list, whatever becomes of them."""

    def map(
        self,
        make_worker: Callable[[], Callable[[Task], Result]],
        tasks: Iterable[Task],
        *,
        split: Callable[[Task], Sequence[Task]] = lambda _: (),
        following: deque[Any] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield the results in the order of the tasks; of a task that had to be split, those of its parts.

        `make_worker` can be pickled and is called once in each worker; what it returns does the tasks. `following`:
        what the caller adds to it while it takes results is done too, by the same workers, before further tasks; what
        comes of it is not yielded. Close what is returned, or go to its end: busy workers write into what may be
        removed next. Raises what a task raises, and BatchLostError.
        """
        ...


class BatchLostError(HelmExtError):
    """A task ends the worker that does it, each time."""


@dataclass(eq=False)
class Job(Generic[Task]):
    """A task on its way."""

    key: tuple[int, ...]
    """Its place among the tasks, and among the parts of a task that was split: results come in the order of keys. What
    follows from results stands behind them all, and holds nothing up."""
    task: Task
    lone: bool = False
    """Whether its worker may do nothing else meanwhile: it, or a neighbour, has taken a worker down."""
    lone_losses: int = 0
    """So many workers were lost that did nothing else."""

    @property
    def has_result(self) -> bool:
        """Whether what comes of it is waited for."""
        return self.key[0] != FOLLOWING


class Jobs(Generic[Task]):
    """The tasks of a run: which is next, and what becomes of one whose worker is lost.

    A lost worker says little: it may have been killed, or its machine, and it may have had several tasks. So each of
    them is done again, by a worker that does nothing else. A task that such a worker is lost with is split where that
    is possible, so that what is harmless gets done, and what cannot be split is given up after LONE_TRIES.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        split: Callable[[Task], Sequence[Task]] = lambda _: (),
        following: deque[Any] | None = None,
    ) -> None:
        self._source = enumerate(tasks)
        self._split = split
        self._following: deque[Any] = deque() if following is None else following
        self._numbers = itertools.count()
        self._next: deque[Job[Task]] = deque()
        self._again: deque[Job[Task]] = deque()
        self._unfinished: set[tuple[int, ...]] = set()

    def ahead(self, number: int) -> int:
        """Return how many jobs can be taken, counting up to `number`."""
        missing = number - len(self._again) - len(self._following) - len(self._next)
        for place, task in itertools.islice(self._source, max(missing, 0)):
            self._next.append(Job((place,), task))
        return min(number, len(self._again) + len(self._following) + len(self._next))

    def take(self, *, may_be_lone: bool, may_be_new: bool = True) -> Job[Task] | None:
        """Return the next job, None where there is none. `may_be_lone`: the worker does nothing else."""
        for job in self._again:
            if may_be_lone or not job.lone:
                self._again.remove(job)
                return job
        if self._following:
            job = Job((FOLLOWING, next(self._numbers)), self._following.popleft())
        elif may_be_new and self.ahead(len(self._again) + 1) > len(self._again):
            job = self._next.popleft()
        else:
            return None
        self._unfinished.add(job.key)
        return job

    def finish(self, job: Job[Task]) -> None:
        """Take note that a job is done, or given up."""
        self._unfinished.remove(job.key)

    def put_back(self, job: Job[Task]) -> None:
        """Take back a job that no worker has seen."""
        self._again.appendleft(job)

    def lose(self, job: Job[Task]) -> bool:
        """Take back a job whose worker is lost. Returns False if it is given up."""
        if not job.lone:
            job.lone = True
        elif job.has_result and len(parts := self._split(job.task)) > 1:
            self.finish(job)
            made = [Job((*job.key, number), part, lone=True) for number, part in enumerate(parts)]
            self._unfinished.update(part.key for part in made)
            self._again.extend(made)
            return True
        else:
            job.lone_losses += 1
            if job.lone_losses == LONE_TRIES:
                return False
        self._again.append(job)
        return True

    def is_next(self, key: tuple[int, ...]) -> bool:
        """Whether nothing is unfinished that comes before `key`."""
        return all(key < other for other in self._unfinished)


def read_number(name: str, default: float, *, least: float, whole: bool = True) -> float:
    """Return the number that an environment variable holds. Raises HelmExtError for what is no such number."""
    given = os.environ.get(name, "").strip()
    if not given:
        return default
    try:
        number = int(given) if whole else float(given)
    except ValueError:
        number = least - 1
    if not least <= number < 1_000_000:
        kind = "a whole number" if whole else "a number"
        raise HelmExtError(f"{name}={show(given)}: expected {kind} from {least:g}\n  hint: unset it for the default")
    return number
