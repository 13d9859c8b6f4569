"""A bundle: `NAME.zip` with `test.jsonl`, `train.jsonl` and `meta.json` (docs/innodata.md, "Bundles").

A bundle is opened once; its digest, its checks and its records come from the same open file, so that what was verified
is what is read. Records are streamed: memory does not grow with the bundle but for the ids.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from helm_ext.errors import (
    DatasetChangedError,
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSyntaxError,
    HelmExtError,
    Location,
    Problem,
    Problems,
    raise_for,
    show,
)
from helm_ext.files.archive import Limits, open_archive
from helm_ext.files.content import COPY_BYTES, Hashing, near_files
from helm_ext.files.writing import replace_file
from helm_ext.formats.innodata.hub.records import (
    META_NAME,
    Meta,
    Record,
    Split,
    is_valid_name,
    parse_meta,
    parse_record,
    read_rows,
)

if TYPE_CHECKING:
    import datasets

MEMBERS: dict[Split, str] = {"test": "test.jsonl", "train": "train.jsonl"}
_ALL_MEMBERS = (MEMBERS["test"], MEMBERS["train"], META_NAME)
_MAX_META_BYTES = 1 << 20


def sha256_of(file: BinaryIO) -> str:
    """Return the SHA-256 of a file from its beginning, 64 lower-case hex digits."""
    file.seek(0)
    read = Hashing(file)
    while read.read_chunk(COPY_BYTES):
        pass
    return read.hash.hexdigest()


def save(file: BinaryIO, digest: str, path: Path, refusal: type[HelmExtError], *, replace: bool) -> None:
    """Write a bundle's bytes to a path, atomically, unless they stand there. Raises OSError.

    Raises `refusal` where a file stands there with other content, unless `replace`.
    """
    if path.exists():
        with path.open("rb") as old:
            if sha256_of(old) == digest:
                return
        if not replace:
            raise refusal(
                f"{path}: exists, with other content\n  hint: --replace overwrites it, --out writes elsewhere"
            )
    replace_file(file, path)


@dataclass(frozen=True)
class Bundle:
    """An open bundle whose archive and `meta.json` are sound. Records are checked as they are read."""

    path: str
    digest: str
    """SHA-256 of the ZIP's bytes."""
    meta: Meta
    archive: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]
    warnings: tuple[Problem, ...] = ()

    def records(self, split: Split, limit: int | None = None) -> Iterator[Record]:
        """Yield the records of a split. Raises DatasetError when one breaks a rule, size or digest are not `meta`'s.

        `limit`: how many; the others are counted and hashed, and not parsed. Ids are not compared: `iter_checked` does
        that, and the hub does it before it accepts a bundle.
        """
        problems = Problems()
        counted = SplitCheck()
        yield from self.stream(split, problems, counted, limit)
        compare_with_meta(self, split, counted, problems)
        raise_for(problems.finish())

    def stream(
        self, split: Split, problems: Problems, counted: SplitCheck, limit: int | None = None
    ) -> Iterator[Record]:
        """Yield the sound records of a split and note what is wrong with the others; as `check_split`."""
        path = f"{self.path}/{MEMBERS[split]}"
        try:
            with self.archive.open(self.members[MEMBERS[split]]) as file:  # compared with its CRC at the end
                yield from check_split(cast("BinaryIO", file), path, problems, counted, limit)
        except _DAMAGED as error:
            counted.unreadable = True
            _note_damage(path, error, problems)


@dataclass
class SplitCheck:
    """What was counted while a split was streamed."""

    lines: int = 0
    digest: str = ""
    unreadable: bool = False


def check_split(
    file: BinaryIO, path: str, problems: Problems, counted: SplitCheck, limit: int | None = None
) -> Iterator[Record]:
    """Yield the sound records of a JSON Lines file, note what is wrong, and fill `counted` when all is read.

    Lines beyond the first `limit` are counted and hashed; that they are records is not checked.
    """
    read = Hashing(file)
    for number, line in read_rows(read, path, problems):
        counted.lines += 1
        if line is None or (limit is not None and counted.lines > limit):
            continue
        record = parse_record(line, Location(path, number), problems)
        if record is not None:
            yield record
    counted.digest = read.hash.hexdigest()


