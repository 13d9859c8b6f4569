"""The states of a live run while they are answered: results, failures, progress, and when to stop."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from helm.common.hierarchical_logger import hwarn
from helm.common.request import GeneratedOutput, RequestResult

from helm_ext.clients.asking import is_refused, notes_of
from helm_ext.errors import DeploymentError
from helm_ext.running.failed_rows import Asked
from helm_ext.running.progress import LimitReached, LiveProgress

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState


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
        self.rows = rows
        self.progress = progress
        self.patience = patience
        self.failures: dict[int, str] = {}
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
        if budget is not None and budget.is_limited and not result.cached and not any(_count_tokens(result)[:2]):
            self.stop(
                LimitReached(
                    f"{self.states[place].request.model_deployment} does not count tokens: no limit can be kept"
                )
            )
        self.answered(place, result)

    def answered(self, place: int, result: RequestResult) -> None:
        """Take an answer."""
        tokens_in, tokens_out, kept = (0, 0, 0) if result.cached else _count_tokens(result)
        with self._lock:
            self.states[place] = replace(self.states[place], result=result)
            self._count(
                place,
                cached=int(result.cached),
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                tokens_cached=kept,
            )

    def failed(self, place: int, reason: str, *, is_refused: bool = False) -> None:
        """Take note of a request without an answer; `is_refused`: which says nothing about others."""
        with self._lock:
            self.failures[place] = reason
            self._count(place, failed=1, refused=int(is_refused))

    def _count(self, place: int, **numbers: int) -> None:
        """Report a row when its last request is answered."""
        number = self._row_of[place]
        tally = self._tallies.setdefault(number, Counter())
        for name, value in numbers.items():
            tally[name] += value
        self._open[number] -= 1
        if self._open[number]:
            return
        del self._tallies[number]
        self._look_at_run(place, tally, len(self.rows[number]))
        try:
            self.progress.done(
                rows=1,
                cached=int(tally["cached"] == len(self.rows[number])),
                failed=int(tally["failed"] > 0),
                tokens_in=tally["tokens_in"],
                tokens_out=tally["tokens_out"],
                tokens_cached=tally["tokens_cached"],
            )
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
            self.stop(
                DeploymentError(
                    f"{self.states[place].request.model_deployment}: the first {self.refused} rows were refused, and "
                    f"none was answered, the last one with: {self.failures.get(place, '')}\n"
                    "  hint: what all requests of the run have in common (a parameter, the prompts' length) does not "
                    "suit the server; `helm-ext model test` tries the parameters one by one"
                )
            )
        if self.failures_in_a_row >= self.patience:
            self.stop(
                DeploymentError(
                    f"{self.states[place].request.model_deployment}: {self.failures_in_a_row} rows failed one after "
                    f"another, the last one with: {self.failures.get(place, '')}\n"
                    "  hint: what was answered is in the cache, unless that is disabled; start the run again when the "
                    "model answers"
                )
            )

    def finish(self) -> Asked:
        """Return what came of it. Raises what stopped it."""
        if self.stopped_by is not None:
            raise self.stopped_by
        return Asked(self.states, self.failures)


def _count_tokens(result: RequestResult) -> tuple[int, int, int]:
    """Return the tokens of the prompt, of the answer, and those of the prompt that the provider had kept.

    A reply may say anything: more kept ones than the prompt has would cost less than nothing.
    """
    usage = notes_of(result).get("usage", {})
    tokens_in, details = _whole(usage.get("prompt_tokens")), usage.get("prompt_tokens_details")
    kept = _whole(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return tokens_in, _whole(usage.get("completion_tokens")), min(kept, tokens_in)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
