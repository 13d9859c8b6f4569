"""The profile of a table: what holds of all its rows.

What a gold is (a label, a position, ...) is decided over the whole column (`imported.gold`), and so is whether outputs
are positions, and whether a cell that looks like a list is one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

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
        self._splits: Counter[str] = Counter()
        """Name of a split to its rows."""
        self._models: dict[str, int] = {}
        """Model that a row names to the first line that does."""
        self._seen: Counter[tuple[str, str]] = Counter()
        """How many rows something was noted of, and of which split or score."""
        self._first: dict[tuple[str, str], tuple[int, Any]] = {}
        """The first of them: its line, and a value."""

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

    def _note(self, what: str, line: int, value: Any = None, *, of: str = "") -> None:
        self._seen[what, of] += 1
        self._first.setdefault((what, of), (line, value))

    def see(self, record: Record) -> None:
        """Take what is decided over whole columns. Raises RowError."""
        gold, options, line = record.gold, record.options, record.line
        self.rows += 1
        if record.split_name or self._roles.split:
            self._splits[record.split_name] += 1
            self._note("split", line, of=record.split_name)
        if len(self._models) <= _SHOWN_MODELS:
            self._models.setdefault(record.model, line)
        self._golds.see(gold, options, line)
        if options is None and isinstance(gold, str) and _LETTERS.fullmatch(gold):
            self._note("letters", line)

    def see_answer(self, record: Record) -> None:
        """Take the rest of the same row."""
        line = record.line
        self.is_chat |= not isinstance(record.question, str)
        for name, score in record.source_scores.items():
            known = self.scores.setdefault(name, SourceScore(bounds=(0.0, 1.0)))
            if name in record.numeric:
                known.bounds = None
            if score is not None and name in self._roles.score_columns:
                if name not in record.numeric:
                    self._note("graded", line, of=name)
                elif not 0 <= score <= 1:
                    self._note("beyond", line, score, of=name)
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
                    self._note("several", line)
        elif spells_list(gold) and spells_list(text):
            self._golds.doubt(line, gold)
        bare, right = text.strip(), str(gold).strip()
        choices = (options or {}).values()
        are_several = options is None and isinstance(gold, str) and not (spells_list(gold) and spells_list(text))
        for what, is_so in (
            ("part", are_several and _is_part(bare, right)),
            ("object", OBJECT.match(text)),
            ("odd", _NO_ANSWER.fullmatch(text) and bare.casefold() != right.casefold() and bare not in choices),
            ("list", self._table.is_text and spells_list(text)),
            ("gold", isinstance(gold, str | int) and bare == right),
        ):
            if is_so:
                self._note(what, line, text)

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
        if self.gold.several and (several := self._seen["several", ""]):
            rows = count(several, "output names", "outputs name")
            message = f"{rows} several options where several are right: are all of them the answer, or any?"
            hint = "multi_label=true where all of them together are, multi_label=false where any of them counts"
            self._refuse(message, hint, "several-right", self._first["several", ""][0])
        if layout.main in self.scores:
            self.main = layout.main
        elif not self.is_measured:
            self.main = next(iter(self.scores))
        self._require_one_scale()
        self.uses_split = self._decide_split()
        if self.uses_split:
            self.train = sum(number for name, number in self._splits.items() if SPLITS[name] == "train")
        try:
            self.outputs_are_positions = self._positions.are_positions(self.gold)
        except ValueError as error:
            hint = "write both in one way: as labels, as texts, or as positions counted from the same number"
            self._refuse(str(error), hint, "positions")

    def _require_one_model(self) -> None:
        """Refuse outputs of several models: they would be scored as those of one."""
        if len(self._models) < 2:
            return
        shown, column = [*self._models][:_SHOWN_MODELS], self._reader.model_column
        names = ", ".join(shown) + (", ..." if len(self._models) > len(shown) else "")
        who = f"the column {column} names" if column else "the outputs are those of"
        more = f", or a column of outputs for each and output=A+B; by={column} where it says something else"
        message = f"{who} several models, {names}: they would be scored as one"
        hint = f"write a file for each{more if column else ''}"
        self._refuse(message, hint, "several-models", [*self._models.values()][1])

    def _require_one_scale(self) -> None:
        """Refuse a score that is 5 in one row and N in another: a grade that is 0, or no score at all?"""
        for name in self._roles.score_columns:
            if ("graded", name) in self._first and ("beyond", name) in self._first:
                beyond = self._first["beyond", name][1]
                message = f"the score {name} is a grade or a truth here, worth 0 to 1, and {beyond:g} elsewhere"
                hint = "leave the cell empty where there is no score; write all of them as numbers, or all as grades"
                self._refuse(message, hint, "scores", self._first["graded", name][0])

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
            message = f"the split {show(unknown[0])} is neither train, validation nor test"
            hint = "correct it; where the column says something else, leave out split= or call it otherwise"
            self._refuse(message, hint, "split", self._first["split", unknown[0]][0])
        return bool(self._splits) and not unknown

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the score must know."""
        layout, seen = self._layout, {what: number for (what, of), number in self._seen.items() if not of}
        every = {what for what, number in seen.items() if number == self.recorded}
        yield from self._table.notes
        yield from layout.notes
        yield from layout.live_notes if self._reader.is_live else ()
        if not self.outputs_are_positions and (unnamed := self._positions.unnamed):
            one, many = "output is a number that names no option", "outputs are numbers that name no option"
            yield f"{count(unnamed, one, many)}: scored as wrong"
        if self._roles.gold_is_option:
            shown = "answers count where they name an option by its text, not by a letter"
            if self._reader.is_live:
                shown = "a live run shows them in one of its own"
            said = "the right option has a column of its own, so the order in which options are shown is not known"
            yield f"{said}: {shown}"
        if "odd" in seen:
            line, text = self._first["odd", ""]
            one, many = "output reads like an error or a missing value", "outputs read like errors or missing values"
            yield (
                f"{count(seen['odd'], one, many)}, the first in line {line}: {show(text)}; they are scored as "
                "answers. Where the model gave none, leave the cell empty (empty=not_run), in JSON null"
            )
        if "list" in every:
            yield "every output looks like a list, and is one answer: several are a list in JSON Lines or Parquet"
        if self.recorded and seen.get("gold") == self.rows:
            yield "every output is equal to its gold: is the column of outputs that of the golds?"
        if "part" in seen:
            outputs = count(seen["part"], "output is a part of its gold", "outputs are a part of their golds")
            yield (
                f"{outputs} between | or ;, and counted as wrong: a gold is one text, and several accepted ones are "
                'written as a list, ["a", "b"], in CSV "[""a"", ""b""]"'
            )
        if "object" in every and self._options.gold_kind != "text":
            column = self._roles.output
            yield f"every output is an object written as text: output={column}.KEY scores what its KEY holds"
        if self.gold.several and self.multi_label is None:
            rows = count(self.gold.several, "row has", "rows have")
            yield f"{rows} several right options: any of them counts; multi_label=true where all of them are the answer"
        if seen.get("letters") == self.rows:
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


