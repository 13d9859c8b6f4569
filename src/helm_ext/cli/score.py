"""`helm-ext score`: re-score recorded completions in one command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from helm_ext.cli.session import (
    FormatOption,
    choose_format,
    helm_output_to_stderr,
    make_run_spec,
    parse_arguments,
    start_helm,
    without_output,
)
from helm_ext.errors import HelmExtError, RunEntryError

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec

__all__ = ["score"]

RUNNER = "helm_ext.running.StreamingRunner"

_COUNTS = ("unmapped", "num_instances", "num_left_out", "num_not_run", "num_failed", "num_too_long")


def score(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|NAME",
            help="A dataset file of any format with completions, or a dataset's name.",
        ),
    ],
    model: Annotated[str, typer.Option(help="The model's name in the report: NAME or ORGANIZATION/NAME.")],
    arg: Annotated[list[str] | None, typer.Option(help="KEY=VALUE, as in the run entry; repeatable.")] = None,
    missing: Annotated[str, typer.Option(help="Rows without a usable completion: error, or skip.")] = "error",
    output_path: Annotated[Path, typer.Option("--output-path", "-o", help="HELM's output folder.")] = (
        Path("benchmark_output")
    ),
    suite: Annotated[str, typer.Option(help="HELM's suite.")] = "score",
    kind: FormatOption = None,
    local_path: Annotated[Path, typer.Option(help="HELM's folder of local configurations.")] = Path("prod_env"),
    show_all: Annotated[bool, typer.Option("--all", help="Show every stat, also those that describe the run.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show HELM's own log.")] = False,
) -> None:
    """Re-score recorded completions, print the table, and leave a finished HELM run behind.

    The run is the one that `helm-run` makes of the same file; helm-summarize and helm-server work on it.
    """
    for option, value in (("--model", model), ("--suite", suite)):
        if not value.strip():
            raise RunEntryError(f"{option}: expected a name, got {value!r}")
    arguments = parse_arguments(arg or [])
    if "model_deployment" in arguments:  # it would ask a model
        value = arguments["model_deployment"]
        raise RunEntryError(f"--arg model_deployment={value}: recorded completions are scored\n  hint: --model NAME")
    if missing != "error":
        arguments["missing"] = missing
    with Console(stderr=True).status("scoring"), helm_output_to_stderr():
        start_helm(local_path, verbose=verbose)
        format_ = choose_format(kind, file)
        run_spec = make_run_spec(format_, file, deployment_of(model), arguments)
        folder = run(run_spec, output_path, suite, local_path)
    for warning in _warnings(run_spec, folder):
        typer.echo(warning, err=True)
    console = Console(width=None if Console().is_terminal else 120, markup=False, emoji=False)
    console.print(make_table(run_spec, folder, show_all=show_all))
    typer.echo(f"written to {folder}")


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


def _name_stats(metric: str) -> list[str]:
    """Return the stats that a metric gives: some give several."""
    from helm_ext.scoring.registry import get_scores

    score = get_scores().get(metric)
    return [stat.name for stat in (*score.over_all, *score.stats)] if score else [metric]


def read_stats(run_spec: RunSpec, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the run's stats by name, `{name: {mean, count, ...}}`: those of the split that the leaderboard shows."""
    with (folder / "stats.json").open(encoding="utf-8") as file:
        stats = json.load(file)
    split = run_spec.scenario_spec.args.get("main_split", "test")
    plain = [s for s in stats if "perturbation" not in s["name"] and "sub_split" not in s["name"]]
    return {s["name"]["name"]: s for s in plain if s.get("count") and s["name"].get("split") == split}


def make_table(run_spec: RunSpec, folder: Path, *, show_all: bool) -> Table:
    """Return the table of a run: its main metric, the others that were asked for, and what was left out."""
    stats = read_stats(run_spec, folder)
    main = str(run_spec.scenario_spec.args["main_metric"])
    metrics = [name for spec in run_spec.metric_specs for name in spec.args.get("metrics", [])]
    asked = [stat for name in metrics for stat in _name_stats(name)]
    by_attribute = sorted(name for name in stats if name.startswith(f"{main}@"))
    names = list(dict.fromkeys([main, *by_attribute, *asked, *_COUNTS, *(sorted(stats) if show_all else [])]))
    table = Table(title=f"{run_spec.adapter_spec.model} on {run_spec.groups[0]}", title_justify="left")
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name in names:
        if name in stats:
            table.add_row(f"{name} (main)" if name == main else name, f"{stats[name]['mean']:.4g}")
    return table


def _warnings(run_spec: RunSpec, folder: Path) -> list[str]:
    stats = read_stats(run_spec, folder)
    main = run_spec.scenario_spec.args["main_metric"]
    return [] if main in stats else [f"warning: no row has a value for the main metric {main}"]
