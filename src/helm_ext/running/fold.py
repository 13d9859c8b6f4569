"""A run as a fold over batches of rows.

    request states of some rows ──BatchWork──▶ their Stats, a summary a metric ──RunFiles, Totals──▶ HELM's five files

`BatchWork` knows the run and nothing of other batches; it may work in any process. What it makes is written and added
up in the order of the rows. The files are those of `helm.benchmark.runner.Runner`, whatever the size of a batch.
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from contextlib import ExitStack, closing
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.metric import MetricInterface, MetricResult
from helm.benchmark.runner import remove_stats_nans
from helm.common.hierarchical_logger import hlog, hwarn
from typing_extensions import Self

from helm_ext.analysis.siblings import TIMES_FILE
from helm_ext.files.limits import COPY_BYTES
from helm_ext.files.writing import PART, append_file
from helm_ext.running.serialise import ArrayWriter, StatRenderer, around_field, consume, dumps, write_array
from helm_ext.scoring.folding import FoldingMetric, JoinedTotal, Measured, RunFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.metrics.metric import PerInstanceStats
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.metrics.statistic import Stat
    from helm.benchmark.run_spec import RunSpec
    from helm.benchmark.scenarios.scenario import Scenario

    from helm_ext.engines.engine import Engine
    from helm_ext.engines.progress import Progress
    from helm_ext.files.staged import StagedFiles
    from helm_ext.scoring.folding import Total

Task = TypeVar("Task")

BATCH_ROWS = 200
"""Rows of a batch: what is made of them stays in the processor's cache. 100 to 250 cost the same, 2,000 a quarter more
(docs/speed.md)."""


class WholeMetric(FoldingMetric):
    """A metric that wants all rows at once: the run is one batch."""

    def __init__(self, metric: MetricInterface, eval_cache_path: str, parallelism: int) -> None:
        self.metric = metric
        self._options = eval_cache_path, parallelism

    def __repr__(self) -> str:
        return repr(self.metric)

    def find_facts(self, scenario_state: ScenarioState) -> RunFacts:  # noqa: ARG002
        """Return nothing: the metric sees for itself."""
        return RunFacts()

    def begin(
        self,
        adapter_spec: AdapterSpec,  # noqa: ARG002 - one interface
        service: MetricService,
        facts: RunFacts,  # noqa: ARG002
    ) -> Callable[[ScenarioState], Measured]:
        """Return what lets the metric evaluate the run."""

        def measure(state: ScenarioState) -> Measured:
            result: MetricResult = self.metric.evaluate(state, service, *self._options)
            return Measured([result.per_instance_stats], result.aggregated_stats)

        return measure

    def make_total(self, adapter_spec: AdapterSpec, facts: RunFacts) -> _Whole:  # noqa: ARG002
        """Return what keeps the result."""
        return _Whole()


class _Whole:
    """The total of one batch."""

    def __init__(self) -> None:
        self._stats: list[Stat] = []

    def add(self, summary: list[Stat]) -> None:
        self._stats = summary

    def to_stats(self) -> list[Stat]:
        return self._stats


class Batch(NamedTuple):
    """What a run's metrics say of a batch."""

    segments: list[Sequence[PerInstanceStats]]
    summaries: list[Any]
    """One a metric."""


class BatchWork:
    """Measures the request states of a batch."""

    def __init__(
        self, run_spec: RunSpec, metrics: Sequence[FoldingMetric], service: MetricService, facts: Sequence[RunFacts]
    ) -> None:
        self.run_spec = run_spec
        spec = run_spec.adapter_spec
        self._measures = [metric.begin(spec, service, of) for metric, of in zip(metrics, facts, strict=True)]

    def make_state(self, states: list[RequestState]) -> ScenarioState:
        """Return the states as metrics take them."""
        return ScenarioState(self.run_spec.adapter_spec, states, self.run_spec.annotators)

    def measure(self, states: list[RequestState]) -> Batch:
        """Measure states that were executed and annotated."""
        state = self.make_state(states)
        measured = [measure(state) for measure in self._measures]
        return Batch([segment for one in measured for segment in one.segments], [one.summary for one in measured])


