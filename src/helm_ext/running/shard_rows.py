"""The rows of a finished run, as its metrics add them up: some at a time, with the Stats that the run gave them.

    scenario_state.json ────┐
                            ├──▶ ShardBatch: request states that know their instance ──metrics──▶ summaries
    per_instance_stats.json ┘    MeasuredStats: what each row was measured as

What the model was asked and said is not looked at again: nothing is scored, no tokenizer and no dataset is needed.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Input, Instance
from helm.common.request import GeneratedOutput, Request, RequestResult, Thinking

from helm_ext.analysis.row_stats import RowKey, RowStats, row_key
from helm_ext.evalset import EXTRA_KEY, row_extra
from helm_ext.evalset.folding import MeasuredRows
from helm_ext.fast.json_arrays import Span, parse, read_encoded
from helm_ext.fast.serialise import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from helm_ext.evalset import RunScoring

__all__ = ["SPAN_BYTES", "MeasuredStats", "ShardRow", "Spans", "find_spans", "iter_rows"]

JSONObject = dict[str, Any]

_STATES = "request_states"
_SHARD_ID = "shard_id"
"""The key of `RowExtra` that a merge adds to rows whose ids it changes."""

SPAN_BYTES = 8 << 20
"""Of `per_instance_stats.json`, in a span: some 1,500 rows, enough for what comes back of them to be little."""
_LOOK_AT = 64 << 10
_WIDTHS = (512 << 10, 8 << 20, 64 << 20)
"""How far around the place where a row must about be it is looked for."""


class ShardRow(NamedTuple):
    """An instance of a run, with all its request states that stand together."""

    instance_id: str
    """As the run has it."""
    encoded: list[bytes]
    """The request states, for `ArrayWriter.add_encoded`."""
    parsed: list[JSONObject]

    @property
    def shard_id(self) -> str:
        """The id that the run of its shard gave it: another one where a merge has changed it."""
        extra = (self.parsed[0]["instance"].get("extra_data") or {}).get(EXTRA_KEY) or {}
        return str(extra.get(_SHARD_ID, self.instance_id))

    def hash_content(self) -> int:
        """Return what tells the row among those of all shards: its id there, what is asked and what is right."""
        instance = self.parsed[0]["instance"]
        content = dumps([self.shard_id, instance["input"], instance.get("references")])
        return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")

    def encode_as(self, name: str, scoring: RunScoring | None = None) -> list[bytes]:
        """Return the states encoded, with this id; the first one that the row had is kept, as readers of files do.

        `scoring`: what the first row of a run says instead of what that of its shard's run said (`RowExtra.scoring`).
        """
        tells = self._take_scoring(scoring)
        if name == self.instance_id:
            return [b"    " + dumps(state, depth=2) for state in self.parsed] if tells else self.encoded
        shard_id = self.shard_id
        for state in self.parsed:
            instance = state["instance"]
            instance["id"] = name
            data = instance.get("extra_data") or {}
            extra = {**(data.get(EXTRA_KEY) or {})}
            if name != shard_id:
                extra.setdefault("id", shard_id)
                extra[_SHARD_ID] = shard_id
            else:  # a merge of fewer shards had changed it
                del extra[_SHARD_ID]
                if extra.get("id") == shard_id:
                    del extra["id"]
            instance["extra_data"] = {**data, EXTRA_KEY: extra}
        return [b"    " + dumps(state, depth=2) for state in self.parsed]

    def _take_scoring(self, scoring: RunScoring | None) -> bool:
        """Replace what the row says of its run's scoring, or take it out; return whether it said something."""
        if not any(b'"scoring"' in one for one in self.encoded):
            return False
        extras = [(state["instance"].get("extra_data") or {}).get(EXTRA_KEY) for state in self.parsed]
        telling = [extra for extra in extras if isinstance(extra, dict) and "scoring" in extra]
        for extra in telling:
            del extra["scoring"]
            if scoring is not None:
                extra["scoring"] = scoring
        return bool(telling)

    def make_instance(self, name: str) -> Instance:
        """Return what metrics must know of the instance, with this id."""
        found = self.parsed[0]["instance"]
        return replace(
            _INSTANCE,
            input=Input(text=found["input"].get("text") or "", messages=found["input"].get("messages")),
            references=found.get("references") or [],
            split=found.get("split"),
            sub_split=found.get("sub_split"),
            id=name,
            extra_data=found.get("extra_data"),
        )

    def make_states(self, instance: Instance) -> Iterator[RequestState]:
        """Yield what metrics must know of the request states: not what was asked and said, but whether it was thought
        about; of rows that were judged what was said, too.
        """
        is_judged = "judgements" in row_extra(instance)
        for state in self.parsed:
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


