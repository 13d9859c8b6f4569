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
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from helm.benchmark.metrics.metric import create_metric
from helm.benchmark.runner import remove_stats_nans
from helm.benchmark.scenarios.scenario import create_scenario

from helm_ext.adaptation.recorded import name_unmeasured
from helm_ext.engines.engine import ThisProcess
from helm_ext.errors import DatasetIntegrityError, RunEntryError
from helm_ext.evalset import garbage
from helm_ext.evalset.columns import Lacks
from helm_ext.evalset.folding import FoldingMetric, RunFacts
from helm_ext.fast.sampling import sampling_number
from helm_ext.fast.serialise import to_plain
from helm_ext.files.staged import staged
from helm_ext.running.fold import RunFiles
from helm_ext.running.shard_rows import SPAN_BYTES, Spans, find_spans
from helm_ext.running.shard_work import ShardWork, SpanResult, SpanTask, writing_to
from helm_ext.scoring.completeness import LOGPROB_STATS

if TYPE_CHECKING:
    from helm.benchmark.metrics.statistic import Stat
    from helm.benchmark.run_spec import RunSpec
    from numpy.typing import NDArray

    from helm_ext.analysis.run_files import RunFiles as FinishedFiles
    from helm_ext.engines.engine import Engine
    from helm_ext.engines.progress import Progress

__all__ = ["Shard", "count_rows", "merge_runs", "open_shard"]

JSONObject = dict[str, Any]

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
    parts: Sequence[int]
    """How many rows each of the shards had that it was made of; one number, where it is no merged run."""


