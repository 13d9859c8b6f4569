"""The states of a live run while they are answered: results, failures, progress, when to stop; and what becomes of rows
that fail.

Those are left out and counted, or the run stops and names them: `missing=` of the run entry decides, as it does for
recorded rows.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from helm.benchmark.executor import ExecutorError
from helm.common.hierarchical_logger import hwarn
from helm.common.object_spec import get_class_by_name
from helm.common.request import GeneratedOutput, RequestResult

from helm_ext.adaptation.rows import leave_out_rows, row_of
from helm_ext.clients.client import is_refused, notes_of
from helm_ext.errors import DeploymentError, HelmExtError
from helm_ext.evalset import EXTRA_KEY
from helm_ext.running.spending import LimitReached, LiveProgress

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec

_SHOWN_ROWS = 10


class RowsFailedError(HelmExtError, ExecutorError):
    """Rows of a live run have no answer, and are not to be left out. An ExecutorError, as in HELM."""


class Asking:
    """The states of a run while they are answered. Its methods may be called by any thread."""

    def __init__(
        self,
        states: Sequence[RequestState],
        rows: list[list[int]],
        progress: LiveProgress,
        patience: int,
        *,
        most_refused: int | None = None,
    ) -> None:
        """`patience`: rows that fail one after another before the run is given up.

        `most_refused`: rows that are refused before it is, as long as none is answered; None: any number.
        """
        self.states = list(states)
        """In the order in which they were given; those that failed have no result."""
        self.rows = rows
        self.progress = progress
        self.patience = patience
        self.failures: dict[int, str] = {}
        """Why a state has no result, by its place in `states`."""
        self.stopped_by: Exception | None = None
        self.failures_in_a_row = 0
        self.most_refused = most_refused
        self.refused = 0
        self.has_answered = False
        self._row_of = {place: number for number, row in enumerate(rows) for place in row}
        self._open = [len(row) for row in rows]
        self._tallies: dict[int, Counter[str]] = {}
        self._lock = threading.RLock()

    @property
    def is_stopped(self) -> bool:
        return self.stopped_by is not None

    def stop(self, error: Exception) -> None:
        """Send no more requests, and raise this at the end. The first one counts."""
        with self._lock:
            self.stopped_by = self.stopped_by or error

    def take(self, place: int, result: RequestResult) -> None:
        """Take what a client returned: an answer, or why there is none. As HELM's `Executor.process`."""
        if not result.success:
            if result.error_flags is None or result.error_flags.is_fatal is None or result.error_flags.is_fatal:
                self.failed(place, str(result.error), is_refused=is_refused(result))
                return
            hwarn(f"Non-fatal error treated as empty completion: {result.error}")
            result.completions = [GeneratedOutput(text="", logprob=0, tokens=[])]
        budget = self.progress.budget
        if budget is not None and budget.is_limited and not result.cached and not any(_count_tokens(result).values()):
            deployment = self.states[place].request.model_deployment
            self.stop(LimitReached(f"{deployment} does not count tokens: no limit can be kept"))
        self.answered(place, result)

    def answered(self, place: int, result: RequestResult) -> None:
        """Take an answer."""
        tokens = {} if result.cached else _count_tokens(result)
        with self._lock:
            self.states[place] = replace(self.states[place], result=result)
            self._count(place, cached=int(result.cached), **tokens)

    def failed(self, place: int, reason: str, *, is_refused: bool = False) -> None:
        """Take note of a request without an answer; `is_refused`: which says nothing about others."""
        with self._lock:
            self.failures[place] = reason
            self._count(place, failed=1, refused=int(is_refused))

    def _count(self, place: int, **numbers: int) -> None:
        """Report a row when its last request is answered."""
        number = self._row_of[place]
        tally, size = self._tallies.setdefault(number, Counter()), len(self.rows[number])
        tally.update(numbers)
        self._open[number] -= 1
        if self._open[number]:
            return
        del self._tallies[number]
        self._look_at_run(place, tally, size)
        tokens = {name: tally[name] for name in ("tokens_in", "tokens_out", "tokens_cached")}
        try:
            self.progress.done(cached=int(tally["cached"] == size), failed=int(tally["failed"] > 0), **tokens)
        except LimitReached as limit:
            self.stop(limit)

    def _look_at_run(self, place: int, tally: Counter[str], size: int) -> None:
        """Stop where row after row fails, and none between them is answered by the model."""
        if tally["failed"] == size and not tally["refused"]:
            self.failures_in_a_row += 1
        elif tally["cached"] < size:
            self.failures_in_a_row = 0
        self.has_answered = self.has_answered or tally["failed"] < size
        self.refused += bool(tally["refused"])
        if self.most_refused is not None and self.refused >= self.most_refused and not self.has_answered:
            self._give_up(
                place, f"the first {self.refused} rows were refused, and none was answered",
                "what all requests of the run have in common (a parameter, the prompts' length) does not suit the "
                "server; `helm-ext model test` tries the parameters one by one",
            )  # fmt: skip
        if self.failures_in_a_row >= self.patience:
            self._give_up(
                place, f"{self.failures_in_a_row} rows failed one after another",
                "what was answered is in the cache, unless that is disabled; start the run again when the model "
                "answers",
            )  # fmt: skip

    def _give_up(self, place: int, why: str, hint: str) -> None:
        deployment, last = self.states[place].request.model_deployment, self.failures.get(place, "")
        self.stop(DeploymentError(f"{deployment}: {why}, the last one with: {last}\n  hint: {hint}"))


