"""From cells to rows: first all of them are looked at, then each is read.

What a gold is (a label, a position, ...) is decided over the whole column (`imported.gold`), and so is whether outputs
are positions. So the table is read twice: `survey` looks, `read` yields the rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from helm_ext.errors import DatasetError, DatasetIntegrityError, Problems, did_you_mean, raise_for, show
from helm_ext.evalset import SourceScore
from helm_ext.formats.imported.gold import NO_YES, GoldColumn, GoldKind, to_options
from helm_ext.formats.imported.row import Answer, Message, Row
from helm_ext.formats.table.cells import (
    CellError,
    label_options,
    look_up,
    parse_list,
    read_options,
    to_json_value,
    to_text,
)
from helm_ext.formats.table.options import Options
from helm_ext.formats.table.roles import Roles, option_labels
from helm_ext.formats.table.table import Cells, Table

__all__ = ["RowReader", "Survey"]

Split = Literal["train", "valid", "test"]

SPLITS: Mapping[str, Split] = {
    "train": "train", "training": "train", "test": "test", "testing": "test",
    "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid",
}  # fmt: skip
"""What splits are called, to HELM's names."""

_OBJECT = re.compile(r"""\{\s*(['"])\w+\1\s*:""")
"""How an object begins that is written as text."""

_LETTER = re.compile(r"\s*\(?[A-Za-z]\)?\s*")