class Spans(NamedTuple):
    """Where some rows of a run stand in its files; None: all of them, from the beginning of the array to its end."""

    states: Span | None
    stats: Span | None
    """Where the Stats of the first of them are, and about those of the others."""


def find_spans(folder: Path, size: int) -> list[Spans]:
    """Return the rows of a run in spans of about so many bytes of stats, without reading all of its files.

    One span where the files are not laid out as HELM writes them, or have their rows in two orders. All states of a row
    that stand together are in one span. Raises OSError.
    """
    with (
        (folder / "scenario_state.json").open("rb") as states,
        (folder / "per_instance_stats.json").open("rb") as stats,
    ):
        head = states.read(_WIDTHS[0])
        opening = f'\n  "{_STATES}": ['.encode()
        first = head.find(opening + b"\n    {\n") + len(opening)
        if not head.startswith(b"{\n") or first < len(opening) or stats.read(5) != b"[\n  {":
            return [Spans(None, None)]
        ends = _size_of(states), _size_of(stats)
        cuts = [(first, 1)]
        for target in range(size, ends[1], size):
            cut = _find_cut(states, stats, target, cuts[-1], ends)
            if cut is not None and cut[0] > cuts[-1][0] and cut[1] > cuts[-1][1]:
                cuts.append(cut)
    cuts.append(ends)
    return [Spans((one[0], other[0]), (one[1], other[1])) for one, other in pairwise(cuts)]


def _size_of(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


_STATS_ID = b'\n  },\n  {\n    "instance_id": '
_STATE_ID = b'\n        "id": '
_STATE_BEGIN = b"\n    {\n"


def _find_cut(
    states: BinaryIO, stats: BinaryIO, target: int, last: tuple[int, int], ends: tuple[int, int]
) -> tuple[int, int] | None:
    """Return where a row begins in both files, behind `target` in that of the stats; None if that cannot be seen."""
    window = os.pread(stats.fileno(), _LOOK_AT, target)
    found = window.find(_STATS_ID)
    begin = found + len(_STATS_ID)
    end = window.find(b"\n", begin)
    if found < 0 or end < 0:
        return None
    wanted = _STATE_ID + window[begin:end].rstrip(b",")
    place = target + found + len(b"\n  },")
    guess = last[0] + (place - last[1]) * (ends[0] - last[0]) // (ends[1] - last[1])
    for width in _WIDTHS:
        low = max(last[0], guess - width)
        data = os.pread(states.fileno(), 2 * width, low)
        at = data.find(wanted)
        while at >= 0 and data[at + len(wanted) : at + len(wanted) + 1] not in (b",", b"\n"):
            at = data.find(wanted, at + 1)
        start = data.rfind(_STATE_BEGIN, 0, at) if at >= 0 else -1
        before = data.rfind(_STATE_ID, 0, start) if start >= 0 else -1
        if before < 0 or data[start - 7 : start] != b"\n    },":
            continue  # it is not here, or there is no seeing whether the state before is of the same row
        if data[before : before + len(wanted) + 1].rstrip(b",\n") == wanted:
            return None
        return low + start, place
    return None


def iter_rows(path: Path, span: Span | None = None) -> Iterator[ShardRow]:
    """Yield the rows of a `scenario_state.json`. Raises ValueError, KeyError or OSError for broken files."""
    states = ((encoded, parse(encoded)) for encoded in read_encoded(path, _STATES, span))
    for instance_id, found in groupby(states, key=lambda state: str(state[1]["instance"]["id"])):
        group = list(found)
        yield ShardRow(instance_id, list(map(itemgetter(0), group)), list(map(itemgetter(1), group)))


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

    def open(self, path: Path, span: Span | None = None) -> None:
        """Go on with the rows of another run, whose Stats begin there."""
        if path != self._path:
            self.close()
        self._path = path
        self._following = read_encoded(path, span=span)
        self._batch = {}
        self._advance()

    def close(self) -> None:
        """Close the run's file."""
        if self._index is not None:
            self._index.close()
            self._index = None

    def release(self) -> None:
        """Let go of what was read of the file; what is known of where its rows are is kept."""
        self._following = iter(())
        self._batch = {}

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
