"""`helm-ext merge`: runs of the shards of a dataset as one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from helm_ext.cli import options
from helm_ext.cli.common import echo, without_output, writing
from helm_ext.cli.session import require_suite
from helm_ext.errors import RunEntryError, count, show


def merge(
    runs: Annotated[
        list[Path],
        Argument(
            metavar="RUN|FOLDER...", help="Finished runs of the shards, in the order of their rows; a folder's by name."
        ),
    ],
    into: Annotated[str, Option(help="The suite that the merged run goes to.")],
    name: Annotated[str | None, Option(help="The run's name. Default: what the names of the runs share.")] = None,
    output_path: options.OutputPath = options.OUTPUT,
    skip_completed_runs: Annotated[bool, Option("--skip-completed-runs", help="As for helm-run.")] = False,
) -> None:
    """Join finished runs of shards of one dataset to one run, whose stats are those of one run of all rows.

    Sums, calibration, intervals, attributes and what was left out are the same. Runs that differ in more than their
    file, that overlap, or that are not whole are refused.
    """
    from helm_ext.analysis import find_runs
    from helm_ext.analysis.runs import RUN_FILES
    from helm_ext.engines.progress import Progress
    from helm_ext.planning.merged import plan_merge
    from helm_ext.running.merging import merge_runs

    if not into or into in (".", "..") or "/" in into or "\\" in into:
        raise RunEntryError(f"--into {show(into)}: a suite is the name of a folder")
    require_suite(into, "--into")
    found, unfinished = find_runs(runs)
    unfinished += _find_empty(runs, [run.folder for run in found])
    if unfinished:
        raise RunEntryError(
            f"{unfinished[0]}: the run is not finished, so the whole would lack its rows\n"
            "  hint: start it again, or name the runs one by one"
        )
    if len(found) < 2:
        raise RunEntryError(f"{found[0].folder}: is one run: there is nothing to merge it with")
    with without_output():
        shards, run_spec = plan_merge(found, name=name)
    folder = output_path / "runs" / into / run_spec.name
    if folder.resolve() in [run.folder.resolve() for run in found]:
        raise RunEntryError(f"{folder}: is one of the runs to merge\n  hint: another suite (--into), or --name")
    if skip_completed_runs and all((folder / file).is_file() for file in RUN_FILES):
        echo(f"{folder}: is there already")
        return
    for number, shard in enumerate(shards, 1):
        echo(f"{number}. {shard.files.folder}: {count(shard.rows, 'row')}", err=True)
    unmeasured = [shard.facts.unmeasured for shard in shards]
    if left_out := frozenset.union(*unmeasured) - frozenset.intersection(*unmeasured):
        names = ", ".join(sorted(left_out))
        said = "one run of all rows has no such stats, and so has the merged one none"
        echo(f"note: not all shards measured {names}: {said}", err=True)
    with writing(folder), Progress(sum(shard.rows for shard in shards), title="merge") as progress, without_output():
        merged = merge_runs(shards, run_spec, folder, progress)
    echo(f"{folder}: {count(merged, 'row')} of {count(len(shards), 'run')}")


def _find_empty(paths: list[Path], found: list[Path]) -> list[Path]:
    """Return the folders beside runs, in the folders that were named, in which there is no run: it failed."""
    from helm_ext.planning.merged import NOT_RUNS

    own, named = ({path.resolve() for path in some} for some in (found, paths))
    suites = {run.parent for run in found if run.resolve() not in named}
    beside = [path for suite in sorted(suites) for path in sorted(suite.iterdir()) if path.resolve() not in own]
    return [path for path in beside if path.is_dir() and path.name not in NOT_RUNS and path.name[0] != "."]
