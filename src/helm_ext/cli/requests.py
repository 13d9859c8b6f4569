"""`helm-ext requests`: the requests of runs as files, and the runs of what came back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helm_ext.cli.output import echo, status
from helm_ext.cli.request_runs import iter_states, make_run, plan_runs, require_same_names, started
from helm_ext.cli.server_options import ExtraTokenOption, OmitOption, SeedOption, TopKOption
from helm_ext.cli.session import Settings, require_suite
from helm_ext.clients.estimate import format_cost
from helm_ext.errors import DatasetNotFoundError, HelmExtError, RunEntryError, count, show

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.clients.answers import AnsweredExecutor, Answers
    from helm_ext.clients.estimate import Estimate, Prices
    from helm_ext.clients.request_files import Manifest, Plan, RequestWriter
    from helm_ext.files.staged import StagedFiles
    from helm_ext.running import StreamingRunner

requests_app = typer.Typer(
    help="Requests out, results in: let any engine answer a run's requests, as files of OpenAI's Batch API.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

MAX_PER_SHARD = 50_000
_SHOWN = 5

OutputPath = Annotated[Path, typer.Option("--output-path", "-o", help="HELM's output folder.")]
Suite = Annotated[str, typer.Option(help="HELM's suite.")]
Plugins = Annotated[
    list[str] | None, typer.Option(help="A module, or the path of one, with scenarios of your own; repeatable.")
]
LocalPath = Annotated[Path, typer.Option(help="HELM's folder of local configurations.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show HELM's own log.")]
PricesOption = Annotated[
    str | None, typer.Option("--prices", metavar="IN,OUT", help="What a million tokens cost, in any currency.")
]


@requests_app.command()
def out(
    entries: Annotated[
        list[str] | None, typer.Argument(metavar="RUN_ENTRY...", help="As for helm-run; the model may be left out.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="ORGANIZATION/NAME: HELM's name of the model.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="chat, or completions (likelihood tasks).")] = None,
    folder: Annotated[Path, typer.Option("--out", help="The folder to write to.")] = Path("requests"),
    only_missing: Annotated[
        bool, typer.Option("--only-missing", help="Write again what has no answer yet; the rest is as it was planned.")
    ] = False,
    prices: PricesOption = None,
    max_eval_instances: Annotated[
        int | None, typer.Option("--max-eval-instances", "-m", min=1, help="As for helm-run. Default: all rows.")
    ] = None,
    num_train_trials: Annotated[
        int | None, typer.Option("--num-train-trials", "-t", min=1, help="As for helm-run.")
    ] = None,
    sent_as: Annotated[
        str | None, typer.Option(help="The model's name for the server. Default: as HELM would send it.")
    ] = None,
    omit: OmitOption = None,
    top_k: TopKOption = False,
    seed: SeedOption = None,
    extra_token: ExtraTokenOption = False,
    per_shard: Annotated[
        int, typer.Option(min=1, max=MAX_PER_SHARD, help="Requests in a file at most.")
    ] = MAX_PER_SHARD,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
    plugins: Plugins = None,
    verbose: Verbose = False,
) -> None:
    """Plan runs as helm-run does, and write their requests instead of sending them.

    OUT holds files of requests, which a provider's batch service, `vllm run-batch` or any other engine answers, and
    manifest.json, with which `helm-ext requests in` makes the runs of the answers.
    """
    from helm_ext.clients.estimate import Prices
    from helm_ext.clients.openai_requests import ENDPOINTS
    from helm_ext.clients.request_files import MANIFEST, Plan, read_manifest

    cost = None if prices is None else Prices.parse(prices)
    given = {"--model": model, "--endpoint": endpoint, "RUN_ENTRY": entries}
    settings = Settings(output_path, local_path, plugins=plugins or (), verbose=verbose)
    if only_missing:
        manifest = read_manifest(folder / MANIFEST)
        require_requests_of(manifest, folder, "requests")
        _require_as_planned(manifest.plan, given)
        write_missing(manifest, folder, per_shard, settings, cost)
        return
    if absent := [name for name, value in given.items() if not value]:
        hint = "--model ORGANIZATION/NAME, --endpoint chat or completions, RUN_ENTRY as for helm-run"
        raise RunEntryError(f"{' and '.join(absent)}: must be given\n  hint: {hint}")
    assert entries
    assert model
    if endpoint not in ENDPOINTS:
        raise RunEntryError(f"--endpoint {endpoint}: expected {' or '.join(ENDPOINTS)}")
    if (folder / MANIFEST).exists():
        raise RunEntryError(
            f"--out {folder}: requests are there already\n"
            "  hint: --only-missing writes those again that have no answer; else name another folder"
        )
    plan = Plan(
        run_entries=entries, model=model, endpoint=endpoint, sent_as=sent_as or "", omit=omit or [], send_top_k=top_k,
        seed=seed, extra_token=extra_token, max_eval_instances=max_eval_instances, num_train_trials=num_train_trials,
    )  # fmt: skip
    write_all(plan, folder, per_shard, settings, cost)


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
    manifest_path: Annotated[Path, typer.Argument(metavar="MANIFEST", help="manifest.json, or its folder.")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="Results, in any order; also parts of them.")
    ] = None,
    missing: Annotated[
        str, typer.Option(help="Rows without an answer: error, or skip, which leaves them out and counts them.")
    ] = "error",
    prices: PricesOption = None,
    output_path: OutputPath = Path("benchmark_output"),
    suite: Suite = "default",
    local_path: LocalPath = Path("prod_env"),
    plugins: Plugins = None,
    verbose: Verbose = False,
) -> None:
    """Join results with their requests, and leave the same files behind as helm-run, times aside.

    What was joined is kept beside the manifest, so that results may come in parts. A run is made when all its requests
    are answered, or with --missing skip; the exit code is 1 while some are not.
    """
    from helm_ext.clients.answers import join
    from helm_ext.clients.estimate import Prices
    from helm_ext.clients.request_files import MANIFEST, read_manifest

    require_suite("--suite", suite)
    cost = None if prices is None else Prices.parse(prices)
    if missing not in ("error", "skip"):
        raise RunEntryError(f"--missing {missing}: expected error or skip")
    path = manifest_path / MANIFEST if manifest_path.is_dir() else manifest_path
    if not path.exists():
        hint = "the folder that `helm-ext requests out --out FOLDER` wrote goes first, then the files of results"
        raise DatasetNotFoundError(f"{path}: no such file\n  hint: {hint}")
    manifest = read_manifest(path)
    require_requests_of(manifest, path.parent, "requests")
    try:
        with status("reading results"):
            answers = join(manifest, path.parent, files or [])
    except HelmExtError:  # some are OSErrors, too
        raise
    except OSError as error:
        raise HelmExtError(f"{error.filename or path.parent}: {error.strerror or error}") from error
    print_answers(answers, cost)
    waiting = find_waiting(answers)
    if missing == "skip":
        waiting = {}
    if len(waiting) < len(manifest.runs):
        _make_runs(manifest, answers, waiting, Settings(output_path, local_path, suite, plugins or (), verbose))
    for index, ids in waiting.items():
        echo(f"not made: {manifest.runs[index].name}: {count(len(ids), 'request')} without an answer", err=True)
    if waiting:
        echo(f"to write them again: helm-ext requests out --only-missing --out {path.parent}", err=True)
        raise typer.Exit(1)


def require_requests_of(manifest: Manifest, folder: Path, command: str) -> None:
    """Raise RunEntryError for requests that another command wrote: `requests`, or `judge`."""
    other = "judge" if manifest.plan.judging is not None else "requests"
    if other != command:
        raise RunEntryError(
            f"{folder}: these requests were written by `helm-ext {other} out`\n  hint: helm-ext {other} in {folder}"
        )


# Requests out


def _plan_states(runner: StreamingRunner, plan: Plan) -> tuple[Plan, Iterator[tuple[RunSpec, list[RequestState]]]]:
    """Return each run of a plan with its request states, and the plan as `plan_runs` does. Raises HelmExtError."""
    if plan.judging is not None:
        from helm_ext.cli.judge_requests import plan_judging

        return plan_judging(plan)
    named, run_specs = plan_runs(plan)
    return named, iter_states(runner, run_specs)


def write_all(plan: Plan, folder: Path, per_shard: int, settings: Settings, cost: Prices | None) -> None:
    """Plan the runs and write all of their requests, with the manifest last."""
    from helm_ext.clients.request_files import MANIFEST, RequestWriter

    with _staged(folder) as files, started(settings) as runner:
        named, planned = _plan_states(runner, plan)
        writer = RequestWriter(files, named.to_dialect(), per_shard=per_shard)
        estimate = _write_requests(writer, runner, planned)
        if not writer.requests:
            raise HelmExtError("no request to write: all rows are left out")
        manifest = writer.write_manifest(named)
    for run in manifest.runs:
        left_out = f", {run.left_out} left out (too long)" if run.left_out else ""
        echo(f"{run.name}: {count(run.states, 'request state')}{left_out}")
    _print_written(writer, named, estimate, cost)
    echo(f"written to {folder / MANIFEST}")


def write_missing(manifest: Manifest, folder: Path, per_shard: int, settings: Settings, cost: Prices | None) -> None:
    """Write the requests that have no answer, in files of their own. Raises DatasetError for a changed dataset."""
    from helm_ext.clients.answers import join, require_same_digests
    from helm_ext.clients.request_files import RequestWriter, next_round

    missing = frozenset(join(manifest, folder).missing())
    if not missing:
        echo("every request is answered")
        return
    with _staged(folder) as files, started(settings) as runner:
        plan, planned = _plan_states(runner, manifest.plan)
        round_ = next_round(folder)
        writer = RequestWriter(files, plan.to_dialect(), only=missing, round_=round_, per_shard=per_shard)
        estimate = _write_requests(writer, runner, planned)
        require_same_digests(manifest, writer.runs)
    echo(f"{len(missing)} of {len(manifest.requests)} requests have no answer")
    _print_written(writer, plan, estimate, cost)


@contextlib.contextmanager
def _staged(folder: Path) -> Iterator[StagedFiles]:
    """Stage files in a folder, which is made if need be, and taken away if nothing came into it."""
    from helm_ext.files.staged import staged

    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with staged(folder) as files:
            yield files
    except OSError as error:
        raise HelmExtError(f"--out {folder}: {error.strerror or error}") from error
    finally:
        if is_new and not any(not path.name.startswith(".") for path in folder.glob("*")):
            for path in folder.glob(".*"):
                path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                folder.rmdir()


def _write_requests(
    writer: RequestWriter, runner: StreamingRunner, planned: Iterable[tuple[RunSpec, list[RequestState]]]
) -> Estimate:
    """Write the requests of all runs; returns what they are in tokens."""
    from helm.benchmark.model_deployment_registry import get_model_deployment
    from helm.benchmark.window_services.window_service_factory import WindowServiceFactory

    from helm_ext.clients.estimate import Estimate

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

    shards = writer.shards
    written = sum(shard.requests for shard in shards)
    shared = sum(len(sent.targets) - 1 for sent in writer.requests) if writer.only is None else 0
    names = shards[0].file if len(shards) == 1 else f"{shards[0].file} ... {shards[-1].file}"
    echo(f"{count(written, 'request')} in {count(len(shards), 'file')}: {names}")
    if shared:
        echo(f"sent once: {count(shared, 'request')} more, equal to one of these, will have its result")
    echo(f"sent to /v1{PATHS[plan.endpoint]} as model {plan.sent_as}")
    if plan.omit:
        echo(f"not sent: {', '.join(plan.omit)}")
    echo(str(estimate))
    if cost is not None:
        most = cost.cost(estimate.prompt_tokens, estimate.completion_tokens)
        least = cost.cost(estimate.prompt_tokens, 0)
        echo(f"cost: {format_cost(least)} for what goes in, at most {format_cost(most)} in all")


# Results in


def find_waiting(answers: Answers) -> dict[int, list[str]]:
    """Return the requests without an answer, by the index of each run that needs them."""
    waiting: dict[int, list[str]] = {}
    for custom_id in answers.missing():
        for run in dict.fromkeys(target.run for target in answers.requests[custom_id].targets):
            waiting.setdefault(run, []).append(custom_id)
    return dict(sorted(waiting.items()))


def _make_runs(manifest: Manifest, answers: Answers, waiting: Mapping[int, Any], settings: Settings) -> None:
    """Make the runs that wait for nothing."""
    made: list[tuple[Path, AnsweredExecutor]] = []
    with started(settings) as runner:
        _, run_specs = plan_runs(manifest.plan)
        require_same_names(manifest, run_specs)
        for index, run_spec in enumerate(run_specs):
            if index not in waiting:
                made.append((Path(runner.runs_path, run_spec.name), make_run(runner, run_spec, manifest, answers)))
    for folder, counted in made:
        echo(f"written to {folder}")
        if counted.excluded:
            echo(f"  {count(counted.excluded, 'row')} left out, without an answer")
        if counted.crossing:
            echo(f"  in {count(counted.crossing, 'request')} a token lies across the border of prompt and option")


def print_answers(answers: Answers, cost: Prices | None) -> None:
    """Say what came in, and what did not."""
    missing, failures, tally = answers.missing(), answers.failures, answers.tally
    repeated = f", {answers.repeated} said twice" if answers.repeated else ""
    answered = len(answers.requests) - len(missing)
    echo(f"{answered} of {len(answers.requests)} requests are answered, {answers.new} of them now{repeated}")
    parts = {
        "cut at the limit of tokens": tally.truncated,
        "refused by the model": tally.refused,
        "cut by a content filter": tally.filtered,
        "empty": tally.empty,
    }
    if said := [f"{number} {what}" for what, number in parts.items() if number]:
        echo(f"answers: {', '.join(said)}")
    if tally.prompt_tokens or tally.completion_tokens:
        spent = f"; cost: {format_cost(cost.cost(tally.prompt_tokens, tally.completion_tokens))}" if cost else ""
        echo(f"tokens, as counted: {tally.prompt_tokens:,} in, {tally.completion_tokens:,} out{spent}")
    _print_ids("failed", [f"{custom_id}: {why}" for custom_id, why in failures.items()])
    _print_ids("missing", [custom_id for custom_id in missing if custom_id not in failures])


def _print_ids(what: str, lines: list[str]) -> None:
    if lines:
        echo(f"{what}: {len(lines)}", err=True)
        for line in lines[:_SHOWN]:
            echo(f"  {line}", err=True)
        if len(lines) > _SHOWN:
            echo(f"  and {len(lines) - _SHOWN} more", err=True)
