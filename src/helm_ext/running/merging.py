"""Runs of the shards of a dataset as one run: its stats are those of one run of all rows, to the last bit.

HELM's stats are sums of floats in the order of the rows, and some (calibration, intervals) want a number of each row;
means of shards do not add up to them. So the rows' Stats are read again, in order, and added up as the run's metrics
add up batches (`fold`). Each shard's own are added up apart too, and must come to its `stats.json`: what cannot be
added up again (a file that was changed, a stat that another version counts otherwise) is refused, not guessed.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from helm.benchmark.metrics.metric import create_metric
from helm.benchmark.runner import remove_stats_nans
from helm.benchmark.scenarios.scenario import create_scenario

from helm_ext.adaptation.recorded import name_unmeasured
from helm_ext.errors import DatasetIntegrityError, HelmExtError, RunEntryError
from helm_ext.evalset import garbage
from helm_ext.evalset.columns import Lacks
from helm_ext.evalset.folding import FoldingMetric, RunFacts
from helm_ext.fast.sampling import sampling_number
from helm_ext.fast.serialise import to_plain
from helm_ext.files.staged import staged
from helm_ext.running.fold import BATCH_ROWS, BatchWork, RunFiles, RunTotals
from helm_ext.running.shard_rows import MeasuredStats, iter_rows
from helm_ext.scoring.completeness import LOGPROB_STATS

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.metrics.metric import PerInstanceStats
    from helm.benchmark.metrics.statistic import Stat
    from helm.benchmark.run_spec import RunSpec
    from helm.benchmark.scenarios.scenario import Instance
    from numpy.typing import NDArray

    from helm_ext.analysis.run_files import RunFiles as FinishedFiles
    from helm_ext.running.progress import Progress

__all__ = ["Shard", "count_rows", "merge_runs", "open_shard"]

JSONObject = dict[str, Any]

_BY_NAME = name_unmeasured(Lacks.TOKENS | Lacks.TRAIN_INSTANCES | Lacks.TRUNCATED)
"""Stats that every row has, unless a run says that nobody measured them."""

_CLOSE = 1e-9
"""Of what is computed from sums (logarithms, quantiles), the last digits may depend on the machine."""
_FITTED = "platt_"
"""Stats of a fit, which another version of scikit-learn ends elsewhere."""


@dataclass(frozen=True)
class Shard:
    """A finished run that is to be merged."""

    files: FinishedFiles
    facts: RunFacts
    rows: int
    """Those that were evaluated, the ones that were left out included."""


def open_shard(files: FinishedFiles, run_spec: RunSpec) -> Shard:
    """Return a run as a shard. Raises RunEntryError where its stats cannot be added up from its rows' stats."""
    for spec in run_spec.metric_specs:
        try:
            metric = create_metric(spec)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise RunEntryError(
                f"{files.folder}: its metric {spec.class_name} cannot be made here: {error}\n"
                "  hint: install the package that it is of, in the version that made the run"
            ) from error
        if not isinstance(metric, FoldingMetric):
            raise RunEntryError(
                f"{files.folder}: its metric {spec.class_name} wants all rows at once: what it makes of shards cannot "
                "be merged exactly\n  hint: one run of all rows; metrics of helm-ext can be merged"
            )
    with files.blaming("stats.json"):
        names = [stat["name"] for stat in files.stats]
        if any((name.get("perturbation") or {}).get("computed_on", "worst") != "worst" for name in names):
            raise RunEntryError(
                f"{files.folder}: its rows are perturbed: worst cases want all rows at once, and cannot be merged\n"
                "  hint: one run of all rows"
            )
        return Shard(files, _find_facts({name["name"] for name in names}), count_rows(files.stats))


def count_rows(stats: Sequence[JSONObject]) -> int:
    """Return how many rows a run evaluated, by its stats: those that were scored and those that were left out."""
    counts = [
        stat["mean"]
        for stat in stats
        if stat["name"]["name"] in ("num_instances", "num_left_out") and stat.get("mean") is not None
    ]
    return round(sum(counts))


def _find_facts(names: set[str]) -> RunFacts:
    """Return what the run left out of all its rows, by what its stats do not have.

    Rows that were left out say nothing of it: where there are no others, nothing is missing.
    """
    if "num_instances" not in names:
        return RunFacts()
    unmeasured = {name for name in _BY_NAME if name not in names}
    if names.isdisjoint(("logprob", "max_prob")):
        unmeasured |= LOGPROB_STATS
    return RunFacts(unmeasured=frozenset(unmeasured))


