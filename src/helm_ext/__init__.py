"""helm-ext: three dataset formats, recorded completions and a dataset hub for HELM.

Users rarely import this package: `helm-run` finds it by its entry point (`helm_ext.plugin`), and the `helm-ext`
command does the rest. For Python code, `helm_ext.hub.load` and `helm_ext.formats.load` are the doors.
"""

from __future__ import annotations

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """`__version__`, looked up only when asked for: importlib.metadata costs more than the rest of this module."""
    if name == "__version__":
        from importlib.metadata import version

        return version("helm-ext")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
