"""Multiple choice in which one position holds the right option far too often: it can be scored without reading."""

from __future__ import annotations

import math
from collections import Counter

from helm_ext.analysis.lint.rows import Row
from helm_ext.errors import Location, Problems, count

LEAST_GAIN = 0.05
"""What always answering one position must win over guessing: five points in a hundred."""
CHANCE = 0.001
"""How seldom so uneven a dataset may come about where positions are drawn."""
LETTERS = "ABCDEFGHIJ"


class Positions:
    """Counts where the right options stand. Train rows are not scored, and not counted."""

    def __init__(self) -> None:
        self._chosen: Counter[tuple[int, int]] = Counter()
        """Rows by (position of the right option, number of options)."""
        self._letters: Counter[str] = Counter()
        """Rows by gold; all of them, while all golds are letters."""
        self._are_letters = True

    def see(self, row: Row) -> None:
        """Look at a row."""
        if row.is_train:
            return
        if len(row.right) == 1 and len(row.options) > 1:
            self._chosen[row.right[0], len(row.options)] += 1
        if self._are_letters:
            gold = row.golds[0].strip(" ().:").upper() if len(row.golds) == 1 else ""
            self._are_letters = len(gold) == 1 and gold in LETTERS
            self._letters[gold] += 1

    def report(self, problems: Problems, path: str) -> None:
        """Report, once, that the right options do not stand everywhere."""
        positions = self._count()
        if not positions:
            return
        total = positions.total()
        right: Counter[int] = Counter()
        for (position, _), number in positions.items():
            right[position] += number
        most, number = min(right.items(), key=lambda item: (-item[1], item[0]))
        widest = max(options for _, options in positions)
        expected = sum(rows / options for (_, options), rows in positions.items() if options > most)
        gain = (number - expected) / total
        if gain < LEAST_GAIN or widest * _bound(number, expected, total) > CHANCE:
            return
        shares = ", ".join(f"{_name(at)} {right[at] / total:.1%}" for at in range(widest))
        guessing = sum(rows / options for (_, options), rows in positions.items()) / total
        first = f"always answering {_name(0)} scores {right[0] / total:.1%}"
        best = (
            f", always {_name(most)}, the most frequent, {number / total:.1%}"
            if most
            else ", which is the most frequent"
        )
        problems.warn(
            Location(path),
            f"the right option of {count(total, 'row')} stands at {shares}: {first}{best}; "
            f"guessing scores {guessing:.1%}",
            "shuffle the options, or compare models with the score of the most frequent position",
            code="gold-position",
        )

    def _count(self) -> Counter[tuple[int, int]]:
        """Return the rows that have just one right option, by its position and the number of options.

        Where all golds of a dataset are letters, the options stand in the questions: the letters are the positions.
        """
        if self._chosen or not self._are_letters:
            return self._chosen
        options = max(map(LETTERS.index, self._letters), default=0) + 1
        found = {(LETTERS.index(gold), options): number for gold, number in self._letters.items()}
        return Counter(found if options > 1 else {})


def _name(position: int) -> str:
    return LETTERS[position] if position < len(LETTERS) else f"option {position + 1}"


def _bound(number: int, expected: float, total: int) -> float:
    """Return an upper bound of the chance of `number` or more hits in `total` draws of which `expected` hit.

    Chernoff's bound, which holds for draws of different chances too (Hoeffding 1963, theorem 1).
    """
    seen, drawn = number / total, expected / total
    if seen <= drawn:
        return 1.0
    exponent = seen * math.log(seen / drawn)
    if seen < 1:
        exponent += (1 - seen) * math.log((1 - seen) / (1 - drawn))
    return math.exp(-total * exponent)
