"""Runs of the shards of a dataset as one run: its stats are those of one run of all rows, to the last bit.

HELM's stats are sums of floats in the order of the rows, and some (calibration, intervals) want a number of each row;
means of shards do not add up to them. So the rows' Stats are streamed, in order, and added up as the run's metrics add
up batches (`fold`). Each shard's own are added up apart too, and must come to its `stats.json`: what cannot be added up
again (a file that was changed, a stat that another version counts otherwise) is refused, not guessed.

    scenario_state.json ────▶ request states that know their instance ──metrics──▶ summaries
    per_instance_stats.json ▶ MeasuredStats: what each row was measured as

What the model was asked and said is not looked at again: nothing is scored, no tokenizer and no dataset is needed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.runner import remove_stats_nans
from helm.benchmark.scenarios.scenario import Instance, create_scenario
from helm.common.request import Request

from helm_ext.adaptation.rows import make_run_scoring, with_unmeasured
from helm_ext.analysis.json_arrays import (
    parse_element,
    read_array,
    read_elements,
    read_key,
    row_key,
    split_stats,
    stat_key,
)
from helm_ext.errors import DatasetIntegrityError
from helm_ext.evalset import EXTRA_KEY, garbage
from helm_ext.files.writing import staged
from helm_ext.running.fold import RunFiles, begin, make_metric, sum_up
from helm_ext.running.serialise import dumps, to_plain
from helm_ext.scoring.folding import FoldingMetric, Measured, MeasuredRows, RunFacts

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec
    from numpy.typing import NDArray

    from helm_ext.analysis.json_arrays import RowKey
    from helm_ext.analysis.runs import RunFiles as FinishedFiles
    from helm_ext.engines.progress import Progress

    Hashes = NDArray[np.uint64]

JSONObject = dict[str, Any]

BATCH_ROWS = 1_000
"""Little of a row is kept here, so a batch has more of them than in a run."""

MOST_STATS = 20_000
"""Stats of a shard that are remembered. Those that come again and again come early."""

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


def merge_runs(shards: Sequence[Shard], run_spec: RunSpec, folder: Path, progress: Progress) -> int:
    """Write the run of all rows of the shards, in their order, to `folder`; return how many rows it has.

    Memory: that of a batch, and of each row what its metrics want of it (calibration, intervals) and two hashes.

    Raises DatasetIntegrityError for a shard that is not what its stats say, or a row that two shards have, and then
    writes nothing; HelmExtError for a full disk; OSError.
    """
    first = shards[0].files.scenario
    scenario = create_scenario(run_spec.scenario_spec)
    scenario.description, scenario.tags = first.get("description", ""), first.get("tags") or []
    folder.mkdir(parents=True, exist_ok=True)
    metric = make_metric(run_spec)
    facts = RunFacts(unmeasured=frozenset().union(*(shard.facts.unmeasured for shard in shards)))
    total, ids = metric.make_total(run_spec.adapter_spec, facts), _Ids()
    scoring = make_run_scoring(run_spec.metric_specs[0], run_spec.scenario_spec.args["main_metric"])
    told = with_unmeasured(scoring, facts.unmeasured)
    with garbage.paused(), staged(folder) as files, RunFiles(files, run_spec, scenario) as written:
        for shard in shards:
            own = metric.make_total(run_spec.adapter_spec, shard.facts)
            for states, measured in _measure(shard, run_spec, metric, facts):
                own.add(measured[shard.facts].summary)
                total.add(measured[facts].summary)
                new_ids = ids.choose(shard.files.folder, [state["instance"] for state in states])
                for instance in (state["instance"] for state in states):
                    extra = (instance.get("extra_data") or {}).get(EXTRA_KEY, {})
                    if extra.pop("scoring", None) is not None and shard is shards[0]:
                        extra["scoring"] = told  # how the run scores its rows stands with the first one
                    rename(instance, new_ids)
                segments = measured[facts].segments
                written.write(
                    states,
                    [[replace(row, instance_id=new_ids[row.instance_id]) for row in segment] for segment in segments],
                )
                progress.done(len(new_ids))
            ids.finish(shard.files.folder)
            _require_same(shard, own.to_stats())
        progress.step = "adding up"
        written.finish(sum_up(total))
    return ids.count


def _measure(
    shard: Shard, run_spec: RunSpec, metric: FoldingMetric, facts: RunFacts
) -> Iterator[tuple[list[JSONObject], dict[RunFacts, Measured]]]:
    """Yield the request states of a shard by batches of rows, and what metrics say of them: as rows of the shard, and
    as those of the run of all rows, of which `facts` hold. Raises DatasetSyntaxError.

    Where there are several trials, the states of a row may stand anywhere: then there is one batch.
    """
    folder = shard.files.folder
    size = BATCH_ROWS if run_spec.adapter_spec.num_train_trials == 1 else None
    with shard.files.blaming("scenario_state.json and per_instance_stats.json"), ExitStack() as opened:
        measures = {}
        for of in {facts, shard.facts}:
            stats = opened.enter_context(closing(MeasuredStats(folder / "per_instance_stats.json")))
            measures[of] = begin(run_spec, metric, stats, of)
        states = read_array(folder / "scenario_state.json", "request_states")
        rows = (list(found) for _, found in groupby(states, key=lambda state: state["instance"]["id"]))
        while batch := list(chain.from_iterable(islice(rows, size))):
            made = make_states(batch)
            yield batch, {of: measure(made) for of, measure in measures.items()}


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

_REQUEST = Request(model="", model_deployment="")
_UNSAID = dict.fromkeys(("reference_index", "request_mode", "output_mapping", "result"))
"""What HELM leaves out where it is None."""


def make_states(states: Iterable[JSONObject]) -> list[RequestState]:
    """Return request states, without what was sent. Those of one row have one instance."""
    instances: dict[str, Instance] = {}
    made = []
    for state in states:
        row_id = state["instance"]["id"]
        if row_id not in instances:
            instances[row_id] = msgspec.convert(state["instance"], Instance)
        known = {"instance": instances[row_id], "request": _REQUEST}
        made.append(msgspec.convert({**_UNSAID, **state, **known}, RequestState))
    return made


def rename(instance: JSONObject, new_ids: dict[str, str]) -> None:
    """Give a row its new id; the first one that it had is kept, as readers of files do."""
    shard_id = instance["id"]
    if new_ids[shard_id] != shard_id:
        instance["id"] = new_ids[shard_id]
        data = instance["extra_data"] = instance.get("extra_data") or {}
        data.setdefault(EXTRA_KEY, {}).setdefault("id", shard_id)


class MeasuredStats(MeasuredRows):
    """What the rows of a run were measured as, from its `per_instance_stats.json`. Equal names are one object.

    It is read once, up to the row that is asked for; rows that were passed wait until they are. So little is in memory
    where rows are asked for in the order of the file, as nearly always.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._elements = read_elements(path)
        self._passed: dict[RowKey, list[bytes]] = {}
        self._names: dict[tuple[str | None, ...], MetricName] = {}
        self._stats: dict[bytes, Stat] = {}
        """By how they are written: those that are equal are parsed once, and written once (`serialise`)."""

    def close(self) -> None:
        """Close the file."""
        self._elements.close()

    def find(self, states: Sequence[RequestState], left_out: frozenset[str]) -> list[Stat]:
        """Return the next Stats of a row: see `MeasuredRows`. Each element is of a metric, and these ask in order.

        Raises ValueError, KeyError or OSError for broken files.
        """
        key = row_key(states[0].instance.id, None, states[0].train_trial_index)
        while key not in self._passed:
            place, element = next(self._elements, (None, None))
            if element is None:
                return []
            written = json.dumps(element).encode() if place is None else element
            self._passed.setdefault(read_key(written), []).append(written)
        elements = self._passed[key]
        stats = [self._stats.get(one) or self._to_stat(one) for one in split_stats(elements.pop(0))]
        if not elements:
            del self._passed[key]
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
        """Of each shard that was read: its folder, and sorted hashes of its rows' new ids and of their contents."""
        self._ids: list[Hashes] = []
        self._rows: list[Hashes] = []
        self.count = 0
        """Rows of all shards."""

    def choose(self, folder: Path, instances: Iterable[JSONObject]) -> dict[str, str]:
        """Return the ids that the shard's next rows get, by those that they have.

        Raises DatasetIntegrityError for a row that an earlier shard has: its id there, question and references.
        """
        rows = {instance["id"]: instance for instance in instances}
        contents = _hash(dumps([one, row["input"], row.get("references")]) for one, row in rows.items())
        for other, _, known in self._known:
            for place in np.flatnonzero(_is_in(known, contents)):
                raise DatasetIntegrityError(
                    f"{other} and {folder}: both have the row {[*rows][place]!r}, with the same question and "
                    "references\n  hint: shards must not overlap; rows that are meant to count twice need ids of their "
                    "own"
                )
        taken = self._are_taken(_hash(map(_encode, rows)))
        number = len(self._known) + 1
        new_ids = {one: f"{one}-{number}" if is_taken else one for one, is_taken in zip(rows, taken, strict=True)}
        self._ids.append(_hash(map(_encode, new_ids.values())))
        self._rows.append(contents)
        return new_ids

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

    def _are_taken(self, ids: Hashes) -> NDArray[np.bool_]:
        return np.logical_or.reduce(
            [np.zeros(len(ids), np.bool_), *(_is_in(known, ids) for _, known, _ in self._known)]
        )


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _hash(texts: Iterable[bytes]) -> Hashes:
    digests = (hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), np.uint64)


def _is_in(known: Hashes, wanted: Hashes) -> NDArray[np.bool_]:
    """Whether values are in a sorted array."""
    return np.searchsorted(known, wanted, "left") < np.searchsorted(known, wanted, "right")
