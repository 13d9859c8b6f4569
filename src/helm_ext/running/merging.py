"""Runs of the shards of a dataset as one run: its stats are those of one run of all rows, to the last bit.

HELM's stats are sums of floats in the order of the rows, and some (calibration, intervals) want a number of each row;
means of shards do not add up to them. So the rows' Stats are streamed, in order, and added up as the run's metrics add
up batches (`fold`). Each shard's own are added up apart too, and must come to its `stats.json`: what cannot be added up
again (a file that was changed, a stat that another version counts otherwise) is refused, not guessed.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from helm.benchmark.metrics.metric import create_metric
from helm.benchmark.runner import remove_stats_nans
from helm.benchmark.scenarios.scenario import create_scenario

from helm_ext.adaptation.rebuilding import make_run_scoring, with_unmeasured
from helm_ext.adaptation.recorded import name_unmeasured
from helm_ext.errors import DatasetIntegrityError, RunEntryError
from helm_ext.evalset import garbage
from helm_ext.evalset.rows import Lacks
from helm_ext.files.staged import staged
from helm_ext.running.fold import Batch, BatchWork, RowParts, RunFiles, RunTotals
from helm_ext.running.serialise import StatRenderer, to_plain
from helm_ext.running.shard_rows import MeasuredStats, ShardRow, iter_rows
from helm_ext.scoring.completeness import LOGPROB_STATS
from helm_ext.scoring.folding import FoldingMetric, RunFacts

if TYPE_CHECKING:
    from helm.benchmark.metrics.statistic import Stat
    from helm.benchmark.run_spec import RunSpec
    from numpy.typing import NDArray

    from helm_ext.analysis.runs import RunFiles as FinishedFiles
    from helm_ext.engines.progress import Progress
    from helm_ext.evalset import RunScoring

    Hashes = NDArray[np.uint64]

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


def merge_runs(shards: Sequence[Shard], run_spec: RunSpec, folder: Path, progress: Progress) -> int:
    """Write the run of all rows of the shards, in their order, to `folder`; return how many rows it has.

    Memory: that of a batch, and of each row what its metrics want of it (calibration, intervals), two hashes, and of
    the rows of one shard where each stands in its files.

    Raises DatasetIntegrityError for a shard that is not what its stats say, or a row that two shards have, and then
    writes nothing; HelmExtError for a full disk; OSError.
    """
    first = shards[0].files.scenario
    scenario = create_scenario(run_spec.scenario_spec)
    scenario.description, scenario.tags = first.get("description", ""), first.get("tags") or []
    folder.mkdir(parents=True, exist_ok=True)
    merging, renderer = _Merging(run_spec, shards), StatRenderer()
    rows, totals = 0, merging.make_totals(merging.facts)
    with garbage.paused(), staged(folder) as files, RunFiles(files, run_spec, scenario) as written:
        for shard in shards:
            own = merging.make_totals(shard.facts)
            for batch in merging.read(shard):
                own.add(batch.own.summaries)
                totals.add(batch.merged.summaries)
                with RowParts(renderer) as parts:
                    parts.write([state for row in batch.rows for state in row.states], batch.merged.segments)
                    written.join(parts.finish())
                rows += len({row.id for row in batch.rows})
                progress.done(len(batch.rows))
            _require_same(shard, own.to_stats())
        progress.step = "adding up"
        written.finish(totals.to_stats())
    return rows


class _Batch(NamedTuple):
    """Some rows of a shard, and what the metrics say of them: for its own run, and for that of all rows."""

    rows: list[ShardRow]
    own: Batch
    merged: Batch


class _Merging:
    """Reads the rows of shards, one shard after the other."""

    def __init__(self, run_spec: RunSpec, shards: Sequence[Shard]) -> None:
        self._run_spec = run_spec
        self._metrics = [
            metric for metric in map(create_metric, run_spec.metric_specs) if isinstance(metric, FoldingMetric)
        ]
        self._ids = _Ids()
        self.facts = RunFacts(unmeasured=frozenset().union(*(shard.facts.unmeasured for shard in shards)))
        scoring = make_run_scoring(run_spec.metric_specs[0], run_spec.scenario_spec.args["main_metric"])
        self._scoring: RunScoring | None = with_unmeasured(scoring, self.facts.unmeasured)

    def make_totals(self, facts: RunFacts) -> RunTotals:
        """Return what adds up the batches of a run of which this is so."""
        return RunTotals(self._run_spec, self._metrics, [facts] * len(self._metrics))

    def read(self, shard: Shard) -> Iterator[_Batch]:
        """Yield the rows by batches, under the ids that they get. Raises DatasetSyntaxError, DatasetIntegrityError.

        Where there are several trials, the states of a row may stand anywhere: then there is one batch.
        """
        folder = shard.files.folder
        size = BATCH_ROWS if self._run_spec.adapter_spec.num_train_trials == 1 else None
        with (
            shard.files.blaming("scenario_state.json and per_instance_stats.json"),
            closing(MeasuredStats(folder / "per_instance_stats.json")) as stats,
        ):
            works = {
                facts: BatchWork(self._run_spec, self._metrics, stats, [facts] * len(self._metrics))
                for facts in (self.facts, shard.facts)
            }
            found = iter_rows(folder / "scenario_state.json")
            while rows := list(itertools.islice(found, size)):
                self._ids.choose(folder, rows)
                for row in rows:
                    row.tell_scoring(self._scoring)
                instances = {row.id: row.make_instance() for row in rows}
                states = [state for row in rows for state in row.make_states(instances[row.id])]
                stats.shard_ids = {row.id: row.shard_id for row in rows}
                measured = {facts: work.measure(states) for facts, work in works.items()}
                yield _Batch(rows, measured[shard.facts], measured[self.facts])
        self._ids.finish(folder)
        self._scoring = None  # it stands with the first row


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
    """Chooses the ids of rows: those of their runs, with the shard's number where an earlier shard has that id."""

    def __init__(self) -> None:
        self._known: list[tuple[Path, Hashes, Hashes]] = []
        """Of each shard that was read: its folder, hashes of the ids that its rows got, and of the rows, sorted."""
        self._ids: list[Hashes] = []
        self._rows: list[Hashes] = []

    def choose(self, folder: Path, rows: Sequence[ShardRow]) -> None:
        """Set the ids of the shard's next rows. Raises DatasetIntegrityError for a row that an earlier shard has."""
        by_id = {row.shard_id: row for row in rows}
        contents = _to_array(row.hash_content() for row in by_id.values())
        for other, _, known in self._known:
            for place in np.flatnonzero(_is_in(known, contents)):
                raise DatasetIntegrityError(
                    f"{other} and {folder}: both have the row {[*by_id][place]!r}, with the same question and "
                    "references\n  hint: shards must not overlap; rows that are meant to count twice need ids of their "
                    "own"
                )
        are_taken = self._are_taken(_to_array(map(_hash, by_id))).tolist()
        taken = {shard_id for shard_id, is_taken in zip(by_id, are_taken, strict=True) if is_taken}
        for row in rows:
            if row.shard_id in taken:
                row.rename(f"{row.shard_id}-{len(self._known) + 1}")
        self._ids.append(_to_array(_hash(row.id) for row in by_id.values()))
        self._rows.append(contents)

    def finish(self, folder: Path) -> None:
        """Go on with the next shard. Raises DatasetIntegrityError where an id that was made is that of another row."""
        ids, rows = (np.sort(np.concatenate([*these, _to_array([])])) for these in (self._ids, self._rows))
        if (ids[1:] == ids[:-1]).any() or self._are_taken(ids).any():
            raise DatasetIntegrityError(
                f"{folder}: ids that earlier shards have get the number of this one, and then are those of other rows\n"
                "  hint: give the rows of each shard ids of their own"
            )
        self._known.append((folder, ids, rows))
        self._ids, self._rows = [], []

    def _are_taken(self, numbers: Hashes) -> NDArray[np.bool_]:
        return np.logical_or.reduce([np.zeros(len(numbers), np.bool_), *(_is_in(k[1], numbers) for k in self._known)])


def _hash(instance_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(instance_id.encode(errors="surrogatepass"), digest_size=8).digest(), "big")


def _to_array(numbers: Iterable[int]) -> Hashes:
    return np.fromiter(numbers, np.uint64)


def _is_in(known: Hashes, wanted: Hashes) -> NDArray[np.bool_]:
    """Whether values are in a sorted array."""
    return np.searchsorted(known, wanted, "left") < np.searchsorted(known, wanted, "right")
