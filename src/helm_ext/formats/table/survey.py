"""What holds of all rows of a table: the first of its two readings.

What a gold is (a label, a position, ...) is decided over the whole column (`imported.gold`), and so is whether outputs
are positions, and whether a cell that looks like a list is one. All that is wrong is found here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helm_ext.errors import DatasetError, DatasetIntegrityError, Problem, Problems, count, raise_for, show
from helm_ext.evalset import SourceScore
from helm_ext.formats.imported.cells import CellError, parse_list, spells_list
from helm_ext.formats.imported.gold import GoldKind, Options
from helm_ext.formats.imported.gold_column import GoldColumn
from helm_ext.formats.table.cells import look_up
from helm_ext.formats.table.layout import Layout
from helm_ext.formats.table.positions import Positions
from helm_ext.formats.table.table import Cells
from helm_ext.formats.table.values import SPLITS, TRUTHS, Values, shown, uses_adapted

__all__ = ["Survey", "find_model_column", "look_at"]

_NO_ANSWER = re.compile(
    r"\s*(?:error\b\s*[:(\[].*|traceback \(most recent.*|none|nan|null)\s*", re.IGNORECASE | re.DOTALL
)
"""What a script writes where it got no answer."""

_LETTER = re.compile(r"\s*\(?[A-Za-z]\)?\s*")


@dataclass
class Survey:
    """What holds of all rows."""

    gold: GoldKind
    rows: int = 0
    lines: int = 0
    """Rows of the file, also those of splits that are not read."""
    left_out: int = 0
    """Rows of splits that `splits=` does not name."""
    recorded: int = 0
    """Rows with an output."""
    train: int = 0
    is_chat: bool = False
    golds_are_lists: bool = False
    """Whether every gold spells a list, in a table whose cells are texts."""
    golds_are_truths: bool = False
    """Whether every gold is the word true or false, in a table whose cells are texts and whose rows have no options."""
    number_lists: int = 0
    """Rows without options whose gold spells a list of numbers."""
    outputs_are_positions: bool = False
    uses_split: bool = False
    same_as_gold: int = 0
    """Rows whose output is their gold to the letter."""
    letters: int = 0
    """Rows without options whose gold is a single letter."""
    model: str = ""
    """Whose outputs they are, where a known layout says so."""
    row_model: str = ""
    """The one model that a column of models names."""
    odd_outputs: int = 0
    """Outputs that read like an error or a missing value."""
    first_odd: tuple[int, str] = (0, "")
    """Line and text of the first of them."""
    scores: dict[str, SourceScore] = field(default_factory=dict)
    main: str = ""
    """The score of the tool that wrote the table that its own reports are headed by; `Source.main`."""
    is_measured: bool = True
    """Whether some row has a gold; else only the scores that it was given count."""
    notes: list[str] = field(default_factory=list)


def look_at(values: Values) -> Survey:
    """Look at every row. Raises DatasetError with all problems."""
    surveyor = _Surveyor(values)
    problems = Problems(values.table.path)
    for line, cells, split in values.cells():
        try:
            surveyor.see(line, cells, split)
        except CellError as error:
            problems.add((), str(error), error.hint, code="cell", line=line, kind=DatasetIntegrityError)
    problems.extend(surveyor.list_problems())
    raise_for(problems.finish())
    return surveyor.finish()


_MODEL_COLUMNS = frozenset({"model", "model_id", "model_name"})
_SHOWN_MODELS = 5


def find_model_column(values: Values) -> str:
    """Return the column that says whose output a row's is; "" where there is none, or it was named for something."""
    if values.is_live:
        return ""
    taken = {column for _, column in values.roles.columns()} | set(values.options.by)
    return next((one for one in values.table.columns if one.casefold() in _MODEL_COLUMNS and one not in taken), "")


