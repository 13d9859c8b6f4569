"""A run as a fold over batches of rows.

    request states of some rows ──begin──▶ their Stats, a summary a metric ──RunFiles, Total──▶ HELM's five files

What `begin` returns knows the run and nothing of other batches; it may work in any process. What it makes is written
and added up in the order of the rows. The files are those of `helm.benchmark.runner.Runner`, whatever the size of a
batch.

Recorded rows (`RecordedWorker`) are read, scored, written and forgotten, some at a time. What HELM and the adapter
decide about a list of instances is decided about columns of numbers then, equally.
"""

from __future__ import annotations

import io
import itertools
import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import ExitStack, closing
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.metric import MetricInterface, MetricResult, create_metric
from helm.benchmark.metrics.metric_service import MetricService
from helm.benchmark.runner import remove_stats_nans
from helm.benchmark.scenarios.scenario import EVAL_SPLITS
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.object_spec import create_object
from typing_extensions import Self

from helm_ext import adaptation
from helm_ext.adaptation import recorded
from helm_ext.adaptation.rows import RecordedStates, check_selection, make_run_scoring, sample_places, tell_scoring
from helm_ext.analysis.siblings import TIMES_FILE
from helm_ext.evalset import garbage
from helm_ext.evalset.rows import LIVE, RECORDED, Unrecorded
from helm_ext.files.content import COPY_BYTES
from helm_ext.files.writing import PART, append_file
from helm_ext.running.serialise import ArrayWriter, StatRenderer, around_field, consume, dumps, write_array
from helm_ext.scoring.completeness import LOGPROB_STATS
from helm_ext.scoring.folding import FoldingMetric, JoinedMetric, Measured, RunFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.metrics.metric import PerInstanceStats
    from helm.benchmark.metrics.statistic import Stat
    from helm.benchmark.run_spec import RunSpec
    from helm.benchmark.scenarios.scenario import Instance, Scenario
    from numpy.typing import NDArray

    from helm_ext.engines.engine import Engine
    from helm_ext.engines.progress import Progress
    from helm_ext.evalset.rows import RowKeys, StoredRows
    from helm_ext.files.writing import StagedFiles
    from helm_ext.scoring.folding import Total

Task = TypeVar("Task")

BATCH_ROWS = 200
"""Rows of a batch: what is made of them stays in the processor's cache. 100 to 250 cost the same, 2,000 a quarter more
(docs/speed.md)."""
TASK_ROWS = 1_000
"""Rows of a task of another process: enough for what comes back to be little, few enough to be done again, to be sent
along where no disk is shared, and for no process to wait long for the last one."""


class WholeMetric(FoldingMetric):
    """A metric that wants all rows at once: the run is one batch, and what the metric says of it is the total."""

    def __init__(self, metric: MetricInterface, eval_cache_path: str, parallelism: int) -> None:
        self.metric = metric
        self._options = eval_cache_path, parallelism
        self._stats: list[Stat] = []

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

    def make_total(self, adapter_spec: AdapterSpec, facts: RunFacts) -> WholeMetric:  # noqa: ARG002
        """Return what keeps the result."""
        return self

    def add(self, summary: list[Stat]) -> None:
        """Take the result."""
        self._stats = summary

    def to_stats(self) -> list[Stat]:
        """Return it."""
        return self._stats


def begin(
    run_spec: RunSpec, metric: FoldingMetric, service: MetricService, facts: RunFacts
) -> Callable[[list[RequestState]], Measured]:
    """Return what measures the request states of a batch, which were executed and annotated."""
    measure = metric.begin(run_spec.adapter_spec, service, facts)
    return lambda states: measure(ScenarioState(run_spec.adapter_spec, states, run_spec.annotators))


def sum_up(total: Total) -> list[Stat]:
    """Return the run's stats; names that two metrics have are warned of, as by HELM."""
    stats = total.to_stats()
    for name, count in Counter(stat.name for stat in stats).items():
        if count > 1:
            hwarn(f"duplicate metric name {name}")
    hlog(f"Generated {len(stats)} stats.")
    return stats