@dataclass
class Survey:
    """What holds of all rows."""

    gold: GoldKind
    rows: int = 0
    lines: int = 0
    recorded: int = 0
    """Rows with an output."""
    train: int = 0
    is_chat: bool = False
    golds_are_lists: bool = False
    """Whether every gold spells a list, in a table whose cells are texts."""
    number_lists: int = 0
    """Rows without options whose gold spells a list of numbers."""
    outputs_are_positions: bool = False
    uses_split: bool = False
    same_as_gold: int = 0
    """Rows whose output is their gold to the letter."""
    letters: int = 0
    """Rows without options whose gold is a single letter."""
    hidden: int = 0
    scores: dict[str, SourceScore] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class RowReader:
    """Reads the rows of a table whose columns are known."""

    def __init__(self, table: Table, roles: Roles, options: Options) -> None:
        self._table = table
        self._roles = roles
        self._options = options
        self._adapt = roles.layout.adapt if roles.layout is not None and _uses_adapted(roles) else None
        self._is_live = not roles.output and not roles.likelihoods
        self._labels = option_labels(roles.options) if len(roles.options) > 1 else []
        names = table.class_labels.get(roles.gold)
        self._class_names = to_options(names) if names and not roles.options else None
        self._shuffles = self._is_live and roles.layout is not None and roles.layout.shuffles
        self._columns = self._needed()
        self._splits = self._read_splits()

    def _needed(self) -> list[str] | None:
        """Return the columns that are read; None for all, where a layout adapts the row."""
        if self._adapt is not None:
            return None
        roles = self._roles
        named = [roles.question, roles.context, *roles.options, roles.gold, roles.output, roles.id, roles.split,
                 roles.likelihoods, roles.source_scores, *self._options.by]  # fmt: skip
        columns = {name if name in self._table.columns else name.partition(".")[0] for name in named}
        return [column for column in self._table.columns if column in columns]

    def _read_splits(self) -> dict[str, Split | None]:
        """Return what each split of a dataset that has several is to HELM; None for those that are not read."""
        table, wanted = self._table, self._options.splits
        for name in wanted or ():
            if table.splits and name not in table.splits:
                hint = did_you_mean(str(name), table.splits) or f"known: {', '.join(table.splits)}"
                self._refuse(f"there is no split {show(name)}", hint, "split")
        if wanted and not table.splits and not self._roles.split:
            self._refuse(f"splits={'+'.join(wanted)}: the table has one split", "leave splits= out", "split")
        chosen = [name for name in table.splits if wanted is None or name in wanted]
        if len(chosen) == 1:
            return {name: SPLITS.get(name.casefold(), "test") if name in chosen else None for name in table.splits}
        unknown = [name for name in chosen if name.casefold() not in SPLITS]
        if unknown:
            message = f"the split {show(unknown[0])} is neither train, validation nor test"
            self._refuse(message, f"read one alone, or those that are: splits={'+'.join(table.splits)}", "split")
        return {name: SPLITS[name.casefold()] if name in chosen else None for name in table.splits}

    # The first reading

    def survey(self) -> Survey:
        """Look at every row. Raises DatasetError with all problems."""
        roles, options, table = self._roles, self._options, self._table
        layout = roles.layout
        problems = Problems(table.path)
        golds, lists = (
            GoldColumn(
            gold_kind=options.gold_kind or (layout.gold_kind if layout and _uses_adapted(roles) else None),
            index_base=layout.index_base if options.index_base is None and layout else options.index_base,
            is_class_label=roles.gold in table.class_labels,
            allow_hidden=layout is not None and layout.allows_hidden,
            path=table.path,
            name=_shown(roles.gold),
            )
            for _ in range(2)
        )  # fmt: skip
        positions = _Positions()
        found = Survey(GoldKind("text", "text"))
        names: dict[str, list[int]] = {}
        may_be_lists = self._table.is_text and options.gold_kind in (None, "list", "flags")
        for line, cells, split in self._cells():
            found.rows += 1
            try:
                question = self._question(cells)
                found.is_chat |= not isinstance(question, str)
                choices = self._choices(cells)
                gold = self._gold(cells)
                golds.see(gold, choices, line)
                may_be_lists = may_be_lists and self._spells_list(gold)
                if may_be_lists:
                    items = parse_list(gold)
                    found.number_lists += choices is None and not any(isinstance(item, str) for item in items)
                    lists.see(items, choices, line)
                answers = None if self._is_live else self._answers(cells, None)
                self._see_scores(cells, found)
            except CellError as error:
                problems.add((), str(error), error.hint, code="cell", line=line, kind=DatasetIntegrityError)
                continue
            if choices is None and isinstance(gold, str) and _LETTER.fullmatch(gold):
                found.letters += 1
            if roles.split:
                name = str(look_up(cells, roles.split)).strip().casefold()
                names.setdefault(name, [line, 0])[1] += 1
            found.train += self._splits.get(split) == "train"
            if answers is not None:
                found.recorded += 1
                positions.see(answers, choices)
                found.same_as_gold += isinstance(gold, str | int) and answers[0].text.strip() == str(gold).strip()
            elif roles.likelihoods and look_up(cells, roles.likelihoods):
                found.recorded += 1
        raise_for(problems.finish())
        if not found.rows:
            self._refuse("there are no rows", "", "no-rows")
        found.lines = table.lines
        found.golds_are_lists = may_be_lists
        if found.number_lists and may_be_lists and options.gold_kind is None:
            message = "every gold is a list of numbers: one answer, or several that are accepted?"
            self._refuse(
                message, "gold_kind=text where a list is one answer, gold_kind=list where any of it is", "list"
            )
        found.gold = self._decide(lists if may_be_lists else golds)
        found.hidden = found.gold.hidden
        found.uses_split = self._uses_split(names)
        if found.uses_split and not self._splits:
            found.train = sum(number for name, (_, number) in names.items() if SPLITS[name] == "train")
        found.outputs_are_positions = self._outputs_are_positions(found.gold, positions)
        found.notes = [*table.notes, *self._notes(found)]
        return found

    def _decide(self, golds: GoldColumn) -> GoldKind:
        """Return what the golds are; the layout knows why some may be missing."""
        try:
            return golds.decide()
        except DatasetError as error:
            layout = self._roles.layout
            problem = error.problems[0]
            if problem.code == "gold-hidden":
                hint = layout.hidden_hint if layout is not None and layout.hidden_hint else problem.hint
                if self._table.splits:
                    hint += f"; splits={'+'.join(self._table.splits)} says which are read"
                self._refuse(problem.message, hint, str(problem.code), problem.location.line)
            raise

    def _uses_split(self, names: Mapping[str, Sequence[int]]) -> bool:
        """Whether the column of splits names splits: where it was guessed, it may hold something else."""
        unknown = [name for name in names if name not in SPLITS]
        if unknown and self._options.split is not None:
            message = f"{show(unknown[0])} is neither train, validation nor test"
            self._refuse(message, "leave out split=, or name the column that says so", "split", names[unknown[0]][0])
        return bool(names) and not unknown

    def _outputs_are_positions(self, gold: GoldKind, positions: _Positions) -> bool:
        """Whether outputs are numbers of options. Raises DatasetError where they are not counted as the golds are."""
        if gold.element != "index" or not positions.may_be or not positions.rows:
            return False
        if gold.base in positions.bases:
            return True
        hint = "write outputs and golds in one way: as labels, as texts, or as positions counted from the same number"
        message = f"golds are positions counted from {gold.base}, and outputs are numbers that do not fit"
        self._refuse(message, hint, "positions")
        return False

    def _notes(self, found: Survey) -> list[str]:
        layout = self._roles.layout
        notes = [*layout.notes, *(layout.live_notes if self._is_live else ())] if layout is not None else []
        if found.recorded and found.same_as_gold == found.rows:
            notes.append("every output is equal to its gold: is the column of outputs that of the golds?")
        if found.letters and found.letters == found.rows:
            notes.append(
                "every gold is a single letter, and the rows have no options: answers are compared with it as texts; "
                "options=COLUMN or options=A+B+C+D names the options"
            )
        return notes

    def _see_scores(self, cells: Cells, found: Survey) -> None:
        for name in self._scores(cells):
            found.scores.setdefault(name, SourceScore())

    # The second reading

    def read(self, survey: Survey) -> Iterator[Row]:
        """Yield the rows. Raises DatasetError, though all that can be wrong was looked for before."""
        for line, cells, split in self._cells():
            try:
                yield self._row(line, cells, split, survey)
            except (CellError, ValueError) as error:
                self._refuse(str(error), getattr(error, "hint", ""), "cell", line)

    def _row(self, line: int, cells: Cells, split: str, survey: Survey) -> Row:
        roles = self._roles
        choices = self._choices(cells)
        gold = look_up(cells, roles.gold)
        right = survey.gold.read(parse_list(gold) if survey.golds_are_lists else gold, choices)
        if survey.gold.options is not None and choices is None:
            choices = survey.gold.options
        likelihoods = (look_up(cells, roles.likelihoods) or ()) if roles.likelihoods else ()
        is_asked = not self._is_live and not likelihoods
        given = look_up(cells, roles.id) if roles.id else None
        if self._is_live and choices is not None:
            choices, right = _relabel(choices, right)
        if self._shuffles and choices is not None:
            choices, right = _shuffle(choices, right, str(look_up(cells, roles.question)))
        thought = look_up(cells, roles.thought) if roles.thought else ""
        return Row(
            line=line,
            id=given if isinstance(given, str | int) and not isinstance(given, bool) else None,
            question=self._question(cells),
            options=choices,
            gold=right,
            split=self._split_of(cells, split, uses_column=survey.uses_split),
            answers=self._answers(cells, survey) if is_asked else None,
            likelihoods=likelihoods,
            unscored="" if right else "the row has no gold",
            source_scores=self._scores(cells) if roles.source_scores else {},
            data=self._kept(cells),
            chain_of_thought=thought,
        )

    def _kept(self, cells: Cells) -> dict[str, Any]:
        """Return the values that reports group by; of class labels, the names."""
        kept = {}
        for column in self._options.by:
            value = look_up(cells, column)
            names = self._table.class_labels.get(column)
            if names is not None and isinstance(value, int) and 0 <= value < len(names):
                kept[column] = names[value]
            elif value is not None:
                kept[column] = to_json_value(value)
        return kept

    # What both share

    def _cells(self) -> Iterator[tuple[int, Cells, str]]:
        """Yield the rows of the splits that are read, adapted where the layout does so."""
        adapt = self._adapt
        wanted = self._options.splits if not self._table.splits else None
        for line, cells, split in self._table.rows(self._columns):
            if split in self._splits and self._splits[split] is None:
                continue
            if wanted is not None and str(look_up(cells, self._roles.split)) not in wanted:
                continue
            if adapt is None:
                yield line, cells, split
                continue
            try:
                yield line, {**cells, **adapt(cells)}, split
            except CellError as error:
                self._refuse(str(error), error.hint or f"the table looks like {self._layout_name()}", "layout", line)

    def _layout_name(self) -> str:
        return self._roles.layout.name if self._roles.layout is not None else ""

    def _question(self, cells: Cells) -> str | list[Message]:
        roles = self._roles
        value = look_up(cells, roles.question)
        if isinstance(value, list):
            return [_to_message(turn) for turn in value]
        if value is None or value == "":
            raise CellError(f"the row has no question: {_shown(roles.question)} is {show(value)}")
        text = to_text(value)
        before = look_up(cells, roles.context) if roles.context else None
        return text if before in (None, "") else f"{to_text(before)}\n{text}"

    def _gold(self, cells: Cells) -> Any:
        gold = look_up(cells, self._roles.gold)
        if self._table.is_text and isinstance(gold, str) and _OBJECT.match(gold):
            raise CellError(f"expected a text as gold, got the object {show(gold)}", "name what is in it")
        return gold

    def _choices(self, cells: Cells) -> Mapping[str, str] | None:
        """Return the options of a row; None where it has none."""
        columns = self._roles.options
        if not columns:
            return self._class_names
        if len(columns) == 1:
            value = look_up(cells, columns[0])
            if value is None and columns[0] not in cells:
                raise CellError(f"the row has no {_shown(columns[0])}")
            if isinstance(value, dict) and columns[0].startswith("\0"):
                return value
            if value is None:
                return None if columns[0].startswith("\0") else read_options(value)
            return read_options(value)
        texts = [look_up(cells, column) for column in columns]
        if all(type(text) is str and text for text in texts):
            return dict(zip(self._labels, texts, strict=True))
        while texts and texts[-1] in (None, ""):
            texts.pop()
        for column, text in zip(columns, texts, strict=False):
            if text in (None, ""):
                raise CellError(f"the option {column} is empty, and a later one is not")
        if len(texts) < 2:
            raise CellError(f"expected two or more options, got {len(texts)}")
        return label_options([to_text(text) for text in texts], self._labels[: len(texts)])

    def _answers(self, cells: Cells, survey: Survey | None) -> list[Answer] | None:
        """Return what the model answered; None where the row was not run. `survey`: once it is known."""
        column = self._roles.output
        value = look_up(cells, column) if column else None
        if value is None:
            return None
        if value == "" and self._table.is_text:
            if self._options.empty is None:
                hint = "empty=answer where the model said nothing, empty=not_run where it was not asked"
                raise CellError(f"the output {column} is empty: an answer, or none?", hint)
            if self._options.empty == "not_run":
                return None
        if isinstance(value, list):
            if not all(isinstance(text, str) for text in value):
                raise CellError(f"expected texts as outputs, got {show(value)}")
            return [Answer(text) for text in value] or None
        if survey is not None and survey.gold.options is NO_YES:
            return [Answer(_YES_NO.get(str(value).strip().rstrip(".").casefold()) or to_text(value))]
        if survey is not None and survey.outputs_are_positions:
            choices = self._choices(cells)
            (label,) = survey.gold.read(value, choices) or ("",)
            return [Answer(label)]
        return [Answer(to_text(value))]

    def _split_of(self, cells: Cells, split: str, *, uses_column: bool) -> Split:
        if split in self._splits:
            return cast("Split", self._splits[split])
        if uses_column:
            return SPLITS[str(look_up(cells, self._roles.split)).strip().casefold()]
        return "test"

    def _scores(self, cells: Cells) -> dict[str, float | None]:
        """Return the numbers among the scores that the tool gave the row."""
        roles = self._roles
        value = look_up(cells, roles.source_scores) if roles.source_scores else None
        if not isinstance(value, Mapping):
            return {}
        return {
            name: None if score is None else float(score)
            for name, score in value.items()
            if score is None or isinstance(score, int | float)
        }

    def _spells_list(self, gold: Any) -> bool:
        """Whether a gold of text spells a list, in a table where no cell can be one."""
        return isinstance(gold, str) and gold.startswith("[") and gold.endswith("]")

    def _refuse(self, message: str, hint: str, code: str, line: int | None = None) -> None:
        problems = Problems(self._table.path)
        problems.add((), message, hint, code=code, line=line, kind=DatasetIntegrityError)
        raise_for(problems.finish())


