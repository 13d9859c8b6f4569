"""The one wrap around HELM: what a row needs and HELM's AdapterSpec cannot say.

HELM chooses its adapter in a closed if/else (`AdapterFactory.get_adapter`). `install` wraps that one function; the
adapter it returns decorates HELM's own:

    prepare   rows that the run cannot use are taken out; demonstrations are fitted to the context window
    adapt     HELM's adapter, unchanged
    finish    each request gets its row's decoding parameters, stop sequences and answer mapping

A recorded run makes no requests, so no adapter runs: its request states are rebuilt as they were recorded.
Instances without our key in `extra_data` are not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from helm.benchmark.adaptation.adapter_spec import ADAPT_LANGUAGE_MODELING, AdapterSpec
from helm.benchmark.adaptation.adapters.adapter import Adapter
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.scenarios.scenario import EVAL_SPLITS, TRAIN_SPLIT, Input, Instance
from helm.common.hierarchical_logger import hwarn

from helm_ext.adaptation import recorded
from helm_ext.adaptation.chat_clients import require_chat_client
from helm_ext.adaptation.likelihood_clients import require_prompt_logprobs
from helm_ext.adaptation.row_order import in_file_order
from helm_ext.errors import RecordedError, RunEntryError
from helm_ext.evalset import EXTRA_KEY, LeftOut, RowExtra, garbage, row_extra
from helm_ext.evalset.copying import copy_with, make_template
from helm_ext.evalset.unread import read_unread

if TYPE_CHECKING:
    from helm.benchmark.window_services.tokenizer_service import TokenizerService
    from helm.benchmark.window_services.window_service import WindowService

__all__ = ["EvalSetAdapter", "RecordedStates", "check_selection", "install"]

_SHOWN_IDS = 5
_OURS_ALONE = frozenset({"recorded", "position"})
"""Keys of RowExtra that have done their work when requests are made, and are in no file that HELM writes."""


def install() -> None:
    """Wrap `AdapterFactory.get_adapter` and register `recorded/` deployments, once.

    Cheap, and safe to call from every module that may be the first one imported: the plugin, or a scenario in a worker
    of HELM's that loads no plugins.
    """
    recorded.register_deployments()
    wrapped = AdapterFactory.get_adapter
    if getattr(wrapped, "wrapped_by_helm_ext", False):
        return

    def get_adapter(adapter_spec: AdapterSpec, tokenizer_service: TokenizerService) -> Adapter:
        return EvalSetAdapter(wrapped(adapter_spec, tokenizer_service))

    get_adapter.wrapped_by_helm_ext = True  # type: ignore[attr-defined]
    AdapterFactory.get_adapter = staticmethod(get_adapter)


class EvalSetAdapter(Adapter):
    """Decorates one of HELM's adapters. See the module's docstring for what it adds."""

    def __init__(self, adapter: Adapter) -> None:
        # Not Adapter.__init__: it would build a second window service.
        self.adapter = adapter
        self.adapter_spec: AdapterSpec = adapter.adapter_spec

    def __getattr__(self, name: str) -> Any:
        """Everything else is HELM's adapter's, so that code which looks at an adapter sees the one it knows."""
        if name == "adapter":  # not yet set: pickle and copy ask before __init__
            raise AttributeError(name)
        return getattr(self.adapter, name)

    def adapt(self, instances: list[Instance], parallelism: int) -> list[RequestState]:
        """Turn instances into request states.

        Raises RecordedError when a recorded deployment meets rows without a usable recording, and RunEntryError when
        no row is left to evaluate.
        """
        read_unread(instances)
        is_recorded = recorded.is_recorded(self.adapter_spec.model_deployment)
        if not any(EXTRA_KEY in (instance.extra_data or {}) for instance in instances):
            if is_recorded and instances:
                raise RecordedError(
                    f"{self.adapter_spec.model_deployment} needs a dataset that holds completions, and this scenario "
                    "holds none\n  hint: use adapter_spec:path=FILE with a file that holds them, or name a real model"
                )
            return self.adapter.adapt(instances, parallelism)
        if is_recorded:
            return rebuild_recorded(instances, self.adapter_spec)
        return self._adapt_live(instances, parallelism)

    def _adapt_live(self, instances: list[Instance], parallelism: int) -> list[RequestState]:
        _require_texts(instances, self.adapter_spec)
        require_chat_client(self.adapter_spec)
        require_prompt_logprobs(self.adapter_spec.model_deployment, instances)
        prepared = [
            prepare(instance, self.adapter_spec, self.adapter.window_service)
            for instance in select(instances, self.adapter_spec, "live")
        ]
        _log_ignored_recordings(instances)
        originals = {id(ready.instance): ready for ready in prepared}
        states = self.adapter.adapt([ready.instance for ready in prepared], parallelism)
        return [finish(state, originals[id(state.instance)], self.adapter_spec) for state in states]


# Live runs


class Prepared:
    """An instance as HELM's adapter sees it, and what its request states are given back afterwards."""

    def __init__(
        self, instance: Instance, original: Instance, demonstrations: int | None = None, *, too_long: bool = False
    ) -> None:
        self.instance = instance
        self.original = original
        """The instance without its recording: what metrics and reports see."""
        self.demonstrations = demonstrations
        """How many demonstrations were kept in a prompt of our own; None when HELM renders the prompt."""
        self.too_long = too_long
        """The question does not fit the window, alone or with one of its options: the whole row is left out."""


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


