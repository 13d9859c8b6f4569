"""`helm-ext score`: re-score recorded completions in one command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from helm_ext.cli import options, session
from helm_ext.cli.common import (
    echo,
    helm_output_to_stderr,
    make_console,
    parse_arguments,
    put_option,
    say,
    with_option,
    without_output,
)
from helm_ext.cli.run_scores import ABOUT_DRAWING, ScoredRun, find_facts, make_wrong_list, parse_thresholds
from helm_ext.cli.session import Settings
from helm_ext.errors import HelmExtError, RecordedError, RunEntryError, show
from helm_ext.formats import files_in

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.formats import Format

_SHOWN_WRONG = 10

_FOLLOWED = ("not-run", "failed")
"""Codes of warnings whose hint is `missing=skip`: the rows are counted in the table."""

_NOT_IN_A_NAME = re.compile(r"[^\w.@+:/-]+")
"""What a model's name must not hold: HELM splits run entries at commas, and makes file names of names."""


def score(
    files: Annotated[
        list[Path],
        Argument(metavar="FILE|FOLDER|NAME...", help="Files with completions, folders of them, or datasets' names."),
    ],
    model: Annotated[
        str | None, Option(help="[ORGANIZATION/]NAME in reports. Not needed where the file names it.")
    ] = None,
    arg: options.Arguments = None,
    missing: Annotated[
        str | None, Option(help="Rows without a usable completion: error, or skip.  [default: as the format has it]")
    ] = None,
    output_path: options.OutputPath = options.OUTPUT,
    suite: options.Suite = "score",
    kind: options.AsFormat = None,
    local_path: options.LocalPath = options.PROD_ENV,
    as_json: options.JsonLines = False,
    fail_under: Annotated[
        list[str] | None,
        Option(
            metavar="METRIC=X",
            help="Exit 1 if a run's METRIC is below X; `main` is each main metric, `main@ci_low` and `main@ci_high` "
            "are the ends of its 95 % interval.",
        ),
    ] = None,
    strict: Annotated[bool, Option("--warnings-as-errors", help="Exit 1 if there is a warning.")] = False,
    show: Annotated[str | None, Option(metavar="wrong[=N]", help="List wrong rows: the first 10, or N.")] = None,
    show_all: Annotated[bool, Option("--all", help="Show every stat, also those that describe the run.")] = False,
    verbose: options.Verbose = False,
) -> None:
    """Re-score recorded completions, print the table, and leave finished HELM runs behind.

    The runs are those that `helm-run` makes of the same files, one for each of their tasks; helm-summarize and
    helm-server work on them. Where one of several cannot be scored, the others are, and the exit code is 1.
    """
    arguments = {**parse_arguments(arg), **({} if missing is None else {"missing": missing})}
    least = parse_thresholds(fail_under or [])
    most = None if show is None else parse_show(show)
    failures = 0
    for scored in score_files(files, kind, arguments, model, Settings(output_path, local_path, suite, verbose=verbose)):
        if scored is None:
            failures += 1
            continue
        warnings, below = scored.list_warnings(), scored.find_below(least) if least else []
        say(map(put_option, [*warnings, *below]))
        print_scores(scored, most=most, as_json=as_json, show_all=show_all)
        failures += sum(one.startswith("below") for one in below)
        failures += sum(one.startswith("warning") for one in warnings) if strict else 0
    if failures:
        raise Exit(1)


def print_scores(scored: ScoredRun, *, most: int | None = None, as_json: bool = False, show_all: bool = False) -> None:
    """Print a run's scores, and the first `most` rows that it got wrong. Raises where none can be said to be wrong."""
    from helm_ext.analysis.run_scores import find_wrong

    console = None if as_json else make_console()
    if console is not None:
        console.print(scored.make_table(show_all=show_all))
    listed = {}
    if most is not None:
        with without_output():
            wrong, total = find_wrong(scored.files, most)
        if console is not None:
            console.print(make_wrong_list(wrong, total), soft_wrap=True)
        listed["wrong"] = [row._asdict() for row in wrong]
    if as_json:
        echo(json.dumps({**scored.to_json(), **listed}))  # ASCII: no character in it ends a line
    echo(f"written to {scored.files.folder}", err=as_json)


