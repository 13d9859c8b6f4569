"""Runners and summarizers that users name on the command line.

helm-run --runner-class-name helm_ext.running.StreamingRunner ...
helm-run --runner-class-name helm_ext.running.RayRunner ...
helm-summarize --summarizer-class-name helm_ext.running.StreamingSummarizer ...
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_ext.running.ray_runner import RayRunner
    from helm_ext.running.runner import StreamingRunner
    from helm_ext.running.summarizer import StreamingSummarizer

__all__ = ["RayRunner", "StreamingRunner", "StreamingSummarizer"]

_MODULES = {"RayRunner": "ray_runner", "StreamingRunner": "runner", "StreamingSummarizer": "summarizer"}


def __getattr__(name: str) -> Any:
    """Import the module of a class when the class is asked for: helm-run needs no summarizer, which takes a second."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
