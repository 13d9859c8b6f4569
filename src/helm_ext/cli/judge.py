"""`helm-ext judge`: answers judged by models and by people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from helm_ext.cli.judge_check import check
from helm_ext.cli.judge_sheets import labels, sheet
from helm_ext.cli.judged_runs import MainMetric, require_run, write_judged
from helm_ext.cli.output import echo, status
from helm_ext.cli.request_runs import started
from helm_ext.cli.requests import (
    MAX_PER_SHARD,
    LocalPath,
    OutputPath,
    PricesOption,
    Suite,
    Verbose,
    find_waiting,
    print_answers,
    require_requests_of,
    write_all,
    write_missing,
)
from helm_ext.cli.server_options import OmitOption, SeedOption
from helm_ext.cli.session import Settings, require_suite
from helm_ext.errors import DatasetNotFoundError, HelmExtError, RunEntryError, count

if TYPE_CHECKING:
    from helm_ext.analysis.row_stats import RowKey
    from helm_ext.cli.judged_runs import Judged
    from helm_ext.clients.request_files import Judging
    from helm_ext.judging.judgement import Judgement

judge_app = typer.Typer(
    help="Answers judged by models and by people: judges are asked, sheets are labelled.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")]
RubricOption = Annotated[str | None, typer.Option(help="A TOML file, or one of ours: correct, helpful, better.")]
JudgeOption = Annotated[list[str], typer.Option(help="ORGANIZATION/NAME of a model; several are a jury.")]
AgainstOption = Annotated[
    Path | None, typer.Option(help="The run whose answers these are compared with, for a rubric about two answers.")
]
SwapOption = Annotated[bool, typer.Option("--swap", help="Ask about each pair of answers in both orders.")]
UnclearOption = Annotated[
    bool,
    typer.Option("--judge-unclear", help="Ask only about answers that could not be read: what they choose, or refuse."),
]


@judge_app.command()
def out(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The folder of a finished run.")] = None,
    rubric: RubricOption = None,
    judge: Annotated[list[str] | None, typer.Option(help="ORGANIZATION/NAME of a model; several are a jury.")] = None,
    against: AgainstOption = None,
    swap: SwapOption = False,
    judge_unclear: UnclearOption = False,
    folder: Annotated[Path, typer.Option("--out", help="The folder to write to, one in it for each judge.")] = Path(
        "judging"
    ),
    only_missing: Annotated[
        bool, typer.Option("--only-missing", help="Write again what has no answer yet, of the judge's folder --out.")
    ] = False,
    endpoint: Annotated[str, typer.Option(help="chat, or completions.")] = "chat",
    sent_as: Annotated[str | None, typer.Option(help="The judge's name for the server.")] = None,
    omit: OmitOption = None,
    seed: SeedOption = None,
    prices: PricesOption = None,
    per_shard: Annotated[
        int, typer.Option(min=1, max=MAX_PER_SHARD, help="Requests in a file at most.")
    ] = MAX_PER_SHARD,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
    verbose: Verbose = False,
) -> None:
    """Write what judges are asked about a run's answers, as files of OpenAI's Batch API."""
    from helm_ext.clients.estimate import Prices
    from helm_ext.clients.openai_requests import ENDPOINTS
    from helm_ext.clients.request_files import MANIFEST, Plan, read_manifest

    cost = None if prices is None else Prices.parse(prices)
    settings = Settings(output_path, local_path, verbose=verbose)
    if only_missing:
        manifest = read_manifest(folder / MANIFEST)
        require_requests_of(manifest, folder, "judge")
        write_missing(manifest, folder, per_shard, settings, cost)
        return
    given = {"RUN": run, "--rubric": rubric or judge_unclear, "--judge": judge}
    if absent := [name for name, value in given.items() if not value]:
        raise RunEntryError(f"{' and '.join(absent)}: must be given")
    assert run
    assert judge
    if endpoint not in ENDPOINTS:
        raise RunEntryError(f"--endpoint {endpoint}: expected {' or '.join(ENDPOINTS)}")
    judging = _make_judging(run, rubric, judge, against, swap=swap, judge_unclear=judge_unclear)
    if judging is None:
        return
    folders = {model: folder / re.sub(r"[^\w.-]", "_", model) for model in judge}
    if len(set(folders.values())) < len(folders):
        raise RunEntryError(
            "--judge: two names that make one folder's name\n  hint: one at a time, each with its own --out"
        )
    if there := [path for path in folders.values() if (path / MANIFEST).exists()]:
        hint = "--only-missing writes those again that have no answer; else name another folder"
        raise RunEntryError(f"--out {folder}: requests are there already, in {there[0]}\n  hint: {hint}")
    for model, target in folders.items():
        plan = Plan(
            run_entries=[], model=model, endpoint=endpoint, sent_as=(sent_as if len(judge) == 1 else None) or "",
            omit=omit or [], send_top_k=False, seed=seed, extra_token=False, max_eval_instances=None,
            num_train_trials=None, judging=judging,
        )  # fmt: skip
        write_all(plan, target, per_shard, settings, cost)


@judge_app.command("in")
def in_(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The judge's folder, with manifest.json.")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="Results, in any order; also parts of them.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", help="The run to add to: one with the same answers, as another judge's. Default: as asked."
        ),
    ] = None,
    rubric: Annotated[
        str | None, typer.Option(help="Read the replies by this rubric, which may differ in [reading] alone.")
    ] = None,
    missing: Annotated[str, typer.Option(help="Answers without a reply: error, or skip, which counts them.")] = "error",
    prices: PricesOption = None,
    output_path: OutputPath = Path("benchmark_output"),
    suite: Suite = "judged",
    main_metric: MainMetric = None,
    local_path: LocalPath = Path("prod_env"),
    verbose: Verbose = False,
) -> None:
    """Join a judge's replies with the answers that it was asked about, and score the run with what it said.

    Replies are kept whole beside the manifest: reading them again, with another --rubric, asks nobody.
    """
    from helm_ext.clients.answers import AnsweredExecutor, join
    from helm_ext.clients.estimate import Prices
    from helm_ext.clients.request_files import MANIFEST, read_manifest

    require_suite("--suite", suite)
    cost = None if prices is None else Prices.parse(prices)
    if missing not in ("error", "skip"):
        raise RunEntryError(f"--missing {missing}: expected error or skip")
    if not (folder / MANIFEST).exists():
        inside = sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}"))
        hint = f"one judge at a time: {', '.join(inside)}" if inside else "the folder that `helm-ext judge out` wrote"
        raise DatasetNotFoundError(f"{folder / MANIFEST}: no such file\n  hint: {hint}")
    manifest = read_manifest(folder / MANIFEST)
    require_requests_of(manifest, folder, "judge")
    judging = manifest.plan.judging
    assert judging is not None
    reading = judging if rubric is None else _read_otherwise(judging, rubric)
    try:
        with status("reading results"):
            answers = join(manifest, folder, files or [])
    except HelmExtError:  # some are OSErrors, too
        raise
    except OSError as error:
        raise HelmExtError(f"{error.filename or folder}: {error.strerror or error}") from error
    print_answers(answers, cost)
    if missing == "error" and (waiting := find_waiting(answers)):
        echo(f"not made: {count(len(waiting[0]), 'answer')} without a reply", err=True)
        echo(f"to write them again: helm-ext judge out --only-missing --out {folder}", err=True)
        raise typer.Exit(1)
    settings = Settings(output_path, local_path, suite, verbose=verbose)

    from helm_ext.cli.judge_requests import judge_run

    with started(settings) as runner:
        spec = runner.executor.execution_spec
        judged = judge_run(
            reading, manifest.plan.model,
            lambda run_spec: AnsweredExecutor(spec, run_spec, manifest, answers), cost, stands_in=True,
        )  # fmt: skip
    _finish(run or Path(judging.run), [judged], settings, main_metric)


@judge_app.command()
def ask(
    run: RunArgument,
    judge: JudgeOption,
    rubric: RubricOption = None,
    against: AgainstOption = None,
    swap: SwapOption = False,
    judge_unclear: UnclearOption = False,
    num_threads: Annotated[int, typer.Option("--num-threads", "-n", min=1, help="Requests at a time.")] = 4,
    disable_cache: Annotated[bool, typer.Option("--disable-cache", help="Keep no replies in HELM's cache.")] = False,
    output_path: OutputPath = Path("benchmark_output"),
    suite: Suite = "judged",
    main_metric: MainMetric = None,
    local_path: LocalPath = Path("prod_env"),
    verbose: Verbose = False,
) -> None:
    """Ask live judges about a run's answers, and score the run with what they said.

    Judges are deployments of HELM's, as `helm-ext model add` makes them; prices and limits are those of helm-run. What
    is in the cache is not asked for again.
    """
    from helm_ext.cli.judge_requests import judge_run

    require_suite("--suite", suite)
    judging = _make_judging(run, rubric, judge, against, swap=swap, judge_unclear=judge_unclear)
    if judging is None:
        return
    settings = Settings(
        output_path, local_path, suite, verbose=verbose, num_threads=num_threads, disable_cache=disable_cache
    )
    found = []
    with started(settings) as runner:
        runner.executor.skips_failed = True
        for model in judge:
            prices = (runner.executor.spending.prices if runner.executor.spending else {}).get(model)
            found.append(judge_run(judging, model, lambda _: runner.executor, prices, stands_in=False))
    _finish(run, found, settings, main_metric)


judge_app.command()(sheet)
judge_app.command()(labels)
judge_app.command()(check)


def _make_judging(
    run: Path, rubric: str | None, judges: Sequence[str], against: Path | None, *, swap: bool, judge_unclear: bool
) -> Judging | None:
    """Return what judges are asked; None, which is said, where nothing is unclear.

    Raises RunEntryError for options that make no sense together.
    """
    from helm_ext.clients.request_files import Judging
    from helm_ext.judging.rubrics import load_rubric
    from helm_ext.scoring.stat_names import UNCLEAR

    if len(set(judges)) < len(judges):
        raise RunEntryError("--judge: the same judge is named twice\n  hint: a jury is of different ones")
    for folder in (run, against):
        if folder is not None:
            require_run(folder)
    if judge_unclear:
        from helm_ext.cli.judge_unclear import find_unclear

        if rubric is not None or against is not None or swap:
            raise RunEntryError("--judge-unclear has a rubric of its own: without --rubric, --against and --swap")
        loaded = find_unclear(run)
        return None if loaded is None else Judging(run=str(run), rubric=loaded)
    if rubric is None:
        raise RunEntryError(
            "--rubric: must be given\n  hint: or --judge-unclear, which asks about unclear answers alone"
        )
    loaded = load_rubric(rubric)
    if loaded.criterion in UNCLEAR:
        raise RunEntryError(f"--rubric {rubric}: {loaded.criterion} is what --judge-unclear asks about")
    if loaded.is_pair and against is None:
        raise RunEntryError(f"--rubric {rubric}: it compares two answers\n  hint: --against RUN names the other run")
    if not loaded.is_pair and (against is not None or swap):
        raise RunEntryError(f"--against and --swap: --rubric {rubric} is about one answer, not two")
    return Judging(run=str(run), against=None if against is None else str(against), swap=swap, rubric=loaded)


def _read_otherwise(judging: Judging, rubric: str) -> Judging:
    """Return a judging whose replies are read by another rubric. Raises RunEntryError for one that asks otherwise."""
    import msgspec

    from helm_ext.judging.rubrics import load_rubric

    loaded = load_rubric(rubric)
    if loaded.sha256 != judging.rubric.sha256:
        raise RunEntryError(
            f"--rubric {rubric}: it asks something else than the judge was asked (criterion, prompt or scale)\n"
            "  hint: only [reading] may differ; `helm-ext judge out` asks anew"
        )
    return msgspec.structs.replace(judging, rubric=loaded)


def _finish(run: Path, found: Sequence[Judged], settings: Settings, main_metric: str | None) -> None:
    """Write the run with its judgements, and say what they are."""
    together: dict[RowKey, list[Judgement]] = {}
    for one in found:
        for key, judgements in one.items():
            together.setdefault(key, []).extend(judgements)
    counted: dict[tuple[str, str], Counter[str]] = {}
    for judgement in (one for judgements in together.values() for one in judgements):
        counted.setdefault((judgement.criterion, judgement.by), Counter())[judgement.status] += 1
    for (criterion, by), numbers in counted.items():
        said = ", ".join(f"{number} {status}" for status, number in numbers.most_common())
        echo(f"{criterion} by {by}: {said}")
    write_judged(run, together, settings, main_metric)
