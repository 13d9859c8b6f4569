"""Request states of a recorded run: made of what the rows hold, nothing is rendered.

How a run scores its rows stands in what it writes, so that its `scenario_state.json` can be scored again alike. HELM's
ScenarioState has no place for it, so the first row of the run carries it (`RowExtra.scoring`). Which row that is is
known when request states are made: until then all rows share one object.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from helm.benchmark.adaptation.adapter_spec import ADAPT_LANGUAGE_MODELING, AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.scenarios.scenario import TRAIN_SPLIT, Input, Instance

from helm_ext.adaptation import recorded
from helm_ext.adaptation.selection import OURS_ALONE, leave_out, select, without_recording
from helm_ext.errors import RecordedError
from helm_ext.evalset import EXTRA_KEY, LeftOut, RunScoring, garbage, row_extra

if TYPE_CHECKING:
    from helm.benchmark.metrics.metric import MetricSpec

_SHOWN_IDS = 5


def rebuild_recorded(instances: Sequence[Instance], adapter_spec: AdapterSpec) -> list[RequestState]:
    """Return the request states as they were recorded, in the order of the instances; nothing is rendered.

    Raises RecordedError for rows without a usable recording, unless they are to be skipped.
    """
    if adapter_spec.method == ADAPT_LANGUAGE_MODELING:
        raise RecordedError("recorded completions of the method language_modeling cannot be re-scored")
    rows = [row for row in select(instances, adapter_spec, "recorded") if row.split != TRAIN_SPLIT]
    _require_recordings(rows, adapter_spec)
    scoring = row_extra(rows[0]).get("scoring")
    with garbage.paused():
        states = RecordedStates(adapter_spec).rebuild(rows)
    if scoring is not None:
        requests = (state.request for state in states)
        unmeasured = {name for request in requests for name in getattr(request, "unmeasured", ())}
        tell_scoring(states[0].instance, scoring, unmeasured)
    return states


class RecordedStates:
    """Makes the request states of rows that a recorded run evaluates."""

    def __init__(self, adapter_spec: AdapterSpec) -> None:
        # What the file says of all its requests. A prompt that was not recorded stays empty: nobody knows what was
        # sent.
        request = recorded.RecordedRequest(
            model=adapter_spec.model,
            model_deployment=adapter_spec.model_deployment,
            temperature=adapter_spec.temperature,
            max_tokens=adapter_spec.max_tokens,
            stop_sequences=adapter_spec.stop_sequences,
        )
        self._template = RequestState(
            instance=Instance(Input(), []),
            reference_index=None,
            request_mode=None,
            train_trial_index=0,
            output_mapping=None,
            request=request,
            result=None,
            num_train_instances=0,
            prompt_truncated=False,
        )

    def rebuild(self, rows: Sequence[Instance]) -> list[RequestState]:
        """Return the states of these rows. The recordings are taken off them: they belong into the results, once."""
        states = [state for instance in rows for state in _rebuild_row(instance, self._template)]
        # Instances are this run's own, and copies of all of them would double the memory. Some may share their extras.
        for instance in rows:
            for key in OURS_ALONE:
                row_extra(instance).pop(key, None)  # type: ignore[misc]
        return states


def _rebuild_row(instance: Instance, template: RequestState) -> list[RequestState]:
    """Return what was recorded for an instance, as copies of `template`."""
    extra = row_extra(instance)
    row = {"instance": instance, "output_mapping": extra.get("labels") or None}
    found = extra.get("recorded")
    if found is None or found["status"] != "ok":
        reason: LeftOut = "not_run" if found is None else found["status"]  # type: ignore[assignment] # not "ok"
        return [leave_out(replace(template, **{**row, "instance": without_recording(instance)}), reason)]
    return [
        recorded.copy_with(
            template,
            request=recorded.rebuild_request(template.request, state),
            **{**row, **recorded.to_state_fields(state)},
        )
        for state in found["states"]
    ]


def _is_for_its_source(row: Instance) -> bool:
    """Whether the row has an answer that none of our scores can be made of. The file says what its source made of it:
    importers refuse files that say nothing (`ImportedFormat`).
    """
    return row_extra(row).get("recorded", {}).get("status") == "unscored"


def _require_recordings(rows: Sequence[Instance], adapter_spec: AdapterSpec) -> None:
    """Raise unless every row can be scored, or is to be skipped."""
    recordings = [row_extra(row).get("recorded") for row in rows]
    unusable = [row for row, found in zip(rows, recordings, strict=True) if found is None or found["status"] != "ok"]
    if len(unusable) == len(rows) and not any(map(_is_for_its_source, rows)):
        _refuse_incomplete(rows, adapter_spec)
        raise RecordedError(
            f"{adapter_spec.model_deployment}: none of the {len(rows)} rows holds a recorded completion\n"
            "  hint: name a real model, or give completions: request.result.completions in the rows (adapter_spec:), "
            "replies=FILE (innodata:), data=.../instance.jsonl (ultraeval:), output=COLUMN (table:)"
        )
    missing = [row for row in unusable if not row_extra(row).get("recorded", {}).get("skip")]
    if missing:
        _refuse_incomplete(missing, adapter_spec)
        failed = sum(row_extra(row).get("recorded", {}).get("status") == "failed" for row in missing)
        ids = ", ".join(str(row.id) for row in missing[:_SHOWN_IDS])
        more = f", ... ({len(missing) - _SHOWN_IDS} more)" if len(missing) > _SHOWN_IDS else ""
        raise RecordedError(
            f"{len(missing)} of {len(rows)} rows cannot be scored: {len(missing) - failed} not run, {failed} failed "
            f"({ids}{more})\n  hint: missing=skip scores the rest and reports how many were left out"
        )
    last = max([s.get("train_trial_index", 0) for found in recordings if found for s in found["states"]], default=0)
    if last >= adapter_spec.num_train_trials:
        raise RecordedError(
            f"the file holds {last + 1} training trials, and this run is for {adapter_spec.num_train_trials}\n"
            f"  hint: set adapter_spec.num_train_trials to {last + 1} in the file, or run with -t {last + 1}"
        )


def _refuse_incomplete(rows: Sequence[Instance], adapter_spec: AdapterSpec) -> None:
    """Raise if rows have completions, but not those that the method is scored with."""
    incomplete = [row for row in rows if "requests" in row_extra(row).get("recorded", {})]
    if incomplete:
        found, needed = row_extra(incomplete[0])["recorded"]["requests"]
        raise RecordedError(
            f"{len(incomplete)} of {len(rows)} rows have completions that {adapter_spec.method} cannot be scored with: "
            "it needs one request per option, with log-probabilities of tokens that end with it; "
            f"row {incomplete[0].id} has {found} of {needed}\n"
            "  hint: completions that name an option are scored with method=generation or method=multiple_choice_joint"
        )


# How the run scores its rows

_STATE_KEYS = ("num_train_instances", "prompt_truncated")
"""Of HELM's request states: also the names of the stats that are made of them."""


