"""The profile of a table: what holds of all its rows.

What a gold is (a label, a position, ...) is decided over the whole column (`imported.gold`), and so is whether outputs
are positions, and whether a cell that looks like a list is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from helm_ext import parsing
from helm_ext.errors import DatasetError, DatasetIntegrityError, Location, Problem, count, show
from helm_ext.evalset import SourceScore
from helm_ext.formats.imported.gold import NO_YES, GoldColumn, GoldKind, read_labels, to_options
from helm_ext.formats.imported.row import Answer, Row, spells_list
from helm_ext.formats.table.records import OBJECT, SPLITS, Record, RecordReader

_NO_ANSWER = re.compile(
    r"\s*(?:error\b\s*[:(\[].*|traceback \(most recent.*|none|nan|null|#?n/a|#(?:value!|ref!|name\?|div/0!))\s*",
    re.IGNORECASE | re.DOTALL,
)
"""What a script writes where it got no answer, and a spreadsheet."""

_LETTERS = re.compile(r"\s*\(?[A-Za-z]\)?\s*(?:[,;]\s*\(?[A-Za-z]\)?\s*)*")

_YES_NO = {"1": "yes", "0": "no"}
"""What answers a question whose gold is true or false, beside these and yes and no."""

_SHOWN_MODELS = 5

_BETWEEN = re.compile(r"\s*[|;]\s*")
"""What people write between several accepted answers."""


class Profile:
    """Sees the records one by one, says then what holds of all of them, and makes rows of them."""

    gold: GoldKind
    train = 0
    """Rows of the train split."""
    recorded = 0
    """Rows with an output."""
    is_chat = False
    uses_split = False
    outputs_are_positions = False
    is_measured = True
    """Whether some row has a gold; else only the scores that it was given count."""
    model = ""
    """Whose outputs they are, where a known layout or a column of models says so."""
    main = ""
    """The score of the tool that wrote the table that its own reports are headed by; `Source.main`."""

    def __init__(self, reader: RecordReader) -> None:
        self._reader, self._table, self._roles = reader, reader.table, reader.roles
        self._options, self._layout = reader.options, reader.roles.layout
        said = self._options.multi_label
        self.multi_label: bool | None = self._options.adapter_spec.get("multi_label") if said is None else said
        """Whether all right options of a row together are the answer; None where that is not said."""
        self.rows = 0
        self.scores: dict[str, SourceScore] = {}
        self._golds = self._make_column()
        self._positions = _Positions()
        self._splits: dict[str, list[int]] = {}
        """Name of a split to its first line and its rows."""
        self._models: dict[str, int] = {}
        """Model that a row names to the first line that does."""
        self._same_as_gold = self._letters = self._odd = self._name_several = self._bracketed = 0
        self._parts = self._objects = 0
        """Rows: whose output is their gold to the letter; without options whose gold is a letter, or several; whose
        output reads like an error or a missing value, names several options where several are right, spells a list in a
        cell of text, is a part of its gold, or spells an object."""
        self._first_odd = (0, "")
        self._first_several = 0
        self._graded: dict[str, int] = {}
        """Score to the first line in which it is a grade or a truth."""
        self._beyond: dict[str, float] = {}
        """Score to the first number that is none of those that grades stand for, 0 to 1."""

    def _make_column(self) -> GoldColumn:
        options, layout, roles = self._options, self._layout, self._roles
        return GoldColumn(
            gold_kind=options.gold_kind
            or (layout.gold_kind if roles.made else None)
            or ("text" if roles.gold_is_option else None),
            index_base=layout.index_base if options.index_base is None else options.index_base,
            is_said=options.index_base is not None,
            is_class_label=roles.gold in self._table.class_labels,
            allow_hidden=bool(roles.scores) or layout.allows_hidden,
            are_cells=self._table.is_text,
            path=self._table.path,
            name=roles.name("gold"),
        )

    def see(self, record: Record) -> None:
        """Take what is decided over whole columns. Raises RowError."""
        self.rows += 1
        if record.split_name or self._roles.split:
            self._splits.setdefault(record.split_name, [record.line, 0])[1] += 1
        if len(self._models) <= _SHOWN_MODELS:
            self._models.setdefault(record.model, record.line)
        gold, options, line = record.gold, record.options, record.line
        self._golds.see(gold, options, line)
        self._letters += options is None and isinstance(gold, str) and _LETTERS.fullmatch(gold) is not None

    def see_answer(self, record: Record) -> None:
        """Take the rest of the same row."""
        self.is_chat |= not isinstance(record.question, str)
        for name in record.source_scores:
            self.scores.setdefault(name, SourceScore(bounds=(0.0, 1.0)))
        for name in record.numeric:
            self.scores[name].bounds = None
        for name in self._roles.score_columns:
            score = record.source_scores.get(name)
            if score is not None and name not in record.numeric:
                self._graded.setdefault(name, record.line)
            elif score is not None and not 0 <= score <= 1:
                self._beyond.setdefault(name, score)
        self.recorded += record.answers is not None or bool(record.likelihoods)
        if record.answers is None:
            return
        text, options, gold = record.answers[0].text, record.options, record.gold
        if options is not None:
            self._positions.see([answer.text for answer in record.answers], options)
            golds = self._golds.read_cell(gold, options)
            is_list = isinstance(golds, list | tuple) and self.multi_label is None
            if is_list and len(read_labels("flags", 0, golds, options) or golds) > 1:
                _, said = parsing.split_thinking(text) or ("", text)
                if len({*parsing.read_choice(said, options, multi_label=True)}) > 1:
                    self._first_several = self._first_several or record.line
                    self._name_several += 1
        elif spells_list(gold) and spells_list(text):
            self._golds.doubt(record.line, gold)
        elif isinstance(gold, str) and ("|" in gold or ";" in gold):
            self._parts += text.strip().casefold() in _BETWEEN.split(gold.strip().casefold())
        self._objects += OBJECT.match(text) is not None
        is_odd = _NO_ANSWER.fullmatch(text) and text.strip().casefold() != str(gold).strip().casefold()
        if is_odd and (options is None or text.strip() not in options.values()):
            self._first_odd = self._first_odd if self._odd else (record.line, text)
            self._odd += 1
        self._bracketed += self._table.is_text and spells_list(text)
        self._same_as_gold += isinstance(gold, str | int) and text.strip() == str(gold).strip()

    def list_problems(self) -> list[Problem]:
        """Return what is wrong with whole columns, as far as it does not depend on rows that are wrong themselves."""
        found: list[Problem] = []
        given = self._roles.scores or self._roles.source_scores  # with any that can be read, no gold is needed
        for require in (
            self._require_one_model, self._require_one_scale, self._decide_split,
            lambda: given or self._require_golds(self._golds),
        ):  # fmt: skip
            try:
                require()
            except DatasetError as error:
                found.extend(error.problems)
        return found

    def finish(self) -> None:
        """Decide what holds of all rows. Raises DatasetError."""
        roles, layout = self._roles, self._layout
        if not self.rows:
            self._refuse("there are no rows", "", "no-rows")
        for role in ("scores", "judgements"):
            if self._reader.is_live and getattr(roles, role):
                message = f"no column holds the outputs that the {role} were given to"
                self._refuse(message, "output=COLUMN names it", role)
        (self.model,) = self._models
        golds = self._golds
        golds.settle_lists()
        self.is_measured = self._require_golds(golds)
        if not self.is_measured:
            self.gold = GoldKind("text", reason="no row has one: only the scores that it was given count")
        else:
            self.gold = golds.decide()
        if self.gold.several and self._name_several:
            rows = count(self._name_several, "output names", "outputs name")
            message = f"{rows} several options where several are right: are all of them the answer, or any?"
            hint = "multi_label=true where all of them together are, multi_label=false where any of them counts"
            self._refuse(message, hint, "several-right", self._first_several)
        if layout.main in self.scores:
            self.main = layout.main
        elif not self.is_measured:
            self.main = next(iter(self.scores))
        self._require_one_scale()
        self.uses_split = self._decide_split()
        if self.uses_split:
            self.train = sum(number for name, (_, number) in self._splits.items() if SPLITS[name] == "train")
        try:
            self.outputs_are_positions = self._positions.are_positions(self.gold)
        except ValueError as error:
            hint = "write both in one way: as labels, as texts, or as positions counted from the same number"
            self._refuse(str(error), hint, "positions")

    def _require_one_model(self) -> None:
        """Refuse outputs of several models: they would be scored as those of one."""
        if len(self._models) < 2:
            return
        *others, last = [*self._models][:_SHOWN_MODELS]
        is_more = len(self._models) > _SHOWN_MODELS
        number = f"more than {_SHOWN_MODELS}" if is_more else str(len(self._models))
        names = f"{', '.join([*others, last])}, ..." if is_more else f"{', '.join(others)} and {last}"
        message = f"the outputs are those of {number} models, {names}: they would be scored as one"
        hint = "write a file for each"
        if column := self._reader.model_column:
            message = f"the column {column} names {number} models, {names}: they would be scored as one"
            hint = (
                "write a file for each, or a column of outputs for each and output=A+B; "
                f"by={column} where it says something else"
            )
        self._refuse(message, hint, "several-models", [*self._models.values()][1])

    def _require_one_scale(self) -> None:
        """Refuse a score that is 5 in one row and N in another: a grade that is 0, or no score at all?"""
        for name in self._graded.keys() & self._beyond.keys():
            message = f"the score {name} is a grade or a truth here, worth 0 to 1, and {self._beyond[name]:g} elsewhere"
            hint = "leave the cell empty where there is no score; write all of them as numbers, or all as grades"
            self._refuse(message, hint, "scores", self._graded[name])

    def _require_golds(self, golds: GoldColumn) -> bool:
        """Return whether there are golds. Raises DatasetError where some are missing; the layout knows why they may be.

        None need be there where rows have the scores that they were given: `golds` allows for some without.
        """
        try:
            golds.require_golds()
        except DatasetError as error:
            if self.scores and self.recorded:
                return False
            problem = error.problems[0]
            hint = self._layout.hidden_hint or problem.hint
            if self._table.splits:
                hint += f"; splits={'+'.join(self._table.splits)} says which are read"
            self._refuse(problem.message, hint, str(problem.code), problem.location.line)
        return True

    def _decide_split(self) -> bool:
        """Return whether the splits that rows name are splits: a column that was guessed may hold something else.

        Raises DatasetError for a column that names splits in some rows only: one typo would make all rows test rows.
        """
        unknown = [name for name in self._splits if name not in SPLITS]
        if unknown and (self._options.split is not None or len(unknown) < len(self._splits)):
            line, number = self._splits[unknown[0]]
            rows = "" if number == 1 else f", as in {number} rows"
            message = f"the split {show(unknown[0])} is neither train, validation nor test{rows}"
            hint = "correct it; where the column says something else, leave out split= or call it otherwise"
            self._refuse(message, hint, "split", line)
        return bool(self._splits) and not unknown

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the score must know."""
        layout = self._layout
        yield from self._table.notes
        yield from layout.notes
        yield from layout.live_notes if self._reader.is_live else ()
        if not self.outputs_are_positions and (said := self._positions.note()):
            yield said
        if self._roles.gold_is_option:
            yield (
                "the right option has a column of its own, so the order in which options are shown is not known: "
                + (
                    "a live run shows them in one of its own"
                    if self._reader.is_live
                    else "answers count where they name an option by its text, not by a letter"
                )
            )
        if self._odd:
            line, text = self._first_odd
            one, many = "output reads like an error or a missing value", "outputs read like errors or missing values"
            yield (
                f"{count(self._odd, one, many)}, the first in line {line}: {show(text)}; they are scored as "
                "answers. Where the model gave none, leave the cell empty (empty=not_run), in JSON null"
            )
        if self.recorded and self._bracketed == self.recorded:
            yield "every output looks like a list, and is one answer: several are a list in JSON Lines or Parquet"
        if self.recorded and self._same_as_gold == self.rows:
            yield "every output is equal to its gold: is the column of outputs that of the golds?"
        if self._parts:
            outputs = count(self._parts, "output is a part of its gold", "outputs are a part of their golds")
            yield (
                f"{outputs} between | or ;, and counted as wrong: a gold is one text, and several accepted ones are "
                'written as a list, ["a", "b"], in CSV "[""a"", ""b""]"'
            )
        if self.recorded and self._objects == self.recorded and self._options.gold_kind != "text":
            column = self._roles.output
            yield f"every output is an object written as text: output={column}.KEY scores what its KEY holds"
        if self.gold.several and self.multi_label is None:
            rows = count(self.gold.several, "row has", "rows have")
            yield f"{rows} several right options: any of them counts; multi_label=true where all of them are the answer"
        if self._letters and self._letters == self.rows:
            yield (
                "every gold is a letter, or several, and the rows have no options: answers are compared with it as "
                "texts; options=COLUMN or options=A+B+C+D names the options"
            )

    def to_row(self, record: Record) -> Row:
        """Return a record as the row that it is. Raises DatasetError for a gold that cannot be read after all."""
        options = record.options
        try:
            right = self.gold.read(record.gold, options)
        except ValueError as error:
            self._refuse(str(error), "", "cell", record.line)
        if self.gold.options is not None and options is None:
            options = dict(self.gold.options)
        if record.answers is not None:
            texts = [answer.text for answer in record.answers]
            if self.gold.options is NO_YES:
                texts = [_YES_NO.get(text.strip(), text) for text in texts]
            elif self.outputs_are_positions:
                texts = [label for text in texts for label in self.gold.read(text, options) or ("",)]
            record.answers = list(map(Answer, texts))
        if self._reader.is_live and options is not None:
            # A, B, ..., for a prompt whose rows must have one sequence of labels: ARC has two.
            shown = to_options([options[label] for label in record.order or options])
            named = dict(zip(record.order or options, shown, strict=True))
            options, right = shown, tuple(named[label] for label in right)
        record.options, record.gold = options, right
        record.split = SPLITS[record.split_name] if self.uses_split else "test"
        record.unscored = "" if right or not self.is_measured else "the row has no gold"
        return record

    def _refuse(self, message: str, hint: str, code: str, line: int | None = None) -> NoReturn:
        """Raise the error about the whole table, or a line of it."""
        raise DatasetIntegrityError.at(Location(self._table.path, line), message, hint, code=code)


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
        self._numbers = self._named = self._others = 0
        """Outputs that are numbers; those of them that are the text or the label of an option; outputs of another
        kind."""
        self._fits = {0: True, 1: True}
        """Number of the first option to whether every number is one of an option of its row."""
        self._differs = {0: False, 1: False}
        """The same to whether a number is the text or the label of another option than of that at its position."""

    def see(self, outputs: Sequence[str], options: Mapping[str, str]) -> None:
        """Take the outputs of one more row that has options."""
        for text in outputs:
            self._see_one(text.strip(), options)

    def _see_one(self, text: str, options: Mapping[str, str]) -> None:
        if text in _NOTHING:
            return
        if len(text) > 8 or not _NUMBER.fullmatch(text):
            self._others += 1
            return
        self._numbers += 1
        number = int(float(text))
        spelled = (text, str(number))
        labels = list(options)
        named = [label for label, option in options.items() if label in spelled or option.strip() in spelled]
        self._named += bool(named)
        for base in (0, 1):
            if not base <= number < base + len(labels):
                self._fits[base] = False
            elif named and named != [labels[number - base]]:
                self._differs[base] = True

    def are_positions(self, gold: GoldKind) -> bool:
        """Return whether the outputs are positions, as golds of this kind are. Raises ValueError, where none can tell.

        The error's text says why, in words for the user.
        """
        unnamed, may_be = self._numbers - self._named, any(self._fits.values())
        if self._others or not self._numbers:
            if unnamed and unnamed >= self._others and may_be:
                numbers = count(
                    unnamed, "output is a number, as positions are", "outputs are numbers, as positions are"
                )
                raise ValueError(f"{numbers}, and {self._others:,} are not")
            return False
        if gold.element == "index" and self._fits[gold.base]:
            if not unnamed and self._differs[gold.base]:
                raise ValueError("every output is a number: a position, as the golds are, or the text of an option")
            return True
        if gold.element == "index" and (not self._named or (unnamed and may_be)):
            raise ValueError(f"golds are positions counted from {gold.base}, and outputs are numbers that do not fit")
        if gold.element != "index" and unnamed and may_be:
            what = {"label": "labels", "text": "texts"}.get(gold.element, "no positions")
            raise ValueError(f"every output is a number, as positions are, and golds are {what}")
        return False

    def note(self) -> str:
        """Return what a reader of the score must know where outputs are not positions; "" for nothing."""
        if not (unnamed := self._numbers - self._named):
            return ""
        one, many = "output is a number that names no option", "outputs are numbers that name no option"
        return f"{count(unnamed, one, many)}: scored as wrong"
