"""Runs of the shards of a dataset as one run: its stats are those of one run of all rows, to the last bit.

HELM's stats are sums of floats in the order of the rows, and some (calibration, intervals) want a number of each row;
means of shards do not add up to them. So the rows' Stats are streamed, in order, and added up as the run's metrics add
up batches (`fold`). Each shard's own are added up apart too, and must come to its `stats.json`: what cannot be added up
again (a file that was changed, a stat that another version counts otherwise) is refused, not guessed.

    scenario_state.json ────▶ ShardRow: request states that know their instance ──metrics──▶ summaries
    per_instance_stats.json ▶ MeasuredStats: what each row was measured as

What the model was asked and said is not looked at again: nothing is scored, no tokenizer and no dataset is needed.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric import create_metric
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.runner import remove_stats_nans
from helm.benchmark.scenarios.scenario import Instance, create_scenario
from helm.common.request import Request

from helm_ext.adaptation.recorded import name_unmeasured
from helm_ext.adaptation.rows import make_run_scoring, with_unmeasured
from helm_ext.analysis.json_arrays import (
    StatsIndex,
    parse_element,
    read_array,
    read_elements,
    read_key,
    row_key,
    split_stats,
    stat_key,
)
from helm_ext.errors import DatasetIntegrityError, RunEntryError
from helm_ext.evalset import EXTRA_KEY, garbage
from helm_ext.evalset.rows import Unrecorded
from helm_ext.files.writing import staged
from helm_ext.running.fold import BatchWork, RunFiles, RunTotals, make_metrics
from helm_ext.running.serialise import dumps, to_plain
from helm_ext.scoring.completeness import LOGPROB_STATS
from helm_ext.scoring.folding import FoldingMetric, Measured, MeasuredRows, RunFacts

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec
    from numpy.typing import NDArray

    from helm_ext.analysis.runs import RunFiles as FinishedFiles
    from helm_ext.engines.progress import Progress
    from helm_ext.evalset import RunScoring

    Hashes = NDArray[np.uint64]

JSONObject = dict[str, Any]

BATCH_ROWS = 1_000
"""Little of a row is kept here, so a batch has more of them than in a run."""

MOST_STATS = 20_000
"""Stats of a shard that are remembered. Those that come again and again come early."""

_BY_NAME = name_unmeasured(Unrecorded.TOKENS | Unrecorded.TRAIN_INSTANCES | Unrecorded.TRUNCATED)
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
            why = "" if isinstance(create_metric(spec), FoldingMetric) else "it wants all rows at once"
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            why = str(error)
        if why:
            raise RunEntryError(
                f"{files.folder}: what its metric {spec.class_name} makes of shards cannot be merged: {why}\n"
                "  hint: one run of all rows; metrics of helm-ext can be merged, in the version that made the run"
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
    metrics = make_metrics(run_spec)
    facts = RunFacts(unmeasured=frozenset().union(*(shard.facts.unmeasured for shard in shards)))
    totals, ids = RunTotals(run_spec, metrics, [facts] * len(metrics)), _Ids()
    scoring = make_run_scoring(run_spec.metric_specs[0], run_spec.scenario_spec.args["main_metric"])
    scoring = with_unmeasured(scoring, facts.unmeasured)
    with garbage.paused(), staged(folder) as files, RunFiles(files, run_spec, scenario) as written:
        for shard in shards:
            own = RunTotals(run_spec, metrics, [shard.facts] * len(metrics))
            told = scoring if shard is shards[0] else None  # it stands with the first row
            for rows, of_shard, of_all in _read(shard, run_spec, metrics, facts, ids, told):
                own.add(of_shard.summary)
                totals.add(of_all.summary)
                written.write([state for row in rows for state in row.states], of_all.segments)
                progress.done(len(rows))
            _require_same(shard, own.to_stats())
        progress.step = "adding up"
        written.finish(totals.to_stats())
    return ids.count


def _read(
    shard: Shard,
    run_spec: RunSpec,
    metrics: Sequence[FoldingMetric],
    facts: RunFacts,
    ids: _Ids,
    scoring: RunScoring | None,
) -> Iterator[tuple[list[ShardRow], Measured, Measured]]:
    """Yield the rows of a shard by batches, under the ids that they get, and what the metrics say of them.

    First as rows of the shard, then as those of the run of all, of which `facts` hold. `scoring`: how that scores its
    rows, where this is its first shard. Raises DatasetSyntaxError, DatasetIntegrityError.

    Where there are several trials, the states of a row may stand anywhere: then there is one batch.
    """
    folder = shard.files.folder
    size = BATCH_ROWS if run_spec.adapter_spec.num_train_trials == 1 else None
    with (
        shard.files.blaming("scenario_state.json and per_instance_stats.json"),
        closing(MeasuredStats(folder / "per_instance_stats.json")) as stats,
    ):
        works = {of: BatchWork(run_spec, metrics, stats, [of] * len(metrics)) for of in (facts, shard.facts)}
        found = iter_rows(folder / "scenario_state.json")
        while rows := list(itertools.islice(found, size)):
            ids.choose(folder, rows)
            states: list[RequestState] = []
            instances: dict[str, Instance] = {}
            for row in rows:
                row.tell_scoring(scoring)
                states += row.make_states(instances)
            stats.shard_ids = {row.id: row.shard_id for row in rows}
            measured = {of: work.measure(states) for of, work in works.items()}
            yield rows, measured[shard.facts], measured[facts]
    ids.finish(folder)


def _require_same(shard: Shard, stats: Sequence[Stat]) -> None:
    """Raise DatasetIntegrityError unless the stats are those that the run has."""
    made = {stat_key(stat["name"]): stat for stat in map(to_plain, remove_stats_nans(list(stats)))}
    known = {stat_key(stat["name"]): stat for stat in shard.files.stats}
    for key in {**known, **made}:
        said, found = known.get(key), made.get(key)
        if said is None or found is None or not _agree(said, found):
            what = [
                "nothing" if one is None else f"mean {one.get('mean')} of {one.get('count')} values"
                for one in (said, found)
            ]
            why = "written by another version of helm-ext, or modules that it was computed with are missing here"
            if said is None:
                why = "written by an earlier version of helm-ext, which did not count this"
            raise DatasetIntegrityError(
                f"{shard.files.folder}: its stats.json is not what its rows add up to: {key}: {what[0]}, and of the "
                f"rows {what[1]}\n  hint: a file was changed, or {why}: run the shard again"
            )


def _agree(one: JSONObject, other: JSONObject) -> bool:
    if one["name"]["name"].startswith(_FITTED):
        return True
    return one.keys() == other.keys() and all(
        math.isclose(one[key], other[key], rel_tol=_CLOSE, abs_tol=_CLOSE) for key in one if key != "name"
    )


# The rows of a finished run


@dataclass
class ShardRow:
    """An instance of a run, with all its request states that stand together."""

    shard_id: str
    """Its id in its run."""
    states: list[JSONObject]

    @property
    def id(self) -> str:
        """The id that it has now."""
        return str(self.states[0]["instance"]["id"])

    def hash_content(self) -> int:
        """Return what tells the row among those of all shards: its id there, what is asked and what is right."""
        instance = self.states[0]["instance"]
        return _hash(dumps([self.shard_id, instance["input"], instance.get("references")]))

    def rename(self, new_id: str) -> None:
        """Give the row another id; the first one that it had is kept, as readers of files do."""
        for instance in (state["instance"] for state in self.states):
            instance["id"] = new_id
            data = instance["extra_data"] = instance.get("extra_data") or {}
            data.setdefault(EXTRA_KEY, {}).setdefault("id", self.shard_id)

    def tell_scoring(self, scoring: RunScoring | None) -> None:
        """Let a row that says how its run is scored say what is so of the merged run, or nothing."""
        for state in self.states:
            extra = (state["instance"].get("extra_data") or {}).get(EXTRA_KEY) or {}
            if extra.pop("scoring", None) is not None and scoring is not None:
                extra["scoring"] = scoring

    def make_states(self, instances: dict[str, Instance]) -> Iterator[RequestState]:
        """Yield the request states, without what was sent. `instances`: one of each id, for states that stand apart."""
        if self.id not in instances:
            instances[self.id] = msgspec.convert(self.states[0]["instance"], Instance)
        known = {"instance": instances[self.id], "request": _REQUEST}
        for state in self.states:
            yield msgspec.convert({**_UNSAID, **state, **known}, RequestState)


_REQUEST = Request(model="", model_deployment="")
_UNSAID = dict.fromkeys(("reference_index", "request_mode", "output_mapping", "result"))
"""What HELM leaves out where it is None."""


def iter_rows(path: Path) -> Iterator[ShardRow]:
    """Yield the rows of a `scenario_state.json`. Raises ValueError, KeyError or OSError for broken files."""
    states = read_array(path, "request_states")
    for shard_id, found in groupby(states, key=lambda state: str(state["instance"]["id"])):
        yield ShardRow(shard_id, list(found))


class MeasuredStats(MeasuredRows):
    """What the rows of a run were measured as, from its `per_instance_stats.json`. Equal names are one object."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._next = read_elements(path)
        """Most files have the rows in their order, once; then nothing needs be looked up."""
        self._index: StatsIndex | None = None
        self.shard_ids: dict[str, str] = {}
        """Of rows by the ids that they have now: those of their run."""
        self._names: dict[tuple[str | None, ...], MetricName] = {}
        self._stats: dict[bytes, Stat] = {}
        """By how they are written: those that are equal are parsed once, and written once (`serialise`)."""

    def close(self) -> None:
        """Close the file."""
        self._next.close()
        if self._index is not None:
            self._index.close()

    def find(self, states: Sequence[RequestState], left_out: frozenset[str]) -> list[Stat]:
        """Return the Stats of a row: see `MeasuredRows`. Raises ValueError, KeyError or OSError for broken files."""
        state = states[0]
        instance_id = str(state.instance.id)
        key = row_key(self.shard_ids.get(instance_id, instance_id), None, state.train_trial_index)
        # Of several elements, that of the metric of texts comes first.
        is_of_texts = state.reference_index is None
        place, element = next(self._next, (None, b"")) if is_of_texts and self._index is None else (None, b"")
        if place is None or read_key(element) != key:
            self._index = self._index or StatsIndex(self._path)
            elements = self._index.find_written(key)
            if not elements:
                return []
            element = elements[0 if is_of_texts else -1]
        written = split_stats(element)
        stats = [self._stats.get(one) or self._to_stat(one) for one in written]
        return [stat for stat in stats if stat.name.name not in left_out]

    def _to_stat(self, written: bytes) -> Stat:
        values = parse_element(written)
        name = values.pop("name")
        key = (name["name"], name.get("split"), name.get("sub_split"))
        stat = Stat(self._names.setdefault(key, MetricName(*key)), **values)
        if len(self._stats) < MOST_STATS:
            self._stats[written] = stat
        return stat


