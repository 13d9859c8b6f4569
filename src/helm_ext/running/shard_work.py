"""What a worker makes of some rows of a shard: sums of their stats, hashes of them, and their parts of the files.

    span of a shard's files ──ShardWorker, in any process──▶ SpanResult ──merging, in order──▶ the run

A span is read once. Under which ids its rows are written depends on the rows before; a task says what is guessed, and
is done again with the right ids where it was guessed wrong. Nothing else that a worker makes depends on them.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from helm.benchmark.metrics.metric import create_metric

from helm_ext.adaptation.run_scoring import make_run_scoring, with_unmeasured
from helm_ext.analysis.run_files import RunFiles
from helm_ext.errors import HelmExtError
from helm_ext.evalset import garbage
from helm_ext.evalset.folding import FoldingMetric, RunFacts
from helm_ext.fast.sampling import sampling_number
from helm_ext.running.fold import BatchWork, PartFiles, RunTotals
from helm_ext.running.shard_rows import MeasuredStats, ShardRow, Spans, iter_rows

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec
    from helm.benchmark.scenarios.scenario import Instance

__all__ = ["ShardWork", "SpanResult", "SpanTask", "writing_to"]

BATCH_ROWS = 1_000
"""Rows of a batch. Little of a row is kept here, so more of them than in a run: with 200 a row costs the driver twice
as much, and the worker an eighth more (W1)."""


class SpanTask(NamedTuple):
    """Rows of a shard to add up. Can be pickled, and done twice."""

    number: int
    shard: int
    folder: Path
    """Of the run."""
    spans: Spans
    suffix: int | None = None
    """Every row's id gets it; None: none does."""
    names: Sequence[str] | None = None
    """The rows' ids, where they are known."""

    def __str__(self) -> str:
        return f"rows of {self.folder}, from byte {self.spans.states[0] if self.spans.states else 0} of their file"


class SpanResult(NamedTuple):
    """What became of a task."""

    task: SpanTask
    ids: list[str]
    """Of the rows, in the runs of their shards."""
    names: list[str]
    """Under which they are written."""
    numbers: array[int]
    """Of the ids: `sampling_number`."""
    contents: array[int]
    """Of the rows: `ShardRow.hash_content`."""
    kept: int
    summaries: list[tuple[list[Any], list[Any]]]
    """Of each batch: those of the shard's own run, and those of the run of all rows."""
    parts: Sequence[Path | bytes]
    """As `PartResult.parts` of a recorded run."""


@dataclass(frozen=True)
class ShardWork:
    """How spans are added up: what every process must know. Can be pickled."""

    run_spec: RunSpec
    facts: Sequence[RunFacts]
    """Of each shard."""
    merged: RunFacts
    """Of all rows."""
    folder: Path
    """Of the merged run."""
    limit: int | None
    """Rows are kept whose `sampling_number` is smaller; None: all."""
    parts_folder: Path | None = None
    """Where parts of files are written; None where they are sent."""

    def begin(self) -> ShardWorker:
        """Return what does the tasks, in this process."""
        return ShardWorker(self)

    def make_metrics(self) -> list[FoldingMetric]:
        """Return the run's metrics."""
        made = map(create_metric, self.run_spec.metric_specs)
        return [metric for metric in made if isinstance(metric, FoldingMetric)]

    def make_totals(self, facts: RunFacts) -> RunTotals:
        """Return what adds up the summaries of a run of which this is so."""
        metrics = self.make_metrics()
        return RunTotals(self.run_spec, metrics, [facts] * len(metrics))