class _Surveyor:
    """Sees the rows one by one, and then says what holds of all of them."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._found = Survey(GoldKind("text", "text"))
        self._golds, self._lists, self._truths = (self._make_column() for _ in range(3))
        self._may_be_lists = values.table.is_text and values.options.gold_kind in (None, "list", "flags")
        self._may_be_truths = values.table.is_text and values.options.gold_kind is None
        self._positions = Positions()
        self._split_names: dict[str, list[int]] = {}
        """Name of a split, as the column has it, to its first line and its rows."""
        self._model_column = find_model_column(values)
        self._models: dict[str, int] = {}
        """Model that a row names to the first line that does."""

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
        values, found, roles = self._values, self._found, self._values.roles
        found.rows += 1
        if roles.layout is not None and roles.layout.model is not None:
            self._see_model(roles.layout, cells)
        if roles.split:  # first, as the gold: both are looked at where something else of the row is wrong
            name = str(look_up(cells, roles.split)).strip().casefold()
            self._split_names.setdefault(name, [line, 0])[1] += 1
        choices = values.choices(cells)
        gold = values.gold(cells)
        self._see_gold(gold, choices, line)
        found.is_chat |= not isinstance(values.question(cells), str)
        answers = None if values.is_live else values.answers(cells)
        if answers is not None:
            found.recorded += 1
            if choices is not None:
                self._positions.see(answers, choices)
            if choices is None or answers[0].text.strip() not in choices.values():
                self._see_odd(answers[0].text, gold, line)
            found.same_as_gold += isinstance(gold, str | int) and answers[0].text.strip() == str(gold).strip()
        elif roles.likelihoods and look_up(cells, roles.likelihoods):
            found.recorded += 1
        values.judgements(cells)
        for name in values.scores(cells):
            found.scores.setdefault(name, SourceScore())
        found.train += values.splits.get(split) == "train"
        if self._model_column and len(self._models) <= _SHOWN_MODELS:
            name = look_up(cells, self._model_column)
            self._models.setdefault("" if name is None else str(name).strip(), line)

    def _see_odd(self, text: str, gold: Any, line: int) -> None:
        """Count an output that reads as if there were none."""
        if _NO_ANSWER.fullmatch(text) and text.strip().casefold() != str(gold).strip().casefold():
            if not self._found.odd_outputs:
                self._found.first_odd = line, text
            self._found.odd_outputs += 1

    def _see_model(self, layout: Layout, cells: Cells) -> None:
        """Take the model of one more row. Raises CellError for a second one: both would be one run."""
        assert layout.model is not None
        found, model = self._found, layout.model(cells)
        if found.model and model != found.model:
            raise CellError(f"outputs of several models: {show(found.model)} and {show(model)}", layout.several_models)
        found.model = model

    def _see_gold(self, gold: Any, choices: Options | None, line: int) -> None:
        self._golds.see(gold, choices, line)
        self._may_be_lists = self._may_be_lists and spells_list(gold)
        if self._may_be_lists:
            items = parse_list(gold)
            self._lists.see(items, choices, line)
            self._found.number_lists += choices is None and not any(isinstance(item, str) for item in items)
        truth = TRUTHS.get(gold.strip().casefold()) if isinstance(gold, str) else None
        self._may_be_truths = self._may_be_truths and choices is None and (truth is not None or gold == "")
        if self._may_be_truths:
            self._truths.see(truth, None, line)
        self._found.letters += choices is None and isinstance(gold, str) and _LETTER.fullmatch(gold) is not None

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

    def finish(self) -> Survey:
        """Return what holds of all rows. Raises DatasetError."""
        found, values = self._found, self._values
        if not found.rows:
            values.refuse("there are no rows", "", "no-rows")
        for role in ("scores", "judgements"):
            if values.is_live and getattr(values.roles, role):
                message = f"no column holds the outputs that the {role} were given to"
                values.refuse(message, "output=COLUMN names it", role)
        if len(self._models) == 1:
            (found.row_model,) = self._models
        found.lines = values.table.lines
        found.left_out = found.lines - found.rows
        found.golds_are_lists = self._may_be_lists
        if found.golds_are_lists and found.number_lists and values.options.gold_kind is None:
            message = "every gold is a list of numbers: one answer, or several that are accepted?"
            hint = "gold_kind=text where a list is one answer, gold_kind=list where any of it is"
            values.refuse(message, hint, "list")
        found.golds_are_truths = self._may_be_truths
        golds = self._truths if found.golds_are_truths else self._golds
        found.gold = self._decide(self._lists if found.golds_are_lists else golds)
        found.main = self._find_main(found)
        names = self._split_names
        found.uses_split = self._uses_split(names)
        if found.uses_split and not values.splits:
            found.train = sum(number for name, (_, number) in names.items() if SPLITS[name] == "train")
        found.outputs_are_positions = self._outputs_are_positions(found.gold)
        found.notes = [*values.table.notes, *self._notes(found)]
        return found

    def _find_main(self, found: Survey) -> str:
        """Return the score that is the main metric, unless the run entry names another; "" for one of ours."""
        layout, scores = self._values.roles.layout, list(found.scores)
        if layout is not None and layout.main in scores:
            return layout.main
        return "" if found.is_measured else scores[0]

    def _require_one_model(self) -> None:
        """Refuse a long table: the outputs of several models would be scored as those of one."""
        if len(self._models) < 2:
            return
        column, (*others, last) = self._model_column, [*self._models][:_SHOWN_MODELS]
        number = f"more than {_SHOWN_MODELS}" if len(self._models) > _SHOWN_MODELS else str(len(self._models))
        names = f"{', '.join(others)} and {last}" if number.isdigit() else f"{', '.join([*others, last])}, ..."
        self._values.refuse(
            f"the column {column} names {number} models, {names}: they would be scored as one",
            f"write a file for each, or a column of outputs for each and output=A+B; by={column} where it says "
            "something else",
            "several-models",
            [*self._models.values()][1],
        )

    def _decide(self, golds: GoldColumn) -> GoldKind:
        """Return what the golds are. Raises DatasetError."""
        self._found.is_measured = self._require_golds(golds)
        if not self._found.is_measured:
            return GoldKind("text", "text", reason="no row has one: only the scores that it was given count")
        return golds.decide()

    def _require_golds(self, golds: GoldColumn) -> bool:
        """Return whether there are golds. Raises DatasetError where some are missing; the layout knows why they may be.

        None need be there where rows have the scores that they were given: `golds` allows for some without.
        """
        try:
            golds.require_golds()
        except DatasetError as error:
            if self._found.scores and self._found.recorded:
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

    def _outputs_are_positions(self, gold: GoldKind) -> bool:
        """Whether outputs are numbers of options. Raises DatasetError where that cannot be told."""
        try:
            return self._positions.are_positions(gold)
        except ValueError as error:
            hint = "write both in one way: as labels, as texts, or as positions counted from the same number"
            self._values.refuse(str(error), hint, "positions")

    def _notes(self, found: Survey) -> list[str]:
        layout = self._values.roles.layout
        notes = [*layout.notes, *(layout.live_notes if self._values.is_live else ())] if layout is not None else []
        if not found.outputs_are_positions and (said := self._positions.note()):
            notes.append(said)
        if self._values.roles.gold_is_option:
            notes.append(
                "the right option has a column of its own, so the order in which options are shown is not known: "
                + (
                    "a live run shows them in one of its own"
                    if self._values.is_live
                    else "answers count where they name an option by its text, not by a letter"
                )
            )
        if found.odd_outputs:
            line, text = found.first_odd
            one = "output reads like an error or a missing value"
            many = "outputs read like errors or missing values"
            notes.append(
                f"{count(found.odd_outputs, one, many)}, the first in line {line}: {show(text)}; they are scored as "
                "answers. Where the model gave none, leave the cell empty (empty=not_run), in JSON null"
            )
        if found.recorded and found.same_as_gold == found.rows:
            notes.append("every output is equal to its gold: is the column of outputs that of the golds?")
        if found.letters and found.letters == found.rows:
            notes.append(
                "every gold is a single letter, and the rows have no options: answers are compared with it as texts; "
                "options=COLUMN or options=A+B+C+D names the options"
            )
        return notes
