"""What one does with a hub: upload, list, load, download, compare."""

from __future__ import annotations

import datetime as dt
import os
import re
import secrets
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from helm_ext.errors import (
    DatasetChangedError,
    DatasetNotFoundError,
    HubError,
    Location,
    Problem,
    Problems,
    raise_for,
    show,
)
from helm_ext.evalset import DIGEST_LENGTH
from helm_ext.hub.bundle import Bundle, iter_checked, open_bundle, save
from helm_ext.hub.entries import (
    Version,
    blob_path,
    claim,
    list_datasets,
    read_entry,
    read_versions,
    require_dataset,
    require_no_gap,
    require_other_digest,
)
from helm_ext.hub.meta import SPLITS, Split
from helm_ext.hub.storage import Storage, open_storage

if TYPE_CHECKING:
    from datasets import DatasetDict

    from helm_ext.hub.difference import Difference

HUB_ENV = "HELM_EXT_HUB"
"""The environment variable that names the hub: a folder or an fsspec URL."""

_PREFIX = re.compile(r"(?:sha256:)?([0-9a-f]{8,64})", re.IGNORECASE)
_NUMBER = re.compile(r"v?([0-9]{1,7})")


@dataclass(frozen=True)
class Resolved:
    """What a name and a wished version came to."""

    name: str
    version: int
    digest: str
    newest: int
    """The newest version's number at the time."""

    @property
    def notice(self) -> str:
        """One line when a newer version exists than this one, else ""."""
        if self.version == self.newest:
            return ""
        return f"{self.name} is frozen to version {self.version}; version {self.newest} is the newest"


@dataclass(frozen=True)
class Uploaded:
    """What an upload made."""

    version: Version
    warnings: tuple[Problem, ...] = ()


def get_root(hub: str | Path | None = None) -> str:
    """Return the hub's folder or URL: the argument, else HELM_EXT_HUB, else the folder `hub` in the user's data.

    Raises HubError for an empty argument, which would mean the working directory.
    """
    if hub is None:
        hub = os.environ.get(HUB_ENV) or None
    if hub is None:
        from platformdirs import user_data_path

        hub = user_data_path("helm-ext") / "hub"
    if not str(hub):
        raise HubError(f"the hub's place is empty\n  hint: a folder or an fsspec URL; without any, {HUB_ENV} is taken")
    return str(hub)


def open_hub(hub: str | Path | None) -> Storage:
    """Return the storage of the hub, see `get_root`. Raises HubError."""
    return open_storage(get_root(hub))


def upload(path: str | Path, hub: str | Path | None = None) -> Uploaded:
    """Check a bundle and make it the next version of its dataset.

    Crash-safe: what was not finished is not visible, and the same upload may be repeated. Safe with many uploaders.
    Raises DatasetError for a bundle that breaks a rule, HubError when a version has these bytes already or the hub
    cannot be written to.
    """
    path = Path(path)
    storage = open_hub(hub)
    problems = Problems()
    with open_bundle(path, expected_name=path.stem) as bundle:
        deque(iter_checked(bundle, problems, {}), maxlen=0)
        raise_for(problems.finish())
        meta, digest = bundle.meta, bundle.digest
    known, restored = _refuse_duplicate(storage, meta.name, digest, path)
    if restored is not None:
        message = f"the stored ZIP of version {restored.number} was damaged or missing; it was restored"
        return Uploaded(restored, (_warning(path, message, "restored"),))
    storage.put(blob_path(digest), path, digest)
    fields: dict[str, Any] = {
        "size": path.stat().st_size,
        **{f"{split}_size": size for split, size in meta.sizes.items()},
        **{f"{split}_digest": found for split, found in meta.digests.items()},
        "uploaded": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "attributes": meta.attributes,
        "claim": secrets.token_hex(16),
    }
    version, before = claim(storage, known, fields, digest, meta.name)
    return Uploaded(version, tuple(_compare_with_earlier(version, before, path)))


