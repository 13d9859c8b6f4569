"""What runs in the processes that Ray starts for `engines.ray_engine`."""

from __future__ import annotations

import importlib.metadata
import os
import pickle
import platform
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from helm_ext.errors import HelmExtError


@dataclass
class Raised:
    """An exception of another process."""

    error: Exception
    traceback: str

    def to_error(self) -> Exception:
        """Return the exception; its cause shows where it was raised. Ours are for users, who need no such place."""
        if not isinstance(self.error, HelmExtError):
            self.error.__cause__ = RuntimeError(f"in a Ray actor:\n{self.traceback}")
        return self.error


class RayActor:
    """What runs in Ray's process. Exceptions are returned: those that Ray raises are about Ray."""

    def __init__(self) -> None:
        self.worker: Callable[[Any], Any] | None = None

    def start(self, wanted: dict[str, str], *packed: bytes) -> tuple[None, Raised | None]:
        """Make the worker. `packed`: how, pickled and compressed, in parts."""
        if (mine := versions()) != wanted:
            return None, _to_raised(HelmExtError(f"a Ray node has other versions than the driver: {mine}, {wanted}"))
        try:
            self.worker = pickle.loads(zlib.decompress(b"".join(packed)))()  # noqa: S301 - from our own driver
        except Exception as error:  # noqa: BLE001 - raised by the driver
            return None, _to_raised(error)
        return None, None

    def work(self, task: Any) -> tuple[Any, Raised | None]:
        """Do a task."""
        assert self.worker is not None
        try:
            return self.worker(task), None
        except MemoryError:  # a limit (`ulimit -v`), where else the system would end the process: so it is lost, too
            os._exit(1)
        except Exception as error:  # noqa: BLE001 - raised by the driver
            return None, _to_raised(error)


def versions() -> dict[str, str]:
    """Return what must be the same on all nodes, for the results to be."""
    named = {name: importlib.metadata.version(name) for name in ("helm-ext", "crfm-helm")}
    return {"python": ".".join(platform.python_version_tuple()[:2]), **named}


def _to_raised(error: Exception) -> Raised:
    """Return what the driver can unpickle."""
    text = traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
    except Exception:  # noqa: BLE001 - whatever its class does
        error = HelmExtError(f"{type(error).__name__}: {error}")
    return Raised(error, text)