class RowWriters(ABC):
    """Writes what rows add to the run's files: request states, and Stats by segment. A context manager."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.writers: list[ArrayWriter] = []
        """Of request states, then one a segment."""
        self._renderer = StatRenderer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stack.__exit__(*exception)  # type: ignore[arg-type]

    @abstractmethod
    def open(self, number: int) -> ArrayWriter:
        """Open the next writer: the array of this number."""

    def require(self, number: int) -> None:
        """Open the arrays that are missing, so that there are so many."""
        while len(self.writers) < number:
            self.writers.append(self.open(len(self.writers)))

    def write(self, states: list[RequestState], segments: Sequence[Sequence[PerInstanceStats]]) -> None:
        """Write a batch. The states are taken off their list: what was written is freed while it is at hand."""
        self.require(1 + len(segments))
        first, *others = self.writers
        for state in consume(states):
            first.add(state)
        for writer, rows in zip(others, segments, strict=False):  # a run has a file of stats also without any
            for data in self._renderer.render(rows):
                writer.add_encoded(data)


class RowParts(RowWriters):
    """What some rows add, apart: in files, or in memory."""

    def __init__(self, folder: Path | None, name: str) -> None:
        """`folder`: where it is written, into files whose names begin with `name`; None: into memory."""
        super().__init__()
        self._folder, self._name = folder, name

    def open(self, number: int) -> ArrayWriter:
        """Open a part of its own."""
        file: IO[bytes] = io.BytesIO()
        if self._folder is not None:
            path = self._folder / f"{self._name}.{number}{PART}"
            # Not truncated: what an earlier task left is memory that the kernel need not find again.
            file = self.stack.enter_context(os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT), "wb", COPY_BYTES))
        return ArrayWriter(file, depth=0 if number else 1, is_part=True)

    def finish(self) -> list[int | bytes]:
        """Write what is left; return the parts, for `RunFiles.join`."""
        for writer in self.writers:
            writer.close()
        files = [writer.file for writer in self.writers]
        return [file.getvalue() if isinstance(file, io.BytesIO) else file.tell() for file in files]


class PartResult(NamedTuple):
    """What became of some rows that follow one another."""

    rows: int
    summaries: list[list[Any]]
    """Of each batch of them, one a metric."""
    parts: Sequence[int | bytes] = ()
    """Elements of `scenario_state.json`, and of each segment of `per_instance_stats.json`: themselves, or the size of
    the file that has them. None where the run's files have them already."""
    name: str = ""
    """With which the names of those files begin."""


class RunFiles(RowWriters):
    """HELM's five files of a run, staged. A context manager; `write` and `join` add rows, `finish` the rest.

    A sixth says of a run of ours when it was finished (`analysis.siblings`).
    """

    def __init__(self, files: StagedFiles, run_spec: RunSpec, scenario: Scenario) -> None:
        super().__init__()
        self._files = files
        self._run_spec = run_spec
        self._scenario = scenario
        self._names: list[str] = []
        """Of files for parts that were joined."""
        self._named = 0

    def __enter__(self) -> Self:
        for name, value in (("run_spec.json", self._run_spec), ("scenario.json", self._scenario)):
            with self._files.open(name) as file:
                file.write(dumps(value))
        self._times = None
        if type(self._scenario).__module__.startswith("helm_ext."):
            self._times = self.stack.enter_context(self._files.open(TIMES_FILE))
        # The last one opened is the last one put in place: it tells that a run is whole.
        self._state, self._stats, per_instance = (
            self.stack.enter_context(self._files.open(name))
            for name in ("scenario_state.json", "stats.json", "per_instance_stats.json")
        )
        state = ScenarioState(self._run_spec.adapter_spec, [], self._run_spec.annotators)
        head, self._tail = around_field(state, "request_states")
        self._state.write(head)
        self.writers = [ArrayWriter(self._state, depth=1), ArrayWriter(per_instance)]
        return self

    @property
    def folder(self) -> Path:
        """Where parts of the files may be written by other processes of this machine; removed at the end."""
        return self._files.part("").parent

    def open(self, number: int) -> ArrayWriter:
        """Open a file for a further segment, aside: the first one goes to its place."""
        path = self._files.part(f"per_instance_stats.{number}")
        return ArrayWriter(self.stack.enter_context(path.open("w+b", buffering=COPY_BYTES)), is_part=True)

    def name_parts(self) -> str:
        """Return how the names of the files begin that the parts of a task are written to: those of a joined one."""
        if not self._names:
            self._names.append(str(self._named))
            self._named += 1
        return self._names.pop()

    def join(self, parts: Sequence[int | bytes], name: str) -> None:
        """Add what was made of the next rows: request states, then Stats by segment. Takes the fields of PartResult."""
        self.require(len(parts))
        for number, (writer, part) in enumerate(zip(self.writers, parts, strict=False)):
            if not part:
                continue
            if isinstance(part, bytes):
                writer.add_encoded(part)
                continue
            writer.begin_element()
            with self._files.part(f"{name}.{number}").open("rb") as file:
                append_file(file, writer.file, part)
        if name:
            self._names.append(name)

    def finish(self, stats: Sequence[Stat]) -> None:
        """Write the stats and the ends of the files."""
        states, first, *others = self.writers
        states.close()
        self._state.write(self._tail)
        for writer in others:
            writer.close()
            if not writer.is_empty:
                first.begin_element()
                writer.file.flush()
                append_file(writer.file, first.file, os.fstat(writer.file.fileno()).st_size)
        first.close()
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
            if files is not None:
                files.join(done.parts, done.name)
            if progress is not None:
                progress.done(done.rows)


