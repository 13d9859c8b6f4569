"""What every command about finished runs takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["ClusterOption", "MetricOption", "RunFolders"]

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
