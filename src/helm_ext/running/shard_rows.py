"""The rows of a finished run, as its metrics add them up: some at a time, with the Stats that the run gave them.

    scenario_state.json ────┐
                            ├──▶ ShardRow: request states that know their instance ──metrics──▶ summaries
    per_instance_stats.json ┘    MeasuredStats: what each row was measured as

What the model was asked and said is not looked at again: nothing is scored, no tokenizer and no dataset is needed.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Input, Instance
from helm.common.request import GeneratedOutput, Request, RequestResult, Thinking

from helm_ext.analysis.row_stats import RowKey, RowStats, row_key
from helm_ext.evalset import EXTRA_KEY, row_extra
from helm_ext.evalset.folding import MeasuredRows
from helm_ext.fast.json_arrays import parse, read_encoded
from helm_ext.fast.serialise import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from helm_ext.evalset import RunScoring

__all__ = ["MeasuredStats", "ShardRow", "iter_rows"]

JSONObject = dict[str, Any]


class ShardRow:
    """An instance of a run, with all its request states that stand together."""

    def __init__(
        self, shard_id: str, encoded: list[bytes], parsed: list[JSONObject], scoring: RunScoring | None
    ) -> None:
        """`shard_id`: as its run has it. `encoded`: the request states, for `ArrayWriter.add_encoded`."""
        self.id = self.shard_id = shard_id
        """`id`: the one that it gets."""
        self._encoded = encoded
        self._parsed = parsed
        self._scoring = scoring

    def hash_content(self) -> int:
        """Return what tells the row among those of all shards: its id there, what is asked and what is right."""
        instance = self._parsed[0]["instance"]
        content = dumps([self.shard_id, instance["input"], instance.get("references")])
        return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")

    def encode(self) -> list[bytes]:
        """Return the states encoded, with their id; the first one that the row had is kept, as readers of files do.

        The first row of a run says how it is scored: that becomes what is so of the merged run, or nothing.
        """
        is_changed = self.id != self.shard_id or any(b'"scoring"' in one for one in self._encoded)
        if not is_changed:
            return self._encoded
        for state in self._parsed:
            instance = state["instance"]
            data = instance.get("extra_data") or {}
            extra = dict(data.get(EXTRA_KEY) or {})
            if "scoring" in extra:
                del extra["scoring"]
                if self._scoring is not None:
                    extra["scoring"] = self._scoring
            if self.id != self.shard_id:
                instance["id"] = self.id
                extra.setdefault("id", self.shard_id)
            if extra or EXTRA_KEY in data:
                instance["extra_data"] = {**data, EXTRA_KEY: extra}
        return [b"    " + dumps(state, depth=2) for state in self._parsed]

    def make_instance(self) -> Instance:
        """Return what metrics must know of the instance."""
        found = self._parsed[0]["instance"]
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
        for state in self._parsed:
            yield replace(
                _STATE,
                instance=instance,
                reference_index=state.get("reference_index"),
                request_mode=state.get("request_mode"),
                train_trial_index=state["train_trial_index"],
                result=_make_answers(state) if is_judged else _THOUGHT if _has_thinking(state) else None,
            )


def _has_thinking(state: JSONObject) -> bool:
    """Whether the model thought before it answered: rows of which that is so are counted."""
    return any("thinking" in completion for completion in (state.get("result") or {}).get("completions") or ())


def _make_answers(state: JSONObject) -> RequestResult:
    made = [
        GeneratedOutput(one["text"], 0.0, [], thinking=Thinking() if "thinking" in one else None)
        for one in (state.get("result") or {}).get("completions") or ()
    ]
    return replace(_THOUGHT, completions=made)


_THOUGHT = RequestResult(
    success=True, cached=False, embedding=[],
    completions=[GeneratedOutput(text="", logprob=0.0, tokens=[], thinking=Thinking())],
)  # fmt: skip


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


def iter_rows(path: Path, scoring: RunScoring | None) -> Iterator[ShardRow]:
    """Yield the rows of a `scenario_state.json`. Raises ValueError, KeyError or OSError for broken files.

    `scoring`: what they say of how their run is scored (`RowExtra.scoring`), where they say something.
    """
    states = ((encoded, parse(encoded)) for encoded in read_encoded(path, "request_states"))
    for shard_id, found in groupby(states, key=lambda state: str(state[1]["instance"]["id"])):
        group = list(found)
        yield ShardRow(shard_id, [encoded for encoded, _ in group], [state for _, state in group], scoring)


_BEFORE_STATS = b'\n    "stats": [\n      {'
_BETWEEN_STATS = b"\n      },\n      {"
_AFTER_STATS = b"\n      }\n    ]\n  }"


class MeasuredStats(MeasuredRows):
    """What the rows of runs were measured as, from `per_instance_stats.json`. Equal Stats and names are one object.

    A Stat is told by its bytes, which stand between two lines that no string holds: most were met before. Plain
    equivalent: `json.loads` of each element, and a Stat of each of its values.
    """

    REMEMBERED = 50_000
    """How many Stats are remembered before all are forgotten: scores repeat, times do not."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[str, str] = {}
        """Of rows with another id now: the one that they had in their run."""
        self._names: dict[bytes, MetricName] = {}
        self._known: dict[bytes, list[Stat]] = {}
        self._path: Path | None = None
        self._index: RowStats | None = None
        self._batch: dict[RowKey, list[list[list[Stat]]]] = {}
        """Of the rows of this batch, by their ids in the run: the Stats of each of their elements."""

    def open(self, path: Path) -> None:
        """Go on with the rows of another run."""
        self.close()
        self._path = path
        self._following = read_encoded(path)
        self._advance()

    def close(self) -> None:
        """Close the run's file."""
        self._following = iter(())
        if self._index is not None:
            self._index.close()
            self._index = None

    def start_batch(self, ids: dict[str, str]) -> None:
        """Forget the rows of the last batch. `ids` as above, of this one."""
        self.ids = ids
        self._batch = {}

    def find(self, states: Sequence[RequestState], left_out: frozenset[str]) -> list[list[Stat]]:
        """Return the Stats of a row: see `MeasuredRows`."""
        state = states[0]
        new = str(state.instance.id)
        key = row_key(self.ids.get(new, new), None, state.train_trial_index)
        elements = self._batch.get(key)
        if elements is None:
            elements = self._batch[key] = self._read(key)
        if not elements:
            return []
        # Of several, that of the metric of texts comes first.
        found = elements[0 if state.reference_index is None else -1]
        return [piece for piece in found if piece[0].name.name not in left_out] if left_out else found

    def _read(self, key: RowKey) -> list[list[list[Stat]]]:
        """Return the elements of a row: the next of the file, mostly; another order needs an index."""
        if key == self._next_key:
            found = [self._next_stats]
            self._advance()
            while key == self._next_key:
                found.append(self._next_stats)
                self._advance()
            return found
        if self._index is None:
            assert self._path is not None
            self._index = RowStats(self._path)
        return [self._take_apart(b"  " + dumps(one, depth=1))[1] for one in self._index.find(key)]

    def _advance(self) -> None:
        self._next_key: RowKey | None = None
        self._next_stats: list[list[Stat]] = []
        for encoded in self._following:
            self._next_key, self._next_stats = self._take_apart(encoded)
            return

    def _take_apart(self, encoded: bytes) -> tuple[RowKey, list[list[Stat]]]:
        """Return whose Stats an element holds, and each of them, as a piece of its own."""
        head, found, body = encoded.partition(_BEFORE_STATS)
        if not found or not body.endswith(_AFTER_STATS):
            element = parse(encoded)
            if element["stats"]:
                raise ValueError(f"row {element['instance_id']}: its stats are not laid out as HELM writes them")
            return row_key(element["instance_id"], element.get("perturbation"), element["train_trial_index"]), []
        row = parse(head.rstrip(b",") + b"}")
        pieces = body[: -len(_AFTER_STATS)].split(_BETWEEN_STATS)
        known = self._known
        stats = [known.get(piece) or self._learn(piece) for piece in pieces]
        return row_key(row["instance_id"], row.get("perturbation"), row["train_trial_index"]), stats

    def _learn(self, piece: bytes) -> list[Stat]:
        values = parse(b"{" + piece + b"}")
        given = values.pop("name")
        key = dumps(given)
        name = self._names.get(key)
        if name is None:
            if given.get("perturbation") is not None:
                raise ValueError(f"{given['name']} is of a perturbed row")
            name = self._names[key] = MetricName(given["name"], given.get("split"), given.get("sub_split"))
        if len(self._known) >= self.REMEMBERED:
            self._known.clear()
        made = self._known[piece] = [Stat(name, **values)]
        return made
