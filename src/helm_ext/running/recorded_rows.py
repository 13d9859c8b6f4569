"""Recorded runs of datasets that are not in memory: rows are read, scored, written and forgotten, some at a time.

    places ──choose_places──▶ those that are evaluated ──RecordedWork, in any process──▶ rows of HELM's files, summaries

What HELM and the adapter decide about a list of instances is decided about columns of numbers here, equally:
tests/integration/test_fold.py compares the files.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from helm.benchmark.metrics.metric import create_metric
from helm.benchmark.metrics.metric_service import MetricService
from helm.benchmark.scenarios.scenario import EVAL_SPLITS
from helm.common.object_spec import create_object

from helm_ext import adaptation
from helm_ext.adaptation import recorded
from helm_ext.adaptation.rebuilding import RecordedStates
from helm_ext.adaptation.row_order import sample_places
from helm_ext.adaptation.run_scoring import make_run_scoring, tell_scoring
from helm_ext.adaptation.selection import check_selection
from helm_ext.evalset import garbage
from helm_ext.evalset.rows import LIVE, RECORDED, Lacks
from helm_ext.running.fold import BATCH_ROWS, Batch, BatchWork, PartFiles, PartResult, RowWriter
from helm_ext.running.serialise import consume
from helm_ext.scoring.completeness import LOGPROB_STATS
from helm_ext.scoring.folding import FoldingMetric, RunFacts

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec
    from helm.benchmark.scenarios.scenario import Instance
    from numpy.typing import NDArray

    from helm_ext.evalset.rows import StoredRows

TASK_ROWS = 10_000
"""Rows of a task of another process: enough for what comes back to be little, few enough to be done again."""
SENT_ROWS = 1_000
"""Rows of a task that are sent with it: this process holds some tasks for each worker."""


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
    lacks = rows.find_lacks(places)
    logprobs = LOGPROB_STATS if lacks & Lacks.LOGPROBS else frozenset()
    return RunFacts(unmeasured=recorded.name_unmeasured(lacks) | logprobs)


def iter_batches(rows: StoredRows, places: NDArray[np.intp], size: int = BATCH_ROWS) -> Iterator[list[Instance]]:
    """Yield the instances of these places, some at a time."""
    for start in range(0, len(places), size):
        yield list(rows.read(places[start : start + size]))


@dataclass(frozen=True)
class RecordedWork:
    """How the rows of a recorded run are scored: what every process must know. Can be pickled."""

    run_spec: RunSpec
    facts: RunFacts
    stored: StoredRows | None
    """The rows, where they are read by who scores them."""
    folder: str | None = None
    """Where parts of files are written; None where they are sent."""

    def begin(self, rows: RowWriter | None = None) -> RecordedWorker:
        """Return what scores rows, in this process. `rows`: where they are written; None: into parts of the files."""
        return RecordedWorker(self, rows)

    def make_metrics(self) -> list[FoldingMetric]:
        """Return the run's metrics."""
        made = [create_metric(spec) for spec in self.run_spec.metric_specs]
        return [metric for metric in made if isinstance(metric, FoldingMetric)]


class RowsTask(NamedTuple):
    """Rows to score in another process: their places, or the rows themselves."""

    name: str
    rows: NDArray[np.intp] | list[Instance]
    first: int
    """The first one's place among the rows of the run."""

    def __str__(self) -> str:
        return f"rows {self.first + 1:,} to {self.first + self.number:,}"

    @property
    def number(self) -> int:
        """How many they are."""
        return len(self.rows)

    def pick(self, places: slice, part: int) -> RowsTask:
        """Return some of the task's rows as a task."""
        return RowsTask(f"{self.name}.{part}", self.rows[places], self.first + places.start)


class RecordedWorker:
    """Scores rows."""

    def __init__(self, work: RecordedWork, rows: RowWriter | None) -> None:
        adaptation.install()
        self._rows = rows
        run_spec = work.run_spec
        metrics = work.make_metrics()
        # Nothing is asked of it: recorded deployments have no tokenizer.
        service = MetricService(None)
        self._stored = work.stored
        self._folder = None if work.folder is None else Path(work.folder)
        self._work = BatchWork(run_spec, metrics, service, [work.facts] * len(metrics))
        self._states = RecordedStates(run_spec.adapter_spec)
        self._scoring = make_run_scoring(run_spec.metric_specs[0], run_spec.scenario_spec.args["main_metric"])
        self._unmeasured = work.facts.unmeasured
        self._annotators: Sequence[Any] = [create_object(spec) for spec in run_spec.annotators or ()]

    def score(self, instances: list[Instance], *, is_first: bool) -> tuple[list[RequestState], Batch]:
        """Return the request states of rows, the first ones of the run or not, and what the metrics say of them."""
        states = self._states.rebuild(instances)
        if is_first:
            tell_scoring(states[0].instance, self._scoring, self._unmeasured)
        recorded.hand_back(states)
        if self._annotators:
            for state in states:
                vars(state)["annotations"] = {one.name: one.annotate(state) for one in self._annotators}
        return states, self._work.measure(states)

    def __call__(self, task: RowsTask) -> PartResult:
        """Score the rows of a task, and write or return its parts of the run's files."""
        if isinstance(task.rows, list):
            reading = consume(task.rows)
        else:
            assert self._stored is not None
            reading = self._stored.read(task.rows)
        rows, summaries = 0, []
        with garbage.paused(), PartFiles(self._folder, task.name) as parts:
            writer = self._rows or parts.rows
            while instances := list(itertools.islice(reading, BATCH_ROWS)):
                states, batch = self.score(instances, is_first=task.first + rows == 0)
                rows += len(instances)
                summaries.append(batch.summaries)
                writer.write(states, batch.segments)
            return PartResult(rows, summaries, () if writer is self._rows else parts.finish())


def iter_tasks(
    rows: StoredRows, places: NDArray[np.intp], *, finds: bool = True, size: int = SENT_ROWS
) -> Iterator[RowsTask]:
    """Yield the tasks of a run. `finds`: whether workers can read the store; else `size` rows are sent with each."""
    if finds:
        for number, start in enumerate(range(0, len(places), TASK_ROWS)):
            yield RowsTask(str(number), places[start : start + TASK_ROWS], start)
        return
    size = min(size, TASK_ROWS)
    for number, instances in enumerate(iter_batches(rows, places, size)):
        yield RowsTask(str(number), instances, number * size)


def split_task(task: RowsTask) -> Sequence[RowsTask]:
    """Return a task as several, down to a row each, so that one that ends its worker can be named."""
    if task.number < 2:
        return [task]
    size = max(1, task.number // 10)
    return [task.pick(slice(start, start + size), part) for part, start in enumerate(range(0, task.number, size))]
