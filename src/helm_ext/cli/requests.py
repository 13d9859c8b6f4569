"""`helm-ext requests`: the requests of runs as files, and the runs of what came back; of judges, too."""

from __future__ import annotations

import contextlib
import inspect
import shutil
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Exit, Option

from helm_ext.cli import options, session
from helm_ext.cli.common import describe_answers, echo, say, status, without_output, writing
from helm_ext.cli.session import Settings
from helm_ext.clients.openai_requests import ENDPOINTS, Endpoint
from helm_ext.clients.request_files import MANIFEST, Plan, read_manifest
from helm_ext.engines.progress import format_cost
from helm_ext.errors import DatasetChangedError, DatasetNotFoundError, HelmExtError, RunEntryError, count, show
from helm_ext.formats import detect, format_names
from helm_ext.running.spending import Estimate, Prices

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.cli.run_scores import FileFacts
    from helm_ext.clients.answers import AnsweredExecutor, Answers
    from helm_ext.clients.request_files import Manifest, RequestWriter
    from helm_ext.running import StreamingRunner

Planned = Iterator[tuple["RunSpec", list["RequestState"]]]

_SHOWN = 5
"""Requests that failed, or are missing."""

_OF_RECORDINGS = frozenset({"not-run", "failed", "first"})
"""Codes of warnings about completions that a file holds already."""


# The folder of requests


def require_new(folder: Path) -> None:
    """Raise RunEntryError for a folder that has requests already."""
    if (folder / MANIFEST).exists():
        hint = "--only-missing writes those again that have no answer; else name another folder"
        raise RunEntryError(f"--out {folder}: requests are there already\n  hint: {hint}")


def open_requests(path: Path, command: str) -> tuple[Manifest, Path]:
    """Return the manifest of a folder, or of its path, and the folder.

    `command`: the one that reads it, `requests` or `judge`. Raises RunEntryError for requests that the other wrote.
    """
    path = path / MANIFEST if path.is_dir() or path.suffix != ".json" else path
    folder = path.parent
    if not path.exists():
        inside = sorted(found.parent.name for found in folder.glob(f"*/{MANIFEST}"))
        hint = f"one judge at a time: {', '.join(inside)}" if inside else f"the folder of `helm-ext {command} out`"
        raise DatasetNotFoundError(f"{path}: no such file\n  hint: {hint}")
    manifest = read_manifest(path)
    other = "judge" if manifest.plan.judging is not None else "requests"
    if other != command:
        raise RunEntryError(
            f"{folder}: these requests were written by `helm-ext {other} out`\n  hint: helm-ext {other} in {folder}"
        )
    return manifest, folder


# Planning


def plan_runs(plan: Plan) -> tuple[Plan, list[RunSpec]]:
    """Return the runs that helm-run would carry out, and the plan with the name by which the server knows the model.

    Raises RunEntryError for what HELM says of an entry, and for runs that cannot be answered by files.
    """
    import msgspec
    from helm.benchmark.presentation.run_entry import RunEntry
    from helm.benchmark.run import run_entries_to_run_specs

    session.find_deployment(plan.model)
    run_specs: dict[str, RunSpec] = {}
    for entry in plan.run_entries:
        _require_entry(entry)
        # HELM's own run specs need packages that ours do not.
        is_of_format = entry.partition(":")[0] in format_names()
        with session.only_registered_entries() if is_of_format else contextlib.nullcontext(), session.blaming(entry):
            made = run_entries_to_run_specs(
                [RunEntry(description=entry, priority=1, groups=None)],
                max_eval_instances=plan.max_eval_instances,
                num_train_trials=plan.num_train_trials,
                models_to_run=[plan.model],
            )
        if not made:
            raise RunEntryError(f"{entry}: names another model than --model {plan.model}")
        for run_spec in made:
            if run_specs.setdefault(run_spec.name, run_spec) is not run_spec:
                raise RunEntryError(f"{run_spec.name}: the same run is named twice")
    deployments = sorted({run_spec.adapter_spec.model_deployment for run_spec in run_specs.values()})
    if len(deployments) != 1:
        raise RunEntryError(f"the runs ask several deployments: {', '.join(deployments)}\n  hint: one at a time")
    sent_as = session.stand_in(deployments[0])
    for run_spec in run_specs.values():
        _require_answerable(run_spec)
    return msgspec.structs.replace(plan, sent_as=plan.sent_as or sent_as), [*run_specs.values()]


