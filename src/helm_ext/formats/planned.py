"""Datasets that were read when their runs were planned, handed to the scenarios, so that a file is read once.

`helm-run` plans all runs, then starts one after the other. The bytes that a run is planned with are those whose digest
stands in its spec, so a scenario with the same arguments needs no others.

What waits here takes memory while other runs go on. So the first dataset is always kept (its run is the first one), and
further ones while all of them together are small. A scenario that finds nothing reads its file again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from helm_ext.evalset import garbage
from helm_ext.files import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from helm_ext.evalset import EvalSet

MAX_WAITING = 50_000
"""Rows that may wait, the first dataset's aside."""

_waiting: dict[bytes, EvalSet | None] = {}
"""In the order in which the runs were planned; None for what was not kept."""


def keep(arguments: Mapping[str, Any], evalset: EvalSet) -> None:
    """Keep what was read for the scenario of these arguments (its digest among them)."""
    key = canonical_json(arguments)
    others = [waiting for other, waiting in _waiting.items() if waiting is not None and other != key]
    rows = sum(map(_count_held, others)) + _count_held(evalset)
    garbage.relax()  # HELM imports a lot before the first run starts, and each time these rows would be walked through
    _waiting[key] = evalset if not others or rows <= MAX_WAITING else None


def _count_held(evalset: EvalSet) -> int:
    """Return how many instances are in memory."""
    return len(evalset.instances) if isinstance(evalset.instances, list) else 0


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
