"""Which rows take part in a run, in which order HELM gets them, which are left out; and the states of recorded ones.

The order is one of which `--max-eval-instances` takes the rows that a live run can use. Some rows of a recorded file
take part only in recorded runs (`RowExtra.only`): they are demonstrations of a live run, or beyond the file's own cap.
HELM samples before an adapter could tell it so (`downsample_eval_instances`), and of ten rows none might be left. Its
choice is always the same: numpy's generator seeded with 0 orders the positions of all eval rows, and the first m are
taken. So the rows of live runs are put at those positions that come first. Then a live run of -m rows has min(m, rows
of live runs), a recorded one has m, and up to the number of live rows both are about the same rows. A test runs HELM's
own function.

Request states of a recorded run are made of what the rows hold: nothing is rendered. How a run scores its rows stands
in what it writes, so that its `scenario_state.json` can be scored again alike. HELM's ScenarioState has no place for
it, so the first row of the run carries it (`RowExtra.scoring`). Which row that is is known when request states are
made: until then all rows share one object.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from helm.benchmark.adaptation.adapter_spec import ADAPT_LANGUAGE_MODELING, AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.scenarios.scenario import EVAL_SPLITS, TRAIN_SPLIT, Input, Instance
from helm.common.hierarchical_logger import hwarn

from helm_ext.adaptation import recorded
from helm_ext.errors import RecordedError, RunEntryError
from helm_ext.evalset import EXTRA_KEY, LeftOut, RowExtra, RunScoring, garbage, row_extra
from helm_ext.evalset.rows import RECORDED, StoredRows

if TYPE_CHECKING:
    from helm.benchmark.metrics.metric import MetricSpec
    from helm.common.request import Request
    from numpy.typing import NDArray


OURS_ALONE = frozenset({"recorded", "position", "scoring"})
"""Keys of RowExtra that have done their work when requests are made, and are in no file that HELM writes; but
for `scoring`, which the first row has (`tell_scoring`)."""

OF_RECORDED = OURS_ALONE | {"judgements"}
"""Those that are of no use where a model is asked: other answers were judged."""


def select(instances: Sequence[Instance], adapter_spec: AdapterSpec, kind: str) -> list[Instance]:
    """Return the train rows, and the rows that a run of this kind evaluates: those of an eval split that take part.

    Raises RunEntryError when there is nothing to evaluate.
    """
    evaluable = {TRAIN_SPLIT, *(adapter_spec.eval_splits or EVAL_SPLITS)}
    chosen = [row for row in instances if row.split in evaluable and row_extra(row).get("only", kind) == kind]
    offered = [instance for instance in instances if instance.split != TRAIN_SPLIT]
    if kind == "live" and offered and all(row_extra(row).get("only") == "recorded" for row in offered):
        raise RunEntryError(
            f"{adapter_spec.model_deployment} would be asked, but the {len(offered)} rows are there for their recorded "
            "completions\n  hint: model=recorded/NAME scores those; to ask the model, leave out replies=FILE "
            "(innodata:), or leave rows beside the demonstrations: fewer with max_train_instances=N (adapter_spec:)"
        )
    evaluated = sum(instance.split != TRAIN_SPLIT for instance in chosen)
    check_selection(adapter_spec, kind, rows=len(instances), offered=len(offered), evaluated=evaluated)
    return in_file_order(chosen)


def check_selection(adapter_spec: AdapterSpec, kind: str, *, rows: int, offered: int, evaluated: int) -> None:
    """Say what a run evaluates of the rows that HELM chose; `offered`: those that are no train rows.

    HELM knows nothing of `only` when it samples for `--max-eval-instances`; where that costs rows, a warning says so.
    Raises RunEntryError when there is nothing to evaluate: HELM would finish such a run as if all were well.
    """
    limit = adapter_spec.max_eval_instances
    if not evaluated:
        raise RunEntryError(
            f"no row to evaluate: none of {rows} rows is of split "
            f"{' or '.join(adapter_spec.eval_splits or EVAL_SPLITS)} and takes part in a {kind} run "
            f"(--max-eval-instances {limit})\n"
            "  hint: see eval_splits, max_eval_instances and max_train_instances in the file's adapter_spec, "
            "eval_split= in the run entry, and --max-eval-instances"
        )
    if limit is not None and evaluated < min(limit, offered):
        hwarn(
            f"{evaluated} of the {offered} rows that HELM chose are evaluated, fewer than --max-eval-instances "
            f"{limit}: the others take no part in a {kind} run (drawn as demonstrations, beyond the file's "
            "max_eval_instances, or of other splits)"
        )


def _require_own_answers(rows: Sequence[Instance]) -> None:
    """Refuse what `data_augmentation=` makes of recorded rows: a perturbed copy of a question that was asked.

    Its answer would be the one to the original, and every model robust. Perturbed rows of a file have recordings of
    their own.
    """
    perturbed = [row for row in rows if row.perturbation is not None]
    if perturbed:
        answered = {id(row_extra(row).get("recorded")) for row in rows if row.perturbation is None}
        if any(id(row_extra(row).get("recorded")) in answered for row in perturbed):
            raise RunEntryError(
                "data_augmentation=: its perturbed questions were never asked, the recorded answers are to the others\n"
                "  hint: leave it out, or ask a model: model=ORG/NAME"
            )


def leave_out(state: RequestState, reason: LeftOut) -> RequestState:
    """Send the request to no model and mark the row, so that metrics leave it out of the score and count it."""
    unsent = replace(state.request, model_deployment=recorded.LEFT_OUT_DEPLOYMENT)
    return replace(
        state,
        instance=_with_extra(state.instance, {**row_extra(state.instance), "left_out": reason}),
        request=recorded.make_recorded_request(unsent, recorded.empty_request_result()),
    )


def row_of(state: RequestState) -> object:
    """Return what is equal for the states of one row, and no others: it is left out as a whole."""
    return state.instance.id, state.instance.perturbation


def leave_out_rows(states: Sequence[RequestState], reasons: Mapping[object, LeftOut]) -> list[RequestState]:
    """Return the states; those of the rows (`row_of`) that have a reason are left out."""
    return [leave_out(state, reasons[row_of(state)]) if row_of(state) in reasons else state for state in states]


def without_recording(instance: Instance, unwanted: Collection[str] = OURS_ALONE) -> Instance:
    """Return the instance without its recorded completions, which belong into the result, once; nor `OURS_ALONE`."""
    extra = row_extra(instance)
    if extra.keys().isdisjoint(unwanted):
        return instance
    return _with_extra(instance, cast("RowExtra", {k: value for k, value in extra.items() if k not in unwanted}))


def _with_extra(instance: Instance, extra: RowExtra) -> Instance:
    return replace(instance, extra_data={**(instance.extra_data or {}), EXTRA_KEY: extra})


# The order of rows


def order_for_sampling(instances: Sequence[Instance], eval_splits: Sequence[str]) -> list[Instance]:
    """Return the instances with those eval rows moved that HELM's sampling would take in the wrong order.

    Rows of live runs keep their order among themselves, and so do the others; train rows stay where they are. Nothing
    moves where all eval rows take part in live runs. `eval_splits`: the splits that HELM samples from.
    Where rows moved, each carries its place in the file (`RowExtra.position`), and `in_file_order` puts them back.
    """
    places = [place for place, instance in enumerate(instances) if instance.split in eval_splits]
    apart = np.array([row_extra(instances[place]).get("only") == "recorded" for place in places], bool)
    ordered = list(instances)
    if not apart.any():
        return ordered
    for place, taken in zip(places, _put_apart(np.array(places), apart).tolist(), strict=True):
        row, extra = instances[taken], row_extra(instances[taken])
        # The position is noted already where a file was read that needs it.
        is_noted = extra.get("position") == taken
        ordered[place] = row if is_noted else _with_extra(row, {**extra, "position": taken})
    return ordered


def _put_apart(places: NDArray[np.intp], apart: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the places in the order in which HELM's sampling takes those last that stand apart."""
    from numpy.random import RandomState

    last = np.zeros(len(places), bool)
    last[RandomState(0).permutation(len(places))[int((~apart).sum()) :]] = True
    ordered = np.empty_like(places)
    ordered[~last], ordered[last] = places[~apart], places[apart]
    return ordered