def split_states(states: list[RequestState]) -> Iterator[list[RequestState]]:
    """Yield the states in batches of BATCH_ROWS rows, and take them off the list.

    All states of a row are in one batch. Where they do not stand together (trials), there is one batch.
    """
    batch: list[RequestState] = []
    if not _stand_together(states):
        batch, states[:] = states[:], []
        yield batch
        return
    found, last = 0, None
    for state in consume(states):
        key = (state.instance.id, state.instance.perturbation)
        if key != last:
            if found == BATCH_ROWS:
                yield batch
                batch, found = [], 0
            found, last = found + 1, key
        batch.append(state)
    if batch:
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


# Recorded runs of rows that are not in memory: read, scored, written and forgotten, some at a time


def can_wait(rows: StoredRows, run_spec: RunSpec, *, leaves_out: bool) -> bool:
    """Whether a run can read its rows when it scores them.

    Not so where rows are wanted all at once: perturbations, metrics and annotators of others; and where there is an
    error to report, which is about instances.
    """
    if rows.status is None or not recorded.is_recorded(run_spec.adapter_spec.model_deployment):
        return False
    if rows.has_perturbations or run_spec.data_augmenter_spec.perturbation_specs:
        return False
    if not all(spec.class_name.startswith("helm_ext.") for spec in run_spec.annotators or ()):
        return False
    if not all(isinstance(create_metric(spec), FoldingMetric) for spec in run_spec.metric_specs):
        return False
    usable = rows.status == 0
    return bool(usable.all() or (leaves_out and usable.any()))


def choose_places(rows: StoredRows, adapter_spec: AdapterSpec) -> NDArray[np.intp]:
    """Return the places of the rows that a recorded run evaluates, in the order of its files.

    Raises RunEntryError where there are none.
    """
    splits = adapter_spec.eval_splits or EVAL_SPLITS
    sampled = sample_places(rows, splits, adapter_spec.max_eval_instances)
    is_train = rows.is_of(["train"])[sampled]
    chosen = sampled[rows.is_of(splits)[sampled] & (rows.only[sampled] != LIVE)]
    check_selection(adapter_spec, "recorded", rows=len(sampled), offered=int((~is_train).sum()), evaluated=len(chosen))
    return np.sort(chosen) if (rows.only == RECORDED).any() else chosen


def find_facts(rows: StoredRows, places: NDArray[np.intp]) -> RunFacts:
    """Return what batches must know of all rows."""
    unrecorded = rows.find_unrecorded(places)
    logprobs = LOGPROB_STATS if unrecorded & Unrecorded.LOGPROBS else frozenset()
    return RunFacts(unmeasured=recorded.name_unmeasured(unrecorded) | logprobs)


