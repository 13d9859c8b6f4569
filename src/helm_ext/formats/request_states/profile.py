"""What the rows of a file are like, added up: some 30 bytes a row, and the same wherever a file is cut.

While a file is read, nothing is known of later rows: which ids are taken, how many rows there are to draw from. A few
numbers of each row are kept, and what may be true of it as bits; when all rows were seen they decide what is said of
the file (`rules`), how it is asked (`plan`), and what each row becomes (`instances`).

What is compared (ids, too) is compared by hashes that are equal in every process, as Python's own are not: rows are
read by several.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
import numpy as np
import xxhash

from helm_ext.errors import count
from helm_ext.evalset import EXTRA_KEY, FACTS_OF_ROWS, STATUSES, Status
from helm_ext.evalset.rows import find_unrecorded
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.checking import guess_key
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.labels import shows_options
from helm_ext.formats.request_states.reading import StateFact
from helm_ext.formats.request_states.rows import CORRECT, is_asked_again
from helm_ext.parsing import StopCensus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from helm_ext.evalset import Judged, RunScoring
    from helm_ext.formats.request_states.reading import Place, State
    from helm_ext.formats.request_states.rows import Row

Group = tuple[str | None, Mapping[str, str]]
"""A sub-split and attributes of rows."""

MOST_KEPT = 1_000
"""Rows, texts and the like that are kept at most; what is beyond is counted."""
MOST_VALUES = 200
"""Of one key that `by=` names: each is a column of a report."""
_EVAL_SPLITS = ("valid", "test")
"""HELM's, without its import."""
_BETWEEN_SEGMENTS = ";,|\n；，、"

Fact = Literal[
    Status,
    StateFact,
    "labelled",  # its completion is read as one of its options
    "few_options",
    "options_in_text",
    "unlabelled",  # an option without a label
    "chat_only",
    "starts_doubled",  # its text begins with the input prefix already
    "ends_doubled",  # its text ends with the output prefix already
    "helm",
    "ours",  # of the output of a run of ours
    "asked_again",  # HELM's, with several results of one request
    "none_right",  # HELM's, with references of which none is right, and to be compared as a text
    "likelihoods",  # recorded by log-probabilities of its options
    "alone",  # with log-probabilities without the question
    "several_right",  # with likelihoods, and several right options
    "single",  # with likelihoods, and one option alone
    "by_text",  # recorded by a text
    "several",  # or more than one
    "incomplete",  # requests about some options, and not all that the method asks about
    "thought",
    "with_stop",  # a right answer holds a stop sequence
    "empty",  # a right answer is empty
    "several_golds",  # several right answers, and no labels
    "unclustered",  # no value of the key that `cluster=` names
]
"""What may be true of a row. Statuses say what is recorded for it; of HELM's files, for all its states together."""
_BITS: dict[Fact, int] = {fact: 1 << place for place, fact in enumerate(get_args(Fact))}

SPLITS = (None, "train", "valid", "test")
"""HELM's names of splits, by their codes."""
TRAIN, TEST = SPLITS.index("train"), SPLITS.index("test")
_SPLIT_CODES = {split: code for code, split in enumerate(SPLITS)}

_NUMBERS = np.dtype(
    [("id", "<i8"), ("group", "<i8"), ("index", "<u4"), ("number", "<u4"), ("facts", "<u4"), ("split", "u1"),
     ("unrecorded", "u1")]
)  # fmt: skip
"""Of each row: hashes of what must be unique, id and perturbation (0: none), and of sub-split and attributes (0: none);
`Place.index` and `Place.number`; what is true of it; code of its split; what its recording does not hold."""
_pack_numbers = struct.Struct("<qqIIIBB").pack
_OF_ANSWERS = frozenset({"scoring", "judgements", "likelihoods", "source_scores", "source_unscored", "left_out"})
"""Keys of `RowExtra` that say something of an answer, or of whose it is."""


