"""`helm-ext judge`: answers judged by models and by people."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Exit, Option

from helm_ext.analysis import read_run
from helm_ext.analysis.json_arrays import RowKey
from helm_ext.analysis.labelling import draw_sheet, find_asked, take_elsewhere, take_labels, to_time
from helm_ext.cli import options
from helm_ext.cli.common import echo, make_console, print_table, read_folders, without_output, writing
from helm_ext.cli.judge_runs import Judged, find_unclear, judge_run, write_judged
from helm_ext.cli.requests import find_waiting, open_requests, read_results, require_new, write_requests
from helm_ext.cli.session import Settings, require_suite, started
from helm_ext.clients.openai_requests import ENDPOINTS, Endpoint
from helm_ext.clients.request_files import Judging, Plan
from helm_ext.errors import HelmExtError, RunEntryError, count
from helm_ext.judging.rubrics import load_rubric
from helm_ext.judging.sheets import DESIGNS, DRAW_ENDING, write_sheets
from helm_ext.scoring.score import UNCLEAR

if TYPE_CHECKING:
    from helm_ext.analysis.predictions import Prediction
    from helm_ext.judging.judgement import Judgement

judge_app = typer.Typer(
    help="Answers judged by models and by people: judges are asked, sheets are labelled.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

RubricFile = Annotated[str | None, Option("--rubric", help="A TOML file, or one of ours: correct, helpful, better.")]
Judges = Annotated[list[str] | None, Option("--judge", help="ORGANIZATION/NAME of a model; several are a jury.")]
Against = Annotated[Path | None, Option(help="The other run, for a rubric that compares two answers.")]
Swap = Annotated[bool, Option("--swap", help="Ask about each pair of answers in both orders.")]
Unclear = Annotated[bool, Option("--judge-unclear", help="Ask only about answers that could not be read.")]
MainMetric = Annotated[
    str | None,
    Option(help="The run's main metric. Default: judge_CRITERION of what was judged; with --judge-unclear as it was."),
]

_DRAWN = {"random": "at random", "by_verdict": "by verdict", "disagreements": "by disagreement"}
_DESIGNS_ELSEWHERE = ("random", "by_verdict", "by_label")


@judge_app.command()
def out(
    run: Annotated[Path | None, Argument(metavar="RUN", help="The folder of a finished run.")] = None,
    rubric: RubricFile = None,
    judge: Judges = None,
    against: Against = None,
    swap: Swap = False,
    judge_unclear: Unclear = False,
    folder: Annotated[Path, Option("--out", help="The folder to write to, one in it for each judge.")] = Path(
        "judging"
    ),
    only_missing: Annotated[bool, Option("--only-missing", help="Write again what has no answer yet.")] = False,
    endpoint: Annotated[Endpoint, options.choice(*ENDPOINTS, about="Where the judge is asked.")] = "chat",
    sent_as: options.SentAs = None,
    omit: options.Omit = None,
    seed: options.Seed = None,
    prices: options.Prices = None,
    per_shard: options.PerShard = options.MAX_PER_SHARD,
    output_path: options.OutputPath = options.OUTPUT,
    local_path: options.LocalPath = options.PROD_ENV,
    verbose: options.Verbose = False,
) -> None:
    """Write what judges are asked about a run's answers, as files of OpenAI's Batch API."""
    settings = Settings(output_path, local_path, verbose=verbose)
    if only_missing:
        manifest, _ = open_requests(folder, "judge")
        write_requests(manifest.plan, folder, per_shard, settings, prices, manifest)
        return
    judging = _make_judging(run, rubric, judge, against, swap=swap, judge_unclear=judge_unclear)
    if judging is None:
        return
    folders = {model: folder / re.sub(r"[^\w.-]", "_", model) for model in judge or ()}
    if len(set(folders.values())) < len(folders):
        hint = "one at a time, each with its own --out"
        raise RunEntryError(f"--judge: two names that make one folder's name\n  hint: {hint}")
    for target in folders.values():
        require_new(target)
    for model, target in folders.items():
        named = (sent_as if len(folders) == 1 else None) or ""
        plan = Plan(
            run_entries=[], model=model, endpoint=endpoint, sent_as=named, omit=omit or [], seed=seed, judging=judging
        )
        write_requests(plan, target, per_shard, settings, prices)


@judge_app.command("in")
def in_(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="The judge's folder, with manifest.json.")],
    files: options.Results = None,
    run: Annotated[Path | None, Option("--run", help="The run to add to. Default: the one that was judged.")] = None,
    rubric: Annotated[str | None, Option(help="Read the replies by this one; only its [reading] may differ.")] = None,
    missing: Annotated[
        str, options.choice("error", "skip", about="Answers without a reply: skip counts them.")
    ] = "error",
    prices: options.Prices = None,
    output_path: options.OutputPath = options.OUTPUT,
    suite: options.Suite = "judged",
    main_metric: MainMetric = None,
    local_path: options.LocalPath = options.PROD_ENV,
    verbose: options.Verbose = False,
) -> None:
    """Join a judge's replies with the answers that it was asked about, and score the run with what it said.

    Replies are kept whole beside the manifest: reading them again, with another --rubric, asks nobody.
    """
    import msgspec

    from helm_ext.clients.answers import AnsweredExecutor
    from helm_ext.running.spending import Prices

    require_suite(suite)
    manifest, folder = open_requests(folder, "judge")
    judging = manifest.plan.judging
    assert judging is not None
    if rubric is not None:
        loaded = load_rubric(rubric)
        if loaded.sha256 != judging.rubric.sha256:
            raise RunEntryError(
                f"--rubric {rubric}: it asks something else than the judge was asked (criterion, prompt or scale)\n"
                "  hint: only [reading] may differ; `helm-ext judge out` asks anew"
            )
        judging = msgspec.structs.replace(judging, rubric=loaded)
    answers = read_results(manifest, folder, files, prices)
    if missing == "error" and (waiting := find_waiting(answers)):
        echo(f"not made: {count(len(waiting[0]), 'answer')} without a reply", err=True)
        echo(f"to write them again: helm-ext judge out --only-missing --out {folder}", err=True)
        raise Exit(1)
    settings = Settings(output_path, local_path, suite, verbose=verbose)
    with started(settings) as runner:
        spec = runner.executor.execution_spec
        judged = judge_run(
            judging, manifest.plan.model, lambda run_spec: AnsweredExecutor(spec, run_spec, manifest, answers),
            Prices.parse(prices) if prices else None, stands_in=True,
        )  # fmt: skip
    _finish(run or Path(judging.run), [judged], settings, main_metric)


@judge_app.command()
def ask(
    run: Annotated[Path, Argument(metavar="RUN", help="The folder of a finished run.")],
    judge: Annotated[list[str], Option(help="ORGANIZATION/NAME of a model; several are a jury.")],
    rubric: RubricFile = None,
    against: Against = None,
    swap: Swap = False,
    judge_unclear: Unclear = False,
    num_threads: Annotated[int, Option("--num-threads", "-n", min=1, help="Requests at a time.")] = 4,
    disable_cache: Annotated[bool, Option("--disable-cache", help="Keep no replies in HELM's cache.")] = False,
    output_path: options.OutputPath = options.OUTPUT,
    suite: options.Suite = "judged",
    main_metric: MainMetric = None,
    local_path: options.LocalPath = options.PROD_ENV,
    verbose: options.Verbose = False,
) -> None:
    """Ask live judges about a run's answers, and score the run with what they said.

    Judges are deployments of HELM's, as `helm-ext model add` makes them; prices and limits are those of helm-run. What
    is in the cache is not asked for again.
    """
    require_suite(suite)
    judging = _make_judging(run, rubric, judge, against, swap=swap, judge_unclear=judge_unclear)
    if judging is None:
        return
    settings = Settings(
        output_path, local_path, suite, verbose=verbose, num_threads=num_threads, disable_cache=disable_cache
    )
    with started(settings) as runner:
        runner.executor.skips_failed = True
        prices = runner.executor.spending.prices if runner.executor.spending else {}
        found = [
            judge_run(judging, model, lambda _: runner.executor, prices.get(model), stands_in=False) for model in judge
        ]
    _finish(run, found, settings, main_metric)


def _make_judging(
    run: Path | None, rubric: str | None, judges: Sequence[str] | None, against: Path | None, *, swap: bool,
    judge_unclear: bool,
) -> Judging | None:  # fmt: skip
    """Return what judges are asked; None, which is said, where nothing is unclear.

    Raises RunEntryError for what is not given, and for options that make no sense together.
    """
    given = {"RUN": run, "--rubric (or --judge-unclear)": rubric or judge_unclear, "--judge": judges}
    options.require_given(given)
    assert run
    assert judges
    if len(set(judges)) < len(judges):
        raise RunEntryError("--judge: the same judge is named twice\n  hint: a jury is of different ones")
    for folder in (run, against):
        if folder is not None:
            read_run(folder)
    if rubric is None or judge_unclear:
        if rubric is not None or against is not None or swap:
            raise RunEntryError("--judge-unclear has a rubric of its own: without --rubric, --against and --swap")
        unclear = find_unclear(run)
        return None if unclear is None else Judging(run=str(run), rubric=unclear)
    loaded = load_rubric(rubric)
    if loaded.criterion in UNCLEAR:
        raise RunEntryError(f"--rubric {rubric}: {loaded.criterion} is what --judge-unclear asks about")
    if loaded.is_pair and against is None:
        raise RunEntryError(f"--rubric {rubric}: it compares two answers\n  hint: --against RUN names the other run")
    if not loaded.is_pair and (against is not None or swap):
        raise RunEntryError(f"--against and --swap: --rubric {rubric} is about one answer, not two")
    return Judging(run=str(run), against=None if against is None else str(against), swap=swap, rubric=loaded)


def _finish(run: Path, found: Sequence[Judged], settings: Settings, main_metric: str | None) -> None:
    """Write the run with its judgements, and say what they are."""
    together = _join(found)
    counted: dict[tuple[str, str], Counter[str]] = {}
    for judgement in (one for judgements in together.values() for one in judgements):
        counted.setdefault((judgement.criterion, judgement.by), Counter())[judgement.status] += 1
    for (criterion, by), numbers in counted.items():
        said = ", ".join(f"{number} {status}" for status, number in numbers.most_common())
        echo(f"{criterion} by {by}: {said}")
    write_judged(run, together, settings, main_metric)


def _join(found: Iterable[Judged]) -> dict[RowKey, list[Judgement]]:
    """Return all that was said of each row."""
    together: dict[RowKey, list[Judgement]] = {}
    for key, judgements in ((key, said) for one in found for key, said in one.items()):
        together.setdefault(key, []).extend(judgements)
    return together


@judge_app.command()
def sheet(
    runs: Annotated[list[Path], Argument(metavar="RUN...", help="A finished run; two for the design disagreements.")],
    number: Annotated[int, Option("--number", "-n", min=1, help="How many answers people label.")] = 100,
    design: Annotated[str, options.choice(*DESIGNS, about="How they are drawn.")] = "by_verdict",
    seed: Annotated[int, Option(help="The seed of the draw.")] = 1,
    raters: Annotated[
        int, Option(min=1, max=10, help="How many people label, a sheet each; one in five answers is on all.")
    ] = 1,
    criterion: Annotated[str | None, Option(help="What is labelled, where several things were judged.")] = None,
    rubric: Annotated[str | None, Option(help="The rubric that people go by, where no judge was asked.")] = None,
    target: Annotated[Path, Option("--out", "-o", help="NAME, of NAME.csv, NAME.html and NAME.draw.json.")] = Path(
        "sheet"
    ),
) -> None:
    """Draw answers for people to label, with known chances: a CSV file, and a page that works offline.

    Neither says whose an answer is, or what a judge said. NAME.draw.json does, and stays here: `judge labels` needs it.
    """
    if len(runs) > (2 if design == "disagreements" else 1):
        raise RunEntryError(f"--design {design} is of one run\n  hint: disagreements may be of two")
    if (record := target.with_name(f"{target.name}{DRAW_ENDING}")).exists():
        raise RunEntryError(f"--out {target}: a sheet is there already, {record}\n  hint: name another one")
    made, cells = draw_sheet(_read_runs(runs), criterion, load_rubric(rubric) if rubric else None, design, number, seed)
    with writing(target):
        written = write_sheets(made, cells, target, raters)
    taken = Counter(row.stratum for row in made.rows)
    echo(f"{count(len(made.rows), 'answer')} to label: {made.criterion}, drawn {_DRAWN[design]}")
    if made.labelled:
        echo(f"  {made.labelled * len(runs)} have labels already, and are left out: both sheets count together")
    for stratum, size in made.strata.items():
        echo(f"  {stratum}: {taken[stratum]} of {size * len(runs)}")
    for path in written:
        echo(f"written to {path}")


@judge_app.command()
def labels(
    sheets: Annotated[list[Path], Argument(metavar="SHEET.csv... RUN...", help="Labelled sheets, and the runs.")],
    design: Annotated[
        str | None, options.choice(*_DESIGNS_ELSEWHERE, about="For labels made elsewhere: how their rows were chosen.")
    ] = None,
    by: Annotated[str | None, Option(help="Who labelled. Default: the letter of the sheet.")] = None,
    criterion: Annotated[str | None, Option(help="For labels made elsewhere: what they judge.")] = None,
    rubric: Annotated[str | None, Option(help="For labels made elsewhere: what people were asked.")] = None,
    output_path: options.OutputPath = options.OUTPUT,
    suite: options.Suite = "judged",
    main_metric: MainMetric = None,
    local_path: options.LocalPath = options.PROD_ENV,
) -> None:
    """Add people's labels to the answers that they are about, and score the run with them.

    Labels of another tool, in a CSV file with the columns id and label, correct a score only with --design: how the
    rows were chosen that people labelled.
    """
    require_suite(suite)
    folders, files = [path for path in sheets if path.is_dir()], [path for path in sheets if not path.is_dir()]
    if not folders or not files:
        absent = "no sheet" if folders else "no run"
        raise RunEntryError(f"{absent} is named\n  hint: helm-ext judge labels SHEET.csv RUN")
    found, loaded = _read_runs(folders), load_rubric(rubric) if rubric else None
    together: dict[str, list[Judged]] = {}
    for path in files:
        at = to_time(path.stat().st_mtime) if path.exists() else ""  # no other time: the same labels, the same digest
        taken = take_labels(path, by, found, at)
        if taken is None:
            asked = find_asked(found, criterion, loaded)
            taken = take_elsewhere(path, by or "people", found, asked, design, at)
            if design is None:
                said = "how their rows were chosen is not known, so they correct no score"
                echo(f"warning: {path}: {said}\n  hint: --design {', '.join(_DESIGNS_ELSEWHERE)}", err=True)
        judgements, numbers = taken
        empty = f", {numbers['empty']} without one" if numbers["empty"] else ""
        echo(f"{path}: {count(numbers['labels'], 'label')}{empty}")
        for name, rows in judgements.items():
            together.setdefault(name, []).append(rows)
    if not together:
        raise HelmExtError("no label, so no run is made\n  hint: a row's label stands in the column label")
    settings = Settings(output_path, local_path, suite)
    for name, folder in zip(found, folders, strict=True):
        if name in together:
            write_judged(folder, _join(together[name]), settings, main_metric)


def _read_runs(folders: Sequence[Path]) -> Mapping[str, dict[RowKey, Prediction]]:
    """Return the rows of runs, by the runs' names. Raises HelmExtError."""
    found = {}
    for folder in folders:
        run = read_run(folder)
        found[run.name] = {row.key: row for row in run.predictions()}
    if len(found) < len(folders):
        raise RunEntryError(f"two runs of one name: {next(iter(found))}")
    return found


@judge_app.command()
def check(
    runs: Annotated[list[Path], Argument(metavar="RUN...", help="Finished runs of one model each, or suites.")],
    criterion: Annotated[str | None, Option(help="Check judges by this criterion alone.")] = None,
    as_json: options.JsonLines = False,
) -> None:
    """Say whether judges are any good, whom they favour, and how many more labels are needed.

    People's labels of the same answers tell it: `helm-ext judge sheet` draws answers to label.
    """
    from helm_ext.analysis import judge_check

    found = read_folders(runs)
    with without_output():
        checks = judge_check.check_judges(found, criterion)
    console = make_console()
    for number, one in enumerate(checks):
        if as_json:
            echo(json.dumps(judge_check.to_json(one)))
            continue
        rubric = f", rubric {one.rubric[:12]}" if one.rubric else ""
        console.print("\n" * bool(number) + f"{one.criterion}, judged by {one.judge}{rubric}", style="bold")
        for said in judge_check.describe(one):
            console.print(said, soft_wrap=True)
        print_table(*judge_check.to_lines(one), console=console)
