"""Questions that stand in the data twice, word for word."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from helm_ext.analysis.lint.codes import LintCode
from helm_ext.analysis.lint.rows import Row
from helm_ext.errors import Problems, show

__all__ = ["EqualRows", "say_duplicate"]

LEAK_HINT = "a model is shown, or was trained on, the answer that it is scored on; take the row out of one split"


class EqualRows:
    """Finds rows that ask what another asked before; keeps a hash of each row, and the rows of those alone."""

    def __init__(self) -> None:
        self._keys = array("q")
        self._seen: set[int] = set()
        self._repeated: set[int] = set()
        self._groups: dict[int, list[Row]] = {}
        self._again = 0

    def see(self, row: Row) -> bool:
        """Look at a row; return whether no row before it asked the same."""
        key = hash(row.key())
        self._keys.append(key)
        if key in self._seen:
            self._repeated.add(key)
            return False
        self._seen.add(key)
        return True

    def settle(self) -> None:
        """Begin to look at the rows a second time, in the same order."""
        self._seen = set()

    def see_again(self, row: Row) -> bool:
        """Look at a row once more; return what `see` returned."""
        key = self._keys[self._again]
        self._again += 1
        if key not in self._repeated:
            return True
        group = self._groups.setdefault(key, [])
        group.append(row)
        return len(group) == 1

    def groups(self) -> dict[int, list[Row]]:
        """Return the groups of rows that ask the same, by the number of their first row."""
        return {group[0].number: group for group in self._groups.values()}

    def report(self, problems: Problems) -> None:
        """Report each row once, beside the first that it repeats.

        That is for contradicting it, else as a leak, else as a duplicate.
        """
        for group in self._groups.values():
            _report(group, problems)


def _report(group: Sequence[Row], problems: Problems) -> None:
    train = next((row for row in group if row.is_train), None)
    evaluated = next((row for row in group if not row.is_train), None)
    with_gold = next((row for row in group if row.golds), None)
    for row in group:
        if with_gold is not None and row.contradicts(with_gold):
            problems.warn(
                row.place,
                f"id {show(row.id)}: the question of {with_gold.title(row)} with another gold: {_show_golds(row)}, "
                f"and there {_show_golds(with_gold)}",
                "one of them is wrong, or the question lacks what tells them apart",
                code=LintCode.DIFFERENT_GOLDS,
                also=with_gold.path,
            )
        elif not row.is_train and train is not None:
            say_duplicate(row, train, problems)
        elif row is not (train if row.is_train else evaluated):
            first = train if row.is_train else evaluated
            assert first is not None
            say_duplicate(row, first, problems)


def say_duplicate(row: Row, first: Row, problems: Problems, *, nearly: bool = False) -> None:
    """Report that a row asks what another asks, word for word or `nearly`."""
    what = "nearly the question" if nearly else "the question"
    if row.is_train != first.is_train:
        message = f"id {show(row.id)}: {what} of {first.title(row)}, a row of the {first.split} split"
        problems.warn(row.place, message, LEAK_HINT, code=LintCode.LEAK, also=first.path)
        return
    of = f", a row of the {first.split} split" if row.split != first.split else ""
    message = f"id {show(row.id)}: {what} of {first.title(row)}{of}, with the same gold"
    hint = "it counts twice in every score" if not row.is_train else "it is drawn twice as often as others"
    code = LintCode.NEAR_DUPLICATE if nearly else LintCode.DUPLICATE
    problems.warn(row.place, message, hint, code=code, also=first.path)


def _show_golds(row: Row) -> str:
    return show(row.golds[0] if len(row.golds) == 1 else list(row.golds))
