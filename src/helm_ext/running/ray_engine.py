"""Batches on Ray: actors that each make a worker once, and are replaced when they are lost.

Ray restarts actors and repeats calls itself, but charges a lost actor to every call that waits for it, and never says
which one was running. Here a lost actor is replaced by a new one, and `engines.Jobs` decides what is tried again.

What is sent to the actors holds credentials: it goes from process to process, and neither into Ray's object store,
which may spill to disk, nor into Ray's table of actors.
"""

from __future__ import annotations

import heapq
import math
import os
import pickle
import re
import socket
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from helm.common.hierarchical_logger import hwarn

from helm_ext.errors import HelmExtError, count
from helm_ext.evalset.engines import FAILED_STARTS, FOLLOWING, BatchLostError, Job, Jobs, read_number
from helm_ext.evalset.worker_state import WorkerState, take_state
from helm_ext.running.ray_actor import Raised, RayActor, versions

__all__ = ["Done", "RayEngine", "RaySettings"]

Task = TypeVar("Task")
Result = TypeVar("Result")

RAY_STARTS = 5
"""So often Ray is started, or the cluster joined, by one engine."""

LOOK_SECONDS = 5
"""When nothing has happened for so long, this process looks whether its Ray is there: an actor that is asked for while
Ray's own process is gone never starts, and never fails.

Seconds."""

REACH_SECONDS = 20
"""How long a cluster may take to accept a connection."""

INLINE_BYTES = 50_000
"""Ray sends arguments below 100 kB with the call; larger ones go through the object store."""

SHOWN_CAUSE = 300
"""Characters of what Ray says of a lost actor."""

STORE_BYTES = 500_000_000
"""Shared memory of a Ray of our own. Its default is a third of the machine's memory; tasks and results are small."""


@dataclass(frozen=True)
class RaySettings:
    """How a run is spread over actors."""

    actors: int = 0
    """Number of actors; 0 for as many as the cluster has room for."""
    cpus: float = 1.0
    """CPUs that Ray sets aside for an actor; parts of one are allowed."""
    gpus: float = 0.0
    address: str = "local"
    """The cluster, as `ray.init` takes it. `local` starts a Ray of our own and stops it at the end."""

    @classmethod
    def from_environ(cls) -> RaySettings:
        """Read HELM_EXT_RAY_ACTORS, _CPUS, _GPUS and RAY_ADDRESS. Raises HelmExtError."""
        return cls(
            actors=int(read_number("HELM_EXT_RAY_ACTORS", 0, least=1)),
            cpus=read_number("HELM_EXT_RAY_CPUS", 1.0, least=0, whole=False),
            gpus=read_number("HELM_EXT_RAY_GPUS", 0.0, least=0, whole=False),
            address=os.environ.get("RAY_ADDRESS", "").strip() or "local",
        )


@dataclass
class Done:
    """What became of a task: a result, or why it was given up."""

    key: tuple[int, ...]
    task: Any
    result: Any = None
    lost: str | None = None

    @property
    def has_result(self) -> bool:
        """`Job.has_result`."""
        return self.key[0] != FOLLOWING


@dataclass(eq=False)
class _Slot:
    """An actor, and what it has to do."""

    actor: Any
    starting: Any
    """The call that makes its worker; None when the actor is ready."""
    state: WorkerState
    jobs: dict[Any, Job[Any]] = field(default_factory=dict)
    lost: str | None = None
    """Why it can do nothing any more."""

    def note(self) -> None:
        """Say what it does now: it starts, or the first of its jobs."""
        first = next((job.task for job in self.jobs.values()), None)
        self.state.begin("starting" if self.starting is not None else first)