def _require_entry(entry: str) -> None:
    """Raise RunEntryError for a file instead of a run entry, with the entry for it."""
    if not (path := Path(entry)).is_file():
        return
    named = detect(path)
    arguments = ",".join(f"{name}={value}" for name, value in named.name_file(path).items())
    raise RunEntryError(f"{entry}: a file, and no run entry\n  hint: {named.name}:{arguments}")


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
    if get_model_deployment(adapter_spec.model_deployment).tokenizer_name is not None:
        return
    compares = any(spec.class_name.endswith(".BasicReferenceMetric") for spec in run_spec.metric_specs)
    is_separate = adapter_spec.method.startswith(("multiple_choice_separate", "ranking_binary"))
    if adapter_spec.method == "language_modeling" or (is_separate and compares):
        raise RunEntryError(
            f"{run_spec.name}: HELM needs a tokenizer for {adapter_spec.method}, and {adapter_spec.model_deployment} "
            "names none: HELM's metric would compare the last token of each option only\n"
            "  hint: name the model in prod_env/model_deployments.yaml, with tokenizer_name and max_sequence_length"
        )


def _plan_states(runner: StreamingRunner, plan: Plan) -> tuple[Plan, Planned]:
    """Return each run of a plan with its request states, and the plan as `plan_runs` does. Raises HelmExtError."""
    if plan.judging is not None:
        from helm_ext.cli.judge_runs import plan_judging

        return plan_judging(plan)
    from helm_ext.cli.run_scores import ABOUT_DRAWING, find_facts

    named, run_specs = plan_runs(plan)
    for run_spec in run_specs:
        is_drawn = bool(run_spec.adapter_spec.max_train_instances)
        say(find_facts(run_spec, _OF_RECORDINGS if is_drawn else _OF_RECORDINGS | ABOUT_DRAWING).warnings)

    def plan_each() -> Planned:
        for run_spec in run_specs:
            with session.blaming(f"{run_spec.name}: cannot be planned", HelmExtError):
                states = runner.make_request_states(run_spec)
            yield run_spec, states

    return named, plan_each()


# Requests out


