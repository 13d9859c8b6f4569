"""A Summarizer that does not hold every row of every run.

    helm-summarize --summarizer-class-name helm_ext.running.StreamingSummarizer ...

Tables are HELM's own, from `stats.json`; only the files that the web pages read of each run are made differently, row
by row (`helm_ext.running.display`), one run after the other.

What HELM's summarizer does that a reader stumbles over, and what is done about it here:

| HELM                                                                  | here                                        |
|-----------------------------------------------------------------------|---------------------------------------------|
| columns and datasets stand in the order of a set: another one each time | in the order of the runs, titles sorted   |
| every table has a column for each metric of any dataset               | columns without a value are left out        |
| no number says how sure it is                                         | a table with the ends of 95 % intervals     |
| pages cut headings after 27 characters, so both ends look alike       | which end it is stands first                |

Intervals of runs of ours stand in their `stats.json` (`helm_ext.scoring.breakdown`). For runs of HELM's own they are
computed from `per_instance_stats.json`, one run after the other.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.metrics.metric import MetricMetadata, create_metric
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.presentation.schema import MetricGroup, MetricNameMatcher
from helm.benchmark.presentation.summarize import Cell, Run, Summarizer, Table
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import ScenarioMetadata, ScenarioSpec, create_scenario
from helm.common.hierarchical_logger import hwarn

from helm_ext.analysis.json_arrays import BytesRead, read_array
from helm_ext.analysis.siblings import find_siblings, read_sibling
from helm_ext.engines.progress import Measured, Progress, read_mode
from helm_ext.errors import say_plainly
from helm_ext.formats.scenario import tell_apart
from helm_ext.running.display import find_bytes_to_read, write_display_files
from helm_ext.scoring.breakdown import END_WORDS, describe_interval, to_interval_stats
from helm_ext.scoring.completeness import describe_cap, describe_left_out
from helm_ext.scoring.score import CORRECTED, ENDS

if TYPE_CHECKING:
    from helm.benchmark.metrics.statistic import Stat

    from helm_ext.analysis.siblings import Siblings


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
        groups = head_by_corrected(groups, self.runs)
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
        if options.get("is_scenario_table") and runs and _is_ours(runs[0]):
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
                path = Path(run.run_path)
                write_display_files(path, run.run_spec, self.schema, skip_completed=skip_completed, read=read)
                read.number = end  # what is there already, or needs no reading, takes no time


Runs = dict[ScenarioSpec, dict[AdapterSpec, list[Run]]]
"""As `Summarizer.group_scenario_adapter_to_runs` has them for a group."""


MOST_NOTES = 3
"""Behind a model's name; the tables of the datasets have them all."""


class RunNotes:
    """What a reader of tables must know of single runs: rows that no score is of, and several runs in one cell."""

    def __init__(self, runs: Sequence[Run], siblings: Siblings) -> None:
        stale = siblings.find_stale()
        self._stale = {run.run_spec.name for run in runs if Path(run.run_path) in stale}
        self._groups = {run.run_spec.name: run.run_spec.groups[0] for run in runs if _is_ours(run)}
        means = {run.run_spec.name: _find_means(run) for run in runs if _is_ours(run)}
        caps = {name: describe_cap(found) for name, found in means.items()}
        by_group: dict[str, set[str]] = defaultdict(set)
        for name, cap in caps.items():
            by_group[self._groups[name]].add(cap)
        self._of_group = {group: next(iter(found)) for group, found in by_group.items() if len(found) == 1}
        """What all runs of a group share stands in its title, else in the rows of models."""
        own_caps = {name: "" if self._groups[name] in self._of_group else cap for name, cap in caps.items()}
        self._notes = {name: [own_caps[name], describe_left_out(found)] for name, found in means.items()}

    def name_cap(self, group: ScenarioMetadata) -> ScenarioMetadata:
        """Return a group whose title says how many rows there would be without a cap."""
        cap = self._of_group.get(group.name)
        if not cap:
            return group
        title = f"{group.display_name or group.name} ({cap})"
        return replace(group, display_name=title, short_display_name=title)

    def annotate(self, table: Table) -> Table:
        """Return a table with what must be known of a row's runs behind the model's name."""
        rows = []
        for row in table.rows:
            cells = [cell.run_spec_names or [] for cell in row]
            said = [*dict.fromkeys(note for names in cells for note in self._describe(names, with_group=not cells[0]))]
            if len(said) > MOST_NOTES:
                said[MOST_NOTES:] = [f"{len(said) - MOST_NOTES} more"]
            name = f"{row[0].value} ({'; '.join(said)})" if said else row[0].value
            rows.append([replace(row[0], value=name), *row[1:]])
        return replace(table, rows=rows)

    def _describe(self, names: Sequence[str], *, with_group: bool) -> Iterable[str]:
        ours = [name for name in names if name in self._groups]
        by_group: dict[str, list[str]] = defaultdict(list)
        for name in ours:
            by_group[self._groups[name]].append(name)
        for group, found in by_group.items():
            notes = [note for note in dict.fromkeys(chain(*map(self._notes.__getitem__, found))) if note]
            stale = sum(name in self._stale for name in found)
            if len(found) > 1:
                notes.append(f"mean of {len(found)} runs" + (f", {stale} stale" if stale else ""))
            elif stale:
                notes.append("stale")
            for note in notes:
                yield f"{group}: {note}" if with_group else note