def parse_show(given: str) -> int:
    """Return how many wrong rows `--show` asks for. Raises RunEntryError."""
    what, sign, number = given.partition("=")
    if what != "wrong" or (sign and not (number.isascii() and number.isdigit() and int(number))):
        raise RunEntryError(f"--show {given}: expected wrong, or wrong=N for the first N rows")
    return int(number) if sign else _SHOWN_WRONG


def score_one(
    file: Path, kind: str | None, arguments: Mapping[str, Any], model: str | None, settings: Settings
) -> ScoredRun:
    """Score a file of one run as the command does. Raises HelmExtError, also where the file makes several runs."""
    found = list(score_files([file], kind, arguments, model, settings))
    if len(found) != 1 or found[0] is None:
        made = "\n  ".join(one.files.folder.name for one in found if one)
        hint = "name one, as output=COLUMN or task=NAME"
        raise RunEntryError(f"{file}: one run was asked for, and there are {len(found)}: {made}\n  hint: {hint}")
    return found[0]


def score_files(
    files: Sequence[Path], kind: str | None, arguments: Mapping[str, Any], model: str | None, settings: Settings
) -> Iterator[ScoredRun | None]:
    """Yield each run as it is finished; None for one that cannot be made, of which the reason was printed.

    Raises RunEntryError for what no file can be scored with, and HelmExtError where there is one run to be made and it
    cannot be.
    """
    from helm_ext.formats import planned
    from helm_ext.planning.run_specs import check_settings

    if model is not None and (not model.strip() or model.removeprefix("recorded/").count("/") > 1):
        raise RunEntryError(f"--model: expected a name, NAME or ORGANIZATION/NAME, got {model!r}")
    session.require_suite(settings.suite)
    check_settings()
    if "model_deployment" in arguments:  # it would ask a model
        value = arguments["model_deployment"]
        raise RunEntryError(f"--arg model_deployment={value}: recorded completions are scored\n  hint: --model NAME")
    with session.starting("scoring", verbose=settings.verbose):
        scoring = _Scoring(arguments, model, settings)
    found = [one for file in files for one in (files_in(file) if kind is None else [file])]
    for file in found:
        try:
            with helm_output_to_stderr():
                format_ = session.choose_format(kind, file)
                is_named = session.find_file(file) != file
                tasks = [{}] if is_named else format_.tasks(session.load_arguments(format_, file, arguments))
                scoring.require_one_model(format_, file, tasks)
        except HelmExtError as error:
            if len(found) == 1:
                raise
            echo(f"error: {with_option(str(error))}", err=True)
            yield None
            continue
        said: set[str] = set()
        for task in tasks:
            try:
                with helm_output_to_stderr():
                    made = scoring.score_task(format_, file, task)
            except HelmExtError as error:
                planned.forget()  # else the next dataset would be the second to wait, and a large one not kept
                if len(found) == len(tasks) == 1:
                    raise
                message = "the same error" if str(error) in said else str(error)
                said.add(str(error))
                parts = [str(file) * (str(file) not in message), ", ".join(task.values()), message]
                echo(f"error: {with_option(': '.join(filter(None, parts)))}", err=True)
                made = None
            yield made


