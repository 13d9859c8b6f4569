"""What changed between two versions of a dataset: records by id, and attributes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helm_ext.hub.bundle import MEMBERS

if TYPE_CHECKING:
    from helm_ext.hub.bundle import Bundle
    from helm_ext.hub.chat_records import Record
    from helm_ext.hub.meta import Split


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
    """Compare two open bundles. Memory: some 600 bytes a record."""
    return Difference(
        {split: _compare_split(old, new, split) for split in MEMBERS},
        _compare_attributes(old.meta.attributes, new.meta.attributes),
    )


def _compare_split(old: Bundle, new: Bundle, split: Split) -> SplitDifference:
    before = {record.id: (place, _hash_values(record)) for place, record in enumerate(old.records(split))}
    added: list[str] = []
    changed: list[Change] = []
    places: list[int] = []  # of those that both have, in the old version
    for record in new.records(split):
        if record.id not in before:
            added.append(record.id)
            continue
        place, left = before.pop(record.id)
        places.append(place)
        right = _hash_values(record)
        if left != right:
            keys = [*left, *(key for key in right if key not in left)]
            changed.append(Change(record.id, tuple(key for key in keys if left.get(key) != right.get(key))))
    return SplitDifference(tuple(added), tuple(before), tuple(changed), reordered=places != sorted(places))


def _hash_values(record: Record) -> dict[str, bytes]:
    """Return a hash of each key's value as JSON, so that 1, 1.0 and true are three values."""
    values = {"messages": record.messages, "expected": record.expected, **record.extra}
    return {
        key: hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()
        for key, value in values.items()
    }


def _compare_attributes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    keys = [*old, *(key for key in new if key not in old)]
    return {
        key: (old.get(key), new.get(key)) for key in keys if (key in old, old.get(key)) != (key in new, new.get(key))
    }
