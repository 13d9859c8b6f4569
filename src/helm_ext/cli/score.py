"""`helm-ext score`: re-score recorded completions in one command."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helm_ext.cli.console import Console
from helm_ext.cli.output import echo, status
from helm_ext.cli.run_scores import FileFacts, list_warnings, make_table, make_wrong_list, to_json
from helm_ext.cli.session import (
    FormatOption,
    Settings,
    choose_format,
    find_tasks,
    helm_output_to_stderr,
    is_described,
    load_arguments,
    make_run_spec,
    make_runner,
    parse_arguments,
    register_models,
    require_suite,
    set_output_path,
    start_helm,
    without_output,
)
from helm_ext.cli.thresholds import find_below, parse_thresholds
from helm_ext.errors import HelmExtError, RecordedError, RunEntryError, show
from helm_ext.formats import files_in

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.analysis.run_scores import WrongRow
    from helm_ext.formats import Format

_SHOWN_WARNINGS = 10
"""Of one file; `helm-ext validate` shows all."""
_SHOWN_WRONG = 10

_ABOUT_LIVE_RUNS = ("not-differentiated", "few-rows")
"""Codes of warnings about drawing demonstrations: nothing is drawn for completions that are recorded."""
_FOLLOWED = ("not-run", "failed")
"""Codes of warnings whose hint is `missing=skip`: the rows are counted in the table."""

_NOT_IN_A_NAME = re.compile(r"[^\w.@+:/-]+")
"""What a model's name must not hold: HELM splits run entries at commas, and makes file names of names."""


def score(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|FOLDER|NAME...",
            help="Files of any format with completions, folders of such files, or datasets' names.",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            help="The model's name in the report: NAME or ORGANIZATION/NAME. Not needed where the file names it."
        ),
    ] = None,
    arg: Annotated[list[str] | None, typer.Option(help="KEY=VALUE, as in the run entry; repeatable.")] = None,
    missing: Annotated[
        str | None,
        typer.Option(help="Rows without a usable completion: error, or skip.  [default: as the format has it]"),
    ] = None,
    output_path: Annotated[Path, typer.Option("--output-path", "-o", help="HELM's output folder.")] = (
        Path("benchmark_output")
    ),
    suite: Annotated[str, typer.Option(help="HELM's suite.")] = "score",
    kind: FormatOption = None,
    local_path: Annotated[Path, typer.Option(help="HELM's folder of local configurations.")] = Path("prod_env"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a run, each on one line; all else goes to stderr.")
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=X",
            help="Exit 1 if a run's METRIC is below X; `main` is each main metric, `main@ci_low` and `main@ci_high` "
            "are the ends of its 95 % interval.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--warnings-as-errors", help="Exit 1 if there is a warning.")] = False,
    show: Annotated[
        str | None,
        typer.Option(metavar="wrong[=N]", help="List rows that the main metric calls wrong: the first 10, or N."),
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show every stat, also those that describe the run.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show HELM's own log.")] = False,
) -> None:
    """Re-score recorded completions, print the table, and leave finished HELM runs behind.

    The runs are those that `helm-run` makes of the same files, one for each of their tasks; helm-summarize and
    helm-server work on them. Where one of several cannot be scored, the others are, and the exit code is 1.
    """
    arguments = parse_arguments(arg or [])
    _require_sense(model, suite, arguments)
    if missing is not None:
        arguments["missing"] = missing
    least = parse_thresholds(fail_under or [])
    most = None if show is None else parse_show(show)
    settings = Settings(output_path, local_path, suite, verbose=verbose)
    with status("scoring"), helm_output_to_stderr():
        start_helm(verbose=verbose)
    scoring = Scoring(kind, arguments, model, settings)
    failures = 0
    for run_spec, facts, folder in scoring.score_all(files):
        failures += _print_run(
            run_spec, facts, folder, least=least, most=most, as_json=as_json, show_all=show_all, strict=strict
        )
    if failures or scoring.refused:
        raise typer.Exit(1)


def _print_run(
    run_spec: RunSpec, facts: FileFacts, folder: Path, *, least: Mapping[str, float], most: int | None,
    as_json: bool = False, show_all: bool = False, strict: bool = False,
) -> int:  # fmt: skip
    """Print a run's scores; returns how many of its scores are too low, and with `strict` warnings."""
    warnings = _list_all_warnings(run_spec, facts, folder)
    below = find_below(run_spec, folder, least)
    for said in (*warnings, *below):
        echo(said, err=True)
    if as_json:
        wrong = {} if most is None else {"wrong": [row.to_json() for row in _find_wrong(folder, most)[0]]}
        # ASCII: no character in it ends a line
        echo(json.dumps({**to_json(run_spec, folder, facts), **wrong}))
    else:
        console = Console(markup=False)
        console.print(make_table(run_spec, folder, show_all=show_all))
        if most is not None:
            console.print(make_wrong_list(*_find_wrong(folder, most)), soft_wrap=True, highlight=False)
    echo(f"written to {folder}", err=as_json)
    warned = sum(one.startswith("warning") for one in warnings) if strict else 0
    return warned + sum(one.startswith("below") for one in below)


