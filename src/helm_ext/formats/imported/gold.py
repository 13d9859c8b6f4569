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

In CSV every cell is a text (`are_cells`). One that spells a list is one where the row has options. Where it has none,
golds that are all lists of numbers may each be one answer, and beside plain texts so may a list as Python writes it:
those are refused too. A list of texts in JSON is several accepted answers, whatever the other golds are.

No rule looks at which label or which text it is, nor at the order of rows or options.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from string import ascii_uppercase
from typing import Any, Literal, cast

from helm_ext.errors import DatasetError, DatasetIntegrityError, Location, RunEntryError, show
from helm_ext.formats.imported.row import NUMPY, RowError, is_json, parse_list, spells_list

Options = Mapping[str, str]
"""Label to text, in the order of the options."""

Kind = Literal["label", "index", "text", "list", "flags"]

Element = Literal["label", "index", "text", "flags"]
"""What is read one by one: a list holds some of these."""

NO_YES: Options = {"false": "no", "true": "yes"}
"""The options of a column of true and false that has none. An answer may name them by either word."""

_WHOLE = re.compile(r"\s*(-?(?:0|[1-9][0-9]*))(?:\.0+)?\s*", re.ASCII)
"""A whole number as a cell has it; pandas writes 1.0 where another cell of the column is empty. "007" is not one."""

MOST_OPTIONS = len(ascii_uppercase)
"""That have letters."""


def to_options(texts: Sequence[str], *, or_numbers: bool = False) -> dict[str, str]:
    """Return options that have no labels of their own as A, B, C, ...; more than there are letters as 1, 2, 3, ...

    Raises ValueError for so many, unless `or_numbers`.
    """
    if len(texts) <= MOST_OPTIONS:
        return dict(zip(ascii_uppercase, texts, strict=False))
    if not or_numbers:
        raise ValueError(f"{len(texts)} options, and there are letters for {MOST_OPTIONS}")
    return {str(number): text for number, text in enumerate(texts, 1)}


@dataclass(frozen=True, slots=True)
class GoldKind:
    """How a column of golds is read."""

    element: Element
    """What a gold is, or each one of a list. Without options: texts."""
    base: int = 0
    """Of positions: that of the first option."""
    options: Options | None = None
    """The options that the column itself brings along (`NO_YES`). The rows have them."""
    reason: str = ""
    """Why it is read so, in words: "every gold is one of the labels of its row"."""
    several: int = 0
    """Rows of which several options are right: any of them, unless their reader says otherwise."""
    cells: Literal["", "list", "truth"] = ""
    """What golds that are cells of text spell, some or all."""

    def read(self, value: Any, options: Options | None = None) -> tuple[str, ...]:
        """Return what is right: labels where the row has options, else accepted texts. () where there is no gold.

        Raises ValueError for a value that is not of this kind; none of the column it was decided on is such.
        """
        if self.cells == "list":
            with suppress(RowError):
                value = read_cell(value, options)
        elif self.cells:
            value = _read_truth(value)
        if self.options is not None:
            options = self.options
        if is_hidden(value, options):
            return ()
        found = read_texts(value) if options is None else read_labels(self.element, self.base, value, options)
        if found is None:
            raise ValueError(f"{show(value)} cannot be read as {self.element}")
        return found


def read_cell(cell: Any, options: Options | None) -> Any:
    """Return the list of texts and numbers that a cell spells, unless it is an option itself; other golds as they are.

    Raises RowError for one that is misspelt.
    """
    if not spells_list(cell):
        return cell
    if options is not None and any(read_labels(way, 0, cell, options) for way in ("label", "text")):
        return cell
    items = parse_list(cell)
    return items if isinstance(items, list) and read_texts(items) is not None else cell


def _read_truth(cell: Any) -> bool | None:
    """Return what CSV writes as true and false, spreadsheets in capitals and Python with one; None for other texts."""
    return {"true": True, "false": False}.get(cell.strip().casefold()) if isinstance(cell, str) else None


def is_hidden(value: Any, options: Options | None) -> bool:
    """Whether there is no gold: null, nothing, or -1 where no option is called so."""
    if isinstance(value, str):
        value = value.strip()
        if not value:
            return True
    elif value is None or value == [] or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return True
    if options is None or value not in (-1, "-1", "-1.0"):
        return False
    return "-1" not in options and all(text.strip() != "-1" for text in options.values())


def is_text(value: Any) -> bool:
    """Whether a gold, or each one of a list, is a text."""
    return isinstance(value, str) or (isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value))


