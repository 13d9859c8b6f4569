"""helm-ext: datasets of one's own, recorded completions, other harnesses' logs and a dataset hub for HELM.

Users rarely import this package: `helm-run` finds it by its entry point (`helm_ext.plugin`), and the `helm-ext`
command does the rest. For Python code, `helm_ext.hub.load`, `helm_ext.formats.load`, `helm_ext.read_run` and
`helm_ext.read_suite` are the doors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_ext.analysis import read_run, read_suite

__all__ = ["__version__", "read_run", "read_suite"]


def __getattr__(name: str) -> Any:
    """Look a name up only when it is asked for: what they import costs more than the rest of this module."""
    if name == "__version__":
        from importlib.metadata import version

        return version("helm-ext")
    if name in ("read_run", "read_suite"):
        from helm_ext import analysis

        return getattr(analysis, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
