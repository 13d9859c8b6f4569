"""Questions that stand in the data twice, word for word."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from helm_ext.analysis.lint.hashes import SeenHashes, find_frequent
from helm_ext.analysis.lint.rows import Row, Rows
from helm_ext.errors import KEPT_PROBLEMS, Problems, show

LEAK_HINT = "a model is shown, or was trained on, the answer that it is scored on; take the row out of one split"


class Member(NamedTuple):
    """A row among those that ask the same."""

    number: int
    is_train: bool


class EqualRows:
    """Finds rows that ask what another asked before.

    Keeps a hash of each row, and of those that ask the same numbers alone: their rows are read again for what is
    reported.
    """

    def __init__(self) -> None:
        self._keys = array("q")
        self._is_first = bytearray()
        self._seen = SeenHashes()
        self._repeated: Collection[int] = frozenset()
        self._again = 0
        self._group_keys, self._numbers = array("q"), array("q")
        """Of each row that is one of several: the hash that it shares with them, and its number."""
        self._is_train, self._starts_group, self._is_choice = bytearray(), bytearray(), bytearray()
        self._golds, self._gold_ends = array("q"), array("q", [0])
        """Of the same rows: the hashes of their golds, one row's after the other's."""

    def see(self, row: Row) -> bool:
        """Look at a row; return whether no row before it asked the same."""
        key = hash(row.key())
        is_first = self._seen.add(key)
        self._keys.append(key)
        self._is_first.append(is_first)
        return is_first

    def settle(self) -> None:
        """Begin to look at the rows a second time, in the same order."""
        self._seen = SeenHashes()
        self._repeated = find_frequent(self._keys, 2)

    def see_again(self, row: Row) -> bool:
        """Look at a row once more; return what `see` returned."""
        key, is_first = self._keys[self._again], bool(self._is_first[self._again])
        self._again += 1
        if key in self._repeated:
            self._group_keys.append(key)
            self._numbers.append(row.number)
            self._is_train.append(row.is_train)
            self._starts_group.append(is_first)
            self._is_choice.append(bool(row.options))
            self._golds.extend(map(hash, row.gold_keys))
            self._gold_ends.append(len(self._golds))
        return is_first

    def group_of(self, number: int) -> list[Member]:
        """Return the rows that ask what the row of this number asks, itself included; [] where it is the only one."""
        at = bisect_left(self._numbers, number)
        if at == len(self._numbers) or self._numbers[at] != number:
            return []
        return [Member(self._numbers[place], bool(self._is_train[place])) for place in self._places_beside(at)]

    def report(self, rows: Rows, problems: Problems) -> None:
        """Report each row once, beside the first that it repeats.

        That is for contradicting it, else as a leak, else as a duplicate. Of each of these the first are read again
        and listed, as many as `problems` keeps, and the others counted.
        """
        found: Counter[str] = Counter()
        pairs: list[tuple[int, int]] = []
        codes: list[str] = []
        for place, is_first in enumerate(self._starts_group):
            if is_first:
                for one, other, code in self._judge(self._places_beside(place)):
                    found[code] += 1
                    if found[code] <= KEPT_PROBLEMS:
                        pairs.append((self._numbers[one], self._numbers[other]))
                        codes.append(code)
        for code, (row, first) in zip(codes, rows.take_pairs(pairs), strict=True):
            if code == "different-golds":
                _say_different(row, first, problems)
            else:
                say_duplicate(row, first, problems)
        for code, number in found.items():
            problems.count_more(code, number - KEPT_PROBLEMS)

    @cached_property
    def _order(self) -> array[int]:
        return array("q", sorted(range(len(self._group_keys)), key=self._group_keys.__getitem__))

    @cached_property
    def _ordered_keys(self) -> array[int]:
        return array("q", [self._group_keys[place] for place in self._order])

    def _places_beside(self, place: int) -> Sequence[int]:
        """Return the places of a group, in order."""
        key = self._group_keys[place]
        return self._order[bisect_left(self._ordered_keys, key) : bisect_right(self._ordered_keys, key)]

    def _judge(self, group: Sequence[int]) -> Iterator[tuple[int, int, str]]:
        """Yield which rows of a group are reported: the row's place, that of the row beside it, and for what."""
        train = next((place for place in group if self._is_train[place]), None)
        evaluated = next((place for place in group if not self._is_train[place]), None)
        with_gold = next((place for place in group if self._golds_of(place)), None)
        for place in group:
            is_train = bool(self._is_train[place])
            first = train if is_train else evaluated
            if with_gold is not None and self._contradict(place, with_gold):
                yield place, with_gold, "different-golds"
            elif not is_train and train is not None:
                yield place, train, "leak"
            elif first is not None and place != first:
                yield place, first, "duplicate"

    def _golds_of(self, place: int) -> frozenset[int]:
        return frozenset(self._golds[self._gold_ends[place] : self._gold_ends[place + 1]])

    def _contradict(self, place: int, other: int) -> bool:
        """Return `Row.contradicts` of two rows of a group."""
        ours, theirs = self._golds_of(place), self._golds_of(other)
        if not ours or not theirs:
            return False
        return ours != theirs if self._is_choice[place] else ours.isdisjoint(theirs)


def _say_different(row: Row, other: Row, problems: Problems) -> None:
    problems.warn(
        row.place,
        f"id {show(row.id)}: the question of {other.title(row)} with another gold: {_show_golds(row)}, "
        f"and there {_show_golds(other)}",
        "one of them is wrong, or the question lacks what tells them apart",
        code="different-golds",
        also=other.path,
    )


def say_duplicate(row: Row, first: Row, problems: Problems, *, nearly: bool = False) -> None:
    """Report that a row asks what another asks, word for word or `nearly`."""
    what = "nearly the question" if nearly else "the question"
    if row.is_train != first.is_train:
        message = f"id {show(row.id)}: {what} of {first.title(row)}, a row of the {first.split} split"
        problems.warn(row.place, message, LEAK_HINT, code="leak", also=first.path)
        return
    of = f", a row of the {first.split} split" if row.split != first.split else ""
    message = f"id {show(row.id)}: {what} of {first.title(row)}{of}, with the same gold"
    hint = "it counts twice in every score" if not row.is_train else "it is drawn twice as often as others"
    code = "near-duplicate" if nearly else "duplicate"
    problems.warn(row.place, message, hint, code=code, also=first.path)


def _show_golds(row: Row) -> str:
    return show(row.golds[0] if len(row.golds) == 1 else list(row.golds))