def compare_with_meta(bundle: Bundle, split: Split, counted: SplitCheck, problems: Problems) -> None:
    """Note where a split's size or digest is not what `meta.json` states, and an empty test split."""
    if counted.unreadable:
        return
    meta, member = bundle.meta, MEMBERS[split]

    def add(field: str, message: str, code: str, hint: str = "") -> None:
        place = Location(f"{bundle.path}/{META_NAME}", None, field)
        problems.add(place, message, hint, code=code, kind=DatasetIntegrityError)

    if meta.sizes[split] != counted.lines:
        add(f"{split}_size", f"{meta.sizes[split]}, but {member} has {counted.lines} records", "size-mismatch")
    if meta.digests[split] != counted.digest:
        message = f"{meta.digests[split]}, but {member} has SHA-256 {counted.digest}"
        hint = "pack the bundle again after every change: helm-ext hub pack"
        add(f"{split}_digest", message, "digest-mismatch", hint)
    if split == "test" and not counted.lines:
        note_empty_test(f"{bundle.path}/{member}", problems)


def note_empty_test(path: str, problems: Problems) -> None:
    """Note that there is nothing to evaluate."""
    hint = "at least one record is needed to evaluate"
    problems.add(Location(path), "the test split is empty", hint, code="empty-test", kind=DatasetIntegrityError)


_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError)


def _note_damage(path: str, error: Exception, problems: Problems) -> None:
    message, hint = f"cannot be decompressed: {error or 'cut off'}", "copy or download the file again"
    problems.add(Location(path), message, hint, code="damaged-member", kind=DatasetSyntaxError)


@contextmanager
def open_bundle(
    path: str | Path,
    *,
    digest: str | None = None,
    expected_name: str | None = None,
    shown_path: str | None = None,
) -> Iterator[Bundle]:
    """Open a bundle, check its archive and `meta.json`, and close it at the end.

    `digest`: the SHA-256 that the file must have. `expected_name`: the name that `meta.json` must state; None takes the
    file's stem and only warns when they differ. Raises DatasetError.
    """
    shown = shown_path or str(path)
    problems = Problems()
    with open_seekable(path, shown) as file:
        try:
            found_digest = sha256_of(file)
        except OSError as error:
            message = f"cannot be read: {error.strerror or error}"
            raise DatasetNotFoundError.at(shown, message, code="unreadable") from error
        if digest is not None and found_digest != digest:
            message = f"SHA-256 is {found_digest}, expected {digest}: the file is damaged"
            raise DatasetChangedError.at(shown, message, code="damaged-bundle")
        opened = read_archive(file, shown, Limits.from_environ(), problems)
        if opened is not None:
            _check_name(opened[2], shown, Path(path).stem, expected_name, problems)
        found = problems.finish()
        raise_for(found)
        assert opened is not None  # else there is an error
        archive, members, meta = opened
        with archive:
            yield Bundle(shown, found_digest, meta, archive, members, tuple(found))


@contextmanager
def open_seekable(path: str | Path, shown: str) -> Iterator[BinaryIO]:
    """Open a file of which any place can be read. Raises DatasetNotFoundError."""
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        said = "no such file" if is_missing else f"cannot be read: {error.strerror}"
        hint = near_files(Path(path)) if is_missing else ""
        raise DatasetNotFoundError.at(shown, said, hint, code="unreadable") from error
    with file:
        if not file.seekable():
            hint = "it is read more than once: save it as a file first"
            raise DatasetNotFoundError.at(shown, "no regular file", hint, code="unreadable")
        yield file


