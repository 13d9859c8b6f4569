"""Which rows take part in a run, and which are left out of its scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.scenarios.scenario import EVAL_SPLITS, TRAIN_SPLIT, Instance
from helm.common.hierarchical_logger import hwarn

from helm_ext.adaptation import recorded
from helm_ext.adaptation.row_order import in_file_order
from helm_ext.errors import RunEntryError
from helm_ext.evalset import EXTRA_KEY, LeftOut, RowExtra, row_extra

OURS_ALONE = frozenset({"recorded", "position", "scoring"})
"""Keys of RowExtra that have done their work when requests are made, and are in no file that HELM writes; but
for `scoring`, which the first row has (`run_scoring`)."""

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


def leave_out(state: RequestState, reason: LeftOut) -> RequestState:
    """Send the request to no model and mark the row, so that metrics leave it out of the score and count it."""
    unsent = replace(state.request, model_deployment=recorded.LEFT_OUT_DEPLOYMENT)
    return replace(
        state,
        instance=_with_extra(state.instance, {**row_extra(state.instance), "left_out": reason}),
        request=recorded.make_recorded_request(unsent, recorded.empty_request_result()),
    )


def without_recording(instance: Instance, unwanted: Collection[str] = OURS_ALONE) -> Instance:
    """Return the instance without its recorded completions, which belong into the result, once; nor `OURS_ALONE`."""
    extra = row_extra(instance)
    if extra.keys().isdisjoint(unwanted):
        return instance
    return _with_extra(instance, cast("RowExtra", {k: value for k, value in extra.items() if k not in unwanted}))


def _with_extra(instance: Instance, extra: RowExtra) -> Instance:
    return replace(instance, extra_data={**(instance.extra_data or {}), EXTRA_KEY: extra})