def prepare(instance: Instance, adapter_spec: AdapterSpec, window_service: WindowService) -> Prepared:
    """Take the recording off, and put a prompt of our own, fitted to the window, where HELM's adapter looks.

    Raises RunEntryError where a run expander asks for what a prompt of our own cannot have.
    """
    original = without_recording(instance)
    parts = row_extra(instance).get("prompt")
    if parts is None or instance.split == TRAIN_SPLIT:
        return Prepared(original, original)
    _require_own_prompt(adapter_spec)
    if instance.perturbation is not None:  # data_augmentation= changes the question and knows nothing of our parts
        parts = [*parts[:-1], instance.input.text]
    text, kept, fits = fit_prompt(parts, instance, adapter_spec, window_service)
    prepared = copy_with(original, input=copy_with(original.input, text=text))
    return Prepared(prepared, original, kept, too_long=not fits)


def _require_own_prompt(adapter_spec: AdapterSpec) -> None:
    """Refuse what HELM's run expanders can ask for and such a prompt cannot have."""
    if adapter_spec.max_train_instances > 0:
        raise RunEntryError(
            f"max_train_instances={adapter_spec.max_train_instances}: this dataset's prompts hold their own "
            "demonstrations, HELM would add none\n  hint: fewshot=N says how many"
        )
    if adapter_spec.method.startswith("multiple_choice_separate") and adapter_spec.num_outputs > 1:
        raise RunEntryError(
            f"num_outputs={adapter_spec.num_outputs}: nothing is sampled where the options of a row are compared\n"
            "  hint: remove it, or use the dataset's GEN script: method=gen"
        )


def fit_prompt(
    parts: Sequence[str], instance: Instance, adapter_spec: AdapterSpec, window_service: WindowService
) -> tuple[str, int, bool]:
    """Join [head, demonstration, ..., question], dropping demonstrations from the front until it fits the window.

    Where each reference is appended to the prompt, it must fit with every one of them. The question is never cut: a
    row whose question does not fit without demonstrations is left out (docs/ultraeval.md).

    Returns the text, the number of demonstrations kept, and whether it fits.
    """
    head, *demonstrations, question = parts
    appended = [""]
    if adapter_spec.method.startswith("multiple_choice_separate"):
        # The one with most characters most often has most tokens too: where something does not fit, one look tells.
        texts = {reference.output.text for reference in instance.references} or {""}
        appended = sorted(texts, key=lambda text: (-len(text), text))
    elif not demonstrations:
        return f"{head}{question}", 0, True  # HELM's adapter looks itself, once: `prompt_truncated`

    def fits(text: str) -> bool:
        return all(
            window_service.fits_within_context_window(
                text=f"{adapter_spec.global_prefix}{text}{option}{adapter_spec.global_suffix}",
                expected_completion_token_length=adapter_spec.max_tokens,
            )
            for option in appended
        )

    for first in range(len(demonstrations) + 1):
        text = "".join([head, *demonstrations[first:], question])
        if fits(text):
            return text, len(demonstrations) - first, True
    return f"{head}{question}", 0, False


def finish(state: RequestState, prepared: Prepared, adapter_spec: AdapterSpec) -> RequestState:
    """Give a request state of HELM's what its row needs and AdapterSpec cannot say."""
    extra = row_extra(prepared.original)
    state = copy_with(state, instance=prepared.original)
    if prepared.demonstrations is not None:
        if state.prompt_truncated or prepared.too_long:
            return leave_out(state, "too_long")
        state = copy_with(state, num_train_instances=prepared.demonstrations)
    changes: dict[str, Any] = {}
    if not state.request.echo_prompt:  # nothing is sampled where a given text is scored
        changes.update(extra.get("decoding", {}))
        if adapter_spec.stop_sequences and not state.request.stop_sequences:
            changes["stop_sequences"] = adapter_spec.stop_sequences  # HELM's joint adapter drops them
    if changes:
        state = copy_with(state, request=copy_with(state.request, **changes))
    if "labels" in extra and state.reference_index is None:
        state = copy_with(state, output_mapping=dict(extra["labels"]))
    return state


