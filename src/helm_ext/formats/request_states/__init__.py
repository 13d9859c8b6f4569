"""Format 1: a JSON file with `adapter_spec` and `request_states` (or JSON Lines), lowered to an EvalSet.

    bytes ──reading──▶ keys ────header──▶ Header
              └──────▶ states ──rows────▶ rows ──checks, plan──▶ problems, plan ──instances──▶ EvalSet

`load` raises with every problem it finds; `check` returns them. Every key, its default and HELM's counterpart, and what
is decided where a file is silent: docs/adapter_spec.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_ext.formats.request_states.loading import check, load

__all__ = ["check", "load"]


def __getattr__(name: str) -> Any:
    """Return what `loading` defines; it is imported when asked for, because every helm-run imports this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from helm_ext.formats.request_states import loading

    return getattr(loading, name)
