"""Innodata Dataset Hub bundles: chat records, lowered to HELM's chat method (docs/innodata.md).

options.py     arguments of a run entry
loading.py     a bundle is read and checked
replies.py     replies recorded earlier
attributes.py  what reports can be grouped by
lowering.py    records ──▶ EvalSet
writing.py     EvalSet ──▶ bundle

The bundles themselves are the business of `helm_ext.hub`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_ext.formats.innodata.editor_schema import json_schema
    from helm_ext.formats.innodata.loading import check, load
    from helm_ext.formats.innodata.lowering import render_text
    from helm_ext.hub import open_bundle, pack

__all__ = ["check", "json_schema", "load", "open_bundle", "pack", "render_text"]


def __getattr__(name: str) -> Any:
    """Return what the modules define; they are imported when asked for: every helm-run imports this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from helm_ext import hub
    from helm_ext.formats.innodata import editor_schema, loading, lowering

    return getattr(next(module for module in (loading, lowering, editor_schema, hub) if hasattr(module, name)), name)
