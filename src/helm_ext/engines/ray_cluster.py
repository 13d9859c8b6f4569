"""The Ray that actors run on: a cluster that is joined, or one of our own on this machine, with its settings."""

from __future__ import annotations

import math
import os
import socket
from dataclasses import dataclass
from typing import Any

from helm.common.hierarchical_logger import hwarn

from helm_ext.engines.engine import read_number
from helm_ext.errors import HelmExtError

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
        self._is_checked = False

    def require(self) -> Any:
        """Join the cluster, or start a Ray of our own, if that has not been done. Raises HelmExtError."""
        try:
            import ray
        except ImportError as error:
            raise HelmExtError(f"Ray cannot be imported: {error}\n  hint: pip install 'helm-ext[ray]'") from error
        self.ray = ray
        if not ray.is_initialized():
            self._start()
        if not self._is_checked:
            self._require_room()
            self._is_checked = True
        return ray

    def count_room(self) -> int:
        """Return for how many actors there is room."""
        name, each = ("GPU", self.settings.gpus) if self.settings.gpus else ("CPU", self.settings.cpus)
        return max(1, int(self.ray.cluster_resources().get(name, 1) // (each or 1)))

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
