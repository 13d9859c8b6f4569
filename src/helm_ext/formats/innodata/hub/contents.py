"""What is in a version: as `datasets.DatasetDict`, and compared with another one, records by id."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from helm_ext.formats.innodata.hub.bundle import MEMBERS

if TYPE_CHECKING:
    import datasets

    from helm_ext.formats.innodata.hub.bundle import Bundle
    from helm_ext.formats.innodata.hub.records import Record, Split

_BATCH = 10_000
"""Records that are made a table at a time."""


def to_dataset_dict(bundle: Bundle, version: int) -> datasets.DatasetDict:
    """Return both splits, in memory, records in the order of the files. Raises DatasetError for a broken record."""
    import datasets
    from datasets.table import InMemoryTable, concat_tables

    meta, text = bundle.meta, datasets.Value("string")
    messages = [{"role": text, "content": text}]
    features = datasets.Features({"id": text, "messages": messages, "expected": text, "extra": text})
    said = {"name": meta.name, "version": version, "digest": bundle.digest, "attributes": meta.attributes}
    info = datasets.DatasetInfo(
        description=json.dumps(said, ensure_ascii=False), features=features, dataset_name=meta.name,
        version=datasets.Version(f"{version}.0.0"),
    )  # fmt: skip
    found = {}
    splits: tuple[Split, ...] = ("train", "test")
    for split in splits:
        rows = (
            {**_values(record), "extra": json.dumps(record.extra, ensure_ascii=False)}
            for record in bundle.records(split)
        )
        batches = iter(lambda: [*islice(rows, _BATCH)], [])  # noqa: B023 - used up before the next split
        tables = [InMemoryTable.from_pylist(batch, schema=features.arrow_schema) for batch in batches]
        found[split] = datasets.Dataset(
            concat_tables(tables or [InMemoryTable.from_pylist([], schema=features.arrow_schema)]),
            info=info, split=datasets.NamedSplit(split), fingerprint=f"{bundle.digest[:48]}-{split}",
        )  # fmt: skip
    return datasets.DatasetDict(found)


def _values(record: Record) -> dict[str, Any]:
    return {"id": record.id, "messages": record.messages, "expected": record.expected}


def get_attributes(dataset: datasets.Dataset | datasets.DatasetDict) -> dict[str, Any]:
    """Return the attributes of a dataset that `load` returned, also after `map` and `filter`."""
    first = next(iter(dataset.values())) if isinstance(dataset, dict) else dataset
    return dict(json.loads(first.info.description)["attributes"])


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
