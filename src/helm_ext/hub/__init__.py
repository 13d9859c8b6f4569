"""The Innodata Dataset Hub: chat datasets with immutable versions, in a folder or an object store. No server to run.

    from helm_ext import hub

    hub.upload("geo-chat.zip")                  # the next version; the same ZIP twice is refused
    ds = hub.load("geo-chat")                   # the newest, a datasets.DatasetDict with test and train
    ds = hub.load("geo-chat", version=3)        # frozen: a number, or the ZIP's SHA-256 or its first digits

The hub is chosen by the argument `hub`, else HELM_EXT_HUB, else it is in the user's data folder. Importing this module
is cheap: `datasets` is imported by `load` only.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import (
    DatasetChangedError,
    DatasetError,
    DatasetNotFoundError,
    HubError,
    Location,
    Problem,
    raise_for,
    show,
)
from helm_ext.hub.bundle import Bundle, check_records, open_bundle, sha256_of
from helm_ext.hub.pack import write_atomically
from helm_ext.hub.records import ProblemList
from helm_ext.hub.storage import Storage, open_storage
from helm_ext.hub.versions import (
    Version,
    blob_path,
    claim,
    entry_path,
    list_datasets,
    list_numbers,
    read_entry,
    read_versions,
    require_dataset,
    require_no_gap,
    require_other_digest,
)

if TYPE_CHECKING:
    from datasets import DatasetDict

    from helm_ext.hub.difference import Difference

__all__ = [
    "HUB_ENV",
    "Resolved",
    "Uploaded",
    "Version",
    "diff",
    "download",
    "get_root",
    "load",
    "names",
    "open_version",
    "require_hub",
    "resolve",
    "upload",
    "verify",
    "versions",
]

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


def _open(hub: str | Path | None) -> Storage:
    return open_storage(get_root(hub))


def upload(path: str | Path, hub: str | Path | None = None) -> Uploaded:
    """Check a bundle and make it the next version of its dataset.

    Crash-safe: what was not finished is not visible, and the same upload may be repeated. Safe with many uploaders.
    Raises DatasetError for a bundle that breaks a rule, HubError when a version has these bytes already or the hub
    cannot be written to.
    """
    path = Path(path)
    storage = _open(hub)
    problems = ProblemList()
    with open_bundle(path, expected_name=path.stem) as bundle:
        check_records(bundle, problems, {})
        raise_for(problems.all(str(path)))
        meta, digest = bundle.meta, bundle.digest
    known, restored = _refuse_duplicate(storage, meta.name, digest, path)
    if restored is not None:
        message = f"the stored ZIP of version {restored.number} was damaged or missing; it was restored"
        return Uploaded(restored, (Problem(message, Location(str(path)), severity="warning", code="restored"),))
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
    warnings = [
        Problem(
            f"the records are those of version {old.number}; only the ZIP or the attributes differ",
            Location(str(path)),
            severity="warning",
            code="same-content",
        )
        for old in before
        if (old.test_digest, old.train_digest) == (version.test_digest, version.train_digest)
    ]
    return Uploaded(version, tuple(warnings[-1:]))


def _refuse_duplicate(storage: Storage, name: str, digest: str, path: Path) -> tuple[list[Version], Version | None]:
    """Refuse a ZIP that has a version, before anything is written; return the versions. `claim` decides again.

    A blob that was damaged since is put right on the occasion, and its version returned as the second value.
    """
    known = [read_entry(storage, name, number) for number in require_no_gap(storage, name)]
    for version in known:
        if version.digest == digest and storage.put(blob_path(digest), path, digest):
            return known, version
        require_other_digest(version, digest)
    return known, None


def names(hub: str | Path | None = None) -> list[str]:
    """Return the names of all datasets of the hub; [] also where no hub is yet."""
    return list_datasets(_open(hub))


def require_hub(hub: str | Path | None = None) -> None:
    """Raise HubError where there is no hub, not even an empty one: a slip in its name, or a disk that is not there."""
    _require(_open(hub))


def _require(storage: Storage) -> None:
    if not storage.exists():
        raise HubError(f"no hub at {storage.root}\n  hint: the first upload makes it; --hub and {HUB_ENV} name others")


def versions(name: str, hub: str | Path | None = None) -> list[Version]:
    """Return all versions of a dataset, oldest first. Raises HubError for an unknown name."""
    return read_versions(_open(hub), name)


def resolve(name: str, version: int | str | None = None, hub: str | Path | None = None) -> Resolved:
    """Return which version is meant: the newest, or the one of a number, a SHA-256 or the start of one (8 digits).

    A string of up to 7 decimal digits is a number; more digits are the start of a SHA-256. Raises HubError.
    """
    return _resolve(_open(hub), name, version)


def _resolve(storage: Storage, name: str, version: int | str | None) -> Resolved:
    numbers = require_dataset(storage, name)
    newest = numbers[-1]
    number = _as_number(version)
    if version is None:
        number = newest
    if number is not None:
        if number not in numbers:
            raise HubError(f"{name}: no version {number}\n  hint: versions 1 to {newest} exist")
        return Resolved(name, number, read_entry(storage, name, number).digest, newest)
    match = _PREFIX.fullmatch(str(version)) if isinstance(version, (str, int)) else None
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


def _as_number(version: int | str | None) -> int | None:
    """Return the number that is meant, None for a digest. HELM turns digits in run entries into integers."""
    match = _NUMBER.fullmatch(str(version)) if not isinstance(version, bool) else None
    return int(match.group(1)) if match else None


@contextmanager
def open_version(resolved: Resolved, hub: str | Path | None = None) -> Iterator[Bundle]:
    """Open the bundle of a version; its digest is compared first. Raises HubError for a damaged or missing blob."""
    storage = _open(hub)
    label = f"{resolved.name}@{resolved.version}"
    path = blob_path(resolved.digest)
    try:
        local = storage.fetch(path, resolved.digest)
    except FileNotFoundError as error:
        raise HubError(f"{label}: the bundle {storage.root}/{path} is missing\n  hint: {_RESTORE}") from error
    with ExitStack() as stack:
        opening = open_bundle(local, digest=resolved.digest, expected_name=resolved.name, shown_path=label)
        try:
            bundle = stack.enter_context(opening)
        except DatasetChangedError as error:
            raise HubError(
                f"{label}: the bundle {storage.root}/{path} is damaged: its SHA-256 is not {resolved.digest[:12]}…\n"
                f"  hint: {_RESTORE}"
            ) from error
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
        file = bundle.archive.fp
        try:
            if path.exists():
                with path.open("rb") as old:
                    if sha256_of(old) == resolved.digest:
                        return path, resolved
                if not replace:
                    raise HubError(
                        f"{path}: exists, with other content\n  hint: --replace overwrites it, --out writes elsewhere"
                    )
            write_atomically(file, path)
        except OSError as error:
            raise HubError(f"{path}: cannot be written: {error.strerror}") from error
    return path, resolved


def diff(name: str, old: int | str, new: int | str, hub: str | Path | None = None) -> Difference:
    """Return which records and attributes were added, removed and changed from version `old` to `new`."""
    from helm_ext.hub.difference import compare

    first, second = resolve(name, old, hub), resolve(name, new, hub)
    with open_version(first, hub) as left, open_version(second, hub) as right:
        return compare(left, right)


def verify(name: str | None = None, hub: str | Path | None = None) -> list[Problem]:
    """Re-read every version of one dataset or of all: entries, numbering, digests, and every rule of a bundle.

    Returns all problems; [] means that the hub is sound. Raises HubError for an unknown name, and where no hub is.
    """
    storage = _open(hub)
    _require(storage)
    if name is not None:
        require_dataset(storage, name)
    problems: list[Problem] = []
    for dataset in [name] if name is not None else list_datasets(storage):
        numbers = list_numbers(storage, dataset)
        for number in range(1, numbers[-1] + 1):
            problems.extend(_verify_version(storage, dataset, number, hub))
    return problems


def _verify_version(storage: Storage, name: str, number: int, hub: str | Path | None) -> list[Problem]:
    location = Location(f"{name}@{number}")
    try:
        entry = read_entry(storage, name, number)
    except HubError as error:
        return [Problem(str(error), location, code="damaged-entry")]
    found = ProblemList()
    try:
        with open_version(Resolved(name, number, entry.digest, number), hub) as bundle:
            stated = (entry.test_digest, entry.train_digest, entry.test_size, entry.train_size, entry.attributes)
            meta = bundle.meta
            if stated != (*meta.digests.values(), *meta.sizes.values(), meta.attributes):
                return [Problem(f"{entry_path(name, number)} and the bundle's meta.json differ", location,
                                code="damaged-entry")]  # fmt: skip
            check_records(bundle, found, {})
    except HubError as error:
        return [Problem(str(error).removeprefix(f"{location.path}: "), location, code="damaged-bundle")]
    except (DatasetError, DatasetNotFoundError) as error:
        return list(error.problems) or [Problem(error.message, location, code="damaged-bundle")]
    return found.all(location.path)
