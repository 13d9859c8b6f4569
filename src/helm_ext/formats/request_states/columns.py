"""What is kept of every row of a file beside the store: some 40 bytes each, in arrays.

While a file is read, nothing is known of later rows: which ids are taken, how many rows there are to
draw demonstrations from. So a few numbers of each row are kept, and when all rows were seen they decide what each
becomes (`choose`): its id, its split, the runs that it takes part in.

Which rows become demonstrations, and which a cap leaves, their contents alone decide: rows are ordered by a keyed hash,
never by their order in the file or by a library's random numbers. Another row more changes little.

    Row ──see──▶ Columns ──choose──▶ Chosen: the instances, as numbers ──store──▶ Instances, some at a time
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from helm_ext.evalset.rows import LIVE, RECORDED, STATUSES, find_lacks
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.header import Settings
from helm_ext.formats.request_states.ids import hash_content
from helm_ext.formats.request_states.plan import Plan
from helm_ext.formats.request_states.profile import Profile
from helm_ext.formats.request_states.shapes import LABELLED_METHODS
from helm_ext.formats.request_states.tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from helm_ext.formats.request_states.ids import Ids
    from helm_ext.formats.request_states.rows import Fetch, Row

Group = tuple[str | None, Mapping[str, str]]
"""A sub-split and attributes of rows."""

SPLITS = (None, "train", "valid", "test")
TRAIN, TEST = SPLITS.index("train"), SPLITS.index("test")
_SPLIT_CODES = {split: code for code, split in enumerate(SPLITS)}
_STATUS_CODES = {status: code for code, status in enumerate(STATUSES)}


@dataclass(kw_only=True)
class Chosen:
    """The instances of a file. Arrays are of one length: the number of instances."""

    ordinals: NDArray[np.uint32]
    """Which row each is made of."""
    indexes: NDArray[np.uint32]
    """`Place.index` of that row."""
    split: NDArray[np.uint8]
    """By `splits`."""
    only: NDArray[np.uint8]
    """Kinds of runs that it takes part in (`evalset.rows`)."""
    status: NDArray[np.uint8]
    """By `evalset.rows.STATUSES`."""
    lacks: NDArray[np.uint8]
    has_perturbations: bool
    has_labels: bool
    renamed: Mapping[int, str]
    """The ids of rows that cannot have the one that the file gives, or `id<position>`, by ordinal."""
    moves: bool
    """Whether some rows take part in recorded runs only, so that `row_order` needs each one's position."""
    groups: list[Group]
    """Sub-split and attributes that occur among the rows that are evaluated."""
    places: Sequence[int]
    """Of each: its line, or its position (`Place.number`)."""
    splits: tuple[str, ...] = ("", "train", "valid", "test")

    def find_attributes(self, by: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the values of sub-split and of each attribute among the rows that are evaluated."""
        sub_splits = tuple(sorted({sub_split for sub_split, _ in self.groups if sub_split}))
        named = {name: tuple(sorted({row[name] for _, row in self.groups if name in row})) for name in by}
        return ({"sub_split": sub_splits} if sub_splits else {}) | named


class Columns(Tally):
    """Collects the columns."""

    def __init__(self, settings: Settings, seed: int) -> None:
        """`settings`, `seed`: what demonstrations and caps depend on."""
        self.splits, self.statuses, self.lacks, self.labelled = bytearray(), bytearray(), bytearray(), bytearray()
        self.groups = array("q")
        """Hashes of the rows' sub-splits and attributes; 0 for none."""
        self.group_values: dict[int, Group] = {}
        self.seed = str(seed)
        self.draws = bool(settings.max_train_instances or settings.max_eval_instances is not None)
        self.drawn = bytearray()
        """16 bytes a row: the places of rows in the random order, where some are drawn."""
        self.empty = bytearray()
        """Whether one of the row's right answers is empty."""

    def see(self, row: Row) -> None:
        """Keep what must be known of a row. Written for speed: this runs once a row."""
        instance = row.instance
        self.splits.append(_SPLIT_CODES[row.split])
        status, state = row.found[0]
        self.statuses.append(_STATUS_CODES[status])
        self.lacks.append(0 if state is None else find_lacks(state))
        self.labelled.append(row.labels is not None)
        sub_split = instance.get("sub_split")
        group = 0
        if sub_split or row.attributes:
            attributes = row.attributes or {}
            group = hash_content(canonical_json([sub_split, attributes]))
            self.group_values.setdefault(group, (sub_split, attributes))
        self.groups.append(group)
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

    def choose(self, plan: Plan, profile: Profile, ids: Ids, fetch: Fetch) -> Chosen:
        """Return the instances, when all rows were seen."""
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
        return Chosen(
            ordinals=ordinals.astype(np.uint32),
            indexes=np.frombuffer(ids.indexes, np.uint32)[ordinals],
            split=chosen_splits,
            only=only,
            status=np.frombuffer(bytes(self.statuses), np.uint8)[ordinals],
            lacks=np.frombuffer(bytes(self.lacks), np.uint8)[ordinals],
            has_perturbations=ids.has_perturbations,
            has_labels=plan.method in LABELLED_METHODS
            and bool(np.frombuffer(bytes(self.labelled), np.uint8)[ordinals].any()),
            renamed=ids.rename(fetch),
            moves=bool((only == RECORDED).any()),
            groups=[self.group_values[group] for group in of_evaluated if group],
            places=array("I", np.frombuffer(ids.numbers, np.uint32)[ordinals].tobytes()),
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