@dataclass(slots=True)
class First:
    """How often something was seen, and where first."""

    count: int = 0
    place: Place | None = None

    def add(self, place: Place) -> None:
        """Count a row."""
        self.place = self.place or place
        self.count += 1

    def warn(
        self, *where: str | int, message: str, one: str = "row has", hint: str = "", code: str, is_error: bool = False
    ) -> None:
        """Report them where the first one is, if there is one: how many have what the message goes on with."""
        if self.place is not None:
            said = f"{count(self.count, one, one.removesuffix(' has') + 's have')} {message}"
            report = self.place.error if is_error else self.place.warn
            report(*where, message=said, hint=hint, code=code)

    def refuse(self, *where: str | int, message: str, hint: str, code: str) -> bool:
        """Report an error at the first one, if there is one; return whether there is."""
        if self.place is not None:
            self.place.error(*where, message=message, hint=hint, code=code, is_integrity=True)
        return self.place is not None

    def merge(self, other: First) -> None:
        """Add those that follow."""
        self.count += other.count
        self.place = self.place or other.place


def _join(mine: Any, theirs: Any) -> Any:
    if isinstance(mine, First | StopCensus):
        mine.merge(theirs)
    elif isinstance(mine, dict):
        for key, value in theirs.items():
            mine[key] = _join(mine[key], value) if key in mine else value
    elif isinstance(mine, set):
        mine |= theirs
    elif isinstance(mine, bytearray):
        mine.extend(theirs)
    elif isinstance(mine, int) and not isinstance(mine, bool):
        return mine + theirs
    else:
        return mine or theirs
    return mine


