"""Innodata Dataset Hub bundles: chat records, lowered to HELM's chat method (formats.md, section 3).

records.py   one line: a conversation and the expected reply
meta.py      meta.json: sizes, digests, attributes
archive.py   a ZIP from a stranger
bundle.py    the three together, streamed and checked
pack.py      make a bundle, reproducibly
load.py      bundle ──▶ EvalSet
replies.py   replies recorded earlier
"""

from __future__ import annotations

from helm_ext.formats.innodata.load import check, load, render_text
from helm_ext.formats.innodata.schema import json_schema
from helm_ext.hub.bundle import open_bundle
from helm_ext.hub.pack import pack

__all__ = ["check", "json_schema", "load", "open_bundle", "pack", "render_text"]
