"""Runs of the shards of a dataset as one run: its stats are those of one run of all rows, to the last bit.

HELM's stats are sums of floats in the order of the rows, and some (calibration, intervals) want a number of each row;
means of shards do not add up to them. So the rows' Stats are streamed, in order, and added up as the run's metrics add
up batches (`fold`). Each shard's own are added up apart too, and must come to its `stats.json`: what cannot be added up
again (a file that was changed, a stat that another version counts otherwise) is refused, not guessed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from helm.benchmark.metrics.metric import create_metric
from helm.benchmark.runner import remove_stats_nans
from helm.benchmark.scenarios.scenario import create_scenario

from helm_ext.adaptation.recorded import name_unmeasured
from helm_ext.adaptation.run_scoring import make_run_scoring, with_unmeasured
from helm_ext.errors import DatasetIntegrityError, RunEntryError
from helm_ext.evalset import garbage
from helm_ext.evalset.folding import FoldingMetric, RunFacts
from helm_ext.evalset.rows import Lacks
from helm_ext.fast.sampling import sampling_number
from helm_ext.fast.serialise import to_plain
from helm_ext.files.staged import staged
from helm_ext.running.fold import Batch, BatchWork, RunFiles, RunTotals
from helm_ext.running.shard_rows import MeasuredStats, ShardRow, iter_rows
from helm_ext.scoring.completeness import LOGPROB_STATS

if TYPE_CHECKING:
    from helm.benchmark.metrics.statistic import Stat
    from helm.benchmark.run_spec import RunSpec
    from numpy.typing import NDArray

    from helm_ext.analysis.run_files import RunFiles as FinishedFiles
    from helm_ext.engines.progress import Progress

__all__ = ["Shard", "merge_runs", "open_shard"]

JSONObject = dict[str, Any]

BATCH_ROWS = 1_000
"""Little of a row is kept here, so a batch has more of them than in a run."""

_BY_NAME = name_unmeasured(Lacks.TOKENS | Lacks.TRAIN_INSTANCES | Lacks.TRUNCATED)
"""Stats that every row has, unless a run says that nobody measured them."""

_CLOSE = 1e-9
"""Of what is computed from sums (logarithms, quantiles), the last digits may depend on the machine."""
_FITTED = "platt_"
"""Stats of a fit, which another version of scipy, or HELM's scikit-learn, ends elsewhere."""


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
        counts = [
            stat["mean"]
            for stat in files.stats
            if stat["name"]["name"] in ("num_instances", "num_left_out") and stat.get("mean") is not None
        ]
        return Shard(files, _find_facts({name["name"] for name in names}), round(sum(counts)))


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
    are those of all rows. Memory: that of a batch, and of each row what its metrics want of it (calibration,
    intervals) and two hashes.

    Raises DatasetIntegrityError for a shard that is not what its stats say, or a row that two shards have, and then
    writes nothing; HelmExtError for a full disk; OSError.
    """
    total = sum(shard.rows for shard in shards)
    limit = 2**64 if sample is None or sample >= total else 2**64 * sample // total
    first = shards[0].files.scenario
    scenario = create_scenario(run_spec.scenario_spec)
    scenario.description, scenario.tags = first.get("description", ""), first.get("tags") or []
    folder.mkdir(parents=True, exist_ok=True)
    reader = _Reader(run_spec, shards)
    totals, rows, kept = reader.make_totals(reader.facts), 0, 0
    with garbage.paused(), staged(folder) as files, RunFiles(files, run_spec, scenario) as written:
        for shard in shards:
            own = reader.make_totals(shard.facts)
            for batch in reader.read(shard):
                own.add(batch.own.summaries)
                totals.add(batch.merged.summaries)
                keeps = {row.id for row in batch.rows if sampling_number(row.id) < limit}
                encoded = [one for row in batch.rows if row.id in keeps for one in row.encode()]
                if encoded:
                    written.rows.states.add_encoded(b",\n".join(encoded))
                written.rows.write(
                    [], [[row for row in rows if row.instance_id in keeps] for rows in batch.merged.segments]
                )
                rows += len({row.id for row in batch.rows})
                kept += len(keeps)
                progress.done(len(batch.rows))
            _require_same(shard, own.to_stats())
        progress.step = "adding up"
        written.finish(totals.to_stats())
    return rows, kept


class _Batch(NamedTuple):
    """Some rows of a shard, and what the metrics say of them: for its own run, and for that of all rows."""

    rows: list[ShardRow]
    own: Batch
    merged: Batch


class _Reader:
    """Reads the rows of shards, one shard after the other."""

    def __init__(self, run_spec: RunSpec, shards: Sequence[Shard]) -> None:
        self._run_spec = run_spec
        self._metrics = [
            metric for metric in map(create_metric, run_spec.metric_specs) if isinstance(metric, FoldingMetric)
        ]
        self._stats = MeasuredStats()
        self._ids = _Ids()
        self.facts = RunFacts(unmeasured=frozenset().union(*(shard.facts.unmeasured for shard in shards)))
        scoring = make_run_scoring(run_spec.metric_specs[0], run_spec.scenario_spec.args["main_metric"])
        self._scoring = with_unmeasured(scoring, self.facts.unmeasured)
        self._is_first = True

    def make_totals(self, facts: RunFacts) -> RunTotals:
        """Return what adds up the batches of a run of which this is so."""
        return RunTotals(self._run_spec, self._metrics, [facts] * len(self._metrics))

    def _begin(self, facts: RunFacts) -> BatchWork:
        return BatchWork(self._run_spec, self._metrics, self._stats, [facts] * len(self._metrics))

    def read(self, shard: Shard) -> Iterator[_Batch]:
        """Yield the rows by batches, under the ids that they get. Raises DatasetSyntaxError, DatasetIntegrityError.

        Where there are several trials, the states of a row may stand anywhere: then there is one batch.
        """
        folder = shard.files.folder
        size = BATCH_ROWS if self._run_spec.adapter_spec.num_train_trials == 1 else None
        own = merged = self._begin(self.facts)
        if shard.facts != self.facts:
            own = self._begin(shard.facts)
        with shard.files.blaming("scenario_state.json and per_instance_stats.json"):
            self._stats.open(folder / "per_instance_stats.json")
            found = iter_rows(folder / "scenario_state.json", self._scoring if self._is_first else None)
            while rows := list(itertools.islice(found, size)):
                self._ids.choose(folder, rows)
                instances = {row.id: row.make_instance() for row in rows}
                states = [state for row in rows for state in row.make_states(instances[row.id])]
                self._stats.start_batch({row.id: row.shard_id for row in rows})
                measured = merged.measure(states)
                yield _Batch(rows, measured if own is merged else own.measure(states), measured)
            self._stats.close()
        self._ids.finish(folder)
        self._is_first = False


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


class _Known(NamedTuple):
    """A shard that was read: hashes of the ids that its rows got, and of the rows, each sorted."""

    folder: Path
    ids: NDArray[np.uint64]
    rows: NDArray[np.uint64]


class _Ids:
    """Chooses the ids of rows: those of their runs, with the shard's number where an earlier shard has that id."""

    def __init__(self) -> None:
        self._known: list[_Known] = []
        self._ids: list[NDArray[np.uint64]] = []
        self._rows: list[NDArray[np.uint64]] = []

    def choose(self, folder: Path, rows: Sequence[ShardRow]) -> None:
        """Set the ids of the shard's next rows. Raises DatasetIntegrityError for a row that an earlier shard has."""
        by_id = {row.shard_id: row for row in rows}
        contents = _to_array(row.hash_content() for row in by_id.values())
        for known in self._known:
            for place in np.flatnonzero(_is_in(known.rows, contents)):
                raise DatasetIntegrityError(
                    f"{known.folder} and {folder}: both have the row {[*by_id][place]!r}, with the same question and "
                    "references\n  hint: shards must not overlap; rows that are meant to count twice need ids of their "
                    "own"
                )
        are_taken = self._are_taken(_to_array(map(sampling_number, by_id))).tolist()
        taken = {shard_id for shard_id, is_taken in zip(by_id, are_taken, strict=True) if is_taken}
        for row in rows:
            if row.shard_id in taken:
                row.id = f"{row.shard_id}-{len(self._known) + 1}"
        self._ids.append(_to_array(sampling_number(row.id) for row in by_id.values()))
        self._rows.append(contents)

    def finish(self, folder: Path) -> None:
        """Go on with the next shard. Raises DatasetIntegrityError where an id that was made is that of another row."""
        ids, rows = (np.sort(np.concatenate([*these, _to_array([])])) for these in (self._ids, self._rows))
        if (ids[1:] == ids[:-1]).any() or self._are_taken(ids).any():
            raise DatasetIntegrityError(
                f"{folder}: ids that earlier shards have get the number of this one, and then are those of other rows\n"
                "  hint: give the rows of each shard ids of their own"
            )
        self._known.append(_Known(folder, ids, rows))
        self._ids, self._rows = [], []

    def _are_taken(self, numbers: NDArray[np.uint64]) -> NDArray[np.bool_]:
        found = np.zeros(len(numbers), np.bool_)
        for known in self._known:
            found |= _is_in(known.ids, numbers)
        return found


def _to_array(numbers: Iterable[int]) -> NDArray[np.uint64]:
    return np.fromiter(numbers, np.uint64)


def _is_in(known: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether values are in a sorted array."""
    if not len(known):
        return np.zeros(len(wanted), np.bool_)
    return known[np.minimum(np.searchsorted(known, wanted), len(known) - 1)] == wanted