def write_requests(
    plan: Plan, folder: Path, per_shard: int, settings: Settings, prices: str | None, manifest: Manifest | None = None
) -> None:
    """Plan the runs and write all of their requests, with the manifest last.

    With the `manifest` of requests that were written, those that have no answer, in files of their own. Raises
    HelmExtError, DatasetError for a dataset that has changed since.
    """
    from helm_ext.clients.answers import join, require_planned
    from helm_ext.clients.request_files import RequestWriter, next_round
    from helm_ext.files.writing import staged

    cost = Prices.parse(prices) if prices else None
    missing: dict[str, str] | None = None
    if manifest is not None:
        answers = join(manifest, folder)
        missing = {answers.requests[custom_id].key: custom_id for custom_id in answers.missing()}
    if missing is not None and not missing:
        echo("every request is answered")
        return
    is_new = not folder.exists()
    try:
        with writing(f"--out {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            with staged(folder) as files, session.started(settings) as runner:
                named, planned = _plan_states(runner, plan)
                dialect, round_ = named.to_dialect(), 1 if manifest is None else next_round(folder)
                writer = RequestWriter(files, dialect, only=missing, round_=round_, per_shard=per_shard)
                estimate = _write_runs(writer, runner, planned)
                if manifest is not None:
                    require_planned(manifest, {run.name: run.digest for run in writer.runs})
                if not writer.written:
                    raise HelmExtError("no request to write: all rows are left out")
                if manifest is None:
                    writer.write_manifest(named)
    finally:
        if is_new and not any(not path.name.startswith(".") for path in folder.glob("*")):
            shutil.rmtree(folder, ignore_errors=True)
    if manifest is None:
        for run in writer.runs:
            left_out = f", {run.left_out} left out (too long)" if run.left_out else ""
            echo(f"{run.name}: {count(run.states, 'request state')}{left_out}")
    else:
        echo(f"{len(missing or ())} of {len(manifest.requests)} requests have no answer")
    _print_written(writer, named, estimate, cost)
    if manifest is None:
        echo(f"written to {folder / MANIFEST}")


def _write_runs(writer: RequestWriter, runner: StreamingRunner, planned: Planned) -> Estimate:
    """Write the requests of all runs; returns what they are in tokens."""
    from helm.benchmark.model_deployment_registry import get_model_deployment
    from helm.benchmark.window_services.window_service_factory import WindowServiceFactory

    estimate = Estimate(None)
    for run_spec, states in planned:
        deployment = run_spec.adapter_spec.model_deployment
        if get_model_deployment(deployment).tokenizer_name is not None:
            service = WindowServiceFactory.get_window_service(deployment, runner.tokenizer_service)
            estimate.count_tokens = service.get_num_tokens
        for state in writer.write_run(run_spec, states):
            estimate.add(state.request)
    writer.close()
    return estimate


def _print_written(writer: RequestWriter, plan: Plan, estimate: Estimate, cost: Prices | None) -> None:
    from helm_ext.clients.openai_requests import PATHS

    names = list(writer.written)
    shown = names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}"
    echo(f"{count(sum(writer.written.values()), 'request')} in {count(len(names), 'file')}: {shown}")
    if writer.shared:
        echo(f"sent once: {count(writer.shared, 'request')} more, equal to one of these, will have its result")
    echo(f"sent to /v1{PATHS[plan.endpoint]} as model {plan.sent_as}")
    if plan.omit:
        echo(f"not sent: {', '.join(plan.omit)}")
    echo(str(estimate))
    if cost is not None:
        most = cost.cost(estimate.prompt_tokens, estimate.completion_tokens)
        least = cost.cost(estimate.prompt_tokens, 0)
        echo(f"cost: {format_cost(least)} for what goes in, at most {format_cost(most)} in all")


# Results in


def read_results(manifest: Manifest, folder: Path, files: Sequence[Path] | None, prices: str | None) -> Answers:
    """Join results with what came before, and say what is there. Raises HelmExtError."""
    from helm_ext.clients.answers import join

    cost = Prices.parse(prices) if prices else None
    with status("reading results"):
        answers = join(manifest, folder, files or [])
    missing, failures, tally = answers.missing(), answers.failures, answers.tally
    answered = len(answers.requests) - len(missing)
    now = f", {answers.new} of them now" if 0 < answers.new < answered else ""
    repeated = f", {answers.repeated} said twice" if answers.repeated else ""
    echo(f"{answered} of {len(answers.requests)} requests are answered{now}{repeated}")
    if said := describe_answers({"cut": tally["truncated"], **tally}):
        echo(f"answers: {said}")
    tokens_in, tokens_out = tally["prompt_tokens"], tally["completion_tokens"]
    if tokens_in or tokens_out:
        spent = f"; cost: {format_cost(cost.cost(tokens_in, tokens_out))}" if cost else ""
        echo(f"tokens, as counted: {tokens_in:,} in, {tokens_out:,} out{spent}")
    parts = {custom_id: why.partition("\n") for custom_id, why in failures.items()}
    failed = [f"{custom_id}: {why}" for custom_id, (why, *_) in parts.items()]
    waiting = [custom_id for custom_id in missing if custom_id not in failures]
    for what, lines in (("failed", failed), ("missing", waiting)):
        if lines:
            more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
            echo("\n  ".join([f"{what}: {len(lines)}", *lines[:_SHOWN], *more]), err=True)
    say(dict.fromkeys(hint for *_, hint in parts.values() if hint))  # of all that failed alike, once
    return answers