def sample_places(rows: StoredRows, eval_splits: Sequence[str], most: int | None) -> NDArray[np.intp]:
    """Return the places of the rows that HELM's sampling leaves, in its order: the train rows, then the eval rows.

    For rows that are not in memory what `order_for_sampling` and HELM's `downsample_eval_instances` are for instances;
    tests/unit/adaptation/test_row_order.py holds both equal. `most`: `max_eval_instances`; None: all are left.
    """
    from numpy.random import RandomState

    places = np.flatnonzero(rows.is_of(eval_splits))
    if (apart := rows.only[places] == RECORDED).any():
        places = _put_apart(places, apart)
    if most is not None and len(places) > most:
        places = RandomState(0).choice(places, most, replace=False)
    return np.concatenate([np.flatnonzero(rows.is_of(["train"])), places])


def in_file_order(instances: Sequence[Instance]) -> list[Instance]:
    """Return the instances as the file has them: `order_for_sampling` undone, for those that HELM's sampling left."""
    return sorted(instances, key=lambda instance: row_extra(instance).get("position", -1))


_SHOWN_IDS = 5


def rebuild_recorded(instances: Sequence[Instance], adapter_spec: AdapterSpec) -> list[RequestState]:
    """Return the request states as they were recorded, in the order of the instances; nothing is rendered.

    Raises RecordedError for rows without a usable recording, unless they are to be skipped.
    """
    if adapter_spec.method == ADAPT_LANGUAGE_MODELING:
        raise RecordedError("recorded completions of the method language_modeling cannot be re-scored")
    rows = [row for row in select(instances, adapter_spec, "recorded") if row.split != TRAIN_SPLIT]
    _require_own_answers(rows)
    _require_recordings(rows, adapter_spec)
    scoring = row_extra(rows[0]).get("scoring")
    with garbage.paused():
        states = RecordedStates(adapter_spec).rebuild(rows)
    if scoring is not None:
        requests = (state.request for state in states)
        unmeasured = {name for request in requests for name in getattr(request, "unmeasured", ())}
        tell_scoring(states[0].instance, scoring, unmeasured)
    return states


