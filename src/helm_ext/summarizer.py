"""A Summarizer that does not hold every row of every run.

    helm-summarize --summarizer-class-name helm_ext.summarizer.StreamingSummarizer ...

Tables are HELM's own, from `stats.json`; only the files that the web pages read of each run are made differently, row
by row (`helm_ext.display`), one run after the other.
"""

from __future__ import annotations

from pathlib import Path

from helm.benchmark.presentation.summarize import Summarizer

from helm_ext.display import write_display_files

__all__ = ["StreamingSummarizer"]


class StreamingSummarizer(Summarizer):
    """HELM's Summarizer: same arguments, same files, less time and memory."""

    def write_run_display_json(self, skip_completed: bool) -> None:
        """Write the three display files of each run."""
        for run in self.runs:
            write_display_files(Path(run.run_path), run.run_spec, self.schema, skip_completed=skip_completed)
