"""What becomes of rows of a live run whose requests failed: left out and counted, or the run stops and names them.

`missing=` of the run entry decides, as it does for recorded rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from helm.benchmark.executor import ExecutorError
from helm.common.hierarchical_logger import hwarn
from helm.common.object_spec import get_class_by_name

from helm_ext.adaptation.selection import leave_out
from helm_ext.errors import HelmExtError
from helm_ext.evalset import EXTRA_KEY

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec

_SHOWN_ROWS = 10


class RowsFailedError(HelmExtError, ExecutorError):
    """Rows of a live run have no answer, and are not to be left out. An ExecutorError, as in HELM."""


@dataclass
class Asked:
    """Request states after they were asked."""

    states: list[RequestState]
    """In the order in which they were given; those that failed have no result."""
    failures: dict[int, str] = field(default_factory=dict)
    """Why a state has no result, by its place in `states`."""

    @staticmethod
    def joined(parts: Iterable[Asked]) -> Asked:
        """Return what was asked in parts as if it had been asked at once."""
        whole = Asked([])
        for part in parts:
            start = len(whole.states)
            whole.failures.update({start + place: reason for place, reason in part.failures.items()})
            whole.states += part.states
        return whole


def skips_failed(run_spec: RunSpec) -> bool:
    """Whether the run entry (`missing=skip`), or the default of the dataset's format, leaves out rows that fail."""
    scenario = run_spec.scenario_spec
    skips = getattr(get_class_by_name(scenario.class_name), "skips_missing", None)
    if skips is None:  # not one of ours: HELM's metrics know no rows that are left out
        return False
    return (scenario.args or {}).get("missing", "skip" if skips else "error") == "skip"


def settle(asked: Asked, *, skips_failed: bool) -> list[RequestState]:
    """Return the states, the rows of those that failed marked as left out, for metrics of this package to count.

    Raises RowsFailedError where they are not to be left out, or no row would be left.
    """
    if not asked.failures:
        return asked.states
    reasons: dict[object, str] = {}
    for place, reason in sorted(asked.failures.items()):
        reasons.setdefault(_row_of(asked.states[place]), reason)
    rows = {_row_of(state): state for state in asked.states}
    ours = all(EXTRA_KEY in (rows[row].instance.extra_data or {}) for row in reasons)
    said = f"{len(reasons)} of {len(rows)} rows have no answer: {_name(reasons, rows)}"
    if not (skips_failed and ours) or len(reasons) == len(rows):
        skip = "; missing=skip in the run entry leaves them out of the score and counts them" if ours else ""
        raise RowsFailedError(
            f"{said}\n  hint: the other answers are in the cache, unless that is disabled, and a second start asks for "
            f"these alone{skip if len(reasons) < len(rows) and not skips_failed else ''}"
        )
    hwarn(f"left out of the score: {said}")
    return [_leave_out(state) if _row_of(state) in reasons else state for state in asked.states]


def _leave_out(state: RequestState) -> RequestState:
    left_out = leave_out(state, "failed")
    return replace(left_out, result=left_out.request.result)


def _row_of(state: RequestState) -> object:
    return state.instance.id, state.instance.perturbation


def _name(reasons: dict[object, str], rows: dict[object, RequestState]) -> str:
    """Return the rows' ids, those that failed for one reason together."""
    ids: dict[str, list[str]] = {}
    for row, reason in reasons.items():
        ids.setdefault(reason, []).append(str(rows[row].instance.id))
    parts = []
    for reason, named in list(ids.items())[:_SHOWN_ROWS]:
        more = f", ... ({len(named) - _SHOWN_ROWS} more)" if len(named) > _SHOWN_ROWS else ""
        parts.append(f"{', '.join(named[:_SHOWN_ROWS])}{more}: {reason}")
    if len(ids) > _SHOWN_ROWS:
        parts.append(f"... and other reasons for {sum(map(len, list(ids.values())[_SHOWN_ROWS:]))} more")
    return "; ".join(parts)