@dataclass
class _Scoring:
    """What is the same for all files of one command."""

    arguments: Mapping[str, Any]
    model: str | None
    settings: Settings
    taken: set[str] = field(default_factory=set)
    """Names of runs."""
    asked: dict[str, Path] = field(default_factory=dict)
    """Digest of the questions to the first file that asks them."""
    knows_models: bool = False

    def require_one_model(self, format_: Format, file: Path, tasks: Sequence[Mapping[str, str]]) -> None:
        """Raise RunEntryError where --model would give one name to the outputs of several models."""
        if self.model is None or len(tasks) < 2:
            return
        chosen: dict[str, Mapping[str, str]] = {}
        for task in tasks:
            try:
                named = _read_model(format_, file, {**self.arguments, **task})
            except HelmExtError:  # it names no model, or will be refused alone; a column of outputs is that of one
                named = task.get("output", "")
            if named:
                chosen.setdefault(named, task)
        if len(chosen) > 1:
            (key, value), *_ = next(iter(chosen.values())).items()
            said = f"--model {self.model}: {file} holds outputs of {len(chosen)} models, {', '.join(chosen)}"
            raise RunEntryError(f"{said}\n  hint: leave --model out, or name one: --arg {key}={value}")

    def score_task(self, format_: Format, file: Path, task: Mapping[str, str]) -> ScoredRun:
        """Score one task of a file. Raises HelmExtError."""
        chosen = {**self.arguments, **task}
        named = deployment_of(_read_model(format_, file, chosen) if self.model is None else self.model)
        if not self.knows_models and session.is_described(named["model"], self.settings.local_path):
            session.register_models(self.settings.local_path)
            self.knows_models = True
        session.set_output_path(self.settings.output_path)  # rows of a large file are stored there
        run_spec = session.make_run_spec(format_, file, named, chosen)
        if run_spec.name in self.taken:  # it would be written over
            said = f"--model {self.model}: two runs would have one name, {run_spec.name}"
            raise RunEntryError(f"{said}\n  hint: leave it out, the file names the models")
        self.taken.add(run_spec.name)
        odd = find_facts(run_spec, {*ABOUT_DRAWING, *_FOLLOWED}).warnings
        facts = find_facts(run_spec, {*ABOUT_DRAWING, *(_FOLLOWED if chosen.get("missing") == "skip" else ())})
        if output := task.get("output"):  # of several: what is said of its answers is not said of another's
            facts.warnings = [one.replace(": ", f": {output}: ", 1) for one in facts.warnings]
        if self.model is not None:  # a file's own names of models are its own affair
            known = run_spec.scenario_spec.args
            first = self.asked.setdefault(known.get("questions", known["digest"]), file)
            if first != file:
                said = f"warning: {file} asks what {first} asks, and --model {self.model} is said to have answered both"
                facts.warnings.append(f"{said}; of another model: score it alone")
        try:
            return ScoredRun(run(run_spec, self.settings), facts)
        except RecordedError:
            if self.model is not None:  # else it was asked before: a format says what its file lacks
                format_.name_model(session.load_arguments(format_, file, chosen))
            say(map(put_option, odd))  # one of them may say why a row has no recording
            raise


def _read_model(format_: Format, file: Path, arguments: Mapping[str, Any]) -> str:
    """Return the name of the model that the file names, written as HELM can have it. Raises RunEntryError for none."""
    named = format_.name_model(session.load_arguments(format_, file, arguments))
    if not named:
        hint = "--model NAME; files of several models are scored one by one"
        raise RunEntryError(f"{file}: the file does not say whose completions it holds\n  hint: {hint}")
    organization, slash, name = _NOT_IN_A_NAME.sub("-", named).strip("-/").partition("/")
    return f"{organization}{slash}{name.replace('/', '-')}"  # HELM's names have one slash at most


def deployment_of(model: str) -> dict[str, str]:
    """Return the run entry's model arguments for a model's name.

    HELM makes a file name of them. Where an organization's model has too long a name to stand there twice, it stands
    there once. Raises RunEntryError where that is too long too.
    """
    from helm_ext.planning.names import ADDED_BY_HELM

    name = model.removeprefix("recorded/")
    ways = [{"model": f"recorded/{name.replace('/', '-')}"}]
    if "/" in name:
        ways.insert(0, {"model": name, "model_deployment": f"recorded/{name}"})
    for arguments in ways:
        if sum(len(f",{key}={value}".encode()) for key, value in arguments.items()) <= ADDED_BY_HELM:
            return arguments
    raise RunEntryError(f"--model {show(name)}: too long a name: HELM makes file names of it")


def run(run_spec: RunSpec, settings: Settings) -> Path:
    """Run one RunSpec as `helm-run` would; returns the run's folder. Raises what the run raises."""
    from helm.common.optional_dependencies import OptionalDependencyNotInstalled

    try:
        session.make_runner(settings).run_one(run_spec)
    except (OptionalDependencyNotInstalled, OSError) as error:  # a package, or a file from the network, is not there
        said = str(error) or type(error).__name__
        raise HelmExtError(f"{run_spec.name}: cannot be run: {said}") from error
    return settings.output_path / "runs" / settings.suite / run_spec.name
