"""`helm-ext score`: re-score recorded completions in one command."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from helm_ext.cli.run_scores import FileFacts, list_warnings, make_table, to_json
from helm_ext.cli.session import (
    FormatOption,
    choose_format,
    find_tasks,
    helm_output_to_stderr,
    load_arguments,
    make_run_spec,
    parse_arguments,
    start_helm,
    without_output,
)
from helm_ext.errors import HelmExtError, RunEntryError

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.formats import Format

__all__ = ["score"]

RUNNER = "helm_ext.running.StreamingRunner"

_SHOWN_WARNINGS = 10
"""Of one file; `helm-ext validate` shows all."""

_NOT_IN_A_NAME = re.compile(r"[^\w.@+:/-]+")
"""What a model's name must not hold: HELM splits run entries at commas, and makes file names of names."""


def score(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|NAME",
            help="A dataset file of any format with completions, or a dataset's name.",
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
    show_all: Annotated[bool, typer.Option("--all", help="Show every stat, also those that describe the run.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show HELM's own log.")] = False,
) -> None:
    """Re-score recorded completions, print the table, and leave finished HELM runs behind.

    The runs are those that `helm-run` makes of the same file, one for each of its tasks; helm-summarize and helm-server
    work on them.
    """
    for option, value in (("--model", model), ("--suite", suite)):
        if value is not None and not value.strip():
            raise RunEntryError(f"{option}: expected a name, got {value!r}")
    arguments = parse_arguments(arg or [])
    if "model_deployment" in arguments:  # it would ask a model
        value = arguments["model_deployment"]
        raise RunEntryError(f"--arg model_deployment={value}: recorded completions are scored\n  hint: --model NAME")
    if missing is not None:
        arguments["missing"] = missing
    with Console(stderr=True).status("scoring"), helm_output_to_stderr():
        start_helm(local_path, verbose=verbose)
        format_ = choose_format(kind, file)
        tasks = find_tasks(format_, file, arguments)
    console = Console(width=None if Console().is_terminal else 120, markup=False, emoji=False)
    taken: set[str] = set()
    refused = False
    for task in tasks:
        chosen = {**arguments, **task}
        try:
            with Console(stderr=True).status("scoring"), helm_output_to_stderr():
                named = deployment_of(name_model(format_, file, chosen, model))
                run_spec = make_run_spec(format_, file, named, chosen)
                _require_new_name(run_spec, taken, model)
                facts = find_facts(run_spec)
                folder = run(run_spec, output_path, suite, local_path)
        except HelmExtError as error:
            if len(tasks) == 1:
                raise
            typer.echo(f"error: {', '.join(task.values())}: {error}", err=True)
            refused = True
            continue
        for warning in (*facts.warnings, *list_warnings(run_spec, folder)):
            typer.echo(warning, err=True)
        if as_json:
            typer.echo(json.dumps(to_json(run_spec, folder, facts), ensure_ascii=False))
        else:
            console.print(make_table(run_spec, folder, show_all=show_all))
        typer.echo(f"written to {folder}", err=as_json)
    if refused:
        raise typer.Exit(1)


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
    return _NOT_IN_A_NAME.sub("-", named).strip("-/")


def find_facts(run_spec: RunSpec) -> FileFacts:
    """Return the facts of the file that a run was planned with.

    The dataset itself is not kept: the run hands it on and frees it row by row.
    """
    from helm.common.object_spec import create_object

    from helm_ext.evalset import row_extra
    from helm_ext.formats import planned

    key = create_object(run_spec.scenario_spec).key()
    evalset = planned.withdraw(key)
    assert evalset is not None  # the first dataset that is planned is always kept
    planned.keep(key, evalset)
    said = [f"warning: {warning}" for warning in evalset.warnings]
    more = len(said) - _SHOWN_WARNINGS
    shown = said[:_SHOWN_WARNINGS] + (
        [f"warning: ... and {more} more: helm-ext validate shows all"] if more > 0 else []
    )
    extras = [row_extra(i) for i in evalset.instances if i.split != "train"] if evalset.attributes else []
    scored = [extra for extra in extras if extra.get("recorded", {}).get("status") == "ok"]
    groups = Counter(f"{name}={value}" for extra in scored for name, value in extra.get("attributes", {}).items())
    return FileFacts(evalset.name, tuple(shown), evalset.counts, groups)


def deployment_of(model: str) -> dict[str, str]:
    """Return the run entry's model arguments for a model's name."""
    name = model.removeprefix("recorded/")
    return {"model": name, "model_deployment": f"recorded/{name}"} if "/" in name else {"model": f"recorded/{name}"}


def run(run_spec: RunSpec, output_path: Path, suite: str, local_path: Path) -> Path:
    """Run one RunSpec as `helm-run` would; returns the run's folder. Raises what the run raises."""
    from helm.benchmark.executor import ExecutionSpec
    from helm.benchmark.runner import set_benchmark_output_path
    from helm.common.authentication import Authentication
    from helm.common.object_spec import get_class_by_name

    set_benchmark_output_path(str(output_path))
    try:
        output_path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HelmExtError(f"--output-path {output_path}: cannot be made: {error.strerror}") from error
    with without_output():
        runner = get_class_by_name(RUNNER)(
            execution_spec=ExecutionSpec(auth=Authentication(""), url=None, local_path=str(local_path), parallelism=1),
            output_path=str(output_path),
            suite=suite,
            skip_instances=False,
            cache_instances=False,
            cache_instances_only=False,
            skip_completed_runs=False,
            exit_on_error=True,
        )
    runner.run_one(run_spec)
    return output_path / "runs" / suite / run_spec.name
