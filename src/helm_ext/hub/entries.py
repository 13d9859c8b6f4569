"""Versions of a dataset: numbered, immutable, claimed one after the other.

    <root>/
      datasets/<name>/versions/00000001.json    what version 1 is: digest, size, attributes, when it was uploaded
      blobs/<digest>.zip                        the bundle, byte for byte

A blob is stored first, under its own digest. Then version n+1 is claimed by creating its entry, which fails if somebody
else did: the entry is the version, so a version is visible only when everything of it is there. Whoever claims n+1 has
read all entries up to n, so no ZIP can get two versions, and no number is skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from helm_ext.errors import HubError, did_you_mean, show
from helm_ext.evalset import DIGEST_LENGTH
from helm_ext.files import parse_json
from helm_ext.hub.meta import is_valid_name

if TYPE_CHECKING:
    from helm_ext.hub.meta import Split
    from helm_ext.hub.storage import Storage

FORMAT = 1
"""Of the entries. A newer one is refused, not guessed at."""

DATASETS = "datasets"
_ENTRY_NAME = re.compile(r"([0-9]{8})\.json")
_MAX_NUMBER = 99_999_999


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

    def has_content_of(self, other: Version, splits: Iterable[Split]) -> bool:
        """Whether these splits hold the same bytes as those of another version."""
        return all(getattr(self, f"{split}_digest") == getattr(other, f"{split}_digest") for split in splits)


def entry_path(name: str, number: int) -> str:
    """Return where the entry of a version lies."""
    return f"{DATASETS}/{name}/versions/{number:08}.json"


def blob_path(digest: str) -> str:
    """Return where the ZIP of that digest lies."""
    return f"blobs/{digest}.zip"


def list_datasets(storage: Storage) -> list[str]:
    """Return the names of all datasets that have a version, and of those of which this cannot be told."""
    return [name for name in storage.list_names(DATASETS) if is_valid_name(name) and _has_version(storage, name)]


def _has_version(storage: Storage, name: str) -> bool:
    try:
        return bool(list_numbers(storage, name))
    except HubError:  # who asks for this dataset is told; the others are not hidden
        return True


def list_numbers(storage: Storage, name: str) -> list[int]:
    """Return the numbers of a dataset's versions, rising."""
    found = storage.list_names(f"{DATASETS}/{name}/versions")
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


def read_versions(storage: Storage, name: str) -> list[Version]:
    """Return all versions, oldest first. Raises HubError for an unknown dataset or a damaged entry."""
    return [read_entry(storage, name, number) for number in require_dataset(storage, name)]


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


def claim(
    storage: Storage, known: Sequence[Version], fields: Mapping[str, Any], digest: str, name: str
) -> tuple[Version, list[Version]]:
    """Claim the next version for a ZIP whose blob is stored already; return it and the versions before it.

    `known`: versions 1, 2, ... as far as they have been read; `fields`: the rest of the entry.
    Raises HubError when a version has this digest already.
    """
    before = list(known)
    while len(before) < _MAX_NUMBER:
        version = Version(name=name, number=len(before) + 1, digest=digest, **fields)
        try:
            storage.create(entry_path(name, version.number), to_json(version))
        except FileExistsError:
            taken = read_entry(storage, name, version.number)
            if taken.claim == version.claim:  # it was written, only the answer was lost
                return taken, before
            require_other_digest(taken, digest, taken.number)
            before.append(taken)
        else:
            return version, before
    raise HubError(f"{name}: all version numbers are used")


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