def merge_runs(
    shards: Sequence[Shard], run_spec: RunSpec, folder: Path, progress: Progress, *, sample: int | None = None
) -> tuple[int, int]:
    """Write the run of all rows of the shards, in their order, to `folder`; return its rows and those that it keeps.

    `sample`: about so many rows are kept in the files of rows, the same ones whatever model answered; None: all. Stats
    are those of all rows. Memory: that of a batch, and some 40 bytes a row.

    Raises DatasetIntegrityError for a shard that is not what its stats say, or a row that two shards have, and then
    writes nothing; OSError.
    """
    total = sum(shard.rows for shard in shards)
    limit = None if sample is None or sample >= total else 2**64 * sample // total
    first = shards[0].files.scenario
    scenario = create_scenario(run_spec.scenario_spec)
    scenario.description, scenario.tags = first.get("description", ""), first.get("tags") or []
    folder.mkdir(parents=True, exist_ok=True)
    with garbage.paused(), staged(folder) as files, RunFiles(files, run_spec, scenario) as written:
        merge = _Merge(run_spec, shards, folder, written, limit)
        for shard in shards:
            with shard.files.blaming("scenario_state.json and per_instance_stats.json"):
                merge.add(shard, progress)
        written.finish(merge.totals.to_stats())
    return merge.rows, merge.kept


