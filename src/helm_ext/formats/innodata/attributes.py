"""Attributes: what reports of a bundle can be grouped by (docs/innodata.md, "Attributes")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helm_ext.formats.innodata.hub.records import Record

MAX_ATTRIBUTES = 100
"""Reports are grouped by this many, the first ones by name: each row carries its values, and each has columns."""

_MAX_VALUES = 20
_MAX_LENGTH = 40
"""Characters of an attribute's name, and of a value: both stand in the titles of tables and columns."""
_NOT_GROUPED = ("description", "display_name", "license", "source", "url", "author", "citation")
"""Attributes that describe a dataset and do not divide it."""


class AttributeValues:
    """What reports can be grouped by, noted while records are read: each attribute and the values that occur.

    An attribute is a key of `meta.json` or an extra key of records, short itself, whose values are all short strings,
    whole numbers or true/false, with at most 20 different ones. A record's own value goes before the dataset's; with
    null or "" a record has none.
    """

    def __init__(self) -> None:
        self._records = 0
        self._own: dict[str, int] = {}
        """How many records have the key."""
        self._values: dict[str, set[str]] = {}
        self._unfit: set[str] = set()

    def add(self, record: Record) -> None:
        """Note the values of a record."""
        self._records += 1
        for key, value in record.extra.items():
            self._own[key] = self._own.get(key, 0) + 1
            self._note(key, value)

    def finish(self, meta_attributes: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        """Return the attributes by name, the values of each sorted, with those that the dataset has of its own."""
        for key, value in meta_attributes.items():
            if self._own.get(key, 0) < self._records:  # else every record has a value of its own
                self._note(key, value)
        return {key: tuple(sorted(self._values[key])) for key in sorted(self._values) if key not in self._unfit}

    def _note(self, key: str, value: Any) -> None:
        if key in self._unfit or _is_empty(value):
            return
        text = _as_value(key, value)
        if text is None:
            self._unfit.add(key)
            return
        values = self._values.setdefault(key, set())
        values.add(text)
        if len(values) > _MAX_VALUES:
            self._unfit.add(key)


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