def make_metric(run_spec: RunSpec) -> JoinedMetric:
    """Return the metrics of a run whose rows can wait."""
    made = [create_metric(spec) for spec in run_spec.metric_specs]
    return JoinedMetric([metric for metric in made if isinstance(metric, FoldingMetric)])


def annotate(annotators: Sequence[Any], states: Sequence[RequestState]) -> None:
    """Restate `AnnotationExecutor.execute` for annotators that wait for nothing: without threads, and in place."""
    if annotators:
        with garbage.paused():
            for state in states:
                vars(state)["annotations"] = {one.name: one.annotate(state) for one in annotators}


class RowsTask(NamedTuple):
    """Rows to score: their keys in the store, or the rows themselves."""

    rows: RowKeys | list[Instance]
    first: int
    """The first one's place among the rows of the run."""
    name: str = ""
    """With which the names of the files for its parts begin."""

    def __str__(self) -> str:
        return f"rows {self.first + 1:,} to {self.first + self.number:,}"

    @property
    def number(self) -> int:
        """How many they are."""
        return len(self.rows)

    def split(self) -> Sequence[RowsTask]:
        """Return the task as several, down to a row each, so that one that ends its worker can be named."""
        size = max(1, self.number // 10)
        return [
            RowsTask(self.rows[i : i + size], self.first + i, f"{self.name}-{i}") for i in range(0, self.number, size)
        ]


class RecordedWorker:
    """Scores rows, in any process."""

    def __init__(
        self, run_spec: RunSpec, facts: RunFacts, stored: StoredRows | None, target: RunFiles | Path | None
    ) -> None:
        """`stored`: where the rows of tasks are, unless they come with them.

        `target`: the run's files, in the process that has them open; a folder for parts of them; None: parts are
        returned.
        """
        adaptation.install()
        # Nothing is asked of the service: recorded deployments have no tokenizer.
        self._measure = begin(run_spec, make_metric(run_spec), MetricService(None), facts)
        self._stored = stored
        self._target = target
        self._states = RecordedStates(run_spec.adapter_spec, facts.unmeasured)
        self._scoring = make_run_scoring(run_spec.metric_specs[0], run_spec.scenario_spec.args["main_metric"])
        self._unmeasured = facts.unmeasured
        self._annotators: Sequence[Any] = [create_object(spec) for spec in run_spec.annotators or ()]

    def __call__(self, task: RowsTask) -> PartResult:
        """Score the rows of a task, and write or return what they add to the run's files."""
        number = task.number
        if isinstance(self._target, RunFiles):
            return PartResult(number, self._score(task, self._target))
        with RowParts(self._target, task.name) as parts:
            return PartResult(number, self._score(task, parts), parts.finish(), task.name)

    def _score(self, task: RowsTask, written: RowWriters) -> list[list[Any]]:
        """Score and write the rows of a task; return the summaries of its batches."""
        summaries: list[list[Any]] = []
        if isinstance(task.rows, list):
            rows = consume(task.rows)
        else:
            assert self._stored is not None
            rows = self._stored.make_rows(task.rows)
        with garbage.paused():
            while instances := list(itertools.islice(rows, BATCH_ROWS)):
                states = self._states.rebuild(instances)
                if task.first == 0 and not summaries:
                    tell_scoring(states[0].instance, self._scoring, self._unmeasured)
                recorded.hand_back(states)
                annotate(self._annotators, states)
                batch = self._measure(states)
                summaries.append(batch.summary)
                written.write(states, batch.segments)
        return summaries


def iter_tasks(
    rows: StoredRows, places: NDArray[np.intp], size: int, name_parts: Callable[[], str] | None
) -> Iterator[RowsTask]:
    """Yield tasks of `size` rows each.

    `name_parts`: names files for what is made of them; None: the rows go along, to workers that cannot read the store.
    """
    for first in range(0, len(places), size):
        some = places[first : first + size]
        yield RowsTask(rows.keys[some], first, name_parts()) if name_parts else RowsTask([*rows.read(some)], first)