def find_waiting(answers: Answers) -> dict[int, list[str]]:
    """Return the requests without an answer, by the index of each run that needs them."""
    waiting: dict[int, list[str]] = {}
    for custom_id in answers.missing():
        for run in dict.fromkeys(target.run for target in answers.requests[custom_id].targets):
            waiting.setdefault(run, []).append(custom_id)
    return dict(sorted(waiting.items()))


def make_runs(manifest: Manifest, answers: Answers, waiting: Container[int], settings: Settings) -> None:
    """Make the runs that wait for nothing, and print what they scored as `helm-ext score` does.

    Raises DatasetChangedError where other runs are planned than before.
    """
    from helm_ext.cli.run_scores import ABOUT_DRAWING, find_facts
    from helm_ext.clients.answers import AnsweredExecutor

    made: dict[Path, AnsweredExecutor] = {}
    with session.started(settings) as runner:
        _, run_specs = plan_runs(manifest.plan)
        before, now = [run.name for run in manifest.runs], [run_spec.name for run_spec in run_specs]
        if before != now:
            changed = [f"{old} is now {new}" for old, new in zip(before, now, strict=False) if old != new]
            raise DatasetChangedError(
                f"the requests were written for other runs: {[*changed, f'{len(before)}, now {len(now)}'][0]}\n"
                "  hint: a dataset (its digest is part of a run's name) has changed since; write the requests again"
            )
        facts = {run_spec.name: find_facts(run_spec, _OF_RECORDINGS | ABOUT_DRAWING) for run_spec in run_specs}
        execution_spec = runner.executor.execution_spec
        for index, run_spec in enumerate(run_specs):
            if index in waiting:
                continue
            with without_output():
                runner.executor = AnsweredExecutor(execution_spec, run_spec, manifest, answers)
            runner.run_one(run_spec)
            made[Path(runner.runs_path, run_spec.name)] = runner.executor
    for folder, counted in made.items():
        _print_made(folder, counted, facts[counted.run_spec.name])


def _print_made(folder: Path, counted: AnsweredExecutor, facts: FileFacts) -> None:
    """Print a run's scores; only its folder where HELM's own scenario says no main metric."""
    from helm_ext.cli.run_scores import ScoredRun
    from helm_ext.cli.score import print_scores

    try:
        scored = ScoredRun(folder, facts)
    except RunEntryError:
        echo(f"written to {folder}")
    else:
        say(scored.list_warnings())
        print_scores(scored)
    if counted.excluded:
        echo(f"  {count(counted.excluded, 'row')} left out, without an answer")
    if counted.crossing:
        echo(f"  in {count(counted.crossing, 'request')} a token lies across the border of prompt and option")