_NUMBER = re.compile(r"\s*\d+(?:\.0+)?\s*", re.ASCII)


class _Positions:
    """Whether all outputs are whole numbers, and from where they may be counted."""

    def __init__(self) -> None:
        self.may_be = True
        self._golds = [GoldColumn(gold_kind="index", index_base=base) for base in (0, 1)]
        self.rows = 0

    def see(self, answers: Sequence[Answer], choices: Mapping[str, str] | None) -> None:
        if not self.may_be:
            return
        text = answers[0].text
        if len(answers) > 1 or choices is None or not _NUMBER.fullmatch(text) or text in choices.values():
            self.may_be = False
            return
        self.rows += 1
        for golds in self._golds:
            golds.see(text, choices, self.rows)

    @property
    def bases(self) -> list[int]:
        found = []
        for base, golds in enumerate(self._golds):
            try:
                golds.decide()
            except DatasetError:
                continue
            found.append(base)
        return found


_YES_NO = {"true": "yes", "1": "yes", "false": "no", "0": "no"}
"""What answers a question whose gold is true or false, beside yes and no."""

_ROLES = {"HUMAN": "user", "USER": "user", "BOT": "assistant", "ASSISTANT": "assistant", "SYSTEM": "system"}


def _to_message(turn: Any) -> Message:
    """Return a turn of a conversation, `{role, content}` or OpenCompass's `{role, prompt}`."""
    role = turn.get("role") if isinstance(turn, Mapping) else None
    content = turn.get("content", turn.get("prompt")) if isinstance(turn, Mapping) else None
    if not isinstance(role, str) or role.upper() not in _ROLES or not isinstance(content, str):
        raise CellError(f"expected a turn of a conversation with role and content, got {show(turn)}")
    return {"role": _ROLES[role.upper()], "content": content}


def _relabel(options: Mapping[str, str], right: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the options under A, B, ..., for a prompt whose rows must have one sequence of labels (ARC has two)."""
    named = dict(zip(options, to_options(list(options.values())), strict=True))
    return {named[label]: text for label, text in options.items()}, tuple(named[label] for label in right)


def _shuffle(options: Mapping[str, str], right: Sequence[str], question: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the options in an order that the texts of question and options alone decide, and what is right."""
    texts = sorted(options.values(), key=lambda text: hashlib.sha256(f"{question}\0{text}".encode()).digest())
    shuffled = to_options(texts)
    accepted = {options[label] for label in right}
    return shuffled, tuple(label for label, text in shuffled.items() if text in accepted)


def _uses_adapted(roles: Roles) -> bool:
    named = (roles.question, roles.gold, *roles.options, roles.thought, roles.likelihoods, roles.source_scores)
    return any(name.startswith("\0") for name in named)


def _shown(column: str) -> str:
    """Return a column's name as errors have it; what a layout adapted has that of its role."""
    return column.lstrip("\0")