def _is_part(text: str, gold: str) -> bool:
    """Whether an output is one of several texts that a gold names with | or ; between them."""
    return ("|" in gold or ";" in gold) and text.casefold() in _BETWEEN.split(gold.casefold())


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
        self.unnamed = 0
        """Outputs that are numbers, and neither the text nor the label of an option."""
        self._named = self._others = 0
        """Those that are, and outputs of another kind."""
        self._fits = {0: True, 1: True}
        """Number of the first option to whether every number is one of an option of its row."""
        self._differs = {0: False, 1: False}
        """The same to whether a number is the text or the label of another option than of that at its position."""

    def see(self, outputs: Sequence[str], options: Mapping[str, str]) -> None:
        """Take the outputs of one more row that has options."""
        labels = list(options)
        for text in map(str.strip, outputs):
            if text in _NOTHING:
                continue
            if len(text) > 8 or not _NUMBER.fullmatch(text):
                self._others += 1
                continue
            number = int(float(text))
            spelled = (text, str(number))
            named = [label for label, option in options.items() if label in spelled or option.strip() in spelled]
            self._named += bool(named)
            self.unnamed += not named
            for base in (0, 1):
                if not base <= number < base + len(labels):
                    self._fits[base] = False
                elif named and named != [labels[number - base]]:
                    self._differs[base] = True

    def are_positions(self, gold: GoldKind) -> bool:
        """Return whether the outputs are positions, as golds of this kind are.

        Raises ValueError, which says why in words for the user, where they could be, or should.
        """
        are_numbers = bool(self.unnamed or self._named) and not self._others
        if gold.element == "index" and are_numbers:
            fits = self._fits[gold.base]
            if fits and (self.unnamed or not self._differs[gold.base]):
                return True
            if fits or not self._named:
                raise ValueError(f"outputs are numbers, and golds positions counted from {gold.base}: do they fit?")
        if self.unnamed and self.unnamed >= self._others and any(self._fits.values()):
            numbers = count(self.unnamed, "output is a number", "outputs are numbers")
            others = f"{self._others:,} are not" if self._others else f"golds are read otherwise: {gold.reason}"
            raise ValueError(f"{numbers}, as positions are, and {others}")
        return False
