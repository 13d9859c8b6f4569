"""The runs behind `helm-ext requests`: planned as helm-run plans them, and made of results that came in."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from helm_ext.cli.output import status
from helm_ext.cli.session import (
    Settings,
    helm_output_to_stderr,
    make_runner,
    only_registered_entries,
    register_models,
    start_helm,
    without_output,
)
from helm_ext.errors import DatasetChangedError, HelmExtError, RunEntryError
from helm_ext.formats import format_names

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.clients.answers import AnsweredExecutor, Answers
    from helm_ext.clients.request_files import Manifest, Plan
    from helm_ext.running import StreamingRunner

CLIENT = "helm_ext.clients.OpenAICompatibleClient"
NAME_ARGUMENT = "openai_model_name"
"""The argument of this client, and of HELM's, that is the model's name for the server."""


@contextlib.contextmanager
def started(settings: Settings) -> Iterator[StreamingRunner]:
    """Start HELM as helm-run does, and keep what it prints out of our output; yields a runner.

    Raises RunEntryError for a plugin that cannot be imported, HelmExtError for a folder that cannot be made.
    """
    with status("planning"), helm_output_to_stderr():
        start_helm(verbose=settings.verbose)
        register_models(settings.local_path)
        from helm.benchmark.run import import_user_plugins, load_entry_point_plugins

        load_entry_point_plugins()
        for plugin in settings.plugins:
            try:
                import_user_plugins([plugin])
            except Exception as error:
                raise RunEntryError(f"--plugins {plugin}: {type(error).__name__}: {error}") from error
        yield make_runner(settings)


def register_if_unknown(model: str, option: str = "--model") -> None:
    """Make a deployment for a model that HELM does not know. Raises RunEntryError for a name that HELM cannot read."""
    from helm.benchmark.model_deployment_registry import (
        ClientSpec,
        ModelDeployment,
        get_default_model_deployment_for_model,
        register_model_deployment,
    )

    if get_default_model_deployment_for_model(model) is not None:
        return
    if model.count("/") != 1 or not all(model.split("/")):
        raise RunEntryError(f"{option} {model}: expected ORGANIZATION/NAME, or a model that HELM knows")
    register_model_deployment(ModelDeployment(model, ClientSpec(CLIENT, {NAME_ARGUMENT: model})))


def stand_in(name: str) -> str:
    """Put our client in place of a deployment's; returns the name by which the server knows the model.

    What the client's class says of it (chat, log-probabilities of the prompt) is then said of ours, which writes the
    requests. The name is the one that the deployment's own client would send.
    """
    from helm.benchmark.model_deployment_registry import ClientSpec, get_model_deployment, register_model_deployment

    from helm_ext.adaptation import recorded

    if recorded.is_recorded(name):
        raise RunEntryError(f"{name}: a recorded model answers nothing\n  hint: --model with the name of a live one")
    deployment = get_model_deployment(name)
    args = deployment.client_spec.args or {}
    sent_as = args.get(NAME_ARGUMENT) or args.get("vllm_model_name") or str(deployment.model_name).split("/", 1)[1]
    client_spec = ClientSpec(CLIENT, {NAME_ARGUMENT: sent_as})
    register_model_deployment(dataclasses.replace(deployment, client_spec=client_spec))
    return str(sent_as)


def plan_runs(plan: Plan) -> tuple[Plan, list[RunSpec]]:
    """Return the runs that helm-run would carry out, and the plan with the name by which the server knows the model.

    Raises RunEntryError for what HELM says of an entry, and for runs that cannot be answered by files.
    """
    import msgspec
    from helm.benchmark.presentation.run_entry import RunEntry
    from helm.benchmark.run import run_entries_to_run_specs

    register_if_unknown(plan.model)
    run_specs: list[RunSpec] = []
    for entry in plan.run_entries:
        # HELM's own run specs need packages that ours do not.
        is_of_format = entry.partition(":")[0] in format_names()
        try:
            with only_registered_entries() if is_of_format else contextlib.nullcontext():
                made = run_entries_to_run_specs(
                    [RunEntry(description=entry, priority=1, groups=None)],
                    max_eval_instances=plan.max_eval_instances,
                    num_train_trials=plan.num_train_trials,
                    models_to_run=[plan.model],
                )
        except (HelmExtError, ModuleNotFoundError):
            raise
        except Exception as error:
            # ValueError is HELM's way to refuse what an entry says, Exception itself that of its run expanders.
            kind = "" if type(error) in (ValueError, Exception) else f"{type(error).__name__}: "
            raise RunEntryError(f"{entry}: {kind}{error}") from error
        if not made:
            raise RunEntryError(f"{entry}: names another model than --model {plan.model}")
        run_specs += made
    names = [run_spec.name for run_spec in run_specs]
    if doubled := [name for name in names if names.count(name) > 1]:
        raise RunEntryError(f"{doubled[0]}: the same run is named twice")
    deployments = sorted({run_spec.adapter_spec.model_deployment for run_spec in run_specs})
    if len(deployments) != 1:
        raise RunEntryError(f"the runs ask several deployments: {', '.join(deployments)}\n  hint: one at a time")
    sent_as = stand_in(deployments[0])
    for run_spec in run_specs:
        _require_answerable(run_spec)
    return msgspec.structs.replace(plan, sent_as=plan.sent_as or sent_as), run_specs


def _require_answerable(run_spec: RunSpec) -> None:
    """Raise RunEntryError for a run that needs a model for more than its requests, or a tokenizer that is not there."""
    from helm.benchmark.model_deployment_registry import get_model_deployment
    from helm.common.object_spec import get_class_by_name

    for annotator in run_spec.annotators or ():
        if "auto_client" in inspect.signature(get_class_by_name(annotator.class_name).__init__).parameters:
            raise RunEntryError(
                f"{run_spec.name}: its annotator {annotator.class_name} asks models about the answers, and such "
                "requests can be written only when the answers are there\n  hint: helm-run"
            )
    adapter_spec = run_spec.adapter_spec
    has_tokenizer = get_model_deployment(adapter_spec.model_deployment).tokenizer_name is not None
    if has_tokenizer:
        return
    compares = any(spec.class_name.endswith(".BasicReferenceMetric") for spec in run_spec.metric_specs)
    is_separate = adapter_spec.method.startswith(("multiple_choice_separate", "ranking_binary"))
    if adapter_spec.method == "language_modeling" or (is_separate and compares):
        raise RunEntryError(
            f"{run_spec.name}: HELM needs a tokenizer for {adapter_spec.method}, and {adapter_spec.model_deployment} "
            "names none: HELM's metric would compare the last token of each option only\n"
            "  hint: name the model in prod_env/model_deployments.yaml, with tokenizer_name and max_sequence_length"
        )


def iter_states(runner: StreamingRunner, run_specs: Iterable[RunSpec]) -> Iterator[tuple[RunSpec, list[RequestState]]]:
    """Yield each run with its request states. Raises HelmExtError, also for what a scenario raises."""
    for run_spec in run_specs:
        try:
            states = runner.make_request_states(run_spec)
        except HelmExtError:
            raise
        except Exception as error:
            raise HelmExtError(f"{run_spec.name}: cannot be planned: {type(error).__name__}: {error}") from error
        yield run_spec, states


def make_run(runner: StreamingRunner, run_spec: RunSpec, manifest: Manifest, answers: Answers) -> AnsweredExecutor:
    """Carry out a run with the answers; returns the executor, which has counted what is to be said of them.

    Raises DatasetChangedError if it is not the run that the requests were written for.
    """
    from helm_ext.clients.answers import AnsweredExecutor

    with without_output():
        executor = AnsweredExecutor(runner.executor.execution_spec, run_spec, manifest, answers)
    runner.executor = executor
    try:
        runner.run_one(run_spec)
    except BaseException:
        with contextlib.suppress(OSError):  # the folder that HELM makes first, where nothing came into it
            Path(runner.runs_path, run_spec.name).rmdir()
        raise
    return executor


def require_same_names(manifest: Manifest, run_specs: Iterable[RunSpec]) -> None:
    """Raise DatasetChangedError unless the same runs are planned as when the requests were written."""
    before, now = [run.name for run in manifest.runs], [run_spec.name for run_spec in run_specs]
    if before != now:
        changed = [f"{old} is now {new}" for old, new in zip(before, now, strict=False) if old != new]
        raise DatasetChangedError(
            f"the requests were written for other runs: {changed[0] if changed else f'{len(before)}, now {len(now)}'}\n"
            "  hint: a dataset (its digest is part of a run's name) has changed since; write the requests again"
        )