def open_shard(files: FinishedFiles, run_spec: RunSpec, parts: Sequence[int] = ()) -> Shard:
    """Return a run as a shard. `parts`: how many rows each shard had that it was made of, if it was.

    Raises RunEntryError where its stats cannot be added up from its rows' stats.
    """
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
        rows = count_rows(files.stats)
        return Shard(files, _find_facts({name["name"] for name in names}), rows, parts or [rows])


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
    shards: Sequence[Shard],
    run_spec: RunSpec,
    folder: Path,
    progress: Progress,
    *,
    sample: int | None = None,
    engine: Engine,
) -> tuple[int, int]:
    """Write the run of all rows of the shards, in their order, to `folder`; return its rows and those that it keeps.

    `sample`: about so many rows are kept in the files of rows, the same ones whatever model answered; None: all. Stats
    are those of all rows. `engine`: who reads the shards. Memory: that of some spans of rows, and
    some 40 bytes a row.

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
        merge.run(engine, progress)
        progress.step = "adding up"
        with writing_to(folder):
            written.finish(merge.totals.to_stats())
    return merge.rows, merge.kept


class _Merge:
    """Adds shards to a run: workers read spans of their rows, which are named, added up and written in order."""

    def __init__(
        self, run_spec: RunSpec, shards: Sequence[Shard], folder: Path, files: RunFiles, limit: int | None
    ) -> None:
        self.rows = self.kept = 0
        self._run_spec = run_spec
        self._shards = shards
        self._folder = folder
        self._files = files
        facts = [shard.facts for shard in shards]
        merged = RunFacts(unmeasured=frozenset().union(*(one.unmeasured for one in facts)))
        self._work = ShardWork(run_spec, facts, merged, folder, limit)
        self.totals = self._work.make_totals(merged)
        self._ids = _Ids([shard.files.folder for shard in shards for _ in shard.parts])
        self._at = -1
        """The shard whose rows come now."""
        self._own = self.totals
        self._parts: deque[float] = deque()
        """How many rows its parts have that are to come: a merged run has several."""
        self._room = 0.0
        """How many rows are to come of this part."""
        self._renames = False
        """Whether the last rows got other ids: then the next ones will too, mostly."""

    def run(self, engine: Engine, progress: Progress) -> None:
        """Add all shards. Raises DatasetIntegrityError, HelmExtError."""
        here = self._work.begin()
        with ExitStack() as stack:
            make_worker = self._work.begin
            if not isinstance(engine, ThisProcess) and self._work.limit is None:  # of a sample little comes back
                make_worker = replace(self._work, parts_folder=self._files.folder).begin
            results = stack.enter_context(closing(engine.map(make_worker, self._iter_tasks())))
            for result in results:
                self._reach(result.task.shard)
                names = self._choose(result)
                self._renames = names != result.ids
                right = result if names == result.names else here(result.task._replace(names=names))
                self._add(right)
                progress.done(len(names))
                if result is not right:
                    _remove(result.parts)
            self._reach(len(self._shards))

    def _iter_tasks(self) -> Iterator[SpanTask]:
        """Yield the tasks, each when there is somebody to do it."""
        numbers = itertools.count()
        is_whole = self._work.run_spec.adapter_spec.num_train_trials > 1
        before = 0
        for place, shard in enumerate(self._shards):
            folder = shard.files.folder
            with shard.files.blaming("scenario_state.json and per_instance_stats.json"):
                spans = [Spans(None, None)] if is_whole else find_spans(folder, SPAN_BYTES)
            for one in spans:
                suffix = before + 1 if self._renames and before and len(shard.parts) == 1 else None
                yield SpanTask(next(numbers), place, folder, one, suffix)
            before += len(shard.parts)

    def _reach(self, place: int) -> None:
        """Go on with a shard, and with those before it, which are complete. Raises DatasetIntegrityError."""
        while self._at < place:
            if self._at >= 0:
                _require_same(self._shards[self._at], self._own.to_stats())
            self._at += 1
            if self._at < len(self._shards):
                shard = self._shards[self._at]
                self._own = self._work.make_totals(shard.facts)
                self._parts, self._room = deque([*shard.parts[:-1], math.inf]), 0

    def _choose(self, result: SpanResult) -> list[str]:
        """Return the ids that the rows get."""
        names: list[str] = []
        while len(names) < len(result.ids):
            while not self._room:
                self._ids.start()
                self._room = self._parts.popleft()
            some = slice(len(names), int(min(len(names) + self._room, len(result.ids))))
            names += self._ids.choose(result.ids[some], result.numbers[some], result.contents[some])
            self._room -= some.stop - some.start
        return names

    def _add(self, result: SpanResult) -> None:
        for own, merged in result.summaries:
            self._own.add(own)
            self.totals.add(merged)
        self.rows += len(result.ids)
        self.kept += result.kept
        if result.ids:
            with writing_to(self._folder):
                self._files.join(result.parts)


def _remove(parts: Sequence[Path | bytes]) -> None:
    """Remove parts that are not needed."""
    for part in parts:
        if isinstance(part, Path):
            part.unlink(missing_ok=True)


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
        """Of the shards' runs."""
        self._shard = 0
        self._names = np.empty(0, np.uint64)
        self._rows = np.empty(0, np.uint64)
        self._shards = np.empty(0, np.uint32)
        self._new_names = array("Q")
        self._new_rows = array("Q")
        self._taken: set[int] | None = None
        """Hashes of this shard's ids, once one had to be made."""

    def start(self) -> None:
        """Go on with the next shard."""
        self._names = np.sort(np.concatenate([self._names, np.frombuffer(self._new_names, np.uint64)]), kind="stable")
        rows = np.concatenate([self._rows, np.frombuffer(self._new_rows, np.uint64)])
        shards = np.concatenate([self._shards, np.full(len(self._new_rows), self._shard, np.uint32)])
        order = np.argsort(rows, kind="stable")
        self._rows, self._shards = rows[order], shards[order]
        self._new_names, self._new_rows, self._taken = array("Q"), array("Q"), None
        self._shard += 1

    def choose(self, ids: Sequence[str], numbers: array[int], contents: array[int]) -> list[str]:
        """Return the ids of the next rows; `numbers` and `contents` are hashes of their own ids, and of the rows.

        Raises DatasetIntegrityError for a row that an earlier shard has.
        """
        places, found = _find(self._rows, contents)
        for number in np.flatnonzero(found).tolist():
            earlier = self._folders[self._shards[places[number]] - 1]
            raise DatasetIntegrityError(
                f"{earlier} and {self._folders[self._shard - 1]}: both have the row {ids[number]!r}, with the same "
                "question and references\n  hint: shards must not overlap; rows that are meant to count twice need "
                "ids of their own"
            )
        self._new_rows.extend(contents)
        _, is_taken = _find(self._names, numbers)
        names = list(ids)
        if self._taken is None and not is_taken.any():
            self._new_names.extend(numbers)
            return names
        taken = self._taken = set(self._new_names) if self._taken is None else self._taken
        for number, (hashed, is_other) in enumerate(zip(numbers, is_taken.tolist(), strict=True)):
            if is_other or hashed in taken:
                names[number] = self._make(ids[number], taken)
                hashed = sampling_number(names[number])  # noqa: PLW2901 - that of the new one
            taken.add(hashed)
            self._new_names.append(hashed)
        return names

    def _make(self, base: str, taken: set[int]) -> str:
        """Return an id that no row has: with the number of the shard behind it."""
        for number in itertools.count(self._shard):
            name = f"{base}-{number}"
            hashed = sampling_number(name)
            if hashed not in taken and not _find(self._names, array("Q", [hashed]))[1][0]:
                return name
        raise AssertionError


def _find(known: NDArray[np.uint64], wanted: array[int]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where values stand in a sorted array, and whether they are there."""
    values = np.frombuffer(wanted, np.uint64)
    if not len(known):
        return np.zeros(len(values), np.intp), np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return places, known[places] == values
