"""Read all of a hub again: is every version still what was uploaded?"""

from __future__ import annotations

from collections import deque
from pathlib import Path

from helm_ext.errors import DatasetError, HubError, Location, Problem, Problems
from helm_ext.hub.bundle import iter_checked
from helm_ext.hub.entries import entry_path, list_datasets, list_numbers, read_entry, require_dataset
from helm_ext.hub.operations import Resolved, open_version, require_hub
from helm_ext.hub.storage import Storage


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