def _compare_with_earlier(version: Version, before: Sequence[Version], path: Path) -> Iterator[Problem]:
    """Say which earlier version has the same content, and where that is not the newest one.

    A bundle does not say what it was made from. But a split that is, byte for byte, that of an earlier version and not
    that of the newest was made from the earlier one, and lacks what was changed since.
    """
    if not before:
        return
    newest = before[-1]

    def find(*splits: Split) -> Version | None:
        return next((old for old in reversed(before) if old.has_content_of(version, splits)), None)

    twin = find(*SPLITS)
    if twin is not None:
        message = f"the records are those of version {twin.number}; only the ZIP or the attributes differ"
        yield _warning(path, message, "same-content")
    for split in SPLITS:
        old = twin or (find(split) if getattr(version, f"{split}_size") else None)
        if old is not None and not newest.has_content_of(version, [split]):
            message = f"the {split} split is that of version {old.number}, not that of the newest, {newest.number}"
            hint = f"download version {newest.number}, and repeat there what was changed here"
            yield _warning(path, message, "older-content", hint)


def _warning(path: Path, message: str, code: str, hint: str = "") -> Problem:
    return Problem(message, Location(str(path)), hint, "warning", code)


def _refuse_duplicate(storage: Storage, name: str, digest: str, path: Path) -> tuple[list[Version], Version | None]:
    """Refuse a ZIP that has a version, before anything is written; return the versions. `claim` decides again.

    A blob that was damaged since is put right on the occasion, and its version returned as the second value.
    """
    known = [read_entry(storage, name, number) for number in require_no_gap(storage, name)]
    for version in known:
        if version.digest == digest and storage.put(blob_path(digest), path, digest):
            return known, version
        require_other_digest(version, digest, known[-1].number)
    return known, None


def names(hub: str | Path | None = None) -> list[str]:
    """Return the names of all datasets of the hub; [] also where no hub is yet."""
    return list_datasets(open_hub(hub))


def require_hub(hub: str | Path | None = None) -> Storage:
    """Return the storage of the hub. Raises HubError where there is none, not even an empty one: a slip in its name, or
    a disk that is not there.
    """
    storage = open_hub(hub)
    if not storage.exists():
        raise HubError(f"no hub at {storage.root}\n  hint: the first upload makes it; --hub and {HUB_ENV} name others")
    return storage


def newest(name: str, hub: str | Path | None = None) -> Version:
    """Return the newest version of a dataset. Raises HubError for an unknown name or a damaged entry."""
    storage = open_hub(hub)
    return read_entry(storage, name, require_dataset(storage, name)[-1])


def versions(name: str, hub: str | Path | None = None) -> list[Version]:
    """Return all versions of a dataset, oldest first. Raises HubError for an unknown name."""
    return read_versions(open_hub(hub), name)


def resolve(name: str, version: int | str | None = None, hub: str | Path | None = None) -> Resolved:
    """Return which version is meant: the newest, or the one of a number, a SHA-256 or the start of one (8 digits).

    A string of up to 7 decimal digits is a number; more digits are the start of a SHA-256. Raises HubError.
    """
    storage = open_hub(hub)
    numbers = require_dataset(storage, name)
    newest = numbers[-1]
    # HELM turns digits in run entries into integers.
    text = "" if isinstance(version, bool) else str(newest if version is None else version)
    if match := _NUMBER.fullmatch(text):
        number = int(match.group(1))
        if number not in numbers:
            raise HubError(f"{name}: no version {number}\n  hint: versions 1 to {newest} exist")
        return Resolved(name, number, read_entry(storage, name, number).digest, newest)
    match = _PREFIX.fullmatch(text)
    if match is None:
        raise HubError(
            f"{name}: not a version: {show(version)}\n"
            "  hint: a number, or at least 8 hex digits of the ZIP's SHA-256 (sha256:… in a run entry)"
        )
    found = [v for v in read_versions(storage, name) if v.digest.startswith(match.group(1).lower())]
    if len(found) != 1:
        what = "no version has" if not found else f"versions {', '.join(str(v.number) for v in found)} have"
        raise HubError(f"{name}: {what} a SHA-256 that starts with {match.group(1)}")
    return Resolved(name, found[0].number, found[0].digest, newest)


