"""Make a bundle: same input, same bytes, on any machine and any day.

Members in one order, one date (1980-01-01, the oldest that ZIP can say), one mode, and no compression: the
bytes that deflate gives depend on the version of zlib, and zlib-ng's differ from zlib's.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

from helm_ext.errors import (
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSchemaError,
    HelmExtError,
    Problems,
    raise_for,
    show,
)
from helm_ext.files.archive import Limits
from helm_ext.files.content import COPY_BYTES, Hashing
from helm_ext.formats.innodata.hub.bundle import (
    MEMBERS,
    SplitCheck,
    UniqueIds,
    check_split,
    note_empty_test,
    open_seekable,
    read_archive,
    save,
    sha256_of,
)
from helm_ext.formats.innodata.hub.records import META_KEYS, META_NAME, NAME_RULE, Split, is_valid_name

_DATE = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_MODE = 0o100644 << 16


@dataclass(frozen=True, slots=True)
class Packed:
    """What `pack` made."""

    path: Path
    digest: str
    """SHA-256 of the ZIP."""
    sizes: dict[Split, int]


def pack(
    *,
    name: str,
    test: str | Path,
    train: str | Path | None = None,
    attributes: Mapping[str, Any] | None = None,
    target: str | Path = ".",
    replace: bool = False,
) -> Packed:
    """Check two JSON Lines files and write `NAME.zip` into the folder `target`, atomically.

    No `train` makes an empty train split. An existing file with other bytes is an error unless `replace`. Raises
    DatasetError with all problems.
    """
    attributes = dict(sorted((attributes or {}).items()))
    _check_arguments(name, attributes)
    sources: dict[Split, Path | None] = {"test": Path(test), "train": None if train is None else Path(train)}
    counted = _check_sources(sources)
    meta = {
        "name": name,
        **{f"{split}_size": counted[split].lines for split in MEMBERS},
        **{f"{split}_digest": counted[split].digest for split in MEMBERS},
        **attributes,
    }
    path = Path(target) / f"{name}.zip"
    if not path.parent.is_dir():
        hint = f"mkdir -p {shlex.quote(str(path.parent))}"
        raise DatasetNotFoundError(f"{path.parent}: no such folder\n  hint: {hint}")
    try:
        digest = _write(path, sources, counted, meta, replace=replace)
    except OSError as error:
        if isinstance(error, HelmExtError):
            raise
        raise HelmExtError(f"{path}: cannot be written: {error.strerror or error}") from error
    return Packed(path, digest, {split: counted[split].lines for split in MEMBERS})


def _write(
    path: Path,
    sources: Mapping[Split, Path | None],
    counted: Mapping[Split, SplitCheck],
    meta: Mapping[str, Any],
    *,
    replace: bool,
) -> str:
    """Write the bundle and return its SHA-256."""
    with tempfile.TemporaryFile(dir=path.parent) as file:
        with zipfile.ZipFile(file, "w") as archive:
            for split, member in MEMBERS.items():
                _write_member(archive, member, sources[split], counted[split].digest)
            text = json.dumps(meta, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
            with archive.open(_info(META_NAME, len(text.encode())), "w") as out:
                out.write(text.encode())
        digest = sha256_of(file)
        problems = Problems()
        read_archive(cast("BinaryIO", file), str(path), Limits.from_environ(), problems)
        raise_for(problems.finish())  # for one that would be refused when it is read: too large, too much alike, ...
        save(cast("BinaryIO", file), digest, path, DatasetIntegrityError, replace=replace)
    return digest


def _check_arguments(name: str, attributes: Mapping[str, Any]) -> None:
    if not is_valid_name(name):
        raise DatasetSchemaError(f"not a dataset name: {show(name)}\n  hint: {NAME_RULE}")
    for key, value in attributes.items():
        if key in META_KEYS:
            raise DatasetSchemaError(f"attribute {show(key)}: this key is computed, it cannot be an attribute")
        try:
            json.dumps({key: value}, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:
            raise DatasetSchemaError(f"attribute {show(key)}: no JSON value: {show(value)}") from error


def _check_sources(sources: Mapping[Split, Path | None]) -> dict[Split, SplitCheck]:
    problems = Problems()
    counted = {split: SplitCheck() for split in MEMBERS}
    ids = UniqueIds(problems)
    for split, source in sources.items():
        if source is None:
            counted[split].digest = hashlib.sha256().hexdigest()
            continue
        with open_seekable(source, str(source)) as file:
            for record in check_split(file, str(source), problems, counted[split]):
                ids.see(record, str(source))
    if not counted["test"].lines:
        note_empty_test(str(sources["test"]), problems)
    raise_for(problems.finish())
    return counted


def _info(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DATE)
    info.create_system = _UNIX
    info.external_attr = _MODE
    info.file_size = size  # tells zipfile whether the member needs ZIP64
    return info


def _write_member(archive: zipfile.ZipFile, name: str, source: Path | None, digest: str) -> None:
    """Write a source. Raises DatasetIntegrityError if it was written to since it was checked."""
    with (
        archive.open(_info(name, source.stat().st_size if source else 0), "w") as out,
        source.open("rb") if source else BytesIO() as file,
    ):
        read = Hashing(file)
        while chunk := read.read_chunk(COPY_BYTES):
            out.write(chunk)
    if read.hash.hexdigest() != digest:
        raise DatasetIntegrityError(f"{source}: changed while it was packed\n  hint: pack it again")