requests_app = typer.Typer(
    help="Requests out, results in: let any engine answer a run's requests, as files of OpenAI's Batch API.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@requests_app.command()
def out(
    entries: Annotated[list[str] | None, Argument(metavar="RUN_ENTRY...", help="As for helm-run.")] = None,
    model: Annotated[str | None, Option(help="ORGANIZATION/NAME: HELM's name of the model.")] = None,
    endpoint: Annotated[
        Endpoint | None, options.choice(*ENDPOINTS, about="Where requests go; likelihoods need completions.")
    ] = None,
    folder: Annotated[Path, Option("--out", help="The folder to write to.")] = Path("requests"),
    only_missing: Annotated[bool, Option("--only-missing", help="Write again what has no answer yet.")] = False,
    prices: options.Prices = None,
    max_eval_instances: Annotated[
        int | None, Option("--max-eval-instances", "-m", min=1, help="As for helm-run. Default: all rows.")
    ] = None,
    num_train_trials: Annotated[int | None, Option("--num-train-trials", "-t", min=1, help="As for helm-run.")] = None,
    sent_as: options.SentAs = None,
    omit: options.Omit = None,
    top_k: options.TopK = False,
    seed: options.Seed = None,
    extra_token: options.ExtraToken = False,
    per_shard: options.PerShard = options.MAX_PER_SHARD,
    output_path: options.OutputPath = options.OUTPUT,
    local_path: options.LocalPath = options.PROD_ENV,
    plugins: options.Plugins = None,
    verbose: options.Verbose = False,
) -> None:
    """Plan runs as helm-run does, and write their requests instead of sending them.

    The folder holds files of requests, which a provider's batch service, `vllm run-batch` or any other engine answers,
    and manifest.json, with which `helm-ext requests in` makes the runs of the answers.
    """
    given = {"--model": model, "--endpoint": endpoint, "RUN_ENTRY": entries}
    settings = Settings(output_path, local_path, plugins=plugins or (), verbose=verbose)
    if only_missing:
        manifest, _ = open_requests(folder, "requests")
        _require_as_planned(manifest.plan, given)
        write_requests(manifest.plan, folder, per_shard, settings, prices, manifest)
        return
    options.require_given(given, "--model ORGANIZATION/NAME, --endpoint chat or completions, RUN_ENTRY as for helm-run")
    assert entries
    assert model
    assert endpoint
    require_new(folder)
    plan = Plan(
        run_entries=entries, model=model, endpoint=endpoint, sent_as=sent_as or "", omit=omit or [], send_top_k=top_k,
        seed=seed, extra_token=extra_token, max_eval_instances=max_eval_instances, num_train_trials=num_train_trials,
    )  # fmt: skip
    write_requests(plan, folder, per_shard, settings, prices)


def _require_as_planned(plan: Plan, given: Mapping[str, Any]) -> None:
    """Raise RunEntryError for what is given and was planned otherwise."""
    planned = {"--model": plan.model, "--endpoint": plan.endpoint, "RUN_ENTRY": plan.run_entries}
    for name, value in given.items():
        if value and value != planned[name]:
            raise RunEntryError(
                f"{name} {show(value)}: these requests were planned with {show(planned[name])}\n"
                "  hint: with --only-missing it may be left out"
            )


@requests_app.command("in")
def in_(
    manifest_path: Annotated[Path, Argument(metavar="MANIFEST", help="manifest.json, or its folder.")],
    files: options.Results = None,
    missing: Annotated[
        str, options.choice("error", "skip", about="Rows without an answer: skip leaves them out and counts them.")
    ] = "error",
    prices: options.Prices = None,
    output_path: options.OutputPath = options.OUTPUT,
    suite: options.Suite = "default",
    local_path: options.LocalPath = options.PROD_ENV,
    plugins: options.Plugins = None,
    verbose: options.Verbose = False,
) -> None:
    """Join results with their requests, and write the files that helm-run would have written, but for times.

    What was joined is kept beside the manifest, so that results may come in parts. A run is made when all its requests
    are answered, or with --missing skip; the exit code is 1 while some are not.
    """
    session.require_suite(suite)
    manifest, folder = open_requests(manifest_path, "requests")
    answers = read_results(manifest, folder, files, prices)
    waiting = {} if missing == "skip" else find_waiting(answers)
    if len(waiting) < len(manifest.runs):
        make_runs(manifest, answers, waiting, Settings(output_path, local_path, suite, plugins or (), verbose))
    for index, ids in waiting.items():
        echo(f"not made: {manifest.runs[index].name}: {count(len(ids), 'request')} without an answer", err=True)
    if waiting:
        echo(f"to write them again: helm-ext requests out --only-missing --out {folder}", err=True)
        raise Exit(1)
