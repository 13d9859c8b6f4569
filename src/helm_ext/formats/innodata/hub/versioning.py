"""A hub: its versions, numbered, immutable, claimed one after the other, and what one does with them.

    <root>/
      datasets/<name>/versions/00000001.json    what version 1 is: digest, size, attributes, when it was uploaded
      blobs/<digest>.zip                        the bundle, byte for byte

A blob is stored first, under its own digest. Then version n+1 is claimed by creating its entry, which fails if somebody
else did: the entry is the version, so a version is visible only when everything of it is there. Whoever claims n+1 has
read all entries up to n, so no ZIP can get two versions, and no number is skipped.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import secrets
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import msgspec

from helm_ext.errors import (
    DatasetChangedError,
    DatasetError,
    DatasetNotFoundError,
    HubError,
    Location,
    Problem,
    Problems,
    did_you_mean,
    missing_package_named,
    raise_for,
    show,
)
from helm_ext.evalset import DIGEST_LENGTH
from helm_ext.files import parse_json
from helm_ext.formats.innodata.hub.bundle import Bundle, iter_checked, open_bundle, save
from helm_ext.formats.innodata.hub.records import is_valid_name
from helm_ext.formats.innodata.hub.storage import Storage, open_storage

if TYPE_CHECKING:
    from datasets import DatasetDict

FORMAT = 1
"""Of the entries. A newer one is refused, not guessed at."""

_DATASETS = "datasets"
_ENTRY_NAME = re.compile(r"([0-9]{8})\.json")

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class Version:
    """One version of a dataset."""

    name: str
    number: int
    digest: Digest
    """SHA-256 of the ZIP."""
    size: int
    """Bytes of the ZIP."""
    test_size: int
    train_size: int
    test_digest: Digest
    train_digest: Digest
    uploaded: str
    """UTC, ISO 8601."""
    attributes: dict[str, Any] = field(default_factory=dict)
    claim: str = ""
    """A random word of the upload, by which it knows its own entry when an answer was lost on the way."""


def entry_path(name: str, number: int) -> str:
    """Return where the entry of a version lies."""
    return f"{_DATASETS}/{name}/versions/{number:08}.json"


def blob_path(digest: str) -> str:
    """Return where the ZIP of that digest lies."""
    return f"blobs/{digest}.zip"


def list_datasets(storage: Storage) -> list[str]:
    """Return the names of all datasets that have a version, and of those of which this cannot be told."""
    found = []
    for name in filter(is_valid_name, storage.list_names(_DATASETS)):
        try:
            if list_numbers(storage, name):
                found.append(name)
        except HubError:  # who asks for this dataset is told; the others are not hidden
            found.append(name)
    return found


def list_numbers(storage: Storage, name: str) -> list[int]:
    """Return the numbers of a dataset's versions, rising."""
    found = storage.list_names(f"{_DATASETS}/{name}/versions")
    return sorted(int(match.group(1)) for entry in found if (match := _ENTRY_NAME.fullmatch(entry)))


def require_dataset(storage: Storage, name: str) -> list[int]:
    """Return the numbers of its versions. Raises HubError, with near names, when there is no such dataset."""
    numbers = list_numbers(storage, name) if is_valid_name(name) else []
    if not numbers:
        known = list_datasets(storage)
        hint = did_you_mean(name, known) or f"known: {', '.join(known[:10])}"
        if not known:
            hint = "this hub is empty" if storage.exists() else "there is no hub; the first upload makes it"
        raise HubError(f"no dataset {show(name)} in the hub at {storage.root}\n  hint: {hint}")
    return numbers


def read_entry(storage: Storage, name: str, number: int) -> Version:
    """Read one version's entry. Raises HubError when it is missing or damaged."""
    path = entry_path(name, number)
    try:
        data = storage.read(path)
    except FileNotFoundError as error:
        raise HubError(f"{storage.root}/{path}: missing") from error
    try:
        value = parse_json(data, path)
        if value["format"] > FORMAT:
            raise HubError(f"{storage.root}/{path}: format {value['format']} is of a newer helm-ext\n  hint: update it")
        stated = Version(**{key: item for key, item in value.items() if key != "format"})
        version = msgspec.convert(asdict(stated), Version)  # with its types checked
    except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
        raise HubError(
            f"{storage.root}/{path}: damaged entry; restore it from a backup\n"
            "  hint: helm-ext hub verify lists all that is damaged"
        ) from error
    if version.name != name or version.number != number:
        raise HubError(f"{storage.root}/{path}: states version {version.number} of {show(version.name)}: damaged entry")
    return version