class _Merge:
    """Adds shards to a run."""

    def __init__(
        self, run_spec: RunSpec, shards: Sequence[Shard], folder: Path, files: RunFiles, limit: int | None
    ) -> None:
        self.run_spec = run_spec
        self.facts = RunFacts(unmeasured=frozenset().union(*(shard.facts.unmeasured for shard in shards)))
        self.rows = self.kept = 0
        self._folder = folder
        self._files = files
        self._limit = limit
        self._stats = MeasuredStats()
        self._ids = _Ids([shard.files.folder for shard in shards])
        self._metrics = [one for one in map(create_metric, run_spec.metric_specs) if isinstance(one, FoldingMetric)]
        self._work, self.totals = self._begin(self.facts)

    def _begin(self, facts: RunFacts) -> tuple[BatchWork, RunTotals]:
        every = [facts] * len(self._metrics)
        work = BatchWork(self.run_spec, self._metrics, self._stats, every)
        return work, RunTotals(self.run_spec, self._metrics, every)

    def add(self, shard: Shard, progress: Progress) -> None:
        """Add the rows of a shard. Raises DatasetIntegrityError."""
        own_work, own_totals = self._begin(shard.facts)
        self._stats.open(shard.files.folder / "per_instance_stats.json")
        self._ids.start()
        try:
            for states, former in self._read(shard):
                self._stats.start_batch(former)
                own = own_work.measure(states)
                merged = own if shard.facts == self.facts else self._work.measure(states)
                own_totals.add(own.summaries)
                self.totals.add(merged.summaries)
                self._write(merged.segments)
                progress.done(len({id(state.instance) for state in states}))
        finally:
            self._stats.close()
        _require_same(shard, own_totals.to_stats())

    def _read(self, shard: Shard) -> Iterator[tuple[list[RequestState], dict[str, str]]]:
        """Write the request states of a shard, and yield them by batches; and by their new ids, those that rows had.

        Where there are several trials, the states of a row may stand anywhere: then there is one batch.
        """
        waits = self.run_spec.adapter_spec.num_train_trials > 1
        rows = iter_rows(shard.files.folder / "scenario_state.json")
        states: list[RequestState] = []
        former: dict[str, str] = {}
        instances: dict[str, Instance] = {}
        while batch := list(itertools.islice(rows, BATCH_ROWS)):
            new = [row for row in batch if row.instance_id not in instances]
            self.rows += len(new)
            names = self._ids.choose([row.instance_id for row in new], [row.content for row in new])
            for row, name in zip(new, names, strict=True):
                instances[row.instance_id] = row.make_instance(name)
                if name != row.instance_id:
                    former[name] = row.instance_id
                self.kept += self._is_kept(name)
            encoded: list[bytes] = []
            for row in batch:
                instance = instances[row.instance_id]
                states += row.make_states(instance)
                if self._is_kept(str(instance.id)):
                    encoded += row.encode_as(str(instance.id))
            if encoded:
                with self._writing():
                    self._files.rows.states.add_encoded(b",\n".join(encoded))
            if not waits:
                yield states, former
                states, former, instances = [], {}, {}
        if states:
            yield states, former

    def _is_kept(self, instance_id: str) -> bool:
        return self._limit is None or sampling_number(instance_id) < self._limit

    def _write(self, segments: Sequence[Sequence[PerInstanceStats]]) -> None:
        if self._limit is not None:
            segments = [[row for row in segment if self._is_kept(row.instance_id)] for segment in segments]
        with self._writing():
            self._files.rows.write([], segments)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raise HelmExtError for what cannot be written: no file of a shard is to be blamed for it."""
        try:
            yield
        except OSError as error:
            raise HelmExtError(f"{self._folder}: cannot be written: {error.strerror}") from error


def _require_same(shard: Shard, stats: Sequence[Stat]) -> None:
    """Raise DatasetIntegrityError unless the stats are those that the run has."""
    made = {_key(stat): stat for stat in map(to_plain, remove_stats_nans(list(stats)))}
    known = {_key(stat): stat for stat in shard.files.stats}
    for key in {**known, **made}:
        said, found = known.get(key), made.get(key)
        if said is None or found is None or not _agree(said, found):
            what = [
                "nothing" if one is None else f"mean {one.get('mean')} of {one.get('count')} values"
                for one in (said, found)
            ]
            raise DatasetIntegrityError(
                f"{shard.files.folder}: its stats.json is not what its rows add up to: {key}: {what[0]}, and of the "
                f"rows {what[1]}\n  hint: a file was changed, or written by another version of helm-ext, or modules "
                "that it was computed with are missing here: run the shard again"
            )


def _key(stat: JSONObject) -> str:
    name = stat["name"]
    return str(name["name"]) + "".join(f" {key}={value}" for key, value in name.items() if key != "name")


def _agree(one: JSONObject, other: JSONObject) -> bool:
    if one["name"]["name"].startswith(_FITTED):
        return True
    return one.keys() == other.keys() and all(
        math.isclose(one[key], other[key], rel_tol=_CLOSE, abs_tol=_CLOSE) for key in one if key != "name"
    )


class _Ids:
    """Chooses the ids of rows: those of their runs, but for rows of two shards that have one id.

    Holds 20 bytes a row: hashes of ids, and of rows, sorted up to the last shard.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._shard = 0
        self._names = np.empty(0, np.int64)
        self._rows = np.empty(0, np.int64)
        self._shards = np.empty(0, np.uint32)
        self._new_names = array("q")
        self._new_rows = array("q")
        self._made: set[int] = set()
        """Of this shard's ids, those that were made."""

    def start(self) -> None:
        """Go on with the next shard."""
        self._names = np.sort(np.concatenate([self._names, np.frombuffer(self._new_names, np.int64)]), kind="stable")
        rows = np.concatenate([self._rows, np.frombuffer(self._new_rows, np.int64)])
        shards = np.concatenate([self._shards, np.full(len(self._new_rows), self._shard, np.uint32)])
        order = np.argsort(rows, kind="stable")
        self._rows, self._shards = rows[order], shards[order]
        self._new_names, self._new_rows, self._made = array("q"), array("q"), set()
        self._shard += 1

    def choose(self, ids: Sequence[str], contents: Sequence[bytes]) -> list[str]:
        """Return the ids of the next rows. Raises DatasetIntegrityError for a row that an earlier shard has."""
        rows = array("q", map(hash, zip(ids, contents, strict=True)))
        places, found = _find(self._rows, rows)
        for number in np.flatnonzero(found).tolist():
            earlier = self._folders[self._shards[places[number]] - 1]
            raise DatasetIntegrityError(
                f"{earlier} and {self._folders[self._shard - 1]}: both have the row {ids[number]!r}, with the same "
                "question and references\n  hint: shards must not overlap; rows that are meant to count twice need "
                "ids of their own"
            )
        hashed = array("q", map(hash, ids))
        _, is_taken = _find(self._names, hashed)
        names = list(ids)
        for number, taken in enumerate(is_taken.tolist()):
            if taken or hashed[number] in self._made:
                names[number] = self._make(ids[number])
                hashed[number] = hash(names[number])
        self._new_names.extend(hashed)
        self._new_rows.extend(rows)
        return names

    def _make(self, base: str) -> str:
        """Return an id that no row has: with the number of the shard behind it."""
        for number in itertools.count(self._shard):
            name = f"{base}-{number}"
            hashed = hash(name)
            if hashed not in self._made and not _find(self._names, array("q", [hashed]))[1][0]:
                self._made.add(hashed)
                return name
        raise AssertionError


def _find(known: NDArray[np.int64], wanted: array[int]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where values stand in a sorted array, and whether they are there."""
    values = np.frombuffer(wanted, np.int64)
    if not len(known):
        return np.zeros(len(values), np.intp), np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return places, known[places] == values
