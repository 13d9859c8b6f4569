"""The rows of a finished run, as its metrics add them up: some at a time, with the Stats that the run gave them.

    scenario_state.json ────▶ ShardRow: request states that know their instance ──metrics──▶ summaries
    per_instance_stats.json ▶ MeasuredStats: what each row was measured as

What the model was asked and said is not looked at again: nothing is scored, no tokenizer and no dataset is needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Input, Instance
from helm.common.request import GeneratedOutput, Request, RequestResult, Thinking

from helm_ext.analysis.json_arrays import read_array
from helm_ext.analysis.row_stats import RowStats, row_key
from helm_ext.evalset import EXTRA_KEY, row_extra
from helm_ext.running.serialise import dumps
from helm_ext.scoring.basic.one_pass import REMEMBERED
from helm_ext.scoring.folding import MeasuredRows

if TYPE_CHECKING:
    from helm_ext.evalset import RunScoring

JSONObject = dict[str, Any]


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
        content = dumps([self.shard_id, instance["input"], instance.get("references")])
        return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")

    def rename(self, new_id: str) -> None:
        """Give the row another id; the first one that it had is kept, as readers of files do."""
        for state in self.states:
            state["instance"]["id"] = new_id
            _extra_of(state["instance"]).setdefault("id", self.shard_id)

    def tell_scoring(self, scoring: RunScoring | None) -> None:
        """Let a row that says how its run is scored say what is so of the merged run, or nothing."""
        for state in self.states:
            extra = (state["instance"].get("extra_data") or {}).get(EXTRA_KEY) or {}
            if extra.pop("scoring", None) is not None and scoring is not None:
                extra["scoring"] = scoring

    def make_instance(self) -> Instance:
        """Return what metrics must know of the instance."""
        found = self.states[0]["instance"]
        return replace(
            _INSTANCE,
            input=Input(text=found["input"].get("text") or "", messages=found["input"].get("messages")),
            references=found.get("references") or [],
            split=found.get("split"),
            sub_split=found.get("sub_split"),
            id=self.id,
            extra_data=found.get("extra_data"),
        )

    def make_states(self, instance: Instance) -> Iterator[RequestState]:
        """Yield what metrics must know of the request states: not what was asked and said, but whether it was thought
        about; of rows that were judged what was said, too.
        """
        is_judged = "judgements" in row_extra(instance)
        for state in self.states:
            yield replace(
                _STATE,
                instance=instance,
                reference_index=state.get("reference_index"),
                request_mode=state.get("request_mode"),
                train_trial_index=state["train_trial_index"],
                result=_make_result(state, is_judged=is_judged),
            )


def _extra_of(instance: JSONObject) -> JSONObject:
    """Return our part of an instance's data, made where there is none."""
    data = instance["extra_data"] = instance.get("extra_data") or {}
    extra: JSONObject = data.setdefault(EXTRA_KEY, {})
    return extra


def _make_result(state: JSONObject, *, is_judged: bool) -> RequestResult | None:
    """Return the answers of a row that was judged, or was thought about: such rows are counted."""
    completions = (state.get("result") or {}).get("completions") or ()
    if not (is_judged or any("thinking" in one for one in completions)):
        return None
    made = [
        GeneratedOutput(one["text"], 0.0, [], thinking=Thinking() if "thinking" in one else None) for one in completions
    ]
    return RequestResult(success=True, cached=False, embedding=[], completions=made)


_INSTANCE = Instance(Input(), [])
_STATE = RequestState(
    instance=_INSTANCE,
    reference_index=None,
    request_mode=None,
    train_trial_index=0,
    output_mapping=None,
    request=Request(model="", model_deployment=""),
    result=None,
    num_train_instances=0,
    prompt_truncated=False,
)


def iter_rows(path: Path) -> Iterator[ShardRow]:
    """Yield the rows of a `scenario_state.json`. Raises ValueError, KeyError or OSError for broken files."""
    states = read_array(path, "request_states")
    for shard_id, found in groupby(states, key=lambda state: str(state["instance"]["id"])):
        yield ShardRow(shard_id, list(found))


class MeasuredStats(MeasuredRows):
    """What the rows of a run were measured as, from its `per_instance_stats.json`. Equal names are one object."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError, KeyError or OSError for what is no such file."""
        super().__init__()
        self.shard_ids: dict[str, str] = {}
        """Of rows by the ids that they have now: those of their run."""
        self._rows = RowStats(path)
        self._names: dict[tuple[str | None, ...], tuple[MetricName, dict[Any, Stat]]] = {}

    def close(self) -> None:
        """Close the file."""
        self._rows.close()

    def find(self, states: Sequence[RequestState], left_out: frozenset[str]) -> list[Stat]:
        """Return the Stats of a row: see `MeasuredRows`."""
        state = states[0]
        instance_id = str(state.instance.id)
        key = row_key(self.shard_ids.get(instance_id, instance_id), None, state.train_trial_index)
        elements = self._rows.find(key)
        if not elements:
            return []
        # Of several, that of the metric of texts comes first.
        stats = elements[0 if state.reference_index is None else -1]["stats"]
        return [self._to_stat(**stat) for stat in stats if stat["name"]["name"] not in left_out]

    def _to_stat(self, name: JSONObject, **values: Any) -> Stat:
        """Return a Stat; equal ones are one object while there are few, so that they are written once (`serialise`)."""
        key = (name["name"], name.get("split"), name.get("sub_split"))
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = MetricName(*key), {}
        metric_name, stats = known
        first = values.get("sum")
        told = (*values.values(), first.__class__, first or repr(values))  # 1 is not 1.0, nor 0.0 -0.0
        stat = stats.get(told)
        if stat is None:
            stat = Stat(metric_name, **values)
            if len(stats) < REMEMBERED:
                stats[told] = stat
        return stat