def to_json(version: Version) -> bytes:
    """Return the bytes of an entry."""
    return (json.dumps({"format": FORMAT, **asdict(version)}, ensure_ascii=False, indent=2) + "\n").encode()


def claim(storage: Storage, known: Sequence[Version], version: Version) -> tuple[Version, list[Version]]:
    """Claim the next number for a version whose blob is stored already; return it and the versions before it.

    `known`: versions 1, 2, ... as far as they have been read. Raises HubError when one has this digest already.
    """
    before = list(known)
    while True:
        version = replace(version, number=len(before) + 1)
        try:
            storage.create(entry_path(version.name, version.number), to_json(version))
        except FileExistsError:
            taken = read_entry(storage, version.name, version.number)
            if taken.claim == version.claim:  # it was written, only the answer was lost
                return taken, before
            require_other_digest(taken, version.digest, taken.number)
            before.append(taken)
        else:
            return version, before


def require_no_gap(storage: Storage, name: str) -> list[int]:
    """Return the numbers of its versions, [] for a new dataset. Raises HubError when one between them is missing."""
    numbers = list_numbers(storage, name)
    if numbers != list(range(1, len(numbers) + 1)):
        missing = next(number for number, found in enumerate(numbers, 1) if number != found)
        raise HubError(
            f"{storage.root}/{entry_path(name, missing)}: missing, while version {numbers[-1]} exists\n"
            "  hint: restore it from a backup; nothing can be uploaded to this dataset before"
        )
    return numbers


def require_other_digest(version: Version, digest: str, newest: int) -> None:
    """Raise HubError when this version is the ZIP that is being uploaded. `newest`: the newest one's number so far."""
    if version.digest == digest:
        newer = "" if version.number == newest else f"; version {newest} is the newest"
        raise HubError(
            f"{version.name}: this ZIP is version {version.number} already (SHA-256 {digest[:DIGEST_LENGTH]}, "
            f"uploaded {version.uploaded}{newer}); nothing was changed"
        )


HUB_ENV = "HELM_EXT_HUB"
"""The environment variable that names the hub: a folder or an fsspec URL."""

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


def _open_hub(hub: str | Path | None) -> Storage:
    """Return the storage of the hub, see `get_root`. Raises HubError."""
    return open_storage(get_root(hub))


def upload(path: str | Path, hub: str | Path | None = None) -> Uploaded:
    """Check a bundle and make it the next version of its dataset.

    Crash-safe: what was not finished is not visible, and the same upload may be repeated. Safe with many uploaders.
    Raises DatasetError for a bundle that breaks a rule, HubError when a version has these bytes already or the hub
    cannot be written to.
    """
    path = Path(path)
    storage = _open_hub(hub)
    problems = Problems()
    with open_bundle(path, expected_name=path.stem) as bundle:
        deque(iter_checked(bundle, problems, {}), maxlen=0)
        raise_for(problems.finish())
        meta, digest = bundle.meta, bundle.digest
    known = [read_entry(storage, meta.name, number) for number in require_no_gap(storage, meta.name)]
    for version in known:  # before anything is written; `claim` decides again
        if version.digest == digest and storage.put(blob_path(digest), path, digest):
            message = f"the stored ZIP of version {version.number} was damaged or missing; it was restored"
            return Uploaded(version, (Problem.warning(path, message, code="restored"),))
        require_other_digest(version, digest, known[-1].number)
    storage.put(blob_path(digest), path, digest)
    now = dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
    version = Version(
        name=meta.name, number=0, digest=digest, size=path.stat().st_size,
        test_size=meta.sizes["test"], train_size=meta.sizes["train"],
        test_digest=meta.digests["test"], train_digest=meta.digests["train"],
        uploaded=now, attributes=meta.attributes, claim=secrets.token_hex(16),
    )  # fmt: skip
    version, before = claim(storage, known, version)
    content = (version.test_digest, version.train_digest)
    twin = next((old for old in reversed(before) if (old.test_digest, old.train_digest) == content), None)
    if twin is None:
        return Uploaded(version)
    message = f"the records are those of version {twin.number}; only the ZIP or the attributes differ"
    return Uploaded(version, (Problem.warning(path, message, code="same-content"),))


def names(hub: str | Path | None = None) -> list[str]:
    """Return the names of all datasets of the hub; [] also where no hub is yet."""
    return list_datasets(_open_hub(hub))


def require_hub(hub: str | Path | None = None) -> Storage:
    """Return the storage of the hub. Raises HubError where there is none, not even an empty one: a slip in its name, or
    a disk that is not there.
    """
    storage = _open_hub(hub)
    if not storage.exists():
        raise HubError(f"no hub at {storage.root}\n  hint: the first upload makes it; --hub and {HUB_ENV} name others")
    return storage