def read_labels(element: Element, base: int, value: Any, options: Options) -> tuple[str, ...] | None:
    """Return the labels that a gold names when it is read in this way, or None where it cannot be."""
    if element == "flags":
        return _by_flags(value, options)
    if isinstance(value, (list, tuple)):
        found: list[str] = []
        for each in value:
            labels = _READ[element](each, options, base)
            if not labels or not set(found).isdisjoint(labels):
                return None
            found.extend(labels)
        return tuple(found) or None
    return _READ[element](value, options, base) or None


def _by_label(value: Any, options: Options, _: int) -> tuple[str, ...]:
    text = value if type(value) is str else spell(value)
    if text is None:
        return ()
    text = text.strip()
    if text in options:
        return (text,)
    for folded in dict.fromkeys((text.casefold(), _bare(text).casefold())):
        found = tuple(label for label in options if label.strip().casefold() == folded)
        if found:
            return found if len(found) == 1 else ()
    return ()


def _bare(text: str) -> str:
    """Return a label without what is written around it: "(A)", "A)", "[A]", "A."."""
    for before, after in (("(", ")"), ("[", "]"), ("", ")"), ("", ".")):
        if text.startswith(before) and text.endswith(after):
            return text[len(before) : -len(after)].strip()
    return text


def _by_text(value: Any, options: Options, _: int) -> tuple[str, ...]:
    """Return the labels of all options that have this text."""
    if isinstance(value, bool):
        words = ("true", "yes") if value else ("false", "no")
        return tuple(label for label, text in options.items() if text.strip().casefold() in words)
    wanted = spell(value)
    if wanted is None:
        return ()
    wanted = wanted.strip()
    return tuple(label for label, text in options.items() if text.strip() == wanted)


def _by_index(value: Any, options: Options, base: int) -> tuple[str, ...]:
    if type(value) is not int:
        text = spell(value)
        match = None if text is None else _WHOLE.fullmatch(text)
        if match is None:
            return ()
        value = int(match[1])
    at = value - base
    return tuple(itertools.islice(options, at, at + 1)) if 0 <= at < len(options) else ()


_READ = {"label": _by_label, "text": _by_text, "index": _by_index}


def _by_flags(value: Any, options: Options) -> tuple[str, ...] | None:
    if not isinstance(value, (list, tuple)) or len(value) != len(options):
        return None
    if any(flag not in (0, 1, "0", "1") for flag in value):
        return None
    return tuple(label for label, flag in zip(options, value, strict=True) if flag in (1, "1")) or None


def read_texts(value: Any) -> tuple[str, ...] | None:
    """Return the accepted texts of a gold without options, or None where it holds what is no text."""
    if type(value) is str:
        return (value,)
    if isinstance(value, (list, tuple)):
        texts = [spell(each) for each in value]
        return None if None in texts else tuple(dict.fromkeys(cast("list[str]", texts)))
    text = spell(value)
    return None if text is None else (text,)