def score_again(file: Path, arguments: Mapping[str, Any], model: str, settings: Settings) -> Iterator[Path]:
    """Score a file that a run was written to and print the scores; yields the run's folder before they are printed."""
    with status("scoring"), helm_output_to_stderr():
        start_helm()
    for run_spec, facts, folder in Scoring("adapter_spec", arguments, model, settings).score_all([file]):
        yield folder
        _print_run(run_spec, facts, folder, least={}, most=None)


def _list_all_warnings(run_spec: RunSpec, facts: FileFacts, folder: Path) -> list[str]:
    """Return what a reader of a run's scores must know, of the file, of the scores and of the runs beside it."""
    from helm_ext.analysis.siblings import list_beside

    beside = [f"warning: {said}" for said in list_beside(folder)]
    return [*facts.warnings, *list_warnings(run_spec, folder), *beside]


def _require_sense(model: str | None, suite: str, arguments: Mapping[str, Any]) -> None:
    """Raise RunEntryError for what no file can be scored with."""
    from helm_ext.planning.run_specs import check_settings

    if model is not None and not model.strip():
        raise RunEntryError(f"--model: expected a name, got {model!r}")
    require_suite("--suite", suite)
    if model is not None and model.removeprefix("recorded/").count("/") > 1:
        raise RunEntryError(f"--model {model}: expected NAME or ORGANIZATION/NAME, with one slash at most")
    check_settings()
    if "model_deployment" in arguments:  # it would ask a model
        value = arguments["model_deployment"]
        raise RunEntryError(f"--arg model_deployment={value}: recorded completions are scored\n  hint: --model NAME")


def score_one(
    file: Path, kind: str | None, arguments: Mapping[str, Any], model: str | None, output_path: Path, suite: str,
    local_path: Path,
) -> tuple[Path, list[str]]:  # fmt: skip
    """Score a file of one run as the command does; returns the run's folder, and what the command would warn of.

    Raises HelmExtError, and RunEntryError where the file makes several runs.
    """
    _require_sense(model, suite, arguments)
    start_helm()
    scoring = Scoring(kind, arguments, model, Settings(output_path, local_path, suite))
    found = [(folder, _list_all_warnings(run, facts, folder)) for run, facts, folder in scoring.score_all([file])]
    if len(found) + scoring.refused != 1:
        made = "\n  ".join(folder.name for folder, _ in found)
        hint = "name one, as output=COLUMN or task=NAME"
        raise RunEntryError(f"{file}: one run was asked for, and there are {len(found)}: {made}\n  hint: {hint}")
    return found[0]


@dataclass
class Scoring:
    """What is the same for all files of one command."""

    kind: str | None
    arguments: Mapping[str, Any]
    model: str | None
    settings: Settings
    refused: int = 0
    """Files and tasks that could not be scored while others could."""
    _taken: set[str] = field(default_factory=set)
    _knows_models: bool = False

    def score_all(self, files: Sequence[Path]) -> Iterator[tuple[RunSpec, FileFacts, Path]]:
        """Yield each run as it is finished. Raises HelmExtError where there is one run to be made and it cannot be."""
        from helm_ext.formats import planned

        found = [one for file in files for one in (files_in(file) if self.kind is None else [file])]
        for file in found:
            try:
                with helm_output_to_stderr():
                    format_ = choose_format(self.kind, file)
                    tasks = find_tasks(format_, file, self.arguments)
                    self._require_one_model(format_, file, tasks)
            except HelmExtError as error:
                self._refuse(str(error), error, alone=len(found) == 1)
                continue
            for task in tasks:
                try:
                    with helm_output_to_stderr():
                        made = self._score_task(format_, file, {**self.arguments, **task})
                except HelmExtError as error:
                    planned.forget()  # else the next dataset would be the second to wait, and a large one not kept
                    which = [] if str(file) in str(error) else [str(file)]
                    said = ": ".join([*which, *filter(None, [", ".join(task.values())]), str(error)])
                    self._refuse(said, error, alone=len(found) == len(tasks) == 1)
                    continue
                yield made

    def _require_one_model(self, format_: Format, file: Path, tasks: Sequence[Mapping[str, str]]) -> None:
        """Raise RunEntryError where --model would give one name to the outputs of several models."""
        if self.model is None or len(tasks) < 2:
            return
        chosen: dict[str, Mapping[str, str]] = {}
        for task in tasks:
            with contextlib.suppress(HelmExtError):  # it names no model, or will be refused alone
                chosen.setdefault(name_model(format_, file, {**self.arguments, **task}, None), task)
        if len(chosen) > 1:
            (key, value), *_ = next(iter(chosen.values())).items()
            said = f"--model {self.model}: {file} holds outputs of {len(chosen)} models, {', '.join(chosen)}"
            raise RunEntryError(f"{said}\n  hint: leave --model out, or name one: --arg {key}={value}")

    def _refuse(self, said: str, error: HelmExtError, *, alone: bool) -> None:
        if alone:
            raise error
        echo(f"error: {said}", err=True)
        self.refused += 1

    def _score_task(self, format_: Format, file: Path, chosen: Mapping[str, Any]) -> tuple[RunSpec, FileFacts, Path]:
        named = deployment_of(name_model(format_, file, chosen, self.model))
        if not self._knows_models and is_described(named["model"], self.settings.local_path):
            register_models(self.settings.local_path)
            self._knows_models = True
        set_output_path(self.settings.output_path)  # rows of a large file are stored there
        run_spec = make_run_spec(format_, file, named, chosen)
        _require_new_name(run_spec, self._taken, self.model)
        facts = find_facts(run_spec)
        try:
            return run_spec, facts, run(run_spec, self.settings)
        except RecordedError:
            if self.model is not None:  # else it was asked before: a format says what its file lacks
                format_.name_model(load_arguments(format_, file, chosen))
            raise


