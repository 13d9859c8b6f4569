"""What planning leaves for the scenarios of the runs: datasets that were read, and arguments that are too long.

`helm-run` plans all runs, then starts one after the other. The bytes that a run is planned with are those whose digest
stands in its spec, so a scenario with the same arguments needs no others, and a file is read once. What waits here
takes memory while other runs go on. So the first dataset is always kept (its run is the first one), and further ones
while all of them together are small. A scenario that finds nothing reads its file again.

`helm-summarize` makes a file name of all arguments of a scenario, and `helm-run` one of the run's name. So long
arguments stand in neither: the scenario has a reference to them, a digest. They are found in this process, or, in
HELM's worker processes and at a later time, in the folder that HELM gives the scenario for its own use.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetNotFoundError
from helm_ext.evalset import garbage
from helm_ext.files import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from helm_ext.evalset import EvalSet

MAX_WAITING = 50_000
"""Rows that may wait, the first dataset's aside."""

REFERENCE_LENGTH = 12

_waiting: dict[bytes, EvalSet | None] = {}
"""In the order in which the runs were planned; None for what was not kept."""

_long_arguments: dict[str, dict[str, Any]] = {}
"""By their references."""


def keep(arguments: Mapping[str, Any], evalset: EvalSet) -> None:
    """Keep what was read for the scenario of these arguments (its digest among them)."""
    key = canonical_json(arguments)
    others = [waiting for other, waiting in _waiting.items() if waiting is not None and other != key]
    rows = sum(map(_count_held, others)) + _count_held(evalset)
    garbage.relax()  # HELM imports a lot before the first run starts, and each time these rows would be walked through
    _waiting[key] = evalset if not others or rows <= MAX_WAITING else None


def _count_held(evalset: EvalSet) -> int:
    """Return how many rows are in memory."""
    from helm_ext.evalset.rows import StoredRows

    rows = evalset.instances
    return 0 if isinstance(rows, StoredRows) and not rows.is_kept else len(rows)


def look(arguments: Mapping[str, Any]) -> EvalSet | None:
    """Return what was kept for these arguments, and go on keeping it; None if nothing was."""
    return _waiting.get(canonical_json(arguments))


def withdraw(arguments: Mapping[str, Any]) -> EvalSet | None:
    """Return what was kept for these arguments, while runs are still planned: its run was planned anew."""
    return _waiting.pop(canonical_json(arguments), None)


def take(arguments: Mapping[str, Any]) -> EvalSet | None:
    """Return what was kept for these arguments, once; None if nothing was.

    What was planned before is dropped, large or small: runs start in the order in which they were planned, so it was
    skipped.
    """
    key = canonical_json(arguments)
    if key not in _waiting:
        return None
    while True:
        first = next(iter(_waiting))
        found = _waiting.pop(first)
        if first == key:
            return found


def forget() -> None:
    """Drop all that was kept: the runs it was planned for will not be started."""
    _waiting.clear()


def keep_arguments(arguments: Mapping[str, Any]) -> str:
    """Keep arguments for scenarios of this process; return the reference to them."""
    reference = hashlib.sha256(canonical_json(dict(arguments))).hexdigest()[:REFERENCE_LENGTH]
    _long_arguments[reference] = dict(arguments)
    return reference


def write_arguments(reference: str, folder: str) -> None:
    """Write kept arguments for other processes."""
    path = _path(reference, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_long_arguments[reference], indent=2), encoding="utf-8")


def find_arguments(reference: str, folder: str) -> dict[str, Any]:
    """Return the arguments that a reference stands for. Raises DatasetNotFoundError."""
    if reference in _long_arguments:
        return _long_arguments[reference]
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
