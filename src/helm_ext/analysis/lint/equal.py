"""Questions that stand in the data twice, word for word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from helm_ext.analysis.lint.rows import Row, Rows, Shared, contradict
from helm_ext.errors import KEPT_PROBLEMS, Problems, show

_LEAK_HINT = "a model is shown, or was trained on, the answer that it is scored on; take the row out of one split"


class Member(NamedTuple):
    """A row among those that ask the same."""

    number: int
    is_train: bool
    is_choice: bool = False
    golds: frozenset[int] = frozenset()
    """Hashes."""


class EqualRows:
    """Finds rows that ask what another asked before, and keeps of these numbers alone."""

    def __init__(self, shared: Shared) -> None:
        self._repeated = shared.repeated
        self._keys = iter(shared.questions)
        self._groups: dict[int, list[Member]] = {}
        """Rows that ask the same, by the hash of their question."""

    def see(self, row: Row) -> bool:
        """Look at a row; return whether no row before it asked the same."""
        key = next(self._keys)
        if key not in self._repeated:
            return True
        group = self._groups.setdefault(key, [])
        group.append(Member(row.number, row.is_train, bool(row.options), frozenset(map(hash, row.gold_keys))))
        return len(group) == 1

    def find_groups(self) -> dict[int, list[Member]]:
        """Return the rows that ask the same by the number of the first of them."""
        return {group[0].number: group for group in self._groups.values()}

    def report(self, rows: Rows, problems: Problems) -> None:
        """Report each row once, beside the first that it repeats.

        That is for contradicting it, else as a leak, else as a duplicate. Of each of these the first are read again
        and listed, as many as `problems` keeps, and the others counted.
        """
        found: Counter[str] = Counter()
        listed: list[tuple[str, tuple[int, int]]] = []
        for group in self._groups.values():
            for one, other, code in _judge(group):
                found[code] += 1
                if found[code] <= KEPT_PROBLEMS:
                    listed.append((code, (one.number, other.number)))
        for (code, _), (row, first) in zip(listed, rows.take_pairs(pair for _, pair in listed), strict=True):
            if code == "different-golds":
                problems.warn(
                    row.place,
                    f"id {show(row.id)}: the question of {first.title(row)} with another gold: {_show_golds(row)}, "
                    f"and there {_show_golds(first)}",
                    "one of them is wrong, or the question lacks what tells them apart",
                    code=code,
                    also=first.path,
                )
            else:
                say_duplicate(row, first, problems)
        for code, number in found.items():
            problems.count_more(code, number - KEPT_PROBLEMS)


def _judge(group: Sequence[Member]) -> Iterator[tuple[Member, Member, str]]:
    """Yield which rows of a group are reported, beside which row, and for what."""
    train = next((one for one in group if one.is_train), None)
    evaluated = next((one for one in group if not one.is_train), None)
    with_gold = next((one for one in group if one.golds), None)
    for one in group:
        first = train if one.is_train else evaluated
        if with_gold is not None and contradict(one.golds, with_gold.golds, is_choice=one.is_choice):
            yield one, with_gold, "different-golds"
        elif not one.is_train and train is not None:
            yield one, train, "leak"
        elif first is not None and one is not first:
            yield one, first, "duplicate"


def say_duplicate(row: Row, first: Row, problems: Problems, *, nearly: bool = False) -> None:
    """Report that a row asks what another asks, word for word or `nearly`."""
    what = "nearly the question" if nearly else "the question"
    if row.is_train != first.is_train:
        message = f"id {show(row.id)}: {what} of {first.title(row)}, a row of the {first.split} split"
        problems.warn(row.place, message, _LEAK_HINT, code="leak", also=first.path)
        return
    of = f", a row of the {first.split} split" if row.split != first.split else ""
    message = f"id {show(row.id)}: {what} of {first.title(row)}{of}, with the same gold"
    hint = "it counts twice in every score" if not row.is_train else "it is drawn twice as often as others"
    code = "near-duplicate" if nearly else "duplicate"
    problems.warn(row.place, message, hint, code=code, also=first.path)


def _show_golds(row: Row) -> str:
    return show(row.golds[0] if len(row.golds) == 1 else list(row.golds))
