"""HELM's Executor that hands results back which were joined with the requests before."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from itertools import zip_longest
from typing import TYPE_CHECKING

from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.executor import ExecutionSpec, Executor

from helm_ext.adaptation.selection import leave_out
from helm_ext.clients.manifest import Manifest, PlannedRun, make_key, make_run_digest
from helm_ext.clients.openai_replies import ReplyError, to_result
from helm_ext.clients.openai_requests import to_body
from helm_ext.errors import DatasetChangedError, RecordedError
from helm_ext.evalset import EXTRA_KEY, LeftOut

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.clients.answers import Answers


class AnsweredExecutor(Executor):
    """Fills in the results of one run's request states. Asks nobody."""

    def __init__(self, execution_spec: ExecutionSpec, run_spec: RunSpec, manifest: Manifest, answers: Answers) -> None:
        """Take the answers. Rows without one are excluded, which only metrics of this package know and count."""
        super().__init__(execution_spec)
        self.run_spec = run_spec
        self.manifest = manifest
        self.answers = answers
        self.crossing = 0
        """Requests in which a token lies on both sides of the border of prompt and option."""
        self.excluded = 0
        """How many rows lack an answer to one of their requests."""

    def execute(self, scenario_state: ScenarioState) -> ScenarioState:
        """Return the state with results.

        Raises DatasetChangedError where the request states are not those that the requests were made of, and
        RecordedError for a reply that cannot be made a result, and for rows without a reply that cannot be excluded.
        """
        ids = find_requests(self.manifest, self.run_spec, scenario_state.request_states)
        states = self._without_unanswered(scenario_state.request_states, ids)
        asked = [(state, id_) for state, id_ in zip(states, ids, strict=True) if _is_asked(state) and id_ is not None]
        replies = self.answers.read(id_ for _, id_ in asked)
        dialect = self.manifest.plan.to_dialect()
        for (state, id_), reply in zip(asked, replies, strict=True):
            try:
                # As `recorded.hand_back`: HELM's executor would copy each state.
                vars(state)["result"] = to_result(reply, state.request, dialect)
            except ReplyError as error:
                raise RecordedError(f"{id_}: {error}") from error
            self.crossing += crosses_border(state)
        for state in states:
            if state.result is None:  # excluded
                vars(state)["result"] = state.request.result
        return ScenarioState(scenario_state.adapter_spec, states, scenario_state.annotator_specs)

    def _without_unanswered(self, states: list[RequestState], ids: Sequence[str | None]) -> list[RequestState]:
        """Return the states; rows with a request that has no answer are marked as excluded."""
        missing = set(self.answers.missing())
        reasons: dict[object, LeftOut] = {
            _row_of(state): "failed" if id_ in self.answers.failures else "not_run"
            for state, id_ in zip(states, ids, strict=True)
            if id_ in missing
        }
        if not reasons:
            return states
        rows = {_row_of(state): state for state in states}
        self.excluded = len(reasons)
        if len(reasons) == len(rows):
            raise RecordedError(f"{self.run_spec.name}: no row has an answer to all of its requests")
        if any(EXTRA_KEY not in (rows[row].instance.extra_data or {}) for row in reasons):
            raise RecordedError(
                f"{self.run_spec.name}: HELM's own metrics cannot leave out rows, and {len(reasons)} have no answer\n"
                "  hint: without --missing skip the run is made when all of them have one"
            )
        return [leave_out(state, reasons[_row_of(state)]) if _row_of(state) in reasons else state for state in states]


def _is_asked(state: RequestState) -> bool:
    """Whether a request was written for the state: the adapter excludes rows that do not fit the window."""
    return getattr(state.request, "result", None) is None


def _row_of(state: RequestState) -> object:
    return state.instance.id, state.instance.perturbation


def find_requests(manifest: Manifest, run_spec: RunSpec, states: Sequence[RequestState]) -> list[str | None]:
    """Return the id of each state's request; None for rows that were excluded before requests were written.

    Raises DatasetChangedError if the run is no longer one of the manifest's.
    """
    run = next((run for run in manifest.runs if run.name == run_spec.name), None)
    if run is None:
        names = ", ".join(run.name for run in manifest.runs)
        raise DatasetChangedError(
            f"{run_spec.name}: requests were written for {names}, and for no such run\n"
            "  hint: the dataset, which a run's name tells by its digest, has changed; write the requests again"
        )
    dialect = manifest.plan.to_dialect()
    by_key = {sent.key: sent.custom_id for sent in manifest.requests}
    keys = [make_key(to_body(s.request, dialect), s.request.random) if _is_asked(s) else None for s in states]
    changed = next((s for s, key in zip(states, keys, strict=True) if key is not None and key not in by_key), None)
    if changed is None and make_run_digest(run_spec, states) == run.digest:
        return [None if key is None else by_key[key] for key in keys]
    change = "requests are the same, what they are scored with is not"
    if changed is not None:
        change = f"the request of row {changed.instance.id} is another one, or new"
    if manifest.helm_ext != version("helm-ext"):
        change += f"; they were written by helm-ext {manifest.helm_ext}, this is {version('helm-ext')}"
    raise DatasetChangedError(
        f"{run.name}: the run is not the one that requests were written for: {change}\n"
        "  hint: the dataset, the scenario or HELM's configuration has changed since; write the requests again"
    )


def require_same_digests(manifest: Manifest, runs: Sequence[PlannedRun]) -> None:
    """Raise DatasetChangedError unless these runs, planned now, are those of the manifest."""
    for before, now in zip_longest(manifest.runs, runs):
        if before is None or now is None or (before.name, before.digest) != (now.name, now.digest):
            raise DatasetChangedError(
                f"{(before or now).name}: the run is not the one that requests were written for\n"
                "  hint: the dataset, the scenario or HELM's configuration has changed since; write the requests again"
            )


def crosses_border(state: RequestState) -> bool:
    """Whether a token of the scored prompt lies on both sides of the beginning of the option.

    The option's log-probability is then not its own: HELM and this package count whole tokens. A space before the
    option belongs to it, as in HELM's prompts.
    """
    if state.reference_index is None or not state.request.echo_prompt or state.result is None:
        return False
    option = state.instance.references[state.reference_index].output.text
    before, found, _ = state.request.prompt.rpartition(option)
    if not found or not option:
        return False
    spelled = ""
    borders = set()
    for token in state.result.completions[0].tokens:
        borders.add(len(spelled))
        spelled += token.text
    start = spelled.rfind(before + option)
    if start < 0:  # the tokens do not spell the prompt: their borders are not known
        return False
    border = start + len(before)
    return border not in borders and not (before.endswith(" ") and border - 1 in borders)
