"""A Summarizer that does not hold every row of every run.

    helm-summarize --summarizer-class-name helm_ext.summarizer.StreamingSummarizer ...

Tables are HELM's own, from `stats.json`; only the files that the web pages read of each run are made differently, row
by row (`helm_ext.display`), one run after the other. A browser loads these files whole: HELM_EXT_DISPLAY_ROWS=1000 puts
a sample of 1,000 instances of each run into them. The tables are always about all rows.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from helm.benchmark.presentation.summarize import Summarizer

from helm_ext.display import write_display_files
from helm_ext.errors import HelmExtError, show

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


class StreamingSummarizer(Summarizer):
    """HELM's Summarizer: same arguments, same files, less time and memory."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.display_rows = read_display_rows()
        super().__init__(*arguments, **options)

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