def _is_ours(run: Run) -> bool:
    return bool(run.run_spec.scenario_spec.class_name.startswith("helm_ext."))


def _find_means(run: Run) -> dict[str, float]:
    """Return the means of the main split by the names of their stats."""
    split = run.run_spec.scenario_spec.args.get("main_split", "test")
    return {
        stat.name.name: stat.mean or 0.0
        for stat in run.stats
        if stat.name.split == split and stat.name.sub_split is None and stat.name.perturbation is None
    }


def interval_group(main_metrics: Iterable[str]) -> MetricGroup:
    """Return the table of intervals. HELM's pages show a cell's number alone, so both ends are columns."""
    ends = [f"{main}{end}" for main in dict.fromkeys(main_metrics) for end in ENDS]
    return MetricGroup(
        name="main_metric_interval",
        display_name="Main metric, 95 % interval",
        description="The main metric, and the lower and upper end of its 95 % confidence interval over rows.",
        aggregation_strategies=[],
        metrics=[MetricNameMatcher(name=name, split="${main_split}") for name in ("${main_name}", *ends)],
    )


def head_by_corrected(groups: Iterable[ScenarioMetadata], runs: Iterable[Run]) -> list[ScenarioMetadata]:
    """Return the groups; a judge's score as people's labels correct it is the main metric where each run has it."""
    stats = defaultdict(list)
    for run in runs:
        for name in run.run_spec.groups[:1]:
            stats[name].append(_find_means(run))
    named = [(group, f"{group.main_metric}{CORRECTED}") for group in groups]
    return [
        replace(group, main_metric=corrected)
        if stats[group.name] and all(corrected in means for means in stats[group.name]) else group
        for group, corrected in named
    ]  # fmt: skip


def say_unrecorded(groups: Iterable[ScenarioMetadata], runs: Iterable[Run]) -> list[ScenarioMetadata]:
    """Return the groups; where runs are of answers that do not say how they were decoded, the description does.

    Pages show the numbers of `adapter_spec`, which HELM's class must have.
    """
    found: dict[str, dict[str, dict[str, None]]] = {}
    """Group to what is said to models."""
    for run in runs:
        spec = run.run_spec
        if not str(spec.adapter_spec.model_deployment).startswith("recorded/"):
            continue
        model = spec.adapter_spec.model.removeprefix("recorded/")
        for metric in spec.metric_specs:
            for name, value in ((metric.args or {}).get("recorded_decoding") or {}).items():
                what = f"{name} {'not recorded' if value is None else f'recorded as {value}'}"
                found.setdefault(spec.groups[0], {}).setdefault(what, {})[model] = None
    return [replace(group, description=f"{group.description} {_say_of(found[group.name])}")
            if group.name in found else group for group in groups]  # fmt: skip


