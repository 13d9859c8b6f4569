"""Datasets that were read when their runs were planned, handed to the scenarios, so that a file is read once.

`helm-run` plans all runs, then starts one after the other. The bytes that a run is planned with are those whose digest
stands in its spec, so a scenario with the same arguments needs no others.

What waits here takes memory while other runs go on. So the first dataset is always kept (its run is the first one), and
further ones while all of them together are small. A scenario that finds nothing reads its file again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from helm_ext.sources import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from helm_ext.evalset import EvalSet

__all__ = ["keep", "take"]

MAX_WAITING = 50_000
"""Rows that may wait, the first dataset's aside."""

_waiting: dict[bytes, EvalSet] = {}


def keep(arguments: Mapping[str, Any], evalset: EvalSet) -> None:
    """Keep what was read for the scenario of these arguments (its digest among them)."""
    rows = sum(len(waiting.instances) for waiting in _waiting.values()) + len(evalset.instances)
    if not _waiting or rows <= MAX_WAITING:
        _waiting[canonical_json(arguments)] = evalset


def take(arguments: Mapping[str, Any]) -> EvalSet | None:
    """Return what was kept for these arguments, once; None if nothing was.

    What was planned before is dropped: runs start in the order in which they were planned, so it was skipped.
    """
    key = canonical_json(arguments)
    if key not in _waiting:
        return None
    while True:
        first = next(iter(_waiting))
        found = _waiting.pop(first)
        if first == key:
            return found
