"""What changed between two versions of a dataset: records by id, and attributes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helm_ext.hub.bundle import MEMBERS

if TYPE_CHECKING:
    from helm_ext.hub.bundle import Bundle
    from helm_ext.hub.meta import Split
    from helm_ext.hub.records import Record

__all__ = ["Change", "Difference", "SplitDifference", "compare"]


@dataclass(frozen=True)
class Change:
    """A record that both versions have, and that is not the same."""

    id: str
    fields: tuple[str, ...]
    """Which keys differ."""


@dataclass(frozen=True)
class SplitDifference:
    """Ids in the order of the new file; removed ones in the order of the old."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[Change, ...]
    reordered: bool = False
    """Whether the records that both versions have stand in another order."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.reordered)


@dataclass(frozen=True)
class Difference:
    """Two versions compared. A record that moved to the other split is removed from one and added to the other."""

    splits: dict[Split, SplitDifference]
    attributes: dict[str, tuple[Any, Any]]
    """Attribute to its (old, new) value, None where there is none; only those that differ."""

    def __bool__(self) -> bool:
        return bool(self.attributes) or any(self.splits.values())


def compare(old: Bundle, new: Bundle) -> Difference:
    """Compare two open bundles. Memory: some 200 bytes a record."""
    return Difference(
        {split: _compare_split(old, new, split) for split in MEMBERS},
        _compare_attributes(old.meta.attributes, new.meta.attributes),
    )


def _compare_split(old: Bundle, new: Bundle, split: Split) -> SplitDifference:
    before = {record.id: (place, _fingerprint(record)) for place, record in enumerate(old.records(split))}
    added: list[str] = []
    changed: set[str] = set()
    places: list[int] = []  # of those that both have, in the old version
    for record in new.records(split):
        place, fingerprint = before.pop(record.id, (None, b""))
        if place is None:
            added.append(record.id)
            continue
        places.append(place)
        if fingerprint != _fingerprint(record):
            changed.add(record.id)
    explained = _explain(old, new, split, changed)
    return SplitDifference(tuple(added), tuple(before), explained, reordered=places != sorted(places))


def _explain(old: Bundle, new: Bundle, split: Split, ids: set[str]) -> tuple[Change, ...]:
    """Read the changed records again, to say which keys differ."""
    if not ids:
        return ()
    before = {record.id: _as_dict(record) for record in old.records(split) if record.id in ids}
    changes = []
    for record in new.records(split):
        if record.id in ids:
            left, right = before[record.id], _as_dict(record)
            keys = [*left, *(key for key in right if key not in left)]
            differing = tuple(key for key in keys if key not in left or key not in right or left[key] != right[key])
            changes.append(Change(record.id, differing))
    return tuple(changes)


def _as_dict(record: Record) -> dict[str, str]:
    """Every key's value as JSON, so that 1, 1.0 and true are three values."""
    values = {"messages": record.messages, "expected": record.expected, **record.extra}
    return {key: json.dumps(value, sort_keys=True) for key, value in values.items()}


def _fingerprint(record: Record) -> bytes:
    text = json.dumps([record.messages, record.expected, record.extra], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _compare_attributes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    keys = [*old, *(key for key in new if key not in old)]
    return {
        key: (old.get(key), new.get(key)) for key in keys if (key in old, old.get(key)) != (key in new, new.get(key))
    }
