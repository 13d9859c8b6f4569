"""A Summarizer that does not hold every row of every run.

    helm-summarize --summarizer-class-name helm_ext.running.StreamingSummarizer ...

Tables are HELM's own, from `stats.json`; only the files that the web pages read of each run are made differently, row
by row (`helm_ext.fast.display`), one run after the other. A browser loads these files whole: HELM_EXT_DISPLAY_ROWS=1000
puts a sample of 1,000 instances of each run into them. The tables are always about all rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.presentation.summarize import Summarizer
from helm.benchmark.run_spec import RunSpec
from helm.common.hierarchical_logger import hwarn

from helm_ext.errors import HelmExtError, show
from helm_ext.fast.display import write_display_files

__all__ = ["DISPLAY_ROWS_ENV", "StreamingSummarizer"]

DISPLAY_ROWS_ENV = "HELM_EXT_DISPLAY_ROWS"
"""The environment variable that says how many instances of a run the web pages show. Default: all."""


def read_display_rows() -> int | None:
    """Return the number that the environment sets, None for all. Raises HelmExtError for what is no such number."""
    given = os.environ.get(DISPLAY_ROWS_ENV, "").strip()
    if not given:
        return None
    if not (given.isascii() and given.isdigit() and int(given)):
        raise HelmExtError(
            f"{DISPLAY_ROWS_ENV}={show(given)}: expected a whole number from 1\n  hint: unset it to show every row"
        )
    return int(given)


def find_averaged(run_specs: Iterable[RunSpec]) -> Iterator[str]:
    """Yield a warning for each cell of a table that HELM makes of runs of ours with different data.

    Such runs are two recordings of one model: the group's name is that of the questions (`scenarios.group_name`).
    """
    cells: dict[tuple[str, AdapterSpec], dict[str, None]] = {}
    for run_spec in run_specs:
        digest = run_spec.scenario_spec.args.get("digest")
        if run_spec.scenario_spec.class_name.startswith("helm_ext.") and digest is not None:
            cells.setdefault((run_spec.groups[0], run_spec.adapter_spec), {})[digest] = None
    for (group, adapter_spec), digests in cells.items():
        if len(digests) > 1:
            yield (
                f"{adapter_spec.model} on {group}: the tables show the mean of {len(digests)} runs with different data "
                f"({', '.join(digests)})\n  hint: give each recording a model's name of its own, or a suite"
            )


class StreamingSummarizer(Summarizer):
    """HELM's Summarizer: same arguments, same files, less time and memory."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.display_rows = read_display_rows()
        super().__init__(*arguments, **options)

    def group_runs(self) -> None:
        """Group as HELM does, and warn of cells that are a mean of different data."""
        super().group_runs()
        for message in find_averaged(run.run_spec for run in self.runs):
            hwarn(message)

    def write_run_display_json(self, skip_completed: bool) -> None:
        """Write the three display files of each run."""
        for run in self.runs:
            write_display_files(
                Path(run.run_path),
                run.run_spec,
                self.schema,
                skip_completed=skip_completed,
                max_instances=self.display_rows,
            )
