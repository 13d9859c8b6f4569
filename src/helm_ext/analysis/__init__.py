"""What came out of finished runs: HELM's files, row by row, for people and for other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_ext.analysis.predictions import Prediction
    from helm_ext.analysis.suite import FinishedRun, Suite, find_runs, read_run, read_suite

__all__ = ["FinishedRun", "Prediction", "Suite", "find_runs", "read_run", "read_suite"]


def __getattr__(name: str) -> Any:
    """Look a name up only when it is asked for: `lint` stands here too, and needs neither numpy nor finished runs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{'predictions' if name == 'Prediction' else 'suite'}"), name)
