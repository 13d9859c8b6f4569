"""Attributes: what reports of a bundle can be grouped by (docs/innodata.md, "Attributes")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helm_ext.hub.records import Record

__all__ = ["MAX_ATTRIBUTES", "find_attributes", "short_attributes"]

MAX_ATTRIBUTES = 100
"""Reports are grouped by this many, the first ones by name: each row carries its values, and each has columns."""

_MAX_VALUES = 20
_MAX_LENGTH = 40
"""Characters of an attribute's name, and of a value: both stand in the titles of tables and columns."""
_NOT_GROUPED = ("description", "display_name", "license", "source", "url", "author", "citation")
"""Attributes that describe a dataset and do not divide it."""


def find_attributes(meta_attributes: Mapping[str, Any], records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    """Return what reports can be grouped by: each attribute and the values that occur, sorted.

    An attribute is a key of `meta.json` or an extra key of records, short itself, whose values are all short strings,
    whole numbers or true/false, with at most 20 different ones. A record's own value goes before the dataset's; with
    null or "" a record has none.
    """
    values: dict[str, set[str]] = {}
    unfit: set[str] = set()

    def add(key: str, value: Any) -> None:
        if _is_empty(value):
            return
        text = _as_value(key, value)
        if text is None:
            unfit.add(key)
        else:
            values.setdefault(key, set()).add(text)

    own: dict[str, int] = {}
    for record in records:
        for key, value in record.extra.items():
            add(key, value)
            own[key] = own.get(key, 0) + 1
    for key, value in meta_attributes.items():
        if own.get(key, 0) < len(records):  # else every record has a value of its own
            add(key, value)
    return {
        key: tuple(sorted(values[key]))
        for key in sorted(values)
        if key not in unfit and len(values[key]) <= _MAX_VALUES
    }


def short_attributes(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes that can be shown, as they are shown."""
    return {key: text for key, value in values.items() if (text := _as_value(key, value))}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _as_value(key: str, value: Any) -> str | None:
    """Return an attribute's value as it is shown, or None for one that is no short scalar, or has no short name."""
    if key in _NOT_GROUPED or not isinstance(value, (str, int)) or not _is_short(key):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    return text if _is_short(text) else None


def _is_short(text: str) -> bool:
    return 0 < len(text) <= _MAX_LENGTH and text.isprintable()