def newest(name: str, hub: str | Path | None = None) -> Version:
    """Return the newest version of a dataset. Raises HubError for an unknown name or a damaged entry."""
    storage = _open_hub(hub)
    return read_entry(storage, name, require_dataset(storage, name)[-1])


def versions(name: str, hub: str | Path | None = None) -> list[Version]:
    """Return all versions of a dataset, oldest first. Raises HubError for an unknown name."""
    storage = _open_hub(hub)
    return [read_entry(storage, name, number) for number in require_dataset(storage, name)]


def resolve(name: str, version: int | str | None = None, hub: str | Path | None = None) -> Resolved:
    """Return which version is meant: the newest, or the one of a number. Raises HubError."""
    storage = _open_hub(hub)
    numbers = require_dataset(storage, name)
    newest = numbers[-1]
    text = "" if isinstance(version, bool) else str(newest if version is None else version)
    match = _NUMBER.fullmatch(text)
    number = int(match[1]) if match else 0
    if number not in numbers:
        raise HubError(f"{name}: no version {show(version)}\n  hint: versions 1 to {newest} exist")
    return Resolved(name, number, read_entry(storage, name, number).digest, newest)


@contextmanager
def open_version(resolved: Resolved, hub: str | Path | None = None, *, cached: bool = True) -> Iterator[Bundle]:
    """Open the bundle of a version; its digest is compared first. Raises HubError for a damaged or missing blob.

    `cached`: whether a copy may be read that was fetched from an object store earlier.
    """
    storage = _open_hub(hub)
    label = f"{resolved.name}@{resolved.version}"
    path = blob_path(resolved.digest)
    what = f"{label}: the bundle {storage.root}/{path}"
    try:
        local = storage.fetch(path, resolved.digest, cached=cached)
    except FileNotFoundError as error:
        raise HubError(f"{what} is missing\n  hint: {_RESTORE}") from error
    with ExitStack() as stack:
        try:
            bundle = stack.enter_context(
                open_bundle(local, digest=resolved.digest, expected_name=resolved.name, shown_path=label)
            )
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
    with name, version, digest and attributes (`get_attributes` reads it).

    Raises HubError, HelmExtError where `datasets` is not installed; warns (UserWarning) when frozen to a version that
    is not the newest.
    """
    from helm_ext.formats.innodata.hub.bundle import to_dataset_dict

    resolved = resolve(name, version, hub)
    if resolved.notice:
        warnings.warn(resolved.notice, UserWarning, stacklevel=2)
    with missing_package_named(), open_version(resolved, hub) as bundle:
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


def verify(name: str | None = None, hub: str | Path | None = None) -> list[Problem]:
    """Re-read every version of one dataset or of all: entries, numbering, digests, and every rule of a bundle.

    On object storage the bytes are those that the server holds now, not a copy in the cache.
    Returns all problems; [] means that the hub is sound. Raises HubError for an unknown name, and where no hub is.
    """
    storage = require_hub(hub)
    if name is not None:
        require_dataset(storage, name)
    problems: list[Problem] = []
    for dataset in [name] if name is not None else list_datasets(storage):
        try:
            numbers = list_numbers(storage, dataset)
        except HubError as error:
            problems.append(Problem(str(error), Location(dataset), code="damaged-entry"))
            continue
        for number in range(1, max(numbers, default=0) + 1):
            problems.extend(_verify_version(storage, dataset, number, hub))
    return problems


def _verify_version(storage: Storage, name: str, number: int, hub: str | Path | None) -> list[Problem]:
    location = Location(f"{name}@{number}")
    try:
        entry = read_entry(storage, name, number)
    except HubError as error:
        return [Problem(str(error), location, code="damaged-entry")]
    found = Problems()
    try:
        with open_version(Resolved(name, number, entry.digest, number), hub, cached=False) as bundle:
            stated = (entry.test_digest, entry.train_digest, entry.test_size, entry.train_size, entry.attributes)
            meta = bundle.meta
            if stated != (*meta.digests.values(), *meta.sizes.values(), meta.attributes):
                return [Problem(f"{entry_path(name, number)} and the bundle's meta.json differ", location,
                                code="damaged-entry")]  # fmt: skip
            deque(iter_checked(bundle, found, {}), maxlen=0)
    except HubError as error:
        return [Problem(str(error).removeprefix(f"{location.path}: "), location, code="damaged-bundle")]
    except DatasetError as error:
        return list(error.problems)
    return found.finish()
