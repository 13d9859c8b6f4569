"""UltraEval task sets (docs/ultraeval.md): data, transform script, optional config, lowered to an EvalSet.

    GEN   one request a row: the prompt; `processed_output` are the accepted answers
    PPL   one request an option: prompt + key of `target_scores`; the likeliest whole string wins

A transform script is the user's code: `load` runs it, with the user's rights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_ext.formats.ultraeval.loading import check, get_postprocess, json_schema, load, tasks

__all__ = ["check", "get_postprocess", "json_schema", "load", "tasks"]


def __getattr__(name: str) -> Any:
    """Return what `loading` defines; it is imported when asked for, because every helm-run imports this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from helm_ext.formats.ultraeval import loading

    return getattr(loading, name)