def read_archive(
    file: BinaryIO, path: str, limits: Limits, problems: Problems
) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo], Meta] | None:
    """Check an archive and its `meta.json`; None when it must not be read, each reason noted in `problems`."""
    opened = open_archive(file, path, _ALL_MEMBERS, limits, problems)
    if opened is None:
        return None
    archive, members = opened
    where = f"{path}/{META_NAME}"
    if members[META_NAME].file_size > _MAX_META_BYTES:
        message = f"longer than {_MAX_META_BYTES} bytes"
        problems.add(Location(where), message, code="meta-too-large", kind=DatasetIntegrityError)
        return None
    try:
        data = archive.read(META_NAME)
    except _DAMAGED as error:
        _note_damage(where, error, problems)
        return None
    meta = parse_meta(data, where, problems)
    return None if meta is None else (archive, members, meta)


def _check_name(meta: Meta, path: str, stem: str, expected: str | None, problems: Problems) -> None:
    """Compare the dataset's name with the file's. Without an expected name a different file name is a warning only."""
    if meta.name == (stem if expected is None else expected):
        return
    place = Location(f"{path}/{META_NAME}", None, "name")
    message = f"{show(meta.name)}, but the file is named {show(f'{stem if expected is None else expected}.zip')}"
    if expected is None:
        problems.warn(place, message, f"the hub takes it only as {meta.name}.zip", code="name-mismatch")
        return
    hint = f"rename the file to {meta.name}.zip"
    hint += f", or pack it again as {expected}" if is_valid_name(expected) else ""
    problems.add(place, message, hint, code="name-mismatch", kind=DatasetIntegrityError)


def iter_checked(
    bundle: Bundle,
    problems: Problems,
    counts: dict[str, int],
    keep: Split | None = None,
    limit: int | None = None,
) -> Iterator[Record]:
    """Check all records of an open bundle, sizes, digests and ids, and yield those of the split `keep`.

    All is checked when the last one was taken. With `limit` these are the first ones, and of all others only sizes and
    digests are checked: neither their rules, nor whether an id occurs again.
    """
    ids = UniqueIds(problems)
    for split, member in MEMBERS.items():
        counted = SplitCheck()
        of_these = None if limit is None else limit if split == keep else 0
        for record in bundle.stream(split, problems, counted, of_these):
            ids.see(record, f"{bundle.path}/{member}")
            if split == keep:
                yield record
        compare_with_meta(bundle, split, counted, problems)
        counts[split] = counted.lines
    counts["rows"] = sum(counts.values())


class UniqueIds:
    """Notes every id that occurs again, in its split or in the other."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._lines: dict[str, dict[str, int]] = {}
        """By path, the line of each id."""

    def see(self, record: Record, path: str) -> None:
        """Take the next record of a file."""
        first = next((one for one, lines in self._lines.items() if record.id in lines), None)
        if first is None:
            self._lines.setdefault(path, {})[record.id] = record.line
            return
        name = first.rpartition("/")[2]
        if first != path and path.rpartition("/")[2] == name:
            name = first
        message = f"{show(record.id)} occurs already in {name}:{self._lines[first][record.id]}"
        hint = "ids must be unique across both splits"
        place = Location(path, record.line, "id")
        self._problems.add(place, message, hint, code="duplicate-id", kind=DatasetIntegrityError)


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
            {
                "id": record.id,
                "messages": record.messages,
                "expected": record.expected,
                "extra": json.dumps(record.extra, ensure_ascii=False),
            }
            for record in bundle.records(split)
        )
        batches = iter(lambda: [*islice(rows, _BATCH)], [])  # noqa: B023 - used up before the next split
        tables = [InMemoryTable.from_pylist(batch, schema=features.arrow_schema) for batch in batches]
        found[split] = datasets.Dataset(
            concat_tables(tables or [InMemoryTable.from_pylist([], schema=features.arrow_schema)]),
            info=info, split=datasets.NamedSplit(split), fingerprint=f"{bundle.digest[:48]}-{split}",
        )  # fmt: skip
    return datasets.DatasetDict(found)


def get_attributes(dataset: datasets.Dataset | datasets.DatasetDict) -> dict[str, Any]:
    """Return the attributes of a dataset that `load` returned, also after `map` and `filter`."""
    first = next(iter(dataset.values())) if isinstance(dataset, dict) else dataset
    return dict(json.loads(first.info.description)["attributes"])
