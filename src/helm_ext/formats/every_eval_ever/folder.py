"""Which files are one record: the aggregate, and the samples beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, did_you_mean
from helm_ext.formats.every_eval_ever.schema import AGGREGATE_KEYS, INSTANCE_KEYS
from helm_ext.formats.seen import look

_SAMPLES = "_samples.jsonl"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Record:
    """The files of one record. At least one of them is there."""

    name: str
    """The file's name without its ending: a UUID, where the file is named as upstream demands."""
    aggregate: Path | None
    samples: Path | None


def has_records(folder: Path) -> bool:
    """Whether a folder, or one below it, holds a file of samples."""
    return any(look(path).keys >= INSTANCE_KEYS for path in _named(folder, _SAMPLES))


def find_records(path: Path) -> list[Record]:
    """Return the records that a path names: a file's own, or all below a folder, by their paths.

    Raises DatasetNotFoundError where there is none, DatasetIntegrityError for a file of neither kind.
    """
    if path.is_dir():
        found = [_of_aggregate(each) for each in _named(path, ".json") if look(each).keys >= AGGREGATE_KEYS]
        known = {record.samples for record in found}
        alone = [each for each in _named(path, _SAMPLES) if each not in known and look(each).keys >= INSTANCE_KEYS]
        found += [Record(_stem(each), None, each) for each in alone]
        if not found:
            raise DatasetNotFoundError.at(path, "no record of Every Eval Ever is in this folder", code="record")
        return sorted(found, key=lambda record: str(record.aggregate or record.samples))
    if not path.is_file():
        raise DatasetNotFoundError.at(path, "no such file", code="record")
    keys = look(path).keys
    if keys >= AGGREGATE_KEYS:
        return [_of_aggregate(path)]
    if keys < INSTANCE_KEYS:
        missing = ", ".join(sorted(INSTANCE_KEYS - keys))
        raise DatasetIntegrityError.at(
            path, f"no record of Every Eval Ever: the first object has no {missing}", code="record"
        )
    beside = path.with_name(_stem(path) + ".json")
    aggregate = beside if path.name.endswith(_SAMPLES) and look(beside).keys >= AGGREGATE_KEYS else None
    return [Record(_stem(path), aggregate, path)]


def choose(path: Path, name: str | None) -> Record:
    """Return the record that is meant. Raises as `find_records`, and where a folder does not tell."""
    records = find_records(path)
    fitting = [record for record in records if name in (None, record.name)]
    if len(fitting) == 1:
        return fitting[0]
    names = [record.name for record in records]
    shown = ", ".join(names[:5]) + (", ..." if names[5:] else "")
    hint = (did_you_mean(name, names) if name else "") or f"record= one of {shown}"
    raise DatasetIntegrityError.at(
        path, f"no record {name}" if name else f"{len(records)} records are in this folder", hint, code="record"
    )


def _of_aggregate(path: Path) -> Record:
    samples = path.with_name(path.stem + _SAMPLES)
    return Record(path.stem, path, samples if samples.is_file() else None)


def _stem(path: Path) -> str:
    return path.name.removesuffix(_SAMPLES) if path.name.endswith(_SAMPLES) else path.stem


def _named(folder: Path, suffix: str) -> Iterator[Path]:
    """Yield the files whose name is a UUID and this ending, in a folder and those below it."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            if name.endswith(suffix) and _UUID.fullmatch(name.removesuffix(suffix)):
                yield Path(parent) / name