def spell(value: Any) -> str | None:
    """Return a single value as text: 72 and 72.0 are "72". None for what has parts, and for nothing."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value) if isinstance(value, int) else None


@dataclass(slots=True)
class _Way:
    """One way to read the golds, as long as it holds."""

    element: Element
    base: int = 0
    failed: tuple[int, Any, Options] | None = None
    """The first gold that cannot be read so, with its line and the options of its row."""
    several: int = 0
    """Rows of which it names several options."""
    differs: dict[tuple[Element, int], tuple[int, Any, str, str]] = field(default_factory=dict)
    """Element and base of another way: the first row that it reads differently, its gold, what this and that read."""

    @property
    def title(self) -> str:
        return f"index from {self.base}" if self.element == "index" else self.element

    @property
    def argument(self) -> str:
        return f"index_base={self.base}" if self.element == "index" else f"gold_kind={self.element}"


TRUTHS = GoldKind("text", options=NO_YES, reason="every gold is true or false: the options are no and yes")
"""Of a column of true and false whose rows have no options."""


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
        are_cells: bool = False,
        path: str = "",
        name: str = "gold",
    ) -> None:
        """Begin a column. `gold_kind` and `index_base` are what the user said.

        `is_said`: where not, `index_base` is only how the source counts positions, if its golds are any.
        `is_class_label`: a whole number is a position from 0, as in a ClassLabel column of the Hugging Face library.
        `allow_hidden`: rows without a gold are counted, not refused; `GoldKind.read` returns () for them.
        `are_cells`: all are texts, as in CSV, and may spell lists and truths.
        Raises RunEntryError where the two contradict each other.
        """
        self._gold_kind = gold_kind
        self._list_as = '["A", "C"]' + (', in the file "[""A"", ""C""]"' if are_cells else "")
        self._may_be_lists = are_cells and gold_kind != "text"
        self._may_be_truths = are_cells and gold_kind is None
        self._are_positions = is_said and index_base is not None
        """Said by the user: golds that can be read as positions are positions."""
        self._path = path
        self._name = name
        self._allow_hidden = allow_hidden
        self._ways = [_Way("index", 0)] if is_class_label and gold_kind is None else _ways(gold_kind, index_base)
        self._live = self._ways
        self._rows = self._free = self._booleans = self._lists = self._hidden = self._plain = 0
        self._text_lists = self._other_lists = self._empty_lists = 0
        """Rows without options whose cell spells a list: of texts, of anything else, of these an empty one."""
        self._unclear: tuple[int, Any] | None = None
        """The first such cell that a program may have printed as one answer."""
        self._empty_at: tuple[int, Any] | None = None
        self._cells: Literal["", "list"] = ""
        self._are_texts = True
        self._hidden_at: tuple[int, Any] | None = None
        self._wrong_at: tuple[int, Any] | None = None

    def see(self, value: Any, options: Options | None, line: int) -> None:
        """Take the gold of one more row, which begins in this line of the file.

        Raises RowError for a cell that spells a list wrongly.
        """
        items = self.read_cell(value, options)
        self._rows += 1
        self._may_be_truths = (
            self._may_be_truths and options is None and (value == "" or _read_truth(value) is not None)
        )
        if items is value or options is not None:
            self._cells = self._cells or ("" if items is value else "list")
            self._plain += not is_hidden(value, options)
            value = items
        else:
            self._see_list(value, items, line)
        if is_hidden(value, options):
            self._hidden += 1
            self._hidden_at = self._hidden_at or (line, value)
            return
        is_list = isinstance(value, (list, tuple))
        self._lists += is_list
        if options is None:
            self._free += 1
            self._booleans += isinstance(value, bool)
            if self._wrong_at is None and (read_texts(value) is None or self._gold_kind in ("label", "index", "flags")):
                self._wrong_at = line, value
            return
        self._are_texts &= is_text(value)
        read = []
        for way in self._live:
            found = read_labels(way.element, way.base, value, options)
            # Several options are named by a list, or by a text that the user said is one.
            if found is None or (len(found) > 1 and not is_list and self._gold_kind != "text"):
                way.failed = line, value, options
            else:
                way.several += len(found) > 1
                read.append((way, found))
        self._live = [way for way, _ in read]
        for (way, found), (other, theirs) in itertools.combinations(read, 2):
            key = other.element, other.base
            if key not in way.differs and set(found) != set(theirs):
                way.differs[key] = line, value, " and ".join(found), " and ".join(theirs)

    def read_cell(self, value: Any, options: Options | None) -> Any:
        """Return the list that a gold spells, any other as it is. Raises RowError for a list that is misspelt."""
        if not self._may_be_lists:
            return value
        try:
            return read_cell(value, options)
        except RowError as error:
            if error.code != NUMPY and value[1] not in "\"'" and (self._plain or "," not in value):
                return value  # a text in brackets
            hint = error.hint if options is None else f"several right options are written {self._list_as}"
            raise RowError(str(error), hint, place=self._name, code=error.code) from error

    def _see_list(self, cell: str, items: list[Any], line: int) -> None:
        """Take the list that a cell spells in a row without options."""
        are_texts = bool(items) and all(isinstance(item, str) for item in items)
        self._text_lists += are_texts
        self._other_lists += not are_texts
        if not (are_texts and is_json(cell)):
            self.doubt(line, cell)
        if not items:
            self._empty_lists += 1
            self._empty_at = self._empty_at or (line, items)

    def doubt(self, line: int, cell: str) -> None:
        """Take note that a cell that spells a list may be one answer."""
        self._unclear = self._unclear or (line, cell)

    def settle_lists(self) -> None:
        """Decide whether cells that spell lists are lists. Raises DatasetIntegrityError where each may be one answer.

        A list of texts in JSON is one, whatever the other golds are. Beside plain texts, what is spelt otherwise, or
        answered by a list, may be what a program printed.
        """
        lists = self._text_lists + self._other_lists
        if self._cells or not lists:
            return
        if self._gold_kind is None:
            if self._plain and not self._text_lists:
                return
            if self._unclear is not None and (self._plain or self._other_lists):
                line, cell = self._unclear
                message = f"the gold {show(cell)} is a list: one answer, or several that are accepted?"
                hint = "gold_kind=text where a list is one answer, gold_kind=list where any of it is"
                raise DatasetIntegrityError.at(Location(self._path, line), message, hint, code="list")
        self._cells = "list"
        self._lists += lists
        self._hidden += self._empty_lists
        self._hidden_at = min(filter(None, (self._hidden_at, self._empty_at)), default=None)

    def decide(self) -> GoldKind:
        """Return how the golds that were seen are read. Raises DatasetIntegrityError where that cannot be told."""
        self.settle_lists()
        self.require_golds()
        if self._may_be_truths:
            return replace(TRUTHS, cells="truth")
        if self._wrong_at is not None:
            line, value = self._wrong_at
            message = f"{show(value)} cannot be read as {self._gold_kind or 'text'}: the row has no options"
            hint = "name the options: options=COLUMN, or options=A+B+C+D for a column each"
            if read_texts(value) is None:
                message, hint = f"{show(value)} is neither a text nor a number", "write the column as texts"
            raise self._refuse(line, message, hint)
        chosen = self._of_options() if self._free < self._rows - self._hidden else self._of_texts()
        if self._free and chosen.options is None and self._booleans:
            hint = "write all of them as text, or none"
            raise self._refuse(None, "true and false stand among texts", hint, "gold-mixed")
        return replace(chosen, cells=self._cells)

    def require_golds(self) -> None:
        """Raise DatasetIntegrityError for rows without a gold, unless they are allowed."""
        if self._hidden_at is None or (self._allow_hidden and self._hidden < self._rows):
            return
        line, value = self._hidden_at
        split = "the hidden answers of a test split: use a split whose answers are public"
        said, hint = "every row has", f"these are {split}"
        if self._hidden < self._rows:
            said = f"{self._hidden} of {self._rows} rows have"
            hint = f"write the gold, or remove the row; where these are {split}"
        message = f"no gold: {said} none ({show(value)}), so nothing can be scored"
        raise self._refuse(line, message, hint, "gold-hidden")

    def _of_texts(self) -> GoldKind:
        if self._booleans and self._booleans == self._free and not self._lists:
            return TRUTHS
        if self._gold_kind == "list" and not self._lists:
            raise self._refuse(None, "no gold is a list, as gold_kind=list says", "leave gold_kind= out")
        reason = "lists of accepted texts" if self._lists else "the rows have no options: accepted texts"
        return GoldKind("text", reason=reason)

    def _of_options(self) -> GoldKind:
        live = self._live
        if self._are_texts and any(way.element == "label" for way in live):
            live = [way for way in live if way.element != "index"]
        if self._are_positions:
            live = [way for way in live if way.element == "index"] or live
        if not live:
            raise self._none_fits()
        for way, other in itertools.combinations(live, 2):
            if (example := way.differs.get((other.element, other.base))) is not None:
                line, value, mine, theirs = example
                read = f"{show(value)} is {mine} ({way.title}) or {theirs} ({other.title})"
                hint = f"say which: {' or '.join(each.argument for each in live)}"
                raise self._refuse(line, f"what the golds are cannot be told: {read}", hint, "gold-ambiguous")
        chosen = live[0]
        return GoldKind(chosen.element, chosen.base, reason=_REASONS[chosen.title], several=chosen.several)

    def _none_fits(self) -> DatasetError:
        """Say of each way where it ends, the one that held longest first."""
        ends = [(way.title, *way.failed) for way in self._ways if way.failed is not None]
        ends.sort(key=lambda end: -end[1])
        said = "; ".join(f"no {title}: line {line}, {show(value)}" for title, line, value, _ in ends[:3])
        asked = f" as {self._gold_kind}" if self._gold_kind else ""
        message = f"the golds cannot be read{asked} in one way: {said}"
        hint = (
            "each gold must be a label, a text or a position of its row's options, in every row the same; "
            f"several that are right are a list: {self._list_as}"
        )
        line, value, options = ends[0][1:] if ends else (None, None, {})
        if options and not any(read_labels(way.element, way.base, value, options) for way in _ways(None, None)):
            message = f"{show(value)} is none of the options of its row, {show(dict(options))}"
        return self._refuse(line, message, hint)

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
