"""`helm-ext requests`: the requests of runs as files, and the runs of what came back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helm_ext.cli.options import (
    MAX_PER_SHARD,
    OUTPUT,
    PROD_ENV,
    ExtraToken,
    LocalPath,
    Omit,
    OutputPath,
    PerShard,
    Plugins,
    Prices,
    Results,
    Seed,
    SentAs,
    Suite,
    TopK,
    Verbose,
    choice,
)
from helm_ext.cli.output import echo
from helm_ext.cli.request_runs import (
    find_waiting,
    make_runs,
    open_requests,
    read_results,
    require_new,
    write_all,
    write_missing,
)
from helm_ext.cli.session import Settings, require_suite
from helm_ext.clients.openai_requests import ENDPOINTS, Endpoint
from helm_ext.errors import RunEntryError, count, show

if TYPE_CHECKING:
    from helm_ext.clients.request_files import Plan

requests_app = typer.Typer(
    help="Requests out, results in: let any engine answer a run's requests, as files of OpenAI's Batch API.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@requests_app.command()
def out(
    entries: Annotated[
        list[str] | None, typer.Argument(metavar="RUN_ENTRY...", help="As for helm-run; the model may be left out.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="ORGANIZATION/NAME: HELM's name of the model.")] = None,
    endpoint: Annotated[Endpoint | None, choice(*ENDPOINTS, about="completions is for likelihood tasks.")] = None,
    folder: Annotated[Path, typer.Option("--out", help="The folder to write to.")] = Path("requests"),
    only_missing: Annotated[
        bool, typer.Option("--only-missing", help="Write again what has no answer yet; the rest is as it was planned.")
    ] = False,
    prices: Prices = None,
    max_eval_instances: Annotated[
        int | None, typer.Option("--max-eval-instances", "-m", min=1, help="As for helm-run. Default: all rows.")
    ] = None,
    num_train_trials: Annotated[
        int | None, typer.Option("--num-train-trials", "-t", min=1, help="As for helm-run.")
    ] = None,
    sent_as: SentAs = None,
    omit: Omit = None,
    top_k: TopK = False,
    seed: Seed = None,
    extra_token: ExtraToken = False,
    per_shard: PerShard = MAX_PER_SHARD,
    output_path: OutputPath = OUTPUT,
    local_path: LocalPath = PROD_ENV,
    plugins: Plugins = None,
    verbose: Verbose = False,
) -> None:
    """Plan runs as helm-run does, and write their requests instead of sending them.

    OUT holds files of requests, which a provider's batch service, `vllm run-batch` or any other engine answers, and
    manifest.json, with which `helm-ext requests in` makes the runs of the answers.
    """
    from helm_ext.clients.request_files import Plan

    given = {"--model": model, "--endpoint": endpoint, "RUN_ENTRY": entries}
    settings = Settings(output_path, local_path, plugins=plugins or (), verbose=verbose)
    if only_missing:
        manifest, _ = open_requests(folder, "requests")
        _require_as_planned(manifest.plan, given)
        write_missing(manifest, folder, per_shard, settings, prices)
        return
    if absent := [name for name, value in given.items() if not value]:
        hint = "--model ORGANIZATION/NAME, --endpoint chat or completions, RUN_ENTRY as for helm-run"
        raise RunEntryError(f"{' and '.join(absent)}: must be given\n  hint: {hint}")
    assert entries
    assert model
    assert endpoint
    require_new(folder)
    plan = Plan(
        run_entries=entries, model=model, endpoint=endpoint, sent_as=sent_as or "", omit=omit or [], send_top_k=top_k,
        seed=seed, extra_token=extra_token, max_eval_instances=max_eval_instances, num_train_trials=num_train_trials,
    )  # fmt: skip
    write_all(plan, folder, per_shard, settings, prices)


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
    files: Results = None,
    missing: Annotated[
        str, choice("error", "skip", about="Rows without an answer: skip leaves them out and counts them.")
    ] = "error",
    prices: Prices = None,
    output_path: OutputPath = OUTPUT,
    suite: Suite = "default",
    local_path: LocalPath = PROD_ENV,
    plugins: Plugins = None,
    verbose: Verbose = False,
) -> None:
    """Join results with their requests, and leave the same files behind as helm-run, times aside.

    What was joined is kept beside the manifest, so that results may come in parts. A run is made when all its requests
    are answered, or with --missing skip; the exit code is 1 while some are not.
    """
    require_suite(suite)
    manifest, folder = open_requests(manifest_path, "requests")
    answers = read_results(manifest, folder, files, prices)
    waiting = {} if missing == "skip" else find_waiting(answers)
    if len(waiting) < len(manifest.runs):
        make_runs(manifest, answers, waiting, Settings(output_path, local_path, suite, plugins or (), verbose))
    for index, ids in waiting.items():
        echo(f"not made: {manifest.runs[index].name}: {count(len(ids), 'request')} without an answer", err=True)
    if waiting:
        echo(f"to write them again: helm-ext requests out --only-missing --out {folder}", err=True)
        raise typer.Exit(1)
