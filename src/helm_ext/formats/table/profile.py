"""The profile of a table: what holds of all its rows.

What a gold is (a label, a position, ...) is decided over the whole column (`imported.gold`), and so is whether outputs
are positions, and whether a cell that looks like a list is one. All that is wrong is found here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from helm_ext.errors import DatasetError, DatasetIntegrityError, Problem, Problems, count, raise_for, show
from helm_ext.evalset import SourceScore
from helm_ext.formats.imported.cells import CellError, parse_list, spells_list
from helm_ext.formats.imported.gold import GoldKind, Options
from helm_ext.formats.imported.gold_column import GoldColumn
from helm_ext.formats.imported.row import Answer
from helm_ext.formats.table.cells import look_up
from helm_ext.formats.table.layouts import Layout
from helm_ext.formats.table.table import Cells
from helm_ext.formats.table.values import SPLITS, Values, read_truth, shown, uses_adapted

_NO_ANSWER = re.compile(
    r"\s*(?:error\b\s*[:(\[].*|traceback \(most recent.*|none|nan|null)\s*", re.IGNORECASE | re.DOTALL
)
"""What a script writes where it got no answer."""

_LETTER = re.compile(r"\s*\(?[A-Za-z]\)?\s*")


_SHOWN_MODELS = 5


def make_profile(values: Values) -> Profile:
    """Look at every row. Raises DatasetError with all problems."""
    profile = Profile(values)
    problems = Problems(values.table.path)
    for line, cells, split in values.cells():
        try:
            profile.see(line, cells, split)
        except CellError as error:
            problems.add((), str(error), error.hint, code="cell", line=line, kind=DatasetIntegrityError)
    problems.extend(profile.list_problems())
    raise_for(problems.finish())
    profile.finish()
    return profile


class Profile:
    """Sees the rows one by one, and then says what holds of all of them."""

    gold: GoldKind
    train = 0
    """Rows of the train split."""
    recorded = 0
    """Rows with an output."""
    is_chat = False
    gold_spells: Callable[[str], Any] | None = None
    """What reads a cell of gold first, in a table whose cells are texts: where each spells a list, or says true or
    false in a row without options."""
    outputs_are_positions = False
    uses_split = False
    model = ""
    """Whose outputs they are, where a known layout says so."""
    row_model = ""
    """The one model that a column of models names."""
    main = ""
    """The score of the tool that wrote the table that its own reports are headed by; `Source.main`."""
    is_measured = True
    """Whether some row has a gold; else only the scores that it was given count."""
    notes: Sequence[str] = ()

    def __init__(self, values: Values) -> None:
        self._values = values
        self.rows = 0
        self.scores: dict[str, SourceScore] = {}
        self._golds, self._lists, self._truths = (self._make_column() for _ in range(3))
        self._may_be_lists = values.table.is_text and values.options.gold_kind in (None, "list", "flags")
        self._may_be_truths = values.table.is_text and values.options.gold_kind is None
        self._positions = _Positions()
        self._split_names: dict[str, list[int]] = {}
        """Name of a split, as the column has it, to its first line and its rows."""
        self._models: dict[str, int] = {}
        """Model that a row names to the first line that does."""
        self._number_lists = 0
        """Rows without options whose gold spells a list of numbers."""
        self._same_as_gold = 0
        """Rows whose output is their gold to the letter."""
        self._letters = 0
        """Rows without options whose gold is a single letter."""
        self._odd: list[tuple[int, str]] = []
        """Line and text of the first output that reads like an error or a missing value."""
        self._odd_number = 0

    @property
    def excluded(self) -> int:
        """Rows of splits that `splits=` does not name."""
        return self._values.table.lines - self.rows

    def _make_column(self) -> GoldColumn:
        roles, options, table = self._values.roles, self._values.options, self._values.table
        layout = roles.layout
        return GoldColumn(
            gold_kind=options.gold_kind
            or (layout.gold_kind if layout and uses_adapted(roles) else None)
            or ("text" if roles.gold_is_option else None),
            index_base=layout.index_base if options.index_base is None and layout else options.index_base,
            is_said=options.index_base is not None,
            is_class_label=roles.gold in table.class_labels,
            allow_hidden=bool(roles.scores) or (layout is not None and layout.allows_hidden),
            path=table.path,
            name=shown(roles.gold),
        )

    def see(self, line: int, cells: Cells, split: str) -> None:
        """Take one more row. Raises CellError."""
        values, roles = self._values, self._values.roles
        self.rows += 1
        if roles.layout is not None and roles.layout.model is not None:
            self._see_model(roles.layout, cells)
        if roles.split:  # first, as the gold: both are looked at where something else of the row is wrong
            name = str(look_up(cells, roles.split)).strip().casefold()
            self._split_names.setdefault(name, [line, 0])[1] += 1
        choices = values.choices(cells)
        gold = values.gold(cells)
        self._see_gold(gold, choices, line)
        self.is_chat |= not isinstance(values.question(cells), str)
        answers = None if values.is_live else values.answers(cells)
        if answers is not None:
            self.recorded += 1
            self._see_answer(answers, gold, choices, line)
        elif roles.likelihoods and look_up(cells, roles.likelihoods):
            self.recorded += 1
        values.judgements(cells)
        for name in values.scores(cells):
            self.scores.setdefault(name, SourceScore())
        self.train += values.splits.get(split) == "train"
        if values.model_column and len(self._models) <= _SHOWN_MODELS:
            name = look_up(cells, values.model_column)
            self._models.setdefault("" if name is None else str(name).strip(), line)

    def _see_answer(self, answers: Sequence[Answer], gold: Any, choices: Options | None, line: int) -> None:
        text = answers[0].text
        if choices is not None:
            self._positions.see(answers, choices)
        is_odd = _NO_ANSWER.fullmatch(text) and text.strip().casefold() != str(gold).strip().casefold()
        if is_odd and (choices is None or text.strip() not in choices.values()):
            self._odd_number += 1
            self._odd = self._odd or [(line, text)]
        self._same_as_gold += isinstance(gold, str | int) and text.strip() == str(gold).strip()

    def _see_model(self, layout: Layout, cells: Cells) -> None:
        """Take the model of one more row. Raises CellError for a second one: both would be one run."""
        assert layout.model is not None
        model = layout.model(cells)
        if self.model and model != self.model:
            raise CellError(f"outputs of several models: {show(self.model)} and {show(model)}", layout.several_models)
        self.model = model

    def _see_gold(self, gold: Any, choices: Options | None, line: int) -> None:
        self._golds.see(gold, choices, line)
        self._may_be_lists = self._may_be_lists and spells_list(gold)
        if self._may_be_lists:
            items = parse_list(gold)
            self._lists.see(items, choices, line)
            self._number_lists += choices is None and not any(isinstance(item, str) for item in items)
        truth = read_truth(gold) if isinstance(gold, str) else None
        self._may_be_truths = self._may_be_truths and choices is None and (truth is not None or gold == "")
        if self._may_be_truths:
            self._truths.see(truth, None, line)
        self._letters += choices is None and isinstance(gold, str) and _LETTER.fullmatch(gold) is not None

    def list_problems(self) -> list[Problem]:
        """Return what is wrong with whole columns, as far as it does not depend on rows that are wrong themselves."""
        found: list[Problem] = []
        for require in (
            self._require_one_model,
            lambda: self._require_golds(self._golds),
            lambda: self._uses_split(self._split_names),
        ):
            try:
                require()
            except DatasetError as error:
                found.extend(error.problems)
        return found

    def finish(self) -> None:
        """Decide what holds of all rows. Raises DatasetError."""
        values, layout = self._values, self._values.roles.layout
        if not self.rows:
            values.refuse("there are no rows", "", "no-rows")
        for role in ("scores", "judgements"):
            if values.is_live and getattr(values.roles, role):
                message = f"no column holds the outputs that the {role} were given to"
                values.refuse(message, "output=COLUMN names it", role)
        if len(self._models) == 1:
            (self.row_model,) = self._models
        golds = self._golds
        if self._may_be_lists:
            golds, self.gold_spells = self._lists, parse_list
        elif self._may_be_truths:
            golds, self.gold_spells = self._truths, read_truth
        if self._may_be_lists and self._number_lists and values.options.gold_kind is None:
            message = "every gold is a list of numbers: one answer, or several that are accepted?"
            hint = "gold_kind=text where a list is one answer, gold_kind=list where any of it is"
            values.refuse(message, hint, "list")
        self.is_measured = self._require_golds(golds)
        unmeasured = GoldKind("text", "text", reason="no row has one: only the scores that it was given count")
        self.gold = golds.decide() if self.is_measured else unmeasured
        if layout is not None and layout.main in self.scores:
            self.main = layout.main
        elif not self.is_measured:
            self.main = next(iter(self.scores))
        names = self._split_names
        self.uses_split = self._uses_split(names)
        if self.uses_split and not values.splits:
            self.train = sum(number for name, (_, number) in names.items() if SPLITS[name] == "train")
        try:
            self.outputs_are_positions = self._positions.are_positions(self.gold)
        except ValueError as error:
            hint = "write both in one way: as labels, as texts, or as positions counted from the same number"
            values.refuse(str(error), hint, "positions")
        self.notes = [*values.table.notes, *self._find_notes()]

    def _require_one_model(self) -> None:
        """Refuse a long table: the outputs of several models would be scored as those of one."""
        if len(self._models) < 2:
            return
        column, (*others, last) = self._values.model_column, [*self._models][:_SHOWN_MODELS]
        number = f"more than {_SHOWN_MODELS}" if len(self._models) > _SHOWN_MODELS else str(len(self._models))
        names = f"{', '.join(others)} and {last}" if number.isdigit() else f"{', '.join([*others, last])}, ..."
        self._values.refuse(
            f"the column {column} names {number} models, {names}: they would be scored as one",
            f"write a file for each, or a column of outputs for each and output=A+B; by={column} where it says "
            "something else",
            "several-models",
            [*self._models.values()][1],
        )

    def _require_golds(self, golds: GoldColumn) -> bool:
        """Return whether there are golds. Raises DatasetError where some are missing; the layout knows why they may be.

        None need be there where rows have the scores that they were given: `golds` allows for some without.
        """
        try:
            golds.require_golds()
        except DatasetError as error:
            if self.scores and self.recorded:
                return False
            layout, problem = self._values.roles.layout, error.problems[0]
            hint = layout.hidden_hint if layout is not None and layout.hidden_hint else problem.hint
            if self._values.table.splits:
                hint += f"; splits={'+'.join(self._values.table.splits)} says which are read"
            self._values.refuse(problem.message, hint, str(problem.code), problem.location.line)
        return True

    def _uses_split(self, names: Mapping[str, Sequence[int]]) -> bool:
        """Whether the column of splits names splits: one that was guessed may hold something else, in every row.

        Raises DatasetError for a column that names splits in some rows only: one typo would make all rows test rows.
        """
        unknown = [name for name in names if name not in SPLITS]
        if unknown and (self._values.options.split is not None or len(unknown) < len(names)):
            line, number = names[unknown[0]]
            rows = "" if number == 1 else f", as in {number} rows"
            message = f"the split {show(unknown[0])} is neither train, validation nor test{rows}"
            hint = "correct it; where the column says something else, leave out split= or call it otherwise"
            self._values.refuse(message, hint, "split", line)
        return bool(names) and not unknown

    def _find_notes(self) -> Iterator[str]:
        """Yield what a reader of the score must know."""
        layout, is_live = self._values.roles.layout, self._values.is_live
        if layout is not None:
            yield from layout.notes
            yield from layout.live_notes if is_live else ()
        if not self.outputs_are_positions and (said := self._positions.note()):
            yield said
        if self._values.roles.gold_is_option:
            yield (
                "the right option has a column of its own, so the order in which options are shown is not known: "
                + (
                    "a live run shows them in one of its own"
                    if is_live
                    else "answers count where they name an option by its text, not by a letter"
                )
            )
        for line, text in self._odd:
            one, many = "output reads like an error or a missing value", "outputs read like errors or missing values"
            yield (
                f"{count(self._odd_number, one, many)}, the first in line {line}: {show(text)}; they are scored as "
                "answers. Where the model gave none, leave the cell empty (empty=not_run), in JSON null"
            )
        if self.recorded and self._same_as_gold == self.rows:
            yield "every output is equal to its gold: is the column of outputs that of the golds?"
        if self._letters and self._letters == self.rows:
            yield (
                "every gold is a single letter, and the rows have no options: answers are compared with it as texts; "
                "options=COLUMN or options=A+B+C+D names the options"
            )


_NUMBER = re.compile(r"\d+(?:\.0+)?", re.ASCII)

_NOTHING = ("", "-1", "-1.0")
"""What stands where there was no answer: it is no position, and no sign that others are none."""


class _Positions:
    """Outputs that are whole numbers: positions of options, their texts or labels, or neither. Decided over all rows.

    An output "2" of a row with options may be the third option, the second one, or the text "2". Where the golds are
    positions, so are the outputs, if only that reads all of them. Where that cannot be told, the table is refused: read
    in the wrong way, a right answer would count as wrong without a word. `see` each output, then ask `are_positions`.
    """

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