class _Ids:
    """Chooses the ids of rows: those of their runs, with the shard's number where an earlier shard has that id."""

    def __init__(self) -> None:
        self._known: list[tuple[Path, Hashes, Hashes]] = []
        """Of each shard that was read: its folder, hashes of the ids that its rows got, and of the rows, sorted."""
        self._ids: list[Hashes] = []
        self._rows: list[Hashes] = []
        self.count = 0
        """Rows of all shards."""

    def choose(self, folder: Path, rows: Sequence[ShardRow]) -> None:
        """Set the ids of the shard's next rows. Raises DatasetIntegrityError for a row that an earlier shard has."""
        by_id = {row.shard_id: row for row in rows}
        contents = np.fromiter((row.hash_content() for row in by_id.values()), np.uint64)
        for other, _, known in self._known:
            for place in np.flatnonzero(_is_in(known, contents)):
                raise DatasetIntegrityError(
                    f"{other} and {folder}: both have the row {[*by_id][place]!r}, with the same question and "
                    "references\n  hint: shards must not overlap; rows that are meant to count twice need ids of their "
                    "own"
                )
        taken = {*itertools.compress(by_id, self._are_taken(_hash_ids(by_id)).tolist())}
        for row in rows:
            if row.shard_id in taken:
                row.rename(f"{row.shard_id}-{len(self._known) + 1}")
        self._ids.append(_hash_ids(row.id for row in by_id.values()))
        self._rows.append(contents)

    def finish(self, folder: Path) -> None:
        """Go on with the next shard. Raises DatasetIntegrityError where an id that was made is that of another row."""
        ids, rows = (np.sort(np.concatenate([*these, np.zeros(0, np.uint64)])) for these in (self._ids, self._rows))
        if (ids[1:] == ids[:-1]).any() or self._are_taken(ids).any():
            raise DatasetIntegrityError(
                f"{folder}: ids that earlier shards have get the number of this one, and then are those of other rows\n"
                "  hint: give the rows of each shard ids of their own"
            )
        self._known.append((folder, ids, rows))
        self.count += len(rows)
        self._ids, self._rows = [], []

    def _are_taken(self, numbers: Hashes) -> NDArray[np.bool_]:
        return np.logical_or.reduce([np.zeros(len(numbers), np.bool_), *(_is_in(k[1], numbers) for k in self._known)])


def _hash(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def _hash_ids(ids: Iterable[str]) -> Hashes:
    return np.fromiter((_hash(one.encode(errors="surrogatepass")) for one in ids), np.uint64)


def _is_in(known: Hashes, wanted: Hashes) -> NDArray[np.bool_]:
    """Whether values are in a sorted array."""
    return np.searchsorted(known, wanted, "left") < np.searchsorted(known, wanted, "right")
