"""Rows become HELM's Instances: what must be known of all of them for that, and what each carries for its run.

Of every row some 40 bytes are kept beside the store, in arrays.

While a file is read, nothing is known of later rows: which ids are taken, how many rows there are to draw from. A few
numbers of each row are kept, and when all rows were seen they decide what each becomes (`choose`): its id, its split,
the runs that it takes part in.

Which rows become demonstrations, and which a cap leaves, their contents alone decide: rows are ordered by a keyed hash,
never by their order in the file or by a library's random numbers. Another row more changes little. What is compared
(ids, too) is compared by hashes that are equal in every process, as Python's own are not: rows are read by several.

    Row ──see──▶ Columns ──choose──▶ Chosen ──store, Maker──▶ Instances, some at a time
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
import xxhash
from helm.benchmark.scenarios.scenario import Input, Instance, Output, Reference

from helm_ext.evalset import EXTRA_KEY
from helm_ext.evalset.rows import LIVE, RECORDED, STATUSES, StoredRows, find_unrecorded
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.header import Settings
from helm_ext.formats.request_states.plan import Plan, make_adapter_spec, request_decoding
from helm_ext.formats.request_states.profile import Profile, Tally
from helm_ext.formats.request_states.recorded import combine
from helm_ext.formats.request_states.rows import CORRECT, Row, read_perturbation
from helm_ext.formats.request_states.shapes import JOINT_METHODS, LABELLED_METHODS
from helm_ext.judging.judgement import bind, question_text

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from numpy.typing import NDArray

    from helm_ext.evalset import Recorded, RowExtra
    from helm_ext.files.store import RowStore
    from helm_ext.formats.request_states.reading import Place
    from helm_ext.formats.request_states.rows import Fetch
    from helm_ext.judging.judgement import Judgement

Group = tuple[str | None, Mapping[str, str]]
"""A sub-split and attributes of rows."""

_SPLITS = (None, "train", "valid", "test")
TRAIN, TEST = _SPLITS.index("train"), _SPLITS.index("test")
_SPLIT_CODES = {split: code for code, split in enumerate(_SPLITS)}
_STATUS_CODES = {status: code for code, status in enumerate(STATUSES)}
_OF_ANSWERS = frozenset({"scoring", "judgements", "likelihoods", "source_scores", "source_unscored", "left_out"})
"""Keys of `RowExtra` that say something of an answer, or of whose it is."""


def hash_content(content: str | bytes) -> int:
    """Return 63 bits of a text, for arrays of signed numbers; never 0. Equal hashes are taken for equal texts."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return (xxhash.xxh3_64_intdigest(data) >> 1) or 1


