"""What is kept of every row of a file beside the store: some 40 bytes each, in arrays.

While a file is read, nothing is known of later rows: which ids are taken, how many rows there are to
draw demonstrations from. So a few numbers of each row are kept, and when all rows were seen they decide what each
becomes (`choose`): its id, its split, the runs that it takes part in.

    Row ──see──▶ Columns ──choose──▶ Chosen: the instances, as numbers ──store──▶ Instances, some at a time
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from helm_ext.evalset.rows import LIVE, RECORDED, STATUSES, find_lacks
from helm_ext.formats.request_states.drawing import Draw, Fetch
from helm_ext.formats.request_states.header import Settings
from helm_ext.formats.request_states.plan import Plan
from helm_ext.formats.request_states.survey import Survey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from helm_ext.formats.request_states.ids import Ids
    from helm_ext.formats.request_states.rows import Row

__all__ = ["Chosen", "Columns"]

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
    groups: list[tuple[str | None, Mapping[str, str]]]
    """Sub-split and attributes that occur among the rows that are evaluated."""
    places: Sequence[int]
    """Of each: its line, or its position (`Place.number`)."""
    splits: tuple[str, ...] = ("", "train", "valid", "test")

    def find_attributes(self, by: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the values of sub-split and of each attribute among the rows that are evaluated."""
        sub_splits = tuple(sorted({sub_split for sub_split, _ in self.groups if sub_split}))
        named = {name: tuple(sorted({row[name] for _, row in self.groups if name in row})) for name in by}
        return ({"sub_split": sub_splits} if sub_splits else {}) | named


@dataclass
class Columns:
    """Collects the columns. `settings`, `seed`: what demonstrations and caps depend on."""

    settings: Settings
    seed: int
    splits: bytearray = field(default_factory=bytearray)
    statuses: bytearray = field(default_factory=bytearray)
    lacks: bytearray = field(default_factory=bytearray)
    _labelled: bytearray = field(default_factory=bytearray)
    _groups: array[int] = field(default_factory=lambda: array("I"))
    _group_codes: dict[Any, int] = field(default_factory=dict)
    _group_values: list[tuple[str | None, Mapping[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        may_draw = self.settings.max_train_instances or self.settings.max_eval_instances is not None
        self._draw = Draw(self.seed) if may_draw else None

    def see(self, row: Row) -> None:
        """Keep what must be known of a row. Written for speed: this runs once a row."""
        instance = row.instance
        self.splits.append(_SPLIT_CODES[row.split])
        status, state = row.found[0]
        self.statuses.append(_STATUS_CODES[status])
        self.lacks.append(0 if state is None else find_lacks(state))
        self._labelled.append(row.labels is not None)
        sub_split = instance.get("sub_split")
        if sub_split or row.attributes:
            key = (sub_split, *(row.attributes or {}).items())
            self._groups.append(self._find_code(key, (sub_split, row.attributes or {})))
        else:
            self._groups.append(0)
        if self._draw is not None:
            self._draw.see(row)

    def _find_code(self, key: Any, value: tuple[str | None, Mapping[str, str]]) -> int:
        """Return the number of a group, from 1 in the order in which groups were seen."""
        code = self._group_codes.setdefault(key, len(self._group_codes) + 1)
        if code > len(self._group_values):
            self._group_values.append(value)
        return code

    def merge(self, other: Columns) -> None:
        """Add the rows that follow."""
        self.splits += other.splits
        self.statuses += other.statuses
        self.lacks += other.lacks
        self._labelled += other._labelled
        codes = [0, *(self._find_code(key, other._group_values[code - 1]) for key, code in other._group_codes.items())]
        is_same = codes == list(range(len(codes)))
        self._groups.extend(other._groups if is_same else array("I", map(codes.__getitem__, other._groups)))
        if self._draw is not None and other._draw is not None:
            self._draw.merge(other._draw)

    def choose(self, plan: Plan, survey: Survey, ids: Ids, fetch: Fetch, *, is_labelled: bool) -> Chosen:
        """Return the instances, when all rows were seen. `is_labelled`: whether the method reads labels."""
        splits = np.frombuffer(bytes(self.splits), np.uint8).copy()
        splits[splits == 0] = TEST
        if not survey.is_differentiated:
            splits[splits == TRAIN] = TEST
        evaluated = np.isin(splits, [_SPLIT_CODES[split] for split in survey.eval_splits])
        drawn, beyond = (np.zeros(0, np.intp),) * 2
        if self._draw is not None and (plan.demonstrations or plan.cap is not None):
            drawn, beyond = self._draw.choose(plan, evaluated, fetch)
        kept = evaluated | (splits == TRAIN)
        if not survey.is_recorded:
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
        codes = np.frombuffer(self._groups, np.uint32)[ordinals] if self._group_values else np.zeros(0, np.uint32)
        of_evaluated = np.unique(codes[chosen_splits != TRAIN] if len(codes) else codes)
        labelled = np.frombuffer(bytes(self._labelled), np.uint8)[ordinals] if is_labelled else np.zeros(0)
        return Chosen(
            ordinals=ordinals.astype(np.uint32),
            indexes=np.frombuffer(ids.indexes, np.uint32)[ordinals],
            split=chosen_splits,
            only=only,
            status=np.frombuffer(bytes(self.statuses), np.uint8)[ordinals],
            lacks=np.frombuffer(bytes(self.lacks), np.uint8)[ordinals],
            has_perturbations=ids.has_perturbations,
            has_labels=bool(labelled.any()),
            renamed=ids.rename(fetch),
            moves=bool((only == RECORDED).any()),
            groups=[self._group_values[code - 1] for code in of_evaluated.tolist() if code],
            places=array("I", np.frombuffer(ids.numbers, np.uint32)[ordinals].tobytes()),
        )
