"""Questions that stand in the data twice with small changes: a word more, another spelling, another order.

`likeness` proposes pairs, `alike` compares their words, `templates` takes out what are two questions of one template.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence

from helm_ext.analysis.lint.alike import compare
from helm_ext.analysis.lint.equal import Member, say_duplicate
from helm_ext.analysis.lint.hashes import find_frequent
from helm_ext.analysis.lint.likeness import Candidates
from helm_ext.analysis.lint.rows import Row, Rows
from helm_ext.analysis.lint.templates import Pair, drop_templates
from helm_ext.analysis.lint.texts import fold
from helm_ext.errors import Problems

RARE_GOLD = 0.005
"""Of all rows. A gold that more rows have (yes, no, a class) says little about which question it answers."""
FEW = 3
"""A gold that at most this many rows have is rare, in the smallest dataset too."""
CONTEXT = 3
"""A sentence that this many rows share is a passage, an example or an instruction, not a part of the question."""
SAME_WORDS = 0.6
"""Two golds of many words are one if they share this part of them."""


class NearRows:
    """Finds rows that ask nearly what another row asks, with the same gold.

    It sees the first row of each question (`EqualRows`), twice, and keeps hashes of them.
    """

    def __init__(self) -> None:
        self._numbers = array("q")
        self._golds = array("q")
        self._has_golds = bytearray()
        self._sentences = array("q")
        self._context: Collection[int] = frozenset()
        """Hashes of sentences that many rows share."""
        self._again = 0

    def see(self, row: Row) -> None:
        """Look at a row."""
        self._numbers.append(row.number)
        # A long gold is a text of its own, which `_golds_agree` compares.
        self._golds.append(0 if row.has_long_golds() else hash(row.gold_keys))
        self._has_golds.append(bool(row.golds))
        self._sentences.extend(set(map(hash, row.parts)))

    def settle(self) -> None:
        """Begin to look at the rows a second time, in the same order."""
        self._context = find_frequent(self._sentences, CONTEXT)
        self._sentences = array("q")
        common = find_frequent(self._golds, int(max(FEW, RARE_GOLD * len(self._golds))) + 1)
        self._rare = array(
            "b",
            [
                not key or bool(has_golds and key not in common)
                for key, has_golds in zip(self._golds, self._has_golds, strict=True)
            ],
        )
        self._candidates = Candidates(self._rare, self._context)

    def see_again(self, row: Row) -> None:
        """Look at a row once more."""
        self._candidates.see(row, self._golds[self._again])
        self._again += 1

    def report(self, rows: Rows, group_of: Callable[[int], Sequence[Member]], problems: Problems) -> None:
        """Report the rows. `group_of` returns those that ask the same as the row of a number, if there are others."""
        nearest: dict[int, Pair] = {}
        for pair in drop_templates(self._find_pairs(rows), rows, self._numbers):
            known = nearest.get(pair.row.number)
            if known is None or pair.likeness.changed < known.likeness.changed:
                nearest[pair.row.number] = pair
        said = [
            _choose(*(group_of(row.number) or [Member(row.number, row.is_train)] for row in (pair.row, pair.other)))
            for pair in nearest.values()
        ]
        for row, other in rows.take_pairs(said):
            say_duplicate(row, other, problems, nearly=True)

    def _find_pairs(self, rows: Rows) -> list[Pair]:
        """Return the pairs of rows that differ in little. Rows are read again as they are compared."""
        places = self._candidates.find()
        numbers = ((self._numbers[one], self._numbers[two]) for one, two in places)
        pairs: list[Pair] = []
        for (place, _), (other, row) in zip(places, rows.take_pairs(numbers), strict=True):
            if _golds_agree(row, other):
                likeness = compare(row, other, self._context, gold_is_rare=bool(self._rare[place]))
                if likeness is not None:
                    pairs.append(Pair(row.without_texts(), other.without_texts(), likeness))
        return pairs


def _golds_agree(row: Row, other: Row) -> bool:
    if bool(row.options) != bool(other.options):
        return False
    if not row.golds or not other.golds:
        return not row.golds and not other.golds
    if not row.contradicts(other):
        return True
    if not row.has_long_golds():
        return False
    ours, theirs = (set(fold(" ".join(one.golds)).split()) for one in (row, other))
    return len(ours & theirs) >= SAME_WORDS * len(ours | theirs)


def _choose(group: Sequence[Member], earlier: Sequence[Member]) -> tuple[int, int]:
    """Return which row of a group is reported beside which of an earlier one.

    As a leak where it is one: the evaluated row.
    """
    for these, those in ((group, earlier), (earlier, group)):
        row = next((member for member in these if not member.is_train), None)
        shown = next((member for member in those if member.is_train), None)
        if row is not None and shown is not None:
            return row.number, shown.number
    return group[0].number, earlier[0].number
