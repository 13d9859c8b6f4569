"""Outputs that are whole numbers: positions of options, their texts or labels, or neither. Decided over all rows.

An output "2" of a row with options may be the third option, the second one, or the text "2". Where the golds are
positions, so are the outputs, if only that reads all of them. Where that cannot be told, the table is refused: read in
the wrong way, a right answer would count as wrong without a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from helm_ext.errors import count
from helm_ext.formats.imported.gold import GoldKind
from helm_ext.formats.imported.row import Answer

__all__ = ["Positions"]

_NUMBER = re.compile(r"\d+(?:\.0+)?", re.ASCII)

_NOTHING = ("", "-1", "-1.0")
"""What stands where there was no answer: it is no position, and no sign that others are none."""


class Positions:
    """The outputs of a table, seen one by one: `see` each, then `are_positions`."""

    def __init__(self) -> None:
        self._numbers = 0
        self._named = 0
        """Numbers that are the text or the label of an option."""
        self._others = 0
        """Outputs of another kind."""
        self._fits = {0: True, 1: True}
        """Number of the first option to whether every number is one of an option of its row."""
        self._differs = {0: False, 1: False}
        """The same to whether a number is the text or the label of another option than of that at its position."""

    def see(self, answers: Sequence[Answer], options: Mapping[str, str] | None) -> None:
        """Take the output of one more row."""
        text = answers[0].text.strip()
        if options is None or len(answers) > 1 or (len(text) > 8 and text not in _NOTHING):
            self._others += 1
        elif text in _NOTHING:
            pass
        elif not _NUMBER.fullmatch(text):
            self._others += 1
        else:
            self._see_number(text, int(float(text)), options)

    def _see_number(self, text: str, number: int, options: Mapping[str, str]) -> None:
        self._numbers += 1
        spelled = (text, str(number))
        named = [label for label, option in options.items() if label in spelled or option.strip() in spelled]
        self._named += bool(named)
        labels = list(options)
        for base in (0, 1):
            if not base <= number < base + len(labels):
                self._fits[base] = False
            elif named and named != [labels[number - base]]:
                self._differs[base] = True

    def are_positions(self, gold: GoldKind) -> bool:
        """Return whether the outputs are positions, as golds of this kind are. Raises ValueError, where none can tell.

        The error's text says why, in words for the user.
        """
        if self._others or not self._numbers:
            self._require_others_to_prevail()
            return False
        are_named = self._named == self._numbers
        if gold.element == "index":
            if self._fits[gold.base]:
                if are_named and self._differs[gold.base]:
                    raise ValueError("every output is a number: a position, as the golds are, or the text of an option")
                return True
            if not self._named or (not are_named and any(self._fits.values())):
                raise ValueError(
                    f"golds are positions counted from {gold.base}, and outputs are numbers that do not fit"
                )
        elif not are_named and any(self._fits.values()):
            what = {"label": "labels", "text": "texts"}.get(gold.element, "no positions")
            raise ValueError(f"every output is a number, as positions are, and golds are {what}")
        return False

    def _require_others_to_prevail(self) -> None:
        """Raise ValueError where so many outputs may be positions that the rest is what is odd."""
        unnamed = self._numbers - self._named
        if unnamed and unnamed >= self._others and any(self._fits.values()):
            numbers = count(unnamed, "output is a number, as positions are", "outputs are numbers, as positions are")
            raise ValueError(f"{numbers}, and {self._others:,} are not")

    def note(self) -> str:
        """Return what a reader of the score must know where outputs are not positions; "" for nothing."""
        unnamed = self._numbers - self._named
        if not unnamed or not self._numbers:
            return ""
        one, many = "output is a number that names no option", "outputs are numbers that name no option"
        return f"{count(unnamed, one, many)}: scored as wrong"
