"""The table of formats: ours, and those that other distributions bring by the entry point group `helm_ext.formats`.

An entry point's name is the format's, its value is where the `Format` object stands:

    [project.entry-points."helm_ext.formats"]
    csv_qa = "my_package.format:FORMAT"

A format of somebody else's that cannot be used is one warning in the log. It never keeps other runs from starting, and
a run entry that names it gets the reason. A name belongs to one distribution: ours first, and none where two others
claim it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from helm.common.hierarchical_logger import hwarn

from helm_ext.errors import RunEntryError, did_you_mean

if TYPE_CHECKING:
    from helm_ext.formats.format import Format

GROUP = "helm_ext.formats"

_OURS = {
    "adapter_spec": "helm_ext.formats.request_states.format:FORMAT",
    "ultraeval": "helm_ext.formats.ultraeval.format:FORMAT",
    "innodata": "helm_ext.formats.innodata.format:FORMAT",
    "table": "helm_ext.formats.table.format:FORMAT",
    "inspect": "helm_ext.formats.inspect_logs.format:FORMAT",
    "every_eval_ever": "helm_ext.formats.every_eval_ever.format:FORMAT",
    "openai_batch": "helm_ext.formats.openai_batch.format:FORMAT",
    "lm_eval": "helm_ext.formats.lm_eval.format:FORMAT",
}
"""Name of the run entry to where the object stands. A format of ours is one line here."""


@dataclass(frozen=True)
class _Entry:
    """One line of the table."""

    name: str
    target: str
    """`module:attribute`."""
    distribution: str
    refused: str = ""
    """Why it cannot be used, where the table itself says so."""


def format_names() -> list[str]:
    """Return the names of all formats in the table, also of those that cannot be loaded."""
    return list(_entries())


def is_ours(name: str) -> bool:
    """Whether the format comes with helm-ext."""
    return name in _OURS


def get_format(name: str) -> Format:
    """Return the format of this name. Raises RunEntryError if there is none, or if it cannot be loaded."""
    entries = _entries()
    if name not in entries:
        hint = did_you_mean(name, entries) or f"known: {', '.join(entries)}"
        raise RunEntryError(f"no format named {name!r}\n  hint: {hint}")
    if isinstance(loaded := _load(entries[name]), str):
        raise RunEntryError(loaded)
    return loaded


def all_formats() -> list[Format]:
    """Return every format that can be loaded; warn, once, of each that cannot."""
    formats = []
    for entry in _entries().values():
        loaded = _load(entry)
        if isinstance(loaded, str):
            _warn(loaded)
        else:
            formats.append(loaded)
    return formats


@cache
def _entries() -> dict[str, _Entry]:
    from importlib.metadata import entry_points

    entries = {name: _Entry(name, target, "helm-ext") for name, target in _OURS.items()}
    others = [
        _Entry(point.name, point.value, point.dist.name if point.dist is not None else "unknown")
        for point in entry_points(group=GROUP)
    ]
    for found in sorted(others, key=lambda entry: (entry.name, entry.distribution, entry.target)):
        known = entries.setdefault(found.name, found)
        if (known.target, known.distribution) == (found.target, found.distribution):
            continue
        if is_ours(found.name):
            _warn(
                f"the format {found.name!r} of the distribution {found.distribution!r} is refused: "
                f"{known.distribution!r} has a format of that name already"
            )
        else:
            both = f"{known.distribution!r} and {found.distribution!r}"
            refused = f"two distributions have a format {found.name!r}: {both}; neither is used"
            entries[found.name] = replace(known, refused=refused)
    return entries


@cache
def _load(entry: _Entry) -> Format | str:
    """Return the format, or why there is none."""
    from helm_ext.formats.format import Format

    if entry.refused:
        return entry.refused
    module, _, attribute = entry.target.partition(":")
    said = f"the format {entry.name!r} of the distribution {entry.distribution!r} cannot be loaded"
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # noqa: BLE001 - somebody else's module may raise anything
        return f"{said}: {entry.target}: {type(error).__name__}: {error}"
    if not isinstance(found, Format):
        return f"{said}: {entry.target} is no helm_ext.formats.Format"
    missing = [name for name in Format.__annotations__ if not hasattr(found, name)]
    if missing:
        return f"{said}: {entry.target} says nothing of {', '.join(missing)}"
    if found.name != entry.name:
        return f"{said}: {entry.target} calls itself {found.name!r}"
    return found


@cache
def _warn(message: str) -> None:
    hwarn(message)
