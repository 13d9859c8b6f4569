"""Arguments of runs that are too long for HELM's file names: kept beside HELM's results, named by a digest.

`helm-summarize` makes a file name of all arguments of a scenario, and `helm-run` one of the run's name. So long
arguments stand in neither: the scenario has a reference to them. They are found in this process, or, in HELM's worker
processes and at a later time, in the folder that HELM gives the scenario for its own use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetNotFoundError
from helm_ext.files import canonical_json

REFERENCE_LENGTH = 12

_kept: dict[str, dict[str, Any]] = {}


def keep(arguments: Mapping[str, Any]) -> str:
    """Keep arguments for scenarios of this process; return the reference to them."""
    reference = hashlib.sha256(canonical_json(dict(arguments))).hexdigest()[:REFERENCE_LENGTH]
    _kept[reference] = dict(arguments)
    return reference


def write(reference: str, folder: str) -> None:
    """Write kept arguments for other processes."""
    path = _path(reference, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_kept[reference], indent=2), encoding="utf-8")


def find(reference: str, folder: str) -> dict[str, Any]:
    """Return the arguments that a reference stands for. Raises DatasetNotFoundError."""
    if reference in _kept:
        return _kept[reference]
    path = _path(reference, folder)
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetNotFoundError(
            f"{path}: the run's arguments cannot be read: {error}\n  hint: start helm-run again, which writes them"
        ) from error
    return found


def _path(reference: str, folder: str) -> Path:
    return Path(folder) / f"arguments-{reference}.json"
