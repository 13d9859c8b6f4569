"""What every command about finished runs takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from helm_ext.cli.output import echo

if TYPE_CHECKING:
    from helm_ext.analysis import FinishedRun

RunFolders = Annotated[
    list[Path],
    typer.Argument(metavar="RUN|FOLDER...", help="Folders of finished runs, or folders with runs below: a suite."),
]
MetricOption = Annotated[str | None, typer.Option(help="A stat of the rows. Default: each run's main metric.")]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        help="Rows with one value of this key are not independent: a passage. Default: as the runs were told."
    ),
]


def read_folders(folders: Sequence[Path]) -> list[FinishedRun]:
    """Return the finished runs of these folders, and name those that are not finished. Raises DatasetNotFoundError."""
    from helm_ext.analysis import find_runs

    found, unfinished = find_runs(folders)
    for folder in unfinished:
        echo(f"left out: {folder}: the run is not finished", err=True)
    return found
