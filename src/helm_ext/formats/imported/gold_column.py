"""What a column of golds means: labels, positions, texts, lists of them, or flags. Decided over the whole column.

A gold "2" may be a label, the third option, the second one, or the text of an option. One row does not tell; all rows
together nearly always do. Each way to read a gold is tried on every row:

| kind | a gold is | so it is read if |
|---|---|---|
| `label` | the name of an option | every gold is one (case, brackets, a point aside, where that leaves one) |
| `text` | the text of an option | every gold equals exactly one, white space around it aside |
| `index` | a position | every gold is a whole number, 0 to n - 1 (`index_base=0`) or 1 to n (`index_base=1`) |
| `flags` | a list of n times 0 or 1 | every gold is one, with some 1; every 1 is right |

A list (`list`) holds labels, texts or positions, any of which is right. Without options a gold is an accepted text, or
a list of them; a column of true and false has the options `no` and `yes`.

What only one kind can read is read so. Labels go before positions where golds are texts: labels may be "1" to "4" (ARC;
lm-eval's arc_easy.yaml reads them so). Kinds that read every row alike are one. Otherwise the column is refused: the
user says `gold_kind=` or `index_base=`. Empty golds, null, and -1 among positions are the hidden answers of a test
split: they are refused too, because nothing can be scored.

No rule looks at which label or which text it is, nor at the order of rows or options.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from helm_ext.errors import DatasetError, DatasetIntegrityError, Location, RunEntryError, show
from helm_ext.formats.imported.gold import (
    NO_YES,
    Element,
    GoldKind,
    Kind,
    Options,
    is_hidden,
    is_text,
    read_labels,
    read_texts,
)


@dataclass(slots=True)
class _Way:
    """One way to read the golds, as long as it holds."""

    element: Element
    base: int = 0
    failed_at: int | None = None
    failed_on: Any = None
    differs: dict[int, tuple[int, Any, str, str]] = field(default_factory=dict)
    """Position of another way: the first row that it reads differently, its gold, what this way reads and what that."""

    def title(self) -> str:
        return f"index from {self.base}" if self.element == "index" else self.element

    def argument(self) -> str:
        return f"index_base={self.base}" if self.element == "index" else f"gold_kind={self.element}"


class GoldColumn:
    """The golds of a file, seen one by one: `see` each, then `decide`."""

    def __init__(
        self,
        *,
        gold_kind: Kind | None = None,
        index_base: int | None = None,
        is_said: bool = True,
        is_class_label: bool = False,
        allow_hidden: bool = False,
        path: str = "",
        name: str = "gold",
    ) -> None:
        """Begin a column. `gold_kind` and `index_base` are what the user said.

        `is_said`: where not, `index_base` is only how the source counts positions, if its golds are any.
        `is_class_label`: a whole number is a position from 0, as in a ClassLabel column of the Hugging Face library.
        `allow_hidden`: rows without a gold are counted, not refused; `GoldKind.read` returns () for them.
        Raises RunEntryError where the two contradict each other.
        """
        self._gold_kind = gold_kind
        self._are_positions = is_said and index_base is not None
        """Said by the user: golds that can be read as positions are positions."""
        self._path = path
        self._name = name
        self._allow_hidden = allow_hidden
        self._ways = [_Way("index", 0)] if is_class_label and gold_kind is None else _ways(gold_kind, index_base)
        self._live = list(enumerate(self._ways))
        self._rows = 0
        self._free = 0
        self._booleans = 0
        self._lists = 0
        self._are_texts = True
        self._hidden = 0
        self._hidden_at: tuple[int, Any] | None = None
        self._wrong_at: tuple[int, Any] | None = None

    def see(self, value: Any, options: Options | None, line: int) -> None:
        """Take the gold of one more row, which begins in this line of the file."""
        self._rows += 1
        if is_hidden(value, options):
            self._hidden += 1
            self._hidden_at = self._hidden_at or (line, value)
            return
        if isinstance(value, (list, tuple)):
            self._lists += 1
        if options is None:
            self._see_free(value, line)
            return
        if self._are_texts and not is_text(value):
            self._are_texts = False
        read = []
        for at, way in self._live:
            found = read_labels(way.element, way.base, value, options)
            if found is None or (len(found) > 1 and not self._may_be_several(value)):
                way.failed_at, way.failed_on = line, value
            else:
                read.append((at, way, found))
        if len(read) < len(self._live):
            self._live = [(at, way) for at, way, _ in read]
        if len(read) > 1:
            for (_, way, found), (other, _, theirs) in itertools.combinations(read, 2):
                if other not in way.differs and set(found) != set(theirs):
                    way.differs[other] = (line, value, " and ".join(found), " and ".join(theirs))

    def _may_be_several(self, value: Any) -> bool:
        """Whether a gold may name more than one option: a list, or a text that the user said is one."""
        return isinstance(value, (list, tuple)) or self._gold_kind == "text"

    def _see_free(self, value: Any, line: int) -> None:
        """Take the gold of a row without options."""
        self._free += 1
        self._booleans += isinstance(value, bool)
        if self._wrong_at is None and (read_texts(value) is None or self._gold_kind in ("label", "index", "flags")):
            self._wrong_at = line, value

    def decide(self) -> GoldKind:
        """Return how the golds that were seen are read. Raises DatasetIntegrityError where that cannot be told."""
        self.require_golds()
        if self._wrong_at is not None:
            line, value = self._wrong_at
            asked = self._gold_kind or "text"
            message = f"{show(value)} cannot be read as {asked}: the row has no options"
            hint = "name the options: options=COLUMN, or options=A+B+C+D for a column each"
            if read_texts(value) is None:
                message, hint = f"{show(value)} is neither a text nor a number", "write the column as texts"
            raise self._refuse(line, message, hint)
        chosen = self._of_options() if self._free < self._rows - self._hidden else self._of_texts()
        if self._free and chosen.options is None and self._booleans:
            raise self._refuse(
                None, "true and false stand among texts", "write all of them as text, or none", "gold-mixed"
            )
        return chosen

    def require_golds(self) -> None:
        """Raise DatasetIntegrityError for rows without a gold, unless they are allowed."""
        if self._hidden_at is None or (self._allow_hidden and self._hidden < self._rows):
            return
        line, value = self._hidden_at
        split = "the hidden answers of a test split: use a split whose answers are public"
        if self._hidden == self._rows:
            said, hint = "every row has", f"these are {split}"
        else:
            said = f"{self._hidden} of {self._rows} rows have"
            hint = f"write the gold, or remove the row; where these are {split}"
        raise self._refuse(
            line, f"no gold: {said} none ({show(value)}), so nothing can be scored", hint, "gold-hidden"
        )  # fmt: skip

    def _of_texts(self) -> GoldKind:
        if self._booleans and self._booleans == self._free and not self._lists:
            return self._made("text", "every gold is true or false: the options are no and yes", NO_YES)
        several = self._lists > 0
        if self._gold_kind == "list" and not several:
            raise self._refuse(None, "no gold is a list, as gold_kind=list says", "leave gold_kind= out")
        reason = "lists of accepted texts" if several else "the rows have no options: accepted texts"
        return self._made("text", reason)

    def _of_options(self) -> GoldKind:
        live = dict(self._live)
        labels = next((at for at, way in live.items() if way.element == "label"), None)
        if labels is not None and self._are_texts:
            live = {at: way for at, way in live.items() if way.element != "index"}
        positions = {at: way for at, way in live.items() if way.element == "index"}
        if self._are_positions and positions:
            live = positions
        if not live:
            raise self._none_fits()
        for (_, way), (other, theirs) in itertools.combinations(sorted(live.items()), 2):
            if other in way.differs:
                raise self._ambiguous(way, theirs, way.differs[other], list(live.values()))
        way = min(live.items())[1]
        return self._made(way.element, _REASONS[way.title()], base=way.base)

    def _made(
        self,
        element: Element,
        reason: str,
        options: Options | None = None,
        base: int = 0,
    ) -> GoldKind:
        kind: Kind = "list" if self._lists and element != "flags" else element
        return GoldKind(kind, element, base, options, reason, self._hidden)

    def _ambiguous(
        self, way: _Way, other: _Way, example: tuple[int, Any, str, str], live: Sequence[_Way]
    ) -> DatasetError:
        line, value, mine, theirs = example
        message = (
            f"what the golds are cannot be told: {show(value)} is {mine} ({way.title()}) or {theirs} ({other.title()})"
        )
        hint = f"say which: {' or '.join(each.argument() for each in live)}"
        return self._refuse(line, message, hint, "gold-ambiguous")

    def _none_fits(self) -> DatasetError:
        """Say of each way where it ends, the one that held longest first."""
        ways = sorted(self._ways, key=lambda way: -(way.failed_at or 0))
        said = "; ".join(f"no {way.title()}: line {way.failed_at}, {show(way.failed_on)}" for way in ways[:3])
        asked = f" as {self._gold_kind}" if self._gold_kind else ""
        message = f"the golds cannot be read{asked} in one way: {said}"
        hint = (
            "each gold must be a label, a text or a position of its row's options, in every row the same; "
            'several that are right are a list: ["A", "C"]'
        )
        return self._refuse(ways[0].failed_at, message, hint)

    def _refuse(self, line: int | None, message: str, hint: str, code: str = "gold-unread") -> DatasetError:
        location = Location(self._path, line, self._name)
        return DatasetIntegrityError.at(location, message, hint, code=code)


_REASONS = {
    "label": "every gold is the label of an option",
    "text": "every gold is the text of exactly one option",
    "index from 0": "every gold is a position, counted from 0",
    "index from 1": "every gold is a position, counted from 1",
    "flags": "every gold is a list of 0 and 1, one for each option",
}


def _ways(kind: Kind | None, base: int | None) -> list[_Way]:
    """Return the ways to be tried, those that are preferred first where they read all rows alike."""
    ways = [_Way("label"), _Way("text"), _Way("index", 0), _Way("index", 1), _Way("flags")]
    if kind == "list":
        ways = [way for way in ways if way.element != "flags"]
    elif kind is not None:
        ways = [way for way in ways if way.element == kind]
    if base is not None:
        if kind not in (None, "index", "list"):
            raise RunEntryError(f"index_base={base} is about positions, and gold_kind={kind} says that there are none")
        ways = [way for way in ways if way.element != "index" or way.base == base]
    return ways