class ShardWorker:
    """Adds up spans of rows."""

    def __init__(self, work: ShardWork) -> None:
        self._work = work
        self._stats = MeasuredStats()
        self._metrics = work.make_metrics()
        self._of_facts: dict[RunFacts, BatchWork] = {}
        scoring = make_run_scoring(work.run_spec.metric_specs[0], work.run_spec.scenario_spec.args["main_metric"])
        self._scoring = with_unmeasured(scoring, work.merged.unmeasured)

    def _get_work(self, facts: RunFacts) -> BatchWork:
        found = self._of_facts.get(facts)
        if found is None:
            every = [facts] * len(self._metrics)
            found = self._of_facts[facts] = BatchWork(self._work.run_spec, self._metrics, self._stats, every)
        return found

    def __call__(self, task: SpanTask) -> SpanResult:
        """Add up the rows of a task, and write or return their parts of the run's files.

        Raises DatasetSyntaxError for files that are not as HELM writes them, and HelmExtError for a disk that is full.
        """
        with garbage.paused(), RunFiles(task.folder).blaming("scenario_state.json and per_instance_stats.json"):
            try:
                return self._add(task)
            finally:
                self._stats.release()

    def _add(self, task: SpanTask) -> SpanResult:
        own_facts, merged_facts = self._work.facts[task.shard], self._work.merged
        own_work, merged_work = self._get_work(own_facts), self._get_work(merged_facts)
        self._stats.open(task.folder / "per_instance_stats.json", task.spans.stats)
        named = _Named(task)
        result = SpanResult(task, named.ids, named.names, named.numbers, named.contents, 0, [], [])
        kept, limit = 0, self._work.limit
        with ExitStack() as stack:
            with writing_to(self._work.folder):
                parts = stack.enter_context(PartFiles(self._work.parts_folder, str(task.number)))
            for batch in self._read(task, named):
                self._stats.start_batch(batch.former)
                own = own_work.measure(batch.states)
                merged = own if own_facts == merged_facts else merged_work.measure(batch.states)
                result.summaries.append((own.summaries, merged.summaries))
                keeps = batch.names.keys() if limit is None else [n for n in batch.names if sampling_number(n) < limit]
                kept += len(keeps)
                scoring = None if task.shard else self._scoring
                encoded = [one for row, name in batch.rows if name in keeps for one in row.encode_as(name, scoring)]
                segments = merged.segments
                if len(keeps) < len(batch.names):
                    segments = [[row for row in segment if row.instance_id in keeps] for segment in segments]
                with writing_to(self._work.folder):
                    if encoded:
                        parts.rows.states.add_encoded(b",\n".join(encoded))
                    parts.rows.write([], segments)
            with writing_to(self._work.folder):
                return result._replace(kept=kept, parts=parts.finish())

    def _read(self, task: SpanTask, named: _Named) -> Iterator[_Batch]:
        """Yield the rows by batches.

        Where there are several trials, the states of a row may stand anywhere: then there is one batch.
        """
        waits = self._work.run_spec.adapter_spec.num_train_trials > 1
        rows = iter_rows(task.folder / "scenario_state.json", task.spans.states)
        batch = _Batch()
        while some := list(itertools.islice(rows, BATCH_ROWS)):
            for row in some:
                instance = batch.instances.get(row.instance_id)
                if instance is None:
                    instance = batch.instances[row.instance_id] = row.make_instance(named.name(row))
                name = str(instance.id)
                if name not in batch.names:
                    batch.names[name] = None
                    if name != row.instance_id:
                        batch.former[name] = row.instance_id
                batch.rows.append((row, name))
                batch.states += row.make_states(instance)
            if not waits:
                yield batch
                batch = _Batch()
        if batch.rows:
            yield batch


class _Batch:
    """Some rows."""

    def __init__(self) -> None:
        self.rows: list[tuple[ShardRow, str]] = []
        self.states: list[RequestState] = []
        self.names: dict[str, None] = {}
        self.former: dict[str, str] = {}
        """Of rows with another id now: the one that they have in their run."""
        self.instances: dict[str, Instance] = {}
        """By their ids in the run."""


class _Named:
    """The rows of a task, and their ids."""

    def __init__(self, task: SpanTask) -> None:
        self.ids: list[str] = []
        self.names: list[str] = []
        self.numbers = array("Q")
        self.contents = array("Q")
        self._task = task

    def name(self, row: ShardRow) -> str:
        """Return the id of the next row."""
        given, suffix, shard_id = self._task.names, self._task.suffix, row.shard_id
        name = row.instance_id
        if given is not None:
            name = given[len(self.ids)]
        elif suffix is not None:
            name = f"{shard_id}-{suffix}"
        self.ids.append(shard_id)
        self.names.append(name)
        self.numbers.append(sampling_number(shard_id))
        self.contents.append(row.hash_content())
        return name


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Raise HelmExtError for what cannot be written: no file of a shard is to be blamed for it."""
    try:
        yield
    except OSError as error:
        raise HelmExtError(f"{folder}: cannot be written: {error.strerror}") from error
