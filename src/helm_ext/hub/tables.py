"""A bundle as `datasets.DatasetDict`. Apart from the hub, because importing `datasets` takes a second."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import datasets
from datasets.table import InMemoryTable, concat_tables

if TYPE_CHECKING:
    from helm_ext.hub.bundle import Bundle
    from helm_ext.hub.chat_records import Record
    from helm_ext.hub.meta import Split

FEATURES = datasets.Features(
    {
        "id": datasets.Value("string"),
        "messages": [{"role": datasets.Value("string"), "content": datasets.Value("string")}],
        "expected": datasets.Value("string"),
        "extra": datasets.Value("string"),
    }
)

_BATCH = 10_000


def to_dataset_dict(bundle: Bundle, version: int) -> datasets.DatasetDict:
    """Return both splits, in memory, records in the order of the files. Raises DatasetError for a broken record."""
    description = json.dumps(
        {
            "name": bundle.meta.name,
            "version": version,
            "digest": bundle.digest,
            "attributes": bundle.meta.attributes,
        },
        ensure_ascii=False,
    )
    splits: tuple[Split, ...] = ("train", "test")
    return datasets.DatasetDict({split: _to_dataset(bundle, split, version, description) for split in splits})


def _to_dataset(bundle: Bundle, split: Split, version: int, description: str) -> datasets.Dataset:
    schema = FEATURES.arrow_schema
    records = bundle.records(split)
    tables = [InMemoryTable.from_pylist(batch, schema=schema) for batch in _batches(records)]
    info = datasets.DatasetInfo(
        description=description,
        features=FEATURES,
        dataset_name=bundle.meta.name,
        version=datasets.Version(f"{version}.0.0"),
    )
    return datasets.Dataset(
        concat_tables(tables or [InMemoryTable.from_pylist([], schema=schema)]),
        info=info,
        split=datasets.NamedSplit(split),
        fingerprint=f"{bundle.digest[:48]}-{split}",
    )


def _batches(records: Iterator[Record]) -> Iterator[list[dict[str, Any]]]:
    while batch := [_to_row(record) for record in islice(records, _BATCH)]:
        yield batch


def _to_row(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "messages": record.messages,
        "expected": record.expected,
        "extra": json.dumps(record.extra, ensure_ascii=False),
    }


def get_attributes(dataset: datasets.Dataset | datasets.DatasetDict) -> dict[str, Any]:
    """Return the attributes of a dataset that `helm_ext.hub.load` returned, also after `map` and `filter`."""
    first = next(iter(dataset.values())) if isinstance(dataset, dict) else dataset
    return dict(json.loads(first.info.description)["attributes"])