def _count_tokens(result: RequestResult) -> dict[str, int]:
    """Return the tokens of the prompt, of the answer, and those of the prompt that the provider had kept.

    A reply may say anything: more kept ones than the prompt has would cost less than nothing.
    """
    usage = notes_of(result).get("usage", {})
    tokens_in, details = _whole(usage.get("prompt_tokens")), usage.get("prompt_tokens_details")
    kept = _whole(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return {
        "tokens_in": tokens_in,
        "tokens_out": _whole(usage.get("completion_tokens")),
        "tokens_cached": min(kept, tokens_in),
    }


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def skips_failed(run_spec: RunSpec) -> bool:
    """Whether the run entry (`missing=skip`), or the default of the dataset's format, leaves out rows that fail."""
    scenario = run_spec.scenario_spec
    skips = getattr(get_class_by_name(scenario.class_name), "skips_missing", None)
    if skips is None:  # not one of ours: HELM's metrics know no rows that are left out
        return False
    return (scenario.args or {}).get("missing", "skip" if skips else "error") == "skip"


def settle(asked: Asking, *, skips_failed: bool) -> list[RequestState]:
    """Return the states, the rows of those that failed marked as left out, for metrics of this package to count.

    Raises RowsFailedError where they are not to be left out, or no row would be left.
    """
    if not asked.failures:
        return asked.states
    reasons: dict[object, str] = {}
    for place, reason in sorted(asked.failures.items()):
        reasons.setdefault(row_of(asked.states[place]), reason)
    rows = {row_of(state): state for state in asked.states}
    ours = all(EXTRA_KEY in (rows[row].instance.extra_data or {}) for row in reasons)
    said = f"{len(reasons)} of {len(rows)} rows have no answer: {_name(reasons, rows)}"
    if not (skips_failed and ours) or len(reasons) == len(rows):
        skip = "; missing=skip in the run entry leaves them out of the score and counts them" if ours else ""
        raise RowsFailedError(
            f"{said}\n  hint: the other answers are in the cache, unless that is disabled, and a second start asks for "
            f"these alone{skip if len(reasons) < len(rows) and not skips_failed else ''}"
        )
    hwarn(f"left out of the score: {said}")
    settled = leave_out_rows(asked.states, dict.fromkeys(reasons, "failed"))
    return [state if row_of(state) not in reasons else replace(state, result=state.request.result) for state in settled]


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
