"""helm-ext: datasets of one's own, recorded completions, other harnesses' logs and a dataset hub for HELM.

Users rarely import this package: `helm-run` finds it by its entry point (`helm_ext.plugin`), and the `helm-ext`
command does the rest. For Python code, the doors are `helm_ext.score`, `helm_ext.compare`, `helm_ext.read_run`,
`helm_ext.read_suite`, `helm_ext.hub.load` and `helm_ext.formats.load`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_ext.analysis import read_run, read_suite
    from helm_ext.cli.notebooks import compare, score
    from helm_ext.formats.innodata import hub

__all__ = ["__version__", "compare", "hub", "read_run", "read_suite", "score"]


def __getattr__(name: str) -> Any:
    """Look a name up only when it is asked for: what they import costs more than the rest of this module."""
    if name == "__version__":
        from importlib.metadata import version

        return version("helm-ext")
    if name in ("read_run", "read_suite"):
        from helm_ext import analysis

        return getattr(analysis, name)
    if name == "hub":
        from helm_ext.formats.innodata import hub

        return hub
    if name in ("compare", "score"):
        from helm_ext.cli import notebooks

        return getattr(notebooks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