class RayEngine:
    """Does tasks in actors. They, and what they hold, are kept for the next call with the same worker.

    `concurrency`: tasks that an actor does at once, in threads.
    """

    def __init__(self, settings: RaySettings | None = None, *, concurrency: int = 1) -> None:
        self.settings = settings or RaySettings.from_environ()
        self.concurrency = concurrency
        self.states: list[WorkerState] = []
        """What the actors do, for who looks. One that replaces another goes on with its state."""
        self._slots: list[_Slot] = []
        self._packed = b""
        self._owns_ray = False
        self._room = 0
        self._ray_starts = 0
        self._failed_starts = 0

    def map(
        self,
        make_worker: Callable[[], Callable[[Task], Result]],
        tasks: Iterable[Task],
        *,
        split: Callable[[Task], Sequence[Task]] = lambda _: (),
        following: deque[Any] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield the results in the order of the tasks; of a task that had to be split, those of its parts.

        See `engines.Engine`.
        """
        jobs = Jobs(tasks, split, following)
        done: list[tuple[tuple[int, ...], Any]] = []  # a heap; no two keys are equal

        def may_take() -> bool:
            return len(done) < 4 * (self.concurrency + 1) * max(1, len(self._slots))

        for one in self.run(make_worker, jobs, may_take):
            if one.lost is not None:
                raise BatchLostError(f"a batch ends each process that does it: {one.lost}")
            if one.has_result:
                heapq.heappush(done, (one.key, one.result))
            while done and jobs.is_next(done[0][0]):
                yield heapq.heappop(done)[1]

    def run(
        self,
        make_worker: Callable[[], Callable[[Task], Result]],
        jobs: Jobs[Task],
        may_take: Callable[[], bool] = lambda: True,
    ) -> Iterator[Done]:
        """Yield what became of the jobs, as it comes. `may_take` is asked before a new task is begun.

        When a task raises, no other is begun; what is being done comes first, and the exception last.
        """
        self._require_ray()
        self._require_worker(pickle.dumps(make_worker, pickle.HIGHEST_PROTOCOL))
        failure: Exception | None = None
        try:
            while True:
                if failure is None:
                    self._give_out(jobs, may_take)
                pending = [ref for slot in self._slots for ref in slot.jobs]
                if not pending and (failure is not None or not jobs.ahead(1)):
                    break
                ready = self._wait(pending, with_starts=failure is None)
                for slot, ref in ready:
                    if ref is slot.starting:
                        self._take_start(slot)
                        continue
                    try:
                        result, raised = self._ray.get(ref)
                    except self._ray.exceptions.RayTaskError as error:  # arguments or results that cannot be sent
                        result, raised = None, Raised(error, "")
                    except self._ray.exceptions.RayError as error:
                        slot.lost = _say(error)
                        continue
                    job = slot.jobs.pop(ref)
                    if raised is None:
                        jobs.finish(job)
                        slot.state.finish(job.task)
                        slot.note()
                        yield Done(job.key, job.task, result)
                    else:
                        failure = failure or raised.to_error()
                yield from self._bury(jobs, nothing_happened=not ready)
        finally:
            if any(slot.jobs for slot in self._slots):  # nobody waits for them any more
                self._drop_actors()
        if failure is not None:
            raise failure

    def count_actors(self) -> int:
        """Return the number of actors that there are, given enough to do. Joins the cluster if none is given."""
        if self.settings.actors:
            return self.settings.actors
        if not self._room:
            self._require_ray()
            name, each = ("GPU", self.settings.gpus) if self.settings.gpus else ("CPU", self.settings.cpus)
            self._room = max(1, int(self._ray.cluster_resources().get(name, 1) // (each or 1)))
        return self._room

    def close(self) -> None:
        """Let the actors go, and Ray if it was started here."""
        self._drop_actors()
        if self._owns_ray:
            self._ray.shutdown()
            self._owns_ray = False

    def _give_out(self, jobs: Jobs[Any], may_take: Callable[[], bool]) -> None:
        """Start actors for what there is to do, and give those that are ready their next tasks."""
        busy = sum(bool(slot.jobs) for slot in self._slots)
        limit = self.count_actors()
        while len(self._slots) < min(limit, busy + jobs.ahead(limit)):
            self._start_actor()
        for depth in range(self.concurrency + 1):  # one more than it does at once, so that it need not wait
            for slot in self._slots:
                if slot.starting is not None or len(slot.jobs) > depth or any(job.lone for job in slot.jobs.values()):
                    continue
                job = jobs.take(may_be_lone=not slot.jobs, may_be_new=may_take())
                if job is not None:
                    slot.jobs[slot.actor.work.remote(job.task)] = job
        for slot in self._slots:
            slot.note()

    def _wait(self, pending: list[Any], *, with_starts: bool) -> list[tuple[_Slot, Any]]:
        """Wait until something is done, and return all that is; nothing after LOOK_SECONDS."""
        owners = {ref: slot for slot in self._slots for ref in slot.jobs}
        if with_starts:
            owners |= {slot.starting: slot for slot in self._slots if slot.starting is not None}
        refs = list(owners) if with_starts else pending
        self._ray.wait(refs, num_returns=1, timeout=LOOK_SECONDS)
        ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0)
        return [(owners[ref], ref) for ref in ready]

    def _take_start(self, slot: _Slot) -> None:
        """Take note that an actor is ready, or lost. Raises what making its worker raised."""
        try:
            raised = self._ray.get(slot.starting)
        except self._ray.exceptions.RayError as error:
            self._failed_starts += 1
            slot.lost = _say(error)
            return
        if raised is not None:
            self._drop_actors()
            raise raised.to_error()
        slot.starting = None
        self._failed_starts = 0

    def _bury(self, jobs: Jobs[Any], *, nothing_happened: bool) -> Iterator[Done]:
        """Let lost actors go, and take their jobs back. All are lost where Ray itself is."""
        lost = [slot for slot in self._slots if slot.lost is not None]
        if not lost and not nothing_happened:
            return
        if self._owns_ray and not self._is_node_alive():
            hwarn("Ray has died; it is started again, and what it was doing is done again")
            lost = list(self._slots)
            self._start_ray()
        elif not lost:
            return
        elif self._failed_starts >= FAILED_STARTS * max(1, len(self._slots)):
            self._drop_actors()
            raise HelmExtError(
                f"{self._failed_starts} Ray actors, one after another, were lost before they could do anything. The "
                f"last one: {lost[-1].lost}"
            )
        for slot in lost:
            self._slots.remove(slot)
            slot.state.restart()
            with suppress(Exception):  # it may be alive behind a broken connection; if not, all the better
                self._ray.kill(slot.actor)
            for job in slot.jobs.values():
                if not jobs.lose(job):
                    jobs.finish(job)
                    yield Done(job.key, job.task, lost=slot.lost or "Ray died")
        hwarn(f"{count(len(lost), 'Ray actor')} lost and replaced: {lost[0].lost or 'Ray died'}")

    def _require_ray(self) -> None:
        """Join the cluster, or start a Ray of our own. Raises HelmExtError."""
        try:
            import ray
        except ImportError as error:
            raise HelmExtError(f"Ray cannot be imported: {error}\n  hint: pip install 'helm-ext[ray]'") from error
        self._ray: Any = ray
        if not ray.is_initialized():
            self._start_ray()
        self._require_room()

    def _start_ray(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = self.settings.address
        options: dict[str, Any] = {"address": address, "logging_level": "warning"}
        if self._ray_starts == RAY_STARTS:
            raise HelmExtError(f"Ray died {RAY_STARTS} times on this machine\n  hint: its logs are in /tmp/ray")
        self._ray_starts += 1
        self._ray.shutdown()
        if address == "local":
            # No more than is used: Ray starts a process for each.
            cpus = max(1, math.ceil(self.settings.actors * self.settings.cpus)) if self.settings.actors else None
            options |= {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": STORE_BYTES}
        try:
            _require_reachable(address)
            self._ray.init(**options)
        except (OSError, RuntimeError, ValueError) as error:
            raise HelmExtError(f"RAY_ADDRESS={address}: no Ray there, or none that can be joined: {error}") from error
        self._owns_ray = True

    def _require_room(self) -> None:
        """Say so if no node has what one actor needs, for Ray would wait for ever."""
        needs = {"CPU": self.settings.cpus, "GPU": self.settings.gpus}
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not any(all(node.get(name, 0) >= number for name, number in needs.items()) for node in nodes):
            message = (
                f"no node of the Ray cluster has {self.settings.cpus:g} CPUs and {self.settings.gpus:g} GPUs for an "
                "actor\n  hint: HELM_EXT_RAY_CPUS, HELM_EXT_RAY_GPUS"
            )
            if self.settings.address == "local":
                raise HelmExtError(message)
            hwarn(f"{message}; waiting for one that has")

    def _is_node_alive(self) -> bool:
        mine = self._ray.get_runtime_context().get_node_id()
        return any(node["Alive"] and node["NodeID"] == mine for node in self._ray.nodes())

    def _require_worker(self, packed: bytes) -> None:
        """Keep the actors if they hold this worker, or let them go."""
        if packed != self._packed:
            self._drop_actors()
            self._packed = packed

    def _start_actor(self) -> None:
        actor_class = self._ray.remote(
            num_cpus=self.settings.cpus,
            num_gpus=self.settings.gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=self.concurrency,
        )(RayActor)
        actor = actor_class.remote()
        packed = zlib.compress(self._packed)
        parts = [packed[start : start + INLINE_BYTES] for start in range(0, len(packed), INLINE_BYTES)]
        state = take_state(self.states, [slot.state for slot in self._slots], "actor")
        self._slots.append(_Slot(actor, actor.start.remote(versions(), *parts), state))

    def _drop_actors(self) -> None:
        for slot in self._slots:
            with suppress(Exception):
                self._ray.kill(slot.actor)
        self._slots.clear()


def _require_reachable(address: str) -> None:
    """Raise OSError where nobody listens: Ray tries for minutes, and then ends the process."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()


def _say(error: Exception) -> str:
    """Return what Ray says of a lost actor: the cause, without names and advice."""
    text = " ".join(str(error).split())
    found = re.search(r"Worker exit detail: (.*?)(?: Some common causes| Memory on the node|$)", text)
    return (found[1] if found else text)[:SHOWN_CAUSE]