class RunTotals(JoinedTotal):
    """Adds up the summaries of batches, in the order of the rows."""

    def __init__(self, run_spec: RunSpec, metrics: Sequence[FoldingMetric], facts: Sequence[RunFacts]) -> None:
        spec = run_spec.adapter_spec
        super().__init__([metric.make_total(spec, of) for metric, of in zip(metrics, facts, strict=True)])

    def to_stats(self) -> list[Stat]:
        """Return the run's stats; names that two metrics have are warned of, as by HELM."""
        stats = super().to_stats()
        for name, count in Counter(stat.name for stat in stats).items():
            if count > 1:
                hwarn(f"duplicate metric name {name}")
        hlog(f"Generated {len(stats)} stats.")
        return stats


class RowWriter:
    """Writes the rows of batches: request states, and Stats by segment. `states`, `segments`: where to."""

    def __init__(self, states: ArrayWriter, open_segment: Callable[[int], ArrayWriter]) -> None:
        self.states = states
        self.segments: list[ArrayWriter] = []
        self._open_segment = open_segment
        self._renderer = StatRenderer()

    def write(self, states: list[RequestState], segments: Sequence[Sequence[PerInstanceStats]]) -> None:
        """Write a batch. The states are taken off their list: what was written is freed while it is at hand."""
        for state in consume(states):
            self.states.add(state)
        while len(self.segments) < len(segments):
            self.segments.append(self._open_segment(len(self.segments)))
        for writer, rows in zip(self.segments, segments, strict=True):
            for row in consume(rows) if isinstance(rows, list) else rows:
                writer.add_encoded(self._renderer.render(row))

    def close(self) -> None:
        """Write what is left."""
        for writer in (self.states, *self.segments):
            writer.close()