def make_run_scoring(metric: MetricSpec, main_metric: str) -> RunScoring:
    """Return how a run with this metric scores its rows."""
    return {"class_name": metric.class_name, "args": metric.args, "main_metric": main_metric, "unmeasured": []}


def with_unmeasured(scoring: RunScoring, unmeasured: Collection[str]) -> RunScoring:
    """Return how a run scores its rows, and what of their requests nobody recorded, by the names of its stats."""
    return {**scoring, "unmeasured": [key for key in _STATE_KEYS if key in unmeasured]}


def share_scoring(row: Instance, scoring: RunScoring) -> None:
    """Let a row of a dataset know how its run is scored, until requests are made."""
    if row.extra_data is not None and EXTRA_KEY in row.extra_data:
        row.extra_data[EXTRA_KEY]["scoring"] = scoring


def tell_scoring(first: Instance, scoring: RunScoring, unmeasured: Collection[str] = ()) -> None:
    """Let the first row of a run tell how all are scored. `unmeasured`: names of stats that nobody measured."""
    # Extras may be shared with other rows; request states of the row share the instance.
    extra = {**row_extra(first), "scoring": with_unmeasured(scoring, unmeasured)}
    vars(first)["extra_data"] = {**(first.extra_data or {}), EXTRA_KEY: extra}