def _say_of(found: Mapping[str, Mapping[str, None]]) -> str:
    """Return in words what is said of which models; models with the same things said stand together."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for what, models in found.items():
        alike.setdefault(tuple(models), []).append(what)
    said = "; ".join(f"{', '.join(models)}: {', '.join(whats)}" for models, whats in alike.items())
    return f"How answers were decoded, where pages of runs show HELM's defaults: {said}."


def describe_metrics(runs: Sequence[Run]) -> list[MetricMetadata]:
    """Return the metadata of the stats that occur, in the order of the runs and of their metrics.

    Restates `Summarizer.get_metric_metadata` (helm/benchmark/presentation/summarize.py), which goes through sets.
    """
    specs: dict[Any, None] = {spec: None for run in runs for spec in run.run_spec.metric_specs}
    described: dict[str, MetricMetadata] = {}
    for spec in specs:
        try:
            found = create_metric(spec).get_metadata()
        except (NotImplementedError, ModuleNotFoundError, AttributeError, TypeError):  # those that HELM forgives
            continue
        described.update((metadata.name, metadata) for metadata in found)
    there = {stat.name.name: None for run in runs for stat in run.stats}
    for name in dict.fromkeys(
        name.removesuffix(ENDS[0]).removesuffix(ENDS[1]) for name in there if name.endswith(ENDS)
    ):
        described.update((metadata.name, metadata) for metadata in describe_interval(described, name))
    return [metadata for name, metadata in described.items() if name in there]


def add_intervals(run: Run, main_metric: str) -> Run:
    """Return the run with the ends of its main metric's interval among its stats, where they are not there yet.

    A run whose rows cannot be read is returned as it is, with a warning.
    """
    if any(stat.name.name.endswith(ENDS) for stat in run.stats):
        return run
    try:
        made = list(_measure(Path(run.run_path) / "per_instance_stats.json", main_metric))
    except (OSError, ValueError, KeyError, TypeError) as error:
        hwarn(f"{run.run_spec.name}: no interval of {main_metric}: {type(error).__name__}: {error}")
        return run
    return replace(run, stats=[*run.stats, *made])


def _measure(path: Path, main_metric: str) -> Iterable[Stat]:
    """Yield both ends for each split: of the rows' means over trials, perturbed copies aside."""
    splits: dict[str | None, dict[str, list[float]]] = {}
    for row in read_array(path):
        if row.get("perturbation"):
            continue
        for stat in row["stats"]:
            if stat["name"]["name"] == main_metric and stat.get("mean") is not None:
                rows = splits.setdefault(stat["name"].get("split"), {})
                rows.setdefault(row["instance_id"], []).append(stat["mean"])
    for name, rows in splits.items():
        means = array("d", (fmean(trials) for trials in rows.values()))
        yield from to_interval_stats(MetricName(main_metric, split=name), means, None)


def join_recordings(by_scenario: Mapping[ScenarioSpec, Mapping[AdapterSpec, list[Run]]]) -> Runs:
    """Return the runs of a group with those of one dataset of ours under the first of their ScenarioSpecs."""
    joined: Runs = defaultdict(lambda: defaultdict(list))
    first: dict[str, ScenarioSpec] = {}
    for scenario_spec, by_adapter in by_scenario.items():
        for adapter_spec, runs in by_adapter.items():
            for run in runs:
                key = first.setdefault(run.run_spec.groups[0], scenario_spec) if _is_ours(run) else scenario_spec
                joined[key][adapter_spec].append(run)
    return joined


def name_ends_first(table: Table) -> Table:
    """Return a table of several datasets whose headings begin with the end of the interval that they are of.

    HELM's pages show the first 27 characters of a heading: `from: Everyday reasoning - EM` is told apart from
    `to: Everyday reasoning - EM`, where `Everyday reasoning - EM from` is not.
    """
    header = []
    for heading in table.header:
        metric, group = (heading.metadata.get(key, "") for key in ("metric", "run_group"))
        name, _, word = metric.rpartition(" ")
        is_end = word in END_WORDS and heading.value == f"{group} - {metric}"
        header.append(replace(heading, value=f"{word}: {group} - {name}") if is_end else heading)
    return replace(table, header=header)


def tidy_table(table: Table) -> Table:
    """Return a table without the columns that hold no value in any row, and without those that were there before.

    The page of a dataset has the tables of all metric groups side by side, and a metric may be in several. The first
    column names the models.
    """
    kept: dict[tuple[Any, ...], int] = {}
    for index, heading in enumerate(table.header):
        values = tuple(row[index].value for row in table.rows)
        if index == 0 or any(value is not None for value in values):
            kept.setdefault((index == 0, heading.value, heading.description, values), index)
    columns = list(kept.values())
    return replace(
        table,
        header=[table.header[index] for index in columns],
        rows=[[row[index] for index in columns] for row in table.rows],
    )