def bare_state(request: Request, instance: Instance) -> RequestState:
    """Return a state of which the request and the instance alone are known."""
    return RequestState(
        instance=instance, reference_index=None, request_mode=None, train_trial_index=0, output_mapping=None,
        request=request, result=None, num_train_instances=0, prompt_truncated=False,
    )  # fmt: skip


class RecordedStates:
    """Makes the request states of rows that a recorded run evaluates."""

    def __init__(self, adapter_spec: AdapterSpec, unmeasured: frozenset[str] | None = None) -> None:
        """`unmeasured`: names of stats that nobody measured, where that is known of all rows."""
        # What the file says of all its requests. A prompt that was not recorded stays empty: nobody knows what was
        # sent.
        request = recorded.RecordedRequest(
            model=adapter_spec.model,
            model_deployment=adapter_spec.model_deployment,
            temperature=adapter_spec.temperature,
            max_tokens=adapter_spec.max_tokens,
            stop_sequences=adapter_spec.stop_sequences,
        )
        self._template = bare_state(request, Instance(Input(), []))
        self._unmeasured = unmeasured

    def rebuild(self, rows: Sequence[Instance]) -> list[RequestState]:
        """Return the states of these rows. The recordings are taken off them: they belong into the results, once."""
        states = [state for instance in rows for state in self._rebuild_row(instance)]
        # Instances are this run's own, and copies of all of them would double the memory. Some may share their extras.
        for instance in rows:
            extra = row_extra(instance)
            for key in OURS_ALONE:
                extra.pop(key, None)  # type: ignore[misc]
        return states

    def _rebuild_row(self, instance: Instance) -> list[RequestState]:
        extra, template = row_extra(instance), self._template
        row = {"instance": instance, "output_mapping": extra.get("labels") or None}
        found = extra.get("recorded")
        if found is None or found["status"] != "ok":
            reason: LeftOut = "not_run" if found is None else found["status"]  # type: ignore[assignment] # not "ok"
            return [leave_out(replace(template, **{**row, "instance": without_recording(instance)}), reason)]
        return [
            recorded.copy_with(
                template,
                request=recorded.rebuild_request(template.request, state, self._unmeasured),
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
        _refuse_incomplete(unusable, len(rows), adapter_spec)
        raise RecordedError(
            f"{adapter_spec.model_deployment}: none of the {len(rows)} rows holds a recorded completion\n"
            "  hint: name a real model, or give completions: request.result.completions in the rows (adapter_spec:), "
            "replies=FILE (innodata:), data=.../instance.jsonl (ultraeval:), output=COLUMN (table:)"
        )
    missing = [row for row in unusable if not row_extra(row).get("recorded", {}).get("skip")]
    if missing:
        _refuse_incomplete(missing, len(rows), adapter_spec)
        failed = sum(row_extra(row).get("recorded", {}).get("status") == "failed" for row in missing)
        numbers = {"not run": len(missing) - failed, "failed": failed}
        said = ", ".join(f"{number} {what}" for what, number in numbers.items() if number)
        ids = ", ".join(str(row.id) for row in missing[:_SHOWN_IDS])
        more = f", ... ({len(missing) - _SHOWN_IDS} more)" if len(missing) > _SHOWN_IDS else ""
        raise RecordedError(
            f"{len(missing)} of {len(rows)} rows cannot be scored: {said} ({ids}{more})\n"
            "  hint: missing=skip scores the rest and reports how many were left out"
        )
    last = max([s.get("train_trial_index", 0) for found in recordings if found for s in found["states"]], default=0)
    if last >= adapter_spec.num_train_trials:
        raise RecordedError(
            f"the file holds {last + 1} training trials, and this run is for {adapter_spec.num_train_trials}\n"
            f"  hint: set adapter_spec.num_train_trials to {last + 1} in the file, or run with -t {last + 1}"
        )


def _refuse_incomplete(unusable: Sequence[Instance], count: int, adapter_spec: AdapterSpec) -> None:
    """Raise if rows have completions, but not those that the method is scored with. `count`: of all rows."""
    incomplete = [row for row in unusable if "requests" in row_extra(row).get("recorded", {})]
    if incomplete:
        found, needed = row_extra(incomplete[0])["recorded"]["requests"]
        what, hint = explain_incomplete(adapter_spec.method, adapter_spec.num_train_trials)
        raise RecordedError(
            f"{len(incomplete)} of {count} rows have completions that {adapter_spec.method} cannot be scored with: "
            f"{what}; row {incomplete[0].id} has {found} of {needed}\n"
            f"  hint: {hint}" + "; missing=skip scores the rest" * (len(unusable) < count)
        )


def explain_incomplete(method: str, trials: int) -> tuple[str, str]:
    """Return what a row needs that has some of a method's requests and not all, and a hint."""
    if not method.startswith("multiple_choice_separate"):
        needs = f"it needs one request for each of the {trials} training trials"
        return needs, "adapter_spec.num_train_trials is how many trials the file holds"
    needs = "it needs one request per option, with log-probabilities of tokens that end with it"
    return needs, "completions that name an option are scored with method=generation or method=multiple_choice_joint"


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
