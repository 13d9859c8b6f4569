"""A Summarizer that does not hold every row of every run.

    helm-summarize --summarizer-class-name helm_ext.running.StreamingSummarizer ...

Tables are HELM's own, from `stats.json`; only the files that the web pages read of each run are made differently, row
by row (`helm_ext.running.display`), one run after the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helm.benchmark.metrics.metric import MetricMetadata
from helm.benchmark.presentation.schema import MetricGroup, MetricNameMatcher
from helm.benchmark.presentation.summarize import Cell, Run, Summarizer, Table
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import ScenarioMetadata, create_scenario
from helm.common.hierarchical_logger import hwarn

from helm_ext.analysis.json_arrays import BytesRead
from helm_ext.analysis.siblings import find_siblings, read_sibling
from helm_ext.engines.progress import Measured, Progress, read_mode
from helm_ext.errors.console import say_plainly
from helm_ext.formats.scenario import tell_apart
from helm_ext.running.display import find_bytes_to_read, write_display_files
from helm_ext.running.leaderboard import (
    RunNotes,
    add_intervals,
    describe_metrics,
    interval_group,
    join_recordings,
    name_ends_first,
    say_unrecorded,
    tidy_table,
)
from helm_ext.scoring.stat_names import ENDS


class StreamingSummarizer(Summarizer):
    """HELM's Summarizer: same arguments, same files, less time and memory."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        say_plainly()  # helm-summarize loads no plugins
        read_mode()
        super().__init__(*arguments, **options)

    def group_runs(self) -> None:
        """Group as HELM does, but all models of a dataset in one table; warn of cells that average several runs.

        HELM makes a table for each ScenarioSpec. Those of two recordings of one dataset differ in file and digest.
        """
        super().group_runs()
        for group, by_scenario in self.group_scenario_adapter_to_runs.items():
            self.group_scenario_adapter_to_runs[group] = join_recordings(by_scenario)
        siblings = find_siblings(read_sibling(Path(run.run_path)) for run in self.runs)
        for message in siblings.describe():
            hwarn(message)
        self.notes = RunNotes(self.runs, siblings)

    def read_run(self, run_path: str) -> Run:
        """Read a run as HELM does, with the interval of its main metric."""
        run = super().read_run(run_path)
        main = run.run_spec.scenario_spec.args.get("main_metric") or self._main_metric_of(run.run_spec)
        return add_intervals(run, main) if main else run

    def _main_metric_of(self, run_spec: RunSpec) -> str | None:
        """Return the main metric that the schema, or else the scenario itself, gives a run of HELM's own."""
        for group in run_spec.groups:
            known = self.schema.name_to_run_group.get(group)
            if known is not None and known.environment.get("main_name"):
                return known.environment["main_name"]
        try:
            found: str = create_scenario(run_spec.scenario_spec).get_metadata().main_metric
        except Exception:  # noqa: BLE001 - most of HELM's scenarios say nothing, and some cannot be made here
            return None
        return found

    def get_metric_metadata(self) -> list[MetricMetadata]:
        """Describe the metrics as HELM does, in an order that is the same every time."""
        self.metric_metadata: list[MetricMetadata] = describe_metrics(self.runs)
        return self.metric_metadata

    def get_scenario_metadata(self) -> list[ScenarioMetadata]:
        """Describe the groups as HELM does, sorted by title, and tell those apart that have one title."""
        groups = say_unrecorded(tell_apart(map(self.notes.name_cap, super().get_scenario_metadata())), self.runs)
        return sorted(groups, key=lambda group: ((group.display_name or group.name).casefold(), group.name))

    def auto_generate_metric_groups(self) -> list[MetricGroup]:
        """Add the table of intervals behind that of the main metric."""
        first, *others = super().auto_generate_metric_groups()
        return [first, interval_group(group.main_metric for group in self.get_scenario_metadata()), *others]

    def create_cell(self, runs: list[Run], matcher: MetricNameMatcher, *arguments: Any, **options: Any) -> Cell:
        """Make a cell as HELM does, but of several runs none for the ends of intervals: their mean is no end."""
        if matcher.name.endswith(ENDS) and len(runs) > 1:
            return Cell(None, description=f"not known: the mean of {len(runs)} runs")
        return super().create_cell(runs, matcher, *arguments, **options)

    def create_group_table(self, *arguments: Any, **options: Any) -> Table:
        """Make a table as HELM does, without columns that say nothing, of a dataset of ours under its own title."""
        runs = [run for found in options.get("adapter_to_runs", {}).values() for run in found]
        if (
            options.get("is_scenario_table")
            and runs
            and runs[0].run_spec.scenario_spec.class_name.startswith("helm_ext.")
        ):
            group = self.schema.name_to_run_group.get(runs[0].run_spec.groups[0])
            options["title"] = (group and group.display_name) or options["title"]
        made = self.notes.annotate(super().create_group_table(*arguments, **options))
        return name_ends_first(tidy_table(made))

    def write_run_display_json(self, skip_completed: bool) -> None:
        """Write the three display files of each run."""
        left = [find_bytes_to_read(Path(run.run_path)) for run in self.runs]
        total, read = sum(left), BytesRead()
        with Progress(None, "MB", title="pages", measure=lambda: Measured(min(read.number, total) >> 20, total >> 20)):
            for run, size in zip(self.runs, left, strict=True):
                end = read.number + size
                write_display_files(
                    Path(run.run_path),
                    run.run_spec,
                    self.schema,
                    skip_completed=skip_completed,
                    read=read,
                )
                read.number = end  # what is there already, or needs no reading, takes no time
