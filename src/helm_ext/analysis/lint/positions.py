"""Multiple choice in which one position holds the right option far too often: it can be scored without reading."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from helm_ext.analysis.lint.codes import LintCode
from helm_ext.analysis.lint.rows import Row
from helm_ext.errors import Location, Problems, count

__all__ = ["find_position_bias"]

LEAST_GAIN = 0.05
"""What always answering one position must win over guessing: five points in a hundred."""
CHANCE = 0.001
"""How seldom so uneven a dataset may come about where positions are drawn."""
LETTERS = "ABCDEFGHIJ"


def find_position_bias(rows: Sequence[Row], problems: Problems, path: str) -> None:
    """Report, once, that the right options do not stand everywhere. Train rows are not scored, and not counted."""
    positions = _positions([row for row in rows if not row.is_train])
    if not positions:
        return
    total = len(positions)
    right = Counter(position for position, _ in positions)
    most, number = min(right.items(), key=lambda item: (-item[1], item[0]))
    widest = max(options for _, options in positions)
    expected = sum(1 / options for _, options in positions if options > most)
    gain = (number - expected) / total
    if gain < LEAST_GAIN or widest * _bound(number, expected, total) > CHANCE:
        return
    shares = ", ".join(f"{_name(at)} {right[at] / total:.1%}" for at in range(widest))
    guessing = sum(1 / options for _, options in positions) / total
    first = f"always answering {_name(0)} scores {right[0] / total:.1%}"
    best = (
        f", always {_name(most)}, the most frequent, {number / total:.1%}" if most else ", which is the most frequent"
    )
    problems.warn(
        Location(path),
        f"the right option of {count(total, 'row')} stands at {shares}: {first}{best}; guessing scores {guessing:.1%}",
        "shuffle the options, or compare models with the score of the most frequent position",
        code=LintCode.GOLD_POSITION,
    )


def _positions(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Return (position of the right option, number of options) of each row that has just one right option.

    Where all golds of a dataset are letters, the options stand in the questions: the letters are the positions.
    """
    chosen = [(row.right[0], len(row.options)) for row in rows if len(row.right) == 1 and len(row.options) > 1]
    if chosen:
        return chosen
    golds = [row.golds[0].strip(" ().:").upper() for row in rows if len(row.golds) == 1]
    if len(golds) < len(rows) or not all(len(gold) == 1 and gold in LETTERS for gold in golds):
        return []
    options = max(map(LETTERS.index, golds)) + 1 if golds else 0
    return [(LETTERS.index(gold), options) for gold in golds] if options > 1 else []


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
