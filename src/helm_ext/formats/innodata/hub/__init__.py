"""The Innodata Dataset Hub: chat datasets with immutable versions, in a folder or an object store. No server to run.

    from helm_ext import hub

    hub.pack(name="geo-chat", test="test.jsonl", target=".")
    hub.upload("geo-chat.zip")                  # the next version; the same ZIP twice is refused
    ds = hub.load("geo-chat")                   # the newest, a datasets.DatasetDict with test and train
    ds = hub.load("geo-chat", version=3)        # frozen

The hub is chosen by the argument `hub`, else HELM_EXT_HUB, else it is in the user's data folder. Importing this module
is cheap: `datasets` is imported by `load` only.
"""

from __future__ import annotations

from helm_ext.formats.innodata.hub.bundle import Bundle, get_attributes, open_bundle
from helm_ext.formats.innodata.hub.packing import Packed, pack
from helm_ext.formats.innodata.hub.versioning import (
    HUB_ENV,
    Resolved,
    Uploaded,
    Version,
    download,
    get_root,
    load,
    names,
    newest,
    open_version,
    require_hub,
    resolve,
    upload,
    verify,
    versions,
)

__all__ = [
    "HUB_ENV",
    "Bundle",
    "Packed",
    "Resolved",
    "Uploaded",
    "Version",
    "download",
    "get_attributes",
    "get_root",
    "load",
    "names",
    "newest",
    "open_bundle",
    "open_version",
    "pack",
    "require_hub",
    "resolve",
    "upload",
    "verify",
    "versions",
]
