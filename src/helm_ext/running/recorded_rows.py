"""Recorded runs of datasets that are not in memory: rows are read, scored, written and forgotten, some at a time.

    places ──choose_places──▶ those that are evaluated ──RecordedWork, in any process──▶ rows of HELM's files, summaries

What HELM and the adapter decide about a list of instances is decided about columns of numbers here, equally:
tests/integration/test_fold.py compares the files.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from helm.benchmark.metrics.metric import create_metric
from helm.benchmark.metrics.metric_service import MetricService
from helm.benchmark.scenarios.scenario import EVAL_SPLITS
from helm.common.object_spec import create_object

from helm_ext import adaptation
from helm_ext.adaptation import recorded
from helm_ext.adaptation.rows import RecordedStates, check_selection, make_run_scoring, sample_places, tell_scoring
from helm_ext.evalset import garbage
from helm_ext.evalset.rows import LIVE, RECORDED, Lacks
from helm_ext.running.fold import BATCH_ROWS, BatchWork, PartResult, RowParts
from helm_ext.running.serialise import StatRenderer, consume
from helm_ext.scoring.completeness import LOGPROB_STATS
from helm_ext.scoring.folding import FoldingMetric, RunFacts

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec
    from helm.benchmark.scenarios.scenario import Instance
    from numpy.typing import NDArray

    from helm_ext.evalset.rows import RowKeys, StoredRows

TASK_ROWS = 2_000
"""Rows of a task of another process: enough for what comes back to be little, few enough to be done again. With 10,000,
the parts that are written and copied are memory that the kernel has to find first: a tenth of the CPU of all."""
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


def make_metrics(run_spec: RunSpec) -> list[FoldingMetric]:
    """Return the metrics of a run whose rows can wait."""
    made = [create_metric(spec) for spec in run_spec.metric_specs]
    return [metric for metric in made if isinstance(metric, FoldingMetric)]


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

    def __str__(self) -> str:
        return f"rows {self.first + 1:,} to {self.first + self.number:,}"

    @property
    def number(self) -> int:
        """How many they are."""
        return len(self.rows)

    def split(self) -> Sequence[RowsTask]:
        """Return the task as several, down to a row each, so that one that ends its worker can be named."""
        size = max(1, self.number // 10)
        return [RowsTask(self.rows[i : i + size], self.first + i) for i in range(0, self.number, size)]


class RecordedWorker:
    """Scores rows, in any process."""

    def __init__(self, run_spec: RunSpec, facts: RunFacts, stored: StoredRows | None, folder: Path | None) -> None:
        """`stored`: where the rows of tasks are, unless they come with them.

        `folder`: where parts of files are written; None: they are returned.
        """
        adaptation.install()
        metrics = make_metrics(run_spec)
        # Nothing is asked of the service: recorded deployments have no tokenizer.
        self._work = BatchWork(run_spec, metrics, MetricService(None), [facts] * len(metrics))
        self._stored = stored
        self._folder = folder
        self._states = RecordedStates(run_spec.adapter_spec)
        self._scoring = make_run_scoring(run_spec.metric_specs[0], run_spec.scenario_spec.args["main_metric"])
        self._unmeasured = facts.unmeasured
        self._annotators: Sequence[Any] = [create_object(spec) for spec in run_spec.annotators or ()]
        self._renderer = StatRenderer()

    def __call__(self, task: RowsTask) -> PartResult:
        """Score the rows of a task, and write or return its parts of the run's files."""
        number = task.number
        summaries: list[list[Any]] = []
        if isinstance(task.rows, list):
            rows = consume(task.rows)
        else:
            assert self._stored is not None
            rows = self._stored.make_rows(task.rows)
        with garbage.paused(), RowParts(self._renderer, self._folder, f"{task.first}-{number}") as parts:
            while instances := list(itertools.islice(rows, BATCH_ROWS)):
                states = self._states.rebuild(instances)
                if task.first == 0 and not summaries:
                    tell_scoring(states[0].instance, self._scoring, self._unmeasured)
                recorded.hand_back(states)
                annotate(self._annotators, states)
                batch = self._work.measure(states)
                summaries.append(batch.summaries)
                parts.write(states, batch.segments)
            return PartResult(number, summaries, parts.finish())


def iter_tasks(rows: StoredRows, places: NDArray[np.intp], size: int, *, sends: bool) -> Iterator[RowsTask]:
    """Yield tasks of `size` rows each. `sends`: whether the rows go along, to workers that cannot read the store."""
    for first in range(0, len(places), size):
        some = places[first : first + size]
        yield RowsTask(list(rows.read(some)) if sends else rows.keys[some], first)