@contextmanager
def open_version(resolved: Resolved, hub: str | Path | None = None, *, cached: bool = True) -> Iterator[Bundle]:
    """Open the bundle of a version; its digest is compared first. Raises HubError for a damaged or missing blob.

    `cached`: whether a copy may be read that was fetched from an object store earlier.
    """
    storage = open_hub(hub)
    label = f"{resolved.name}@{resolved.version}"
    path = blob_path(resolved.digest)
    what = f"{label}: the bundle {storage.root}/{path}"
    try:
        local = storage.fetch(path, resolved.digest, cached=cached)
    except FileNotFoundError as error:
        raise HubError(f"{what} is missing\n  hint: {_RESTORE}") from error
    with ExitStack() as stack:
        opening = open_bundle(local, digest=resolved.digest, expected_name=resolved.name, shown_path=label)
        try:
            bundle = stack.enter_context(opening)
        except DatasetNotFoundError as error:
            raise HubError(f"{what} cannot be read: {error}") from error
        except DatasetChangedError as error:
            damage = f"is damaged: its SHA-256 is not {resolved.digest[:DIGEST_LENGTH]}…"
            raise HubError(f"{what} {damage}\n  hint: {_RESTORE}") from error
        yield bundle


_RESTORE = "upload the same ZIP again, which restores it, or restore the file from a backup"


def load(name: str, version: int | str | None = None, hub: str | Path | None = None) -> DatasetDict:
    """Return a version as `datasets.DatasetDict` with `test` and `train`; the newest by default.

    Columns: `id`, `messages` (list of {role, content}), `expected`, and `extra`: a record's other keys as one JSON
    object, because Arrow gives every row the same keys and would invent some. `ds["test"].info.description` is JSON
    with name, version, digest and attributes (`helm_ext.hub.tables.get_attributes` reads it).

    Raises HubError; warns (UserWarning) when frozen to a version that is not the newest.
    """
    from helm_ext.hub.tables import to_dataset_dict

    resolved = resolve(name, version, hub)
    if resolved.notice:
        import warnings

        warnings.warn(resolved.notice, UserWarning, stacklevel=2)
    with open_version(resolved, hub) as bundle:
        return to_dataset_dict(bundle, resolved.version)


def download(
    name: str,
    version: int | str | None = None,
    hub: str | Path | None = None,
    target: str | Path = ".",
    *,
    replace: bool = False,
) -> tuple[Path, Resolved]:
    """Write the bundle of a version to `target/NAME.zip`, byte for byte, verified and atomically.

    Raises HubError; an existing file with other bytes is overwritten with `replace` only.
    """
    resolved = resolve(name, version, hub)
    path = Path(target) / f"{name}.zip"
    if not path.parent.is_dir():
        raise HubError(f"{path.parent}: no such folder")
    with open_version(resolved, hub) as bundle:
        try:
            save(cast("BinaryIO", bundle.archive.fp), resolved.digest, path, HubError, replace=replace)
        except OSError as error:
            raise HubError(f"{path}: cannot be written: {error.strerror}") from error
    return path, resolved


def diff(name: str, old: int | str, new: int | str, hub: str | Path | None = None) -> Difference:
    """Return which records and attributes were added, removed and changed from version `old` to `new`."""
    from helm_ext.hub.difference import compare

    first, second = resolve(name, old, hub), resolve(name, new, hub)
    with open_version(first, hub) as left, open_version(second, hub) as right:
        return compare(left, right)
