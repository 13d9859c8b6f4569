"""Batches on Ray: a cluster that is joined, or a Ray of our own on this machine; actors that each make a worker once.

Ray restarts actors and repeats calls itself, but charges a lost actor to every call that waits for it, and never says
which one was running. Here a lost actor is replaced by a new one, and `Workers` decides what is tried again.

What is sent to the actors holds credentials: it goes from process to process, and neither into Ray's object store,
which may spill to disk, nor into Ray's table of actors.
"""

from __future__ import annotations

import importlib.metadata
import math
import os
import pickle
import platform
import re
import socket
import traceback
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from helm.common.hierarchical_logger import hwarn

from helm_ext.engines.engine import LostError, Workers
from helm_ext.errors import HelmExtError, read_number

RAY_STARTS = 5
"""How often Ray is started, or the cluster joined, by one engine."""

REACH_SECONDS = 20
"""How long a cluster may take to accept a connection."""

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


class RayConnection:
    """A Ray that was joined, or started and then is ended by `close`."""

    def __init__(self, settings: RaySettings) -> None:
        self.settings = settings
        self.ray: Any = None
        """The module, once there is something to do."""
        self.is_ours = False
        self._starts = 0
        self.room = 0
        """How many actors there are, given enough to do; 0: not known yet."""

    def require(self) -> Any:
        """Join the cluster, or start a Ray of our own, if that has not been done. Raises HelmExtError."""
        try:
            import ray
        except ImportError as error:
            raise HelmExtError(f"Ray cannot be imported: {error}\n  hint: pip install 'helm-ext[ray]'") from error
        self.ray = ray
        if not ray.is_initialized():
            self._start()
        if not self.room:
            self._require_room()
            name, each = ("GPU", self.settings.gpus) if self.settings.gpus else ("CPU", self.settings.cpus)
            self.room = self.settings.actors or max(1, int(ray.cluster_resources().get(name, 1) // (each or 1)))
        return ray

    def restart_if_dead(self) -> bool:
        """Start our own Ray again if it has died; return whether that was so. Raises HelmExtError after some times."""
        if not self.is_ours:
            return False
        mine = self.ray.get_runtime_context().get_node_id()
        if any(node["Alive"] and node["NodeID"] == mine for node in self.ray.nodes()):
            return False
        hwarn("Ray has died; it is started again, and what it was doing is done again")
        self._start()
        return True

    def close(self) -> None:
        """End Ray if it was started here, or leave the cluster."""
        if self.is_ours:
            self.ray.shutdown()
            self.is_ours = False

    def _start(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = self.settings.address
        options: dict[str, Any] = {"address": address, "logging_level": "warning"}
        if self._starts == RAY_STARTS:
            raise HelmExtError(f"Ray died {RAY_STARTS} times on this machine\n  hint: its logs are in /tmp/ray")
        self._starts += 1
        self.ray.shutdown()
        if address == "local":
            # No more than is used: Ray starts a process for each.
            cpus = max(1, math.ceil(self.settings.actors * self.settings.cpus)) if self.settings.actors else None
            options |= {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": STORE_BYTES}
        try:
            _require_reachable(address)
            self.ray.init(**options)
        except (OSError, RuntimeError, ValueError) as error:
            raise HelmExtError(f"RAY_ADDRESS={address}: no Ray there, or none that can be joined: {error}") from error
        self.is_ours = True

    def _require_room(self) -> None:
        """Say so if no node has what one actor needs, for Ray would wait for ever."""
        needs = {"CPU": self.settings.cpus, "GPU": self.settings.gpus}
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        if not any(all(node.get(name, 0) >= number for name, number in needs.items()) for node in nodes):
            message = (
                f"no node of the Ray cluster has {self.settings.cpus:g} CPUs and {self.settings.gpus:g} GPUs for an "
                "actor\n  hint: HELM_EXT_RAY_CPUS, HELM_EXT_RAY_GPUS"
            )
            if self.settings.address == "local":
                raise HelmExtError(message)
            hwarn(f"{message}; waiting for one that has")


def _require_reachable(address: str) -> None:
    """Raise OSError where nobody listens: Ray tries for minutes, and then ends the process."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()


LOOK_SECONDS = 5
"""When nothing has happened for so long, this process looks whether its Ray is there: an actor that is asked for while
Ray's own process is gone never starts, and never fails."""

INLINE_BYTES = 50_000
"""Ray sends arguments below 100 kB with the call; larger ones go through the object store."""

SHOWN_CAUSE = 300
"""Characters of what Ray says of a lost actor."""


class RayEngine(Workers):
    """Does tasks in actors, in threads. They, and what they hold, are kept for the next call with the same worker."""

    process = "Ray actor"
    start_hint = "is there memory for them? Ray's logs are in /tmp/ray"

    def __init__(self, settings: RaySettings | None = None, *, concurrency: int = 1) -> None:
        super().__init__(concurrency)
        self.settings = settings or RaySettings.from_environ()
        self._connection = RayConnection(self.settings)

    def count_workers(self) -> int:
        """Return the number of actors that there are, given enough to do. Joins the cluster."""
        self._ray = self._connection.require()
        return self._connection.room

    def disconnect(self) -> None:
        """Let the actors go, and Ray if it was started here."""
        self.close()
        self._connection.close()

    def _start(self, packed: bytes) -> tuple[Any, Any]:
        actor_class = self._ray.remote(
            num_cpus=self.settings.cpus,
            num_gpus=self.settings.gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=self.concurrency,
        )(RayActor)
        actor = actor_class.remote()
        data = zlib.compress(packed)
        parts = [data[start : start + INLINE_BYTES] for start in range(0, len(data), INLINE_BYTES)]
        return actor, actor.start.remote(_versions(), *parts)

    def _submit(self, handle: Any, task: Any) -> Any:
        return handle.work.remote(task)

    def _wait(self, calls: list[Any]) -> list[Any]:
        return list(self._ray.wait(calls, num_returns=1, timeout=LOOK_SECONDS)[0])

    def _take(self, call: Any) -> Any:
        try:
            result, raised, where = self._ray.get(call)
        except self._ray.exceptions.RayTaskError:  # arguments or results that cannot be sent
            raise
        except self._ray.exceptions.RayError as error:
            raise LostError(_say(error)) from error
        if raised is not None:
            if not isinstance(raised, HelmExtError):  # ours are for users, who need not see where it was raised
                raised.__cause__ = RuntimeError(f"in a Ray actor:\n{where}")
            raise raised
        return result

    def _end(self, handle: Any) -> None:
        with suppress(Exception):  # it may be alive behind a broken connection; if not, all the better
            self._ray.kill(handle)

    def _are_all_lost(self) -> bool:
        return self._connection.restart_if_dead()


def _say(error: Exception) -> str:
    """Return what Ray says of a lost actor: the cause, without names and advice."""
    text = " ".join(str(error).split())
    found = re.search(r"Worker exit detail: (.*?)(?: Some common causes| Memory on the node|$)", text)
    return (found[1] if found else text)[:SHOWN_CAUSE]


# In a process that Ray has started


_Done = tuple[Any, Exception | None, str]
"""What came of a call: a result, or the exception and where it was raised."""


class RayActor:
    """What runs in Ray's process. Exceptions are returned: those that Ray raises are about Ray."""

    worker: Callable[[Any], Any]

    def start(self, wanted: dict[str, str], *packed: bytes) -> _Done:
        """Make the worker. `packed`: how, pickled and compressed, in parts."""
        return self._do(self._make, wanted, packed)

    def work(self, task: Any) -> _Done:
        """Do a task."""
        return self._do(self.worker, task)

    def _make(self, wanted: dict[str, str], packed: Sequence[bytes]) -> None:
        if (mine := _versions()) != wanted:
            raise HelmExtError(f"a Ray node has other versions than the driver: {mine}, {wanted}")
        self.worker = pickle.loads(zlib.decompress(b"".join(packed)))()  # noqa: S301 - from our own driver

    def _do(self, function: Callable[..., Any], *arguments: Any) -> _Done:
        try:
            return function(*arguments), None, ""
        except MemoryError:  # a limit (`ulimit -v`), where else the system would end the process: so it is lost, too
            os._exit(1)
        except Exception as error:  # noqa: BLE001 - raised by the driver
            raised = error
            try:
                pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
            except Exception:  # noqa: BLE001 - whatever its class does: the driver must be able to unpickle it
                raised = HelmExtError(f"{type(error).__name__}: {error}")
            return None, raised, traceback.format_exc()


def _versions() -> dict[str, str]:
    """Return what must be the same on all nodes, for the results to be."""
    named = {name: importlib.metadata.version(name) for name in ("helm-ext", "crfm-helm")}
    return {"python": ".".join(platform.python_version_tuple()[:2]), **named}