class Profile:
    """Adds up rows. No row is kept, but for some numbers."""

    def __init__(self, header: Header, *, is_checked: bool) -> None:
        """Know of no rows. `is_checked`: whether nothing else is done with the file."""
        self.eval_splits = tuple(header.eval_splits or _EVAL_SPLITS)
        self._is_method_open = header.method is None
        self._input_prefix = header.text("input_prefix").strip()
        self._output_prefix = header.text("output_prefix").strip()
        self._numbers = bytearray()
        self._place: Place | None = None
        """Of the first row."""
        self.perturbed: dict[int, int] = {}
        """The hashes of the ids alone, of rows with a perturbation, by ordinal."""
        self._is_checked = is_checked
        self.group_values: dict[int, Group] = {}
        """By hash."""
        self.questions = 0
        """Sum of numbers for what each row asks and what is right: the order of the rows does not count."""
        self._seed = str(header.options.seed)
        self.draws = bool(header.max_train_instances or header.given.get("max_eval_instances") is not None)
        self.drawn = bytearray()
        """16 bytes a row: the places of rows in the random order, where some are drawn."""
        self.strays: dict[tuple[tuple[str, ...], str], First] = {}
        """Place in the state and key of what nothing reads, where somebody may have meant a key that is read.

        Rows may have keys of their own; they are kept (`RowExtra.data`). But a key that is spelt nearly as one of the
        format's, or that the format has at another place, was hardly meant as such: a completion under
        `request.completions` would never be scored.
        """
        self.told: dict[bytes, tuple[RunScoring, Place]] = {}
        """Ways in which the run of ours scored that wrote the file, and the first row that says so: one, or several."""
        self.earlier_left_out = False
        """Whether there is a row that a run of ours left out."""
        self.judges: dict[str, set[str]] = {}
        """By criterion, the models that judged rows."""
        self.scales: dict[str, dict[bytes, tuple[Place, int]]] = {}
        """By criterion, the scales of its judgements, as JSON, and of each the first one: its row and position."""
        self.label_sets: dict[tuple[str, ...], Place] = {}
        stops = header.given.get("stop_sequences") or ()
        self._stops = {is_train: StopCensus(stops) for is_train in (False, True)} if stops else {}
        self.missing_requests = ""
        """Of the first incomplete row: how many of its requests can be used."""
        self.used_labels: set[str] = set()
        """Labels of the file's own mapping that name an option of a row."""
        self.values: dict[str, set[str]] = {name: set() for name in header.options.by}
        """Of each key that `by=` names, the values that rows have."""
        self.ungrouped = {name: First() for name in header.options.by}
        """Rows without one."""
        self.keys: dict[str, None] = {}
        """That rows have, which `by=` may have meant."""
        self.nonfinite, self.nonfinite_numbers = First(), 0
        self.holds_lists = False
        """Whether one of several right answers seems to hold several segments."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._numbers) // _NUMBERS.itemsize

    @cached_property
    def numbers(self) -> NDArray[np.void]:
        """What is kept of each row (`_NUMBERS`), when all were seen."""
        return np.frombuffer(self._numbers, _NUMBERS)

    @cached_property
    def splits(self) -> Counter[str | None]:
        """How many rows are of each split that occurs."""
        counts = np.bincount(self.numbers["split"]).tolist()
        return Counter({SPLITS[code]: rows for code, rows in enumerate(counts) if rows})

    def has(self, fact: Fact) -> NDArray[np.bool_]:
        """Return of which rows this is true."""
        found: NDArray[np.bool_] = self.numbers["facts"] & _BITS[fact] != 0
        return found

    def find(self, fact: Fact, splits: Iterable[str | None] | None = None) -> First:
        """Return the rows of which this is true: of all splits, or of some."""
        has = self.has(fact)
        if splits is not None:
            has &= np.isin(self.numbers["split"], [_SPLIT_CODES[split] for split in splits])
        return First(int(has.sum()), self.locate(int(has.argmax()))) if has.any() else First()

    def find_statuses(self) -> NDArray[np.uint8]:
        """Return the codes of what is recorded for each row."""
        return np.argmax([self.has(status) for status in STATUSES], axis=0).astype(np.uint8)

    def find_repeated(self) -> list[int]:
        """Return the ordinals of rows whose id is missing, or taken by an earlier row."""
        ids = self.numbers["id"]
        is_first = np.zeros(len(ids), bool)
        is_first[np.unique(ids, return_index=True)[1]] = True
        found: list[int] = np.flatnonzero(~is_first | (ids == 0)).tolist()
        return found

    def locate(self, ordinal: int) -> Place:
        """Return where a row stands."""
        assert self._place is not None
        row, first = self.numbers[ordinal], self._place
        index = int(row["index"])
        path = tuple(index if isinstance(step, int) else step for step in first.path)
        return replace(first, index=index, line=None if first.line is None else int(row["number"]), path=path)

    def find_status(self, status: Status) -> First:
        """Return the rows that are evaluated for which this is recorded."""
        return self.find(status, self._evaluated)

    def see(self, state: State, row: Row) -> None:
        """Count a row of which all states are known, and so what is recorded for it. Written for speed: this runs once
        a row.
        """
        instance, references, place = row.instance, row.references, state.place
        golds = [one["output"]["text"] for one in references if CORRECT in (one.get("tags") or ())]
        recorded = row.recorded
        facts: list[Fact] = [recorded["status"], *state.facts]
        note = facts.append
        if (requests := recorded.get("requests")) is not None:
            note("incomplete")
            there, needed = requests
            self.missing_requests = self.missing_requests or f"{there} of {needed} are recorded"
        if len(references) < 2:
            note("few_options")
        text = instance["input"].get("text")
        if not text and instance["input"].get("messages"):  # HELM writes "" beside messages
            note("chat_only")
        elif text is not None:
            if self._input_prefix and text.lstrip().startswith(self._input_prefix):
                note("starts_doubled")
            if self._output_prefix and text.rstrip().endswith(self._output_prefix):
                note("ends_doubled")
        if row.labels is not None:
            note("labelled")
            if row.labels_from == "file":
                self.used_labels.update(row.labels)
            self.label_sets.setdefault(tuple(row.labels), place)
            if row.labels_from != "prefix" and len({*row.labels.values()}) < len(references):
                note("unlabelled")
            if text is not None and self._is_method_open and shows_options(text, row.labels, row.options):
                note("options_in_text")
        else:
            if self._stops and sum(map(self._stops[state.split == "train"].add, golds)):
                note("with_stop")
            if len(golds) > 1:
                note("several_golds")
                self.holds_lists = self.holds_lists or any(char in gold for gold in golds for char in _BETWEEN_SEGMENTS)
        if "" in golds:
            note("empty")
        if "cluster" not in row.extra:
            note("unclustered")
        if self.values and len(self.keys) < MOST_KEPT:
            unknown = (str(path[0]) for path in state.unknown if len(path) == 1)
            self.keys |= dict.fromkeys((*(instance.get("extra_data") or {}), *instance, *unknown))
        for name, values in self.values.items():
            value = row.extra.get("attributes", {}).get(name)
            if value is None:
                self.ungrouped[name].add(place)
            elif len(values) <= MOST_VALUES:
                values.add(value)
        if row.likelihoods is not None:
            note("likelihoods")
            if row.likelihoods[0].get("alone") is not None:
                note("alone")
            if len(golds) > 1:
                note("several_right")
            if len(row.likelihoods) == 1:
                note("single")
        elif recorded["states"]:
            note("by_text")
            if len(recorded["states"][0]["result"]["completions"]) > 1:
                note("several")
        for number, judgement in enumerate(row.judgements or ()):
            judges = self.judges.setdefault(judgement.criterion, set())
            if judgement.kind == "model":
                judges.add(judgement.by)
            scale = msgspec.json.encode(judgement.scale)
            self.scales.setdefault(judgement.criterion, {}).setdefault(scale, (place, number))
        if row.is_helm:
            note("helm")
            if is_asked_again(recorded["states"]):
                note("asked_again")
            is_compared = recorded["status"] in ("ok", "not_run") and "skip" not in recorded
            if references and not golds and is_compared and row.likelihoods is None:
                note("none_right")
            if EXTRA_KEY in (instance.get("extra_data") or ()):
                note("ours")
                self.earlier_left_out |= "skip" in recorded
                if state.told is not None:
                    self.told.setdefault(_without_facts(state.told), (state.told, place))
        elif state.unknown:
            self._see_strays(state)
        if instance.get("chain_of_thought"):
            note("thought")
        self._keep_numbers(state, row, facts)

    def _see_strays(self, state: State) -> None:
        """Look at the keys of a row that the format does not know."""
        for *steps, key in state.unknown:
            place = tuple(step for step in steps if isinstance(step, str))
            if guess_key(place, str(key)):
                self.strays.setdefault((place, str(key)), First()).add(state.place)

    def _keep_numbers(self, state: State, row: Row, facts: Iterable[Fact]) -> None:
        instance, place = row.instance, state.place
        self._place = self._place or place
        given = instance.get("id")
        hashed = 0 if given is None or given == "" else hash_content(str(given))
        if hashed and (perturbation := instance.get("perturbation")):
            self.perturbed[self.rows] = hashed
            hashed = hash_content(canonical_json([str(given), perturbation]))
        group = unrecorded = 0
        if not self._is_checked:
            unrecorded = find_unrecorded(row.recorded["states"][0]) if row.recorded["states"] else 0
            sub_split = instance.get("sub_split")
            attributes = row.extra.get("attributes", {})
            if sub_split or attributes:
                group = hash_content(canonical_json([sub_split, attributes]))
                self.group_values.setdefault(group, (sub_split, attributes))
            self.questions += _digest_question(row)
            if self.draws:
                self.drawn += draw(row, self._seed)
        bits = sum(map(_BITS.__getitem__, facts))
        self._numbers += _pack_numbers(
            hashed, group, place.index, place.number, bits, _SPLIT_CODES[state.split], unrecorded
        )

    def merge(self, other: Profile) -> None:
        """Add the rows that follow: of a file without errors, whose positions go on.

        Numbers are added up, and where one value stands, the first does. So nothing may depend on where a file is cut:
        hashes are equal in every process, and counts have no order.
        """
        rows = self.rows
        np.frombuffer(other._numbers, _NUMBERS)["index"][:] += rows
        other.perturbed = {ordinal + rows: hashed for ordinal, hashed in other.perturbed.items()}
        for name, mine in vars(self).items():
            setattr(self, name, _join(mine, getattr(other, name)))

    @property
    def stops(self) -> StopCensus:
        """The references of rows to score that hold stop sequences."""
        found = StopCensus(())
        for is_train, census in self._stops.items():
            if not is_train:
                found = census
            elif not self.is_differentiated:
                found.merge(census)
        return found

    @property
    def judged(self) -> dict[str, Judged]:
        """By criterion, who judged: criteria that no model judged by are none."""
        return {
            criterion: {"judges": sorted(judges), "scale": msgspec.json.decode(next(iter(self.scales[criterion])))}
            for criterion, judges in sorted(self.judges.items())
            if judges
        }

    @property
    def thoughts(self) -> First:
        """Rows with a chain of thought that may be demonstrations."""
        return self.find("thought", ("train",) if self.is_differentiated else None)

    @property
    def is_recorded(self) -> bool:
        """Whether the file is a recorded one: at least one row has a usable result, or an answer without a score."""
        return self.find_status("ok").count > 0 or self.find_status("unscored").count > 0

    @property
    def is_helm_output(self) -> bool:
        """Whether the file is the output of a run of HELM without this package, to be scored as HELM does."""
        return self.find("helm").count == self.rows and not self.find("ours").count

    @property
    def is_differentiated(self) -> bool:
        """Whether demonstrations and rows to evaluate are told apart.

        Rows without a split are evaluated if others are train rows.
        """
        return 0 < self.splits["train"] < self.rows

    @property
    def to_score(self) -> list[str | None]:
        """The splits of rows that are no demonstrations, evaluated or not."""
        return [split for split in self.splits if split != "train" or not self.is_differentiated]

    @property
    def _evaluated(self) -> list[str | None]:
        """The splits of rows that are evaluated: those without one are test rows."""
        return [split for split in self.to_score if ("valid" if split == "valid" else "test") in self.eval_splits]

    @property
    def selected(self) -> int:
        """How many rows are of a split that is evaluated, those included that may be drawn as demonstrations."""
        return sum(self.splits[split] for split in self._evaluated)


def _without_facts(told: RunScoring) -> bytes:
    """Return how rows are scored, without what is of the rows of a run rather than of the way of scoring."""
    args = {key: value for key, value in told["args"].items() if key not in FACTS_OF_ROWS}
    return canonical_json([told["class_name"], args, told["main_metric"]])


def hash_content(content: str | bytes) -> int:
    """Return 63 bits of a text, for arrays of signed numbers; never 0. Equal hashes are taken for equal texts."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return (xxhash.xxh3_64_intdigest(data) >> 1) or 1