@dataclass(kw_only=True)
class Chosen:
    """What the rows of a file have become."""

    spec: AdapterSpec
    rows: StoredRows
    """The instances, none of them made."""
    instances: Sequence[Instance]
    """Made of the rows in memory, or of those on disk when somebody looks at them."""
    groups: list[Group]
    """Sub-split and attributes that occur among the rows that are evaluated."""
    places: Sequence[int]
    """Of each: its line, or its position (`Place.number`)."""

    def find_attributes(self, by: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the values of sub-split and of each attribute among the rows that are evaluated."""
        sub_splits = tuple(sorted({sub_split for sub_split, _ in self.groups if sub_split}))
        named = {name: tuple(sorted({row[name] for _, row in self.groups if name in row})) for name in by}
        return ({"sub_split": sub_splits} if sub_splits else {}) | named

    @property
    def live(self) -> int:
        """How many rows a live run evaluates."""
        return int(((self.rows.split != TRAIN) & (self.rows.only != RECORDED)).sum())


class Columns(Tally):
    """Collects the columns."""

    def __init__(self, settings: Settings, seed: int, *, is_checked: bool) -> None:
        """`settings`, `seed`: what demonstrations and caps depend on.

        `is_checked`: whether nothing else is done with the file.
        """
        self.ids = array("q")
        """Hashes of what must be unique, id and perturbation; 0 for rows without an id."""
        self.indexes = array("I")
        """`Place.index`."""
        self.numbers = array("I")
        """`Place.number`."""
        self._perturbed: dict[int, int] = {}
        """The hashes of the ids alone, of rows with a perturbation, by ordinal."""
        self._place: Place | None = None
        """Of the first row."""
        self._is_checked = is_checked
        self.splits, self.statuses, self.unrecorded, self.labelled = bytearray(), bytearray(), bytearray(), bytearray()
        self.groups = array("q")
        """Hashes of the rows' sub-splits and attributes; 0 for none."""
        self.group_values: dict[int, Group] = {}
        self.questions = 0
        """Sum of numbers for what each row asks and what is right: the order of the rows does not count."""
        self.seed = str(seed)
        self.draws = bool(settings.max_train_instances or settings.max_eval_instances is not None)
        self.drawn = bytearray()
        """16 bytes a row: the places of rows in the random order, where some are drawn."""
        self.empty = bytearray()
        """Whether one of the row's right answers is empty."""

    def see(self, row: Row) -> None:
        """Keep what must be known of a row. Written for speed: this runs once a row."""
        instance, place = row.instance, row.place
        if self._place is None:
            self._place = place
        given = instance.get("id")
        hashed = 0 if given is None or given == "" else hash_content(str(given))
        if hashed and (perturbation := instance.get("perturbation")):
            self._perturbed[len(self.ids)] = hashed
            hashed = hash_content(canonical_json([str(given), perturbation]))
        self.ids.append(hashed)
        self.indexes.append(place.index)
        self.numbers.append(place.number)
        if self._is_checked:
            return
        self.splits.append(_SPLIT_CODES[row.split])
        status, state = row.found[0]
        self.statuses.append(_STATUS_CODES[status])
        self.unrecorded.append(0 if state is None else find_unrecorded(state))
        self.labelled.append(row.labels is not None)
        sub_split = instance.get("sub_split")
        group = 0
        if sub_split or row.attributes:
            attributes = row.attributes or {}
            group = hash_content(canonical_json([sub_split, attributes]))
            self.group_values.setdefault(group, (sub_split, attributes))
        self.groups.append(group)
        self.questions += _digest_question(row)
        if self.draws:
            self.see_content(row)

    def see_content(self, row: Row) -> None:
        """Note the row's place in the random order."""
        given, name = row.instance["input"], row.instance.get("id")
        text = given.get("text")
        content = f"{name}\0{text}" if text is not None else f"{name}\0\0{_in_order(given.get('messages') or ())}"
        digest = _keyed(self.seed).copy()
        digest.update(content.encode("utf-8", "surrogatepass"))
        self.drawn += digest.digest()
        self.empty.append("" in row.golds)

    def merge(self, other: Columns) -> None:
        """Add the rows that follow: of a file without errors, whose positions go on."""
        rows = len(self.ids)
        other.indexes = array("I", range(rows, rows + len(other.indexes)))
        other._perturbed = {ordinal + rows: hashed for ordinal, hashed in other._perturbed.items()}
        super().merge(other)

    # Ids

    def find_repeated(self) -> list[int]:
        """Return the ordinals of rows whose id is missing, or taken by an earlier row."""
        ids = np.frombuffer(self.ids, np.int64)
        is_first = np.zeros(len(ids), bool)
        is_first[np.unique(ids, return_index=True)[1]] = True
        found: list[int] = np.flatnonzero(~is_first | (ids == 0)).tolist()
        return found

    def locate(self, ordinal: int) -> Place:
        """Return where a row stands."""
        assert self._place is not None
        index, first = self.indexes[ordinal], self._place
        path = tuple(index if isinstance(step, int) else step for step in first.path)
        return replace(first, index=index, line=None if first.line is None else self.numbers[ordinal], path=path)

    def _rename(self, fetch: Fetch) -> Mapping[int, str]:
        """Return the ids of rows that HELM could not tell apart, by ordinal: unique but for perturbations of one row.

        The first row with an id keeps it, the next get `-2`, `-3`, ...; rows without one are `id<position>`, as HELM
        numbers them.
        """
        waiting = self.find_repeated()
        if not waiting:
            return {}
        names = np.frombuffer(self.ids, np.int64).copy()
        for ordinal, hashed in self._perturbed.items():
            names[ordinal] = hashed
        taken = np.sort(np.delete(names, waiting))
        repeated = [ordinal for ordinal in waiting if self.ids[ordinal]]
        given = {ordinal: str(row.instance["id"]) for ordinal, row in zip(repeated, fetch(repeated), strict=True)}
        new: set[int] = set()
        last: dict[str, int] = {}
        renamed = {}
        for ordinal in waiting:
            base = given.get(ordinal) or f"id{self.indexes[ordinal]}"
            number = last.get(base, 1)
            name = base
            while (hashed := hash_content(name)) in new or hashed in taken[taken.searchsorted(hashed) :][:1]:
                number += 1
                name = f"{base}-{number}"
            if name != base:
                renamed[ordinal] = name
                last[base] = number
                new.add(hashed)
        return renamed

    # The instances

    def choose(self, plan: Plan, profile: Profile, store: RowStore[Row]) -> Chosen:
        """Return the instances, when all rows were seen."""
        fetch = store.read
        splits = np.frombuffer(bytes(self.splits), np.uint8).copy()
        splits[splits == 0] = TEST
        if not profile.is_differentiated:
            splits[splits == TRAIN] = TEST
        evaluated = np.isin(splits, [_SPLIT_CODES[split] for split in profile.eval_splits])
        drawn, beyond = (np.zeros(0, np.intp),) * 2
        if self.draws and (plan.demonstrations or plan.cap is not None):
            drawn, beyond = self._draw(plan, evaluated, fetch)
        kept = evaluated | (splits == TRAIN)
        if not profile.is_recorded:
            splits[drawn] = TRAIN
            kept[drawn] = True
            kept[beyond] = False
            ordinals, only = np.flatnonzero(kept), np.zeros(int(kept.sum()), np.uint8)
            chosen_splits = splits[ordinals]
        else:
            ordinals = np.sort(np.concatenate([np.flatnonzero(kept), drawn]), kind="stable")
            is_copy = np.zeros(len(ordinals), bool)
            is_copy[np.searchsorted(ordinals, drawn)] = True  # a copy stands before its row
            chosen_splits = splits[ordinals]
            recorded_only = np.full(len(splits), not plan.can_run_live)
            recorded_only[drawn] = recorded_only[beyond] = True
            only = np.where(recorded_only[ordinals] & (chosen_splits != TRAIN), RECORDED, 0).astype(np.uint8)
            chosen_splits[is_copy], only[is_copy] = TRAIN, LIVE
        evaluated_groups = np.frombuffer(self.groups, np.int64)[ordinals][chosen_splits != TRAIN]
        # With counts: without them, np.unique imports numpy.ma, which takes 15 ms of each start.
        of_evaluated = np.unique(evaluated_groups, return_counts=True)[0].tolist()
        maker = Maker(plan, profile, self._rename(fetch), moves=bool((only == RECORDED).any()))
        numbers, indexes = ordinals.astype(np.uint32), np.frombuffer(self.indexes, np.uint32)[ordinals]
        told = np.arange(len(ordinals), dtype=np.uint32), numbers, indexes, chosen_splits, only
        rows = StoredRows(
            store=store,
            make=maker.make,
            numbers=numbers,
            told=told,
            splits=tuple(split or "" for split in _SPLITS),
            split=chosen_splits,
            only=only,
            status=np.frombuffer(bytes(self.statuses), np.uint8)[ordinals],
            unrecorded=np.frombuffer(bytes(self.unrecorded), np.uint8)[ordinals],
            has_perturbations=bool(self._perturbed),
            has_labels=plan.method in LABELLED_METHODS
            and bool(np.frombuffer(bytes(self.labelled), np.uint8)[ordinals].any()),
        )
        instances: Sequence[Instance] = rows
        if store.kept is not None:
            kept = store.release(ordinals.tolist())
            instances = list(map(maker.make, kept, *(column.tolist() for column in told)))
        return Chosen(
            spec=maker.spec,
            rows=rows,
            instances=instances,
            groups=[self.group_values[group] for group in of_evaluated if group],
            places=array("I", np.frombuffer(self.numbers, np.uint32)[ordinals].tobytes()),
        )

    def _draw(
        self, plan: Plan, evaluated: NDArray[np.bool_], fetch: Fetch
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the ordinals of rows that are drawn as demonstrations, and of those beyond the cap.

        `evaluated`: which rows are of a split that is evaluated. Rows that are not are drawn first; those with an empty
        answer last, for HELM cannot show them.
        """
        order = self.order(fetch)
        rank = np.empty(len(order), np.intp)
        rank[order] = np.arange(len(order))
        order = np.lexsort((rank, evaluated, np.frombuffer(bytes(self.empty), np.uint8)))
        drawn = order[: plan.demonstrations]
        rest = order[plan.demonstrations :]
        rest = rest[evaluated[rest]]
        return np.sort(drawn), rest[:0] if plan.cap is None else rest[plan.cap :]

    def order(self, fetch: Fetch) -> NDArray[np.intp]:
        """Return the ordinals of the rows in their random order.

        Where id and input of two rows are the same, the rest of the row decides: those are fetched.
        """
        halves = np.frombuffer(bytes(self.drawn), ">u8").reshape(-1, 2)
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        same = (halves[order][1:] == halves[order][:-1]).all(axis=1)
        for start, last in np.flatnonzero(np.diff(np.r_[False, same, False])).reshape(-1, 2).tolist():
            ordinals = sorted(order[start : last + 1].tolist())
            rest = zip(map(_rest, fetch(ordinals)), ordinals, strict=True)
            order[start : last + 1] = [ordinal for _, ordinal in sorted(rest)]
        return order


@cache
def _keyed(seed: str) -> Any:
    return blake2b(digest_size=16, key=seed.encode()[:64])


def _rest(row: Row) -> bytes:
    return canonical_json([row.references, row.instance.get("perturbation"), row.instance])


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


_PLAIN_KEYS = frozenset({"input", "references", "split", "id", "answer_mapping", "output_mapping"})
"""A row with no other keys needs nothing special. Unknown keys go through the slower way too."""


class Maker:
    """Makes the instances of a file out of its rows. Can be sent to another process."""

    def __init__(self, plan: Plan, profile: Profile, renamed: Mapping[int, str], *, moves: bool) -> None:
        """Begin with a plan.

        `renamed`: the ids of rows that cannot have the one that the file gives, or `id<position>`, by ordinal.
        `moves`: whether some rows take part in recorded runs only, so that `order_for_sampling` needs each's position.
        """
        self.spec = make_adapter_spec(plan, profile)
        self.sequence = tuple(plan.labels)
        self.decoding = request_decoding(plan, profile)
        self.is_recorded = profile.is_recorded or profile.find("incomplete").count > 0
        self.unmeasured = plan.earlier.unmeasured if plan.earlier is not None else ()
        """Keys of HELM's states that nobody recorded, of the output of a run of ours."""
        self.reorder = plan.method in JOINT_METHODS and bool(plan.labels)
        self.labelled = plan.method in LABELLED_METHODS
        self.asks_once = not plan.method.startswith("multiple_choice_separate")
        self.renamed, self.moves = renamed, moves

    def make(self, row: Row, place: int, ordinal: int, index: int, split: int, only: int) -> Instance:
        """Return the instance of a row, which stands at a place among those of the file. Written for speed.

        Its extra data always has our key, so that adapter and metrics know it as ours.
        """
        row.split = _SPLITS[split]
        named = row.instance.get("id")
        name = self.renamed.get(ordinal)
        if name is None:
            name = f"id{index}" if named is None or named == "" else str(named)
        if only == LIVE:  # a row that is a demonstration of live runs, and scored in recorded ones
            name += "-demo"
        given = row.instance
        labels = row.labels if self.labelled else None
        references = row.references
        if (
            row.labels_from != "prefix"
            and labels is not None
            and self.reorder
            and [*labels.values()] != [*range(len(references))]
        ):
            # HELM renders option i with label i: the options are put into the order of their labels.
            labels = {label: labels[label] for label in self.sequence[: len(labels)]}
            references = [references[position] for position in labels.values()]
            labels = {label: position for position, label in enumerate(labels)}
        made = [Reference(Output(reference["output"]["text"]), reference.get("tags") or []) for reference in references]
        extra: RowExtra = {}
        if "id" in given and named != name:
            extra["id"] = given["id"]
        if row.unknown:
            extra["data"] = row.unknown
        if only:
            extra["only"] = "live" if only == LIVE else "recorded"
        if row.attributes:
            extra["attributes"] = row.attributes
        if row.cluster is not None:
            extra["cluster"] = row.cluster
        if row.source_scores:
            extra["source_scores"] = row.source_scores
        if row.source_unscored:
            extra["source_unscored"] = row.source_unscored
        is_train = row.split == "train"
        if not is_train:
            if self.decoding:
                extra["decoding"] = self.decoding
            if self.is_recorded and only != LIVE:
                extra["recorded"] = self.recorded(row)
                if row.likelihoods is not None and extra["recorded"]["status"] == "ok":
                    extra["likelihoods"] = row.likelihoods
                if row.judgements:
                    extra["judgements"] = _bind(row.judgements, given["input"], extra["recorded"])
        if labels is not None:
            extra["labels"] = {label: references[place]["output"]["text"] for label, place in labels.items()}
        if self.moves and not is_train:  # `order_for_sampling` will move some
            extra["position"] = place
        if _PLAIN_KEYS.issuperset(given):
            return Instance(_input(given["input"]), made, row.split, None, name, extra_data={EXTRA_KEY: extra})
        return self._make_with_extras(row, name, made, extra)

    def _make_with_extras(self, row: Row, name: str, made: list[Reference], extra: RowExtra) -> Instance:
        """Return the Instance of a row that has one of the rare keys."""
        given = row.instance
        extra_data = dict(given.get("extra_data") or {})
        thought = given.get("chain_of_thought")
        if thought:
            extra_data["chain_of_thought"] = thought
            shown = next((place for place, one in enumerate(made) if CORRECT in one.tags), None)
            if row.split == "train" and self.spec.method == "generation" and shown is not None:
                # Before the answer that a demonstration shows. Train rows are never scored.
                before = self.spec.chain_of_thought_prefix + thought + self.spec.chain_of_thought_suffix
                made[shown] = replace(made[shown], output=Output(text=before + made[shown].output.text))
        if row.earlier is not None:
            if row.is_helm:
                extra.pop("data", None)  # the annotations that it wrote
            kept = {
                key: value for key, value in row.earlier.items() if key not in ("left_out", "scoring", "judgements")
            }
            extra = cast("RowExtra", {**kept, **extra})
        extra_data[EXTRA_KEY] = extra
        contrasts, perturbation = given.get("contrast_references"), given.get("perturbation")
        return Instance(
            input=_input(given["input"]),
            references=made,
            split=row.split,
            sub_split=given.get("sub_split"),
            id=name,
            perturbation=read_perturbation(msgspec.json.encode(perturbation)) if perturbation else None,
            contrast_inputs=[_input(one) for one in given["contrast_inputs"]] if given.get("contrast_inputs") else None,
            contrast_references=[[_reference(one) for one in some] for some in contrasts] if contrasts else None,
            extra_data=extra_data,
        )

    def recorded(self, row: Row) -> Recorded:
        """Return what is recorded for a row."""
        if self.asks_once and not row.is_helm and (state := row.found[0][1]) is not None:
            return {"status": "ok", "states": [state]}
        trials = self.spec.num_train_trials if row.is_helm else 1
        found = combine(row.found, self.spec.method, row.options, trials, of_whole=row.compares_wholes)
        if row.earlier is not None and "left_out" in row.earlier:
            found["skip"] = True  # as in the run that wrote the file
        for state in found["states"]:
            for key in self.unmeasured:
                state.pop(key, None)  # type: ignore[misc]
        return found


def _bind(judgements: Sequence[Judgement], asked: dict[str, Any], recorded: Recorded) -> list[dict[str, Any]]:
    """Return the judgements, each with the digest of what it is of, if it has none yet."""
    question = question_text(asked.get("text"), asked.get("messages"))
    completions = recorded["states"][0]["result"]["completions"] if recorded["states"] else ()
    answers = [completion["text"] for completion in completions]
    return [bind(judgement, question, answers).to_json() for judgement in judgements]


def _reference(given: dict[str, Any]) -> Reference:
    return Reference(Output(text=given["output"]["text"]), tags=given.get("tags") or [])


def _input(given: dict[str, Any]) -> Input:
    messages = given.get("messages")
    if not messages:
        return Input(text=given.get("text") or "")
    return Input(
        text=given.get("text") or "",
        messages=[{"role": message["role"], "content": message["content"]} for message in messages],
    )