def leave_out(state: RequestState, reason: LeftOut) -> RequestState:
    """Send the request to no model and mark the row, so that metrics leave it out of the score and count it."""
    request = recorded.make_recorded_request(state.request, recorded.empty_request_result())
    return copy_with(
        state,
        instance=_with_extra(state.instance, {**row_extra(state.instance), "left_out": reason}),
        request=copy_with(request, model_deployment=recorded.LEFT_OUT_DEPLOYMENT),
    )


def without_recording(instance: Instance) -> Instance:
    """Return the instance without its recorded completions, which belong into the result, once; nor its position."""
    extra = row_extra(instance)
    if _OURS_ALONE.isdisjoint(extra):
        return instance
    return _with_extra(instance, cast("RowExtra", {k: value for k, value in extra.items() if k not in _OURS_ALONE}))


def _with_extra(instance: Instance, extra: RowExtra) -> Instance:
    return copy_with(instance, extra_data={**(instance.extra_data or {}), EXTRA_KEY: extra})


def _require_texts(instances: Sequence[Instance], adapter_spec: AdapterSpec) -> None:
    """Refuse to ask for texts where rows are scored by the log-probabilities of their options."""
    if any("likelihoods" in row_extra(instance) for instance in instances):
        raise RunEntryError(
            f"{adapter_spec.model_deployment} would be asked for texts, and these rows are scored by the "
            "log-probabilities that were recorded of their options\n  hint: model=recorded/NAME scores those; to ask "
            "a model, take `likelihoods` out of the rows"
        )


def _log_ignored_recordings(instances: Sequence[Instance]) -> None:
    count = sum(row_extra(instance).get("recorded", {}).get("status") == "ok" for instance in instances)
    if count:
        hwarn(
            f"{count} rows carry recorded completions; this run asks the model again and leaves those unused. "
            "To score them instead: model=recorded/NAME"
        )


# Recorded runs


def rebuild_recorded(instances: Sequence[Instance], adapter_spec: AdapterSpec) -> list[RequestState]:
    """Return the request states as they were recorded, in the order of the instances; nothing is rendered.

    Raises RecordedError for rows without a usable recording, unless they are to be skipped.
    """
    if adapter_spec.method == ADAPT_LANGUAGE_MODELING:
        raise RecordedError("recorded completions of the method language_modeling cannot be re-scored")
    rows = [row for row in select(instances, adapter_spec, "recorded") if row.split != TRAIN_SPLIT]
    _require_recordings(rows, adapter_spec)
    with garbage.paused():
        return RecordedStates(adapter_spec).rebuild(rows)


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
        self._template = make_template(
            RequestState(
                instance=Instance(Input(), []),
                reference_index=None,
                request_mode=None,
                train_trial_index=0,
                output_mapping=None,
                request=make_template(request),
                result=None,
                num_train_instances=0,
                prompt_truncated=False,
            )
        )

    def rebuild(self, rows: Sequence[Instance]) -> list[RequestState]:
        """Return the states of these rows. The recordings are taken off them: they belong into the results, once."""
        states = [state for instance in rows for state in _rebuild_row(instance, self._template)]
        # Instances are this run's own, and copies of all of them would double the memory. Some may share their extras.
        for instance in rows:
            for key in _OURS_ALONE:
                row_extra(instance).pop(key, None)  # type: ignore[misc]
        return states


def _rebuild_row(instance: Instance, template: RequestState) -> list[RequestState]:
    """Return what was recorded for an instance, as copies of `template`."""
    extra = row_extra(instance)
    row = {"instance": instance, "output_mapping": extra.get("labels") or None}
    found = extra.get("recorded")
    if found is None or found["status"] != "ok":
        reason: LeftOut = "not_run" if found is None else found["status"]  # type: ignore[assignment] # not "ok"
        return [leave_out(copy_with(template, **{**row, "instance": without_recording(instance)}), reason)]
    return [
        copy_with(
            template,
            request=recorded.rebuild_request(template.request, state),
            **{**row, **recorded.to_state_fields(state)},
        )
        for state in found["states"]
    ]


def _has_score_of_source(row: Instance) -> bool:
    """Whether the row has an answer that its source scored, though none of ours can be."""
    extra = row_extra(row)
    return extra.get("recorded", {}).get("status") == "unscored" and bool(extra.get("source_scores"))


def _require_recordings(rows: Sequence[Instance], adapter_spec: AdapterSpec) -> None:
    """Raise unless every row can be scored, or is to be skipped."""
    recordings = [row_extra(row).get("recorded") for row in rows]
    unusable = [row for row, found in zip(rows, recordings, strict=True) if found is None or found["status"] != "ok"]
    if len(unusable) == len(rows) and not any(map(_has_score_of_source, rows)):
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