class PartFiles:
    """What one task adds to the run's files: in files of a folder, or in memory. A context manager; `rows` writes."""

    def __init__(self, folder: Path | None, name: str) -> None:
        """`name`: of the task, different from that of all others."""
        self._folder = folder
        self._name = name
        self._stack = ExitStack()
        self._parts: list[Any] = []
        self.rows = RowWriter(ArrayWriter(self._open(), depth=1, is_part=True), self._open_segment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.__exit__(*exception)  # type: ignore[arg-type]

    def _open(self) -> Any:
        if self._folder is None:
            self._parts.append(io.BytesIO())
        else:
            path = self._folder / f"{self._name}.{len(self._parts)}{PART}"
            self._parts.append(self._stack.enter_context(path.open("wb", buffering=COPY_BYTES)))
        return self._parts[-1]

    def _open_segment(self, _number: int) -> ArrayWriter:
        return ArrayWriter(self._open(), is_part=True)

    def finish(self) -> list[Path | bytes]:
        """Write what is left; return the parts, for `RunFiles.join`."""
        self.rows.close()
        made = [part.getvalue() if self._folder is None else Path(part.name) for part in self._parts]
        self._stack.close()
        return made


class PartResult(NamedTuple):
    """What became of some rows that follow one another."""

    rows: int
    summaries: list[list[Any]]
    """Of each batch of them, one a metric."""
    parts: Sequence[Path | bytes] = ()
    """Elements of `scenario_state.json`, and of each segment of `per_instance_stats.json`: files, or their content.
    None where the rows are written already."""


class RunFiles:
    """HELM's five files of a run, staged. A context manager; `rows` writes batches, `finish` the rest.

    A sixth says of a run of ours when it was finished (`analysis.siblings`).
    """

    def __init__(self, files: StagedFiles, run_spec: RunSpec, scenario: Scenario) -> None:
        self._files = files
        self._run_spec = run_spec
        self._scenario = scenario
        self._stack = ExitStack()
        self._parts: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        for name, value in (("run_spec.json", self._run_spec), ("scenario.json", self._scenario)):
            with self._files.open(name) as file:
                file.write(dumps(value))
        self._times = None
        if type(self._scenario).__module__.startswith("helm_ext."):
            self._times = self._stack.enter_context(self._files.open(TIMES_FILE))
        # The last one opened is the last one put in place: it tells that a run is whole.
        self._state, self._stats, self._per_instance = (
            self._stack.enter_context(self._files.open(name))
            for name in ("scenario_state.json", "stats.json", "per_instance_stats.json")
        )
        state = ScenarioState(self._run_spec.adapter_spec, [], self._run_spec.annotators)
        head, self._tail = around_field(state, "request_states")
        self._state.write(head)
        self._first = ArrayWriter(self._per_instance)
        self.rows = RowWriter(ArrayWriter(self._state, depth=1), self._open_segment)
        return self

    def __exit__(self, *exception: object) -> None:
        for part in self._parts:
            part.close()
        self._stack.__exit__(*exception)  # type: ignore[arg-type]

    @property
    def folder(self) -> Path:
        """Where parts of the files may be written by other processes of this machine; removed at the end."""
        return self._files.part("").parent

    def _open_segment(self, number: int) -> ArrayWriter:
        """Return where a segment is written: the first one to its place, further ones aside, until it is complete."""
        if number == 0:
            return self._first
        part = self._files.part(f"per_instance_stats.{number}")
        self._parts.append(part.open("w+b", buffering=COPY_BYTES))
        return ArrayWriter(self._parts[-1], is_part=True)

    def join(self, parts: Sequence[Path | bytes]) -> None:
        """Add what another process has made of the next rows: request states, then Stats by segment."""
        rows = self.rows
        while len(rows.segments) < len(parts) - 1:
            rows.segments.append(self._open_segment(len(rows.segments)))
        for writer, part in zip((rows.states, *rows.segments), parts, strict=True):
            if isinstance(part, bytes):
                if part:
                    writer.add_encoded(part)
                continue
            with part.open("rb") as file:
                if os.fstat(file.fileno()).st_size:
                    writer.begin_element()
                    append_file(file, writer.file)
            part.unlink()

    def finish(self, stats: Sequence[Stat]) -> None:
        """Write the stats and the ends of the files."""
        self.rows.states.close()
        self._state.write(self._tail)
        for part, writer in zip(self._parts, self.rows.segments[1:], strict=True):
            writer.close()
            if not writer.is_empty:
                self._first.begin_element()
                part.flush()
                part.seek(0)
                append_file(part, self._per_instance)
        self._first.close()
        write_array(self._stats, remove_stats_nans(list(stats)))
        if self._times is not None:
            finished = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
            self._times.write(json.dumps({"finished": finished}).encode())


def fold(
    engine: Engine,
    make_worker: Callable[[], Callable[[Task], PartResult]],
    tasks: Iterable[Task],
    totals: Total,
    files: RunFiles | None,
    *,
    split: Callable[[Task], Sequence[Task]] = lambda _: (),
    progress: Progress | None = None,
) -> None:
    """Add up what the workers of `engine` make of the tasks, and put it into the run's files, in the order of the rows.

    `files`: None where nothing is written. May raise what `Engine.map` raises, and OSError.
    """
    with closing(engine.map(make_worker, tasks, split=split)) as results:
        for done in results:
            for summaries in done.summaries:
                totals.add(summaries)
            if files is not None and done.parts:
                files.join(done.parts)
            if progress is not None:
                progress.done(done.rows)


def split_states(states: list[RequestState], rows: int = BATCH_ROWS) -> Iterator[list[RequestState]]:
    """Yield the states in batches of so many rows, and take them off the list.

    All states of a row are in one batch. Where they do not stand together (trials), there is one batch.
    """
    if not _stand_together(states):
        batch = states[:]
        states.clear()
        yield batch
        return
    waiting = consume(states)
    state = next(waiting, None)
    while state is not None:
        batch, found, last = [], 0, None
        while state is not None:
            key = (state.instance.id, state.instance.perturbation)
            if key != last:
                if found == rows:
                    break
                found, last = found + 1, key
            batch.append(state)
            state = next(waiting, None)
        yield batch


def _stand_together(states: Iterable[RequestState]) -> bool:
    """Whether all states of an instance follow one another."""
    seen, last = set(), None
    for state in states:
        key = (state.instance.id, state.instance.perturbation)
        if key != last and key in seen:
            return False
        seen.add(key)
        last = key
    return True