def parse_show(given: str) -> int:
    """Return how many wrong rows `--show` asks for. Raises RunEntryError."""
    what, sign, number = given.partition("=")
    if what != "wrong" or (sign and not (number.isascii() and number.isdigit() and int(number))):
        raise RunEntryError(f"--show {given}: expected wrong, or wrong=N for the first N rows")
    return int(number) if sign else _SHOWN_WRONG


def _find_wrong(folder: Path, most: int) -> tuple[list[WrongRow], int]:
    from helm_ext.analysis import read_run
    from helm_ext.analysis.run_scores import find_wrong

    with without_output():
        return find_wrong(read_run(folder), most)


def _require_new_name(run_spec: RunSpec, taken: set[str], model: str | None) -> None:
    """Note a run's name. Raises RunEntryError for one that another task's run has: it would be written over."""
    if run_spec.name in taken:
        hint = "leave it out, the file names the models"
        raise RunEntryError(f"--model {model}: two runs would have one name, {run_spec.name}\n  hint: {hint}")
    taken.add(run_spec.name)


def name_model(format_: Format, file: Path, arguments: Mapping[str, Any], given: str | None) -> str:
    """Return the model's name: the given one, else the file's, written as HELM can have it.

    Raises RunEntryError where neither says it.
    """
    if given is not None:
        return given
    named = format_.name_model(load_arguments(format_, file, arguments))
    if not named:
        raise RunEntryError(f"{file}: the file does not say whose completions it holds\n  hint: --model NAME")
    organization, slash, name = _NOT_IN_A_NAME.sub("-", named).strip("-/").partition("/")
    return f"{organization}{slash}{name.replace('/', '-')}"  # HELM's names have one slash at most


def find_facts(run_spec: RunSpec) -> FileFacts:
    """Return the facts of the file that a run was planned with.

    The dataset itself is not kept: the run hands it on and frees it row by row.
    """
    from helm.common.object_spec import create_object

    from helm_ext.formats import planned

    key = create_object(run_spec.scenario_spec).key()
    evalset = planned.withdraw(key)
    assert evalset is not None  # the first dataset that is planned is always kept
    planned.keep(key, evalset)
    followed = _FOLLOWED if run_spec.scenario_spec.args.get("missing") == "skip" else ()
    said = [f"warning: {one}" for one in evalset.warnings if one.code not in (*_ABOUT_LIVE_RUNS, *followed)]
    more = len(said) - _SHOWN_WARNINGS
    shown = said[:_SHOWN_WARNINGS] + (
        [f"warning: ... and {more} more: helm-ext validate shows all"] if more > 0 else []
    )
    return FileFacts(evalset.name, tuple(shown), evalset.counts)


def deployment_of(model: str) -> dict[str, str]:
    """Return the run entry's model arguments for a model's name.

    HELM makes a file name of them. Where an organization's model has too long a name to stand there twice, it stands
    there once. Raises RunEntryError where that is too long too.
    """
    from helm_ext.planning.names import ADDED_BY_HELM

    name = model.removeprefix("recorded/")
    twice = {"model": name, "model_deployment": f"recorded/{name}"}
    if "/" in name and _size(twice) <= ADDED_BY_HELM:
        return twice
    once = {"model": f"recorded/{name.replace('/', '-')}"}
    if _size(once) > ADDED_BY_HELM:
        raise RunEntryError(f"--model {show(name)}: too long a name: HELM makes file names of it")
    return once


def _size(arguments: Mapping[str, str]) -> int:
    """Return how many bytes arguments take in a run's name."""
    return sum(len(f",{key}={value}".encode()) for key, value in arguments.items())


def run(run_spec: RunSpec, settings: Settings) -> Path:
    """Run one RunSpec as `helm-run` would; returns the run's folder. Raises what the run raises."""
    from helm.common.optional_dependencies import OptionalDependencyNotInstalled

    try:
        make_runner(settings).run_one(run_spec)
    except (OptionalDependencyNotInstalled, OSError) as error:  # a package, or a file from the network, is not there
        said = str(error) or type(error).__name__
        raise HelmExtError(f"{run_spec.name}: cannot be run: {said}") from error
    return settings.output_path / "runs" / settings.suite / run_spec.name