@cache
def _keyed(seed: str) -> Any:
    return blake2b(digest_size=16, key=seed.encode()[:64])


def draw(row: Row, seed: str) -> bytes:
    """Return the row's place in the random order: a keyed hash of id and text."""
    given, name = row.instance["input"], row.instance.get("id")
    text = given.get("text")
    content = f"{name}\0{text}" if text is not None else f"{name}\0\0{_in_order(given.get('messages') or ())}"
    digest = _keyed(seed).copy()
    digest.update(content.encode("utf-8", "surrogatepass"))
    return bytes(digest.digest())


def _in_order(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages with their keys in one order, in whichever they were read."""
    return [{"role": message["role"], "content": message["content"], **message} for message in messages]


def _digest_question(row: Row) -> int:
    """Return a number for what a row asks and what is right. What a run wrote of its answer is no part of it."""
    instance, extra_data = row.instance, row.instance.get("extra_data")
    if isinstance(extra_data, dict) and isinstance(extra := extra_data.get(EXTRA_KEY), dict):
        asked = {key: value for key, value in extra.items() if key not in _OF_ANSWERS}
        instance = {**instance, "extra_data": {**extra_data, EXTRA_KEY: asked}}
    content = canonical_json([instance, row.labels if row.labels_from != "prefix" else None])
    return int.from_bytes(blake2b(content, digest_size=32).digest(), "big")
