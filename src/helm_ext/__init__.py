"""helm-ext: three dataset formats, recorded completions and a dataset hub for HELM.

Users rarely import this package: `helm-run` finds it by its entry point (`helm_ext.plugin`), and the `helm-ext`
command does the rest. For Python code, `helm_ext.hub.load`, `helm_ext.formats.load` and `helm_ext.read_run` are the
doors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_ext.analysis import read_run

__all__ = ["__version__", "read_run"]


def __getattr__(name: str) -> Any:
    """Look a name up only when it is asked for: what they import costs more than the rest of this module."""
    if name == "__version__":
        from importlib.metadata import version

        return version("helm-ext")
    if name == "read_run":
        from helm_ext.analysis import read_run

        return read_run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
