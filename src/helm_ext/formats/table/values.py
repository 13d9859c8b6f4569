"""What the cells of one row say: question, options, gold, answers, scores, split."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, cast

from helm_ext.errors import DatasetIntegrityError, Location, did_you_mean, format_path, show
from helm_ext.formats.imported.gold import MOST_OPTIONS, NO_YES, GoldKind, to_options
from helm_ext.formats.imported.row import Answer, Message
from helm_ext.formats.imported.score_values import to_number
from helm_ext.formats.table.cells import CellError, label_options, look_up, read_options, to_text
from helm_ext.formats.table.options import Options
from helm_ext.formats.table.roles import Roles, option_labels
from helm_ext.formats.table.table import Cells, Table
from helm_ext.judging.judgement import read_judgements

Split = Literal["train", "valid", "test"]

SPLITS: Mapping[str, Split] = {
    "train": "train", "training": "train", "test": "test", "testing": "test",
    "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid",
}  # fmt: skip
"""What splits are called, to HELM's names."""

_MODEL_COLUMNS = ("model", "model_id", "model_name")

_CRITERION = "correct"
"""What a column of verdicts is about."""

_OBJECT = re.compile(r"""\{\s*(['"])\w+\1\s*:""")
"""How an object begins that is written as text."""


class Values:
    """Reads the cells of a table whose columns are known. Its methods raise CellError for what is wrong in a row."""

    def __init__(self, table: Table, roles: Roles, options: Options) -> None:
        self.table = table
        self.roles = roles
        self.options = options
        self._adapt = roles.layout.adapt if roles.layout is not None and uses_adapted(roles) else None
        self.is_live = not roles.output and not roles.likelihoods
        self._labels = option_labels(roles.options) if len(roles.options) > 1 else []
        names = table.class_labels.get(roles.gold)
        self._class_names = _name_classes(names) if names and not roles.options else None
        self.model_column = self._find_model_column()
        self._columns = self._needed()
        self.splits = self._read_splits()

    def _find_model_column(self) -> str:
        """Return the column that says whose output a row's is; "" where there is none, or it was named for another."""
        taken = {column for _, column in self.roles.columns()} | set(self.options.by)
        named = [one for one in self.table.columns if one.casefold() in _MODEL_COLUMNS and one not in taken]
        return "" if self.is_live or not named else named[0]

    def _needed(self) -> list[str] | None:
        """Return the columns that are read; None for all, where a layout adapts the row."""
        if self._adapt is not None:
            return None
        roles = self.roles
        named = [roles.question, roles.context, *roles.options, roles.gold, roles.output, roles.id, roles.split,
                 roles.likelihoods, roles.source_scores, *roles.scores, *roles.judgements, self.model_column,
                 *self.options.by]  # fmt: skip
        columns = {name if name in self.table.columns else name.partition(".")[0] for name in named}
        return [column for column in self.table.columns if column in columns]

    def _read_splits(self) -> dict[str, Split | None]:
        """Return what each split of a dataset that has several is to HELM; None for those that are not read."""
        table, wanted = self.table, self.options.splits
        for name in wanted or ():
            if table.splits and name not in table.splits:
                hint = did_you_mean(str(name), table.splits) or f"known: {', '.join(table.splits)}"
                self.refuse(f"there is no split {show(name)}", hint, "split")
        if wanted and not table.splits and not self.roles.split:
            self.refuse(f"splits={'+'.join(wanted)}: the table has one split", "leave splits= out", "split")
        chosen = [name for name in table.splits if wanted is None or name in wanted]
        if len(chosen) == 1:
            return {name: SPLITS.get(name.casefold(), "test") if name in chosen else None for name in table.splits}
        unknown = [name for name in chosen if name.casefold() not in SPLITS]
        if unknown:
            message = f"the split {show(unknown[0])} is neither train, validation nor test"
            self.refuse(message, f"read one alone, or those that are: splits={'+'.join(table.splits)}", "split")
        return {name: SPLITS[name.casefold()] if name in chosen else None for name in table.splits}

    def cells(self) -> Iterator[tuple[int, Cells, str]]:
        """Yield the rows of the splits that are read, adapted where the layout does so."""
        adapt = self._adapt
        wanted = self.options.splits if not self.table.splits else None
        for line, cells, split in self.table.rows(self._columns):
            if split in self.splits and self.splits[split] is None:
                continue
            if wanted is not None and str(look_up(cells, self.roles.split)) not in wanted:
                continue
            if adapt is None:
                yield line, cells, split
                continue
            try:
                yield line, {**cells, **adapt(cells)}, split
            except CellError as error:
                self.refuse(str(error), error.hint or f"the table looks like {self._layout_name()}", "layout", line)

    def _layout_name(self) -> str:
        return self.roles.layout.name if self.roles.layout is not None else ""

    def question(self, cells: Cells) -> str | list[Message]:
        """Return what is asked, after its context."""
        roles = self.roles
        value = look_up(cells, roles.question)
        if isinstance(value, list):
            return [_to_message(turn) for turn in value]
        if value is None or value == "":
            raise CellError(f"the row has no question: {shown(roles.question)} is {show(value)}")
        text = to_text(value, name_parts("question", roles.question, value))
        before = look_up(cells, roles.context) if roles.context else None
        return text if before in (None, "") else f"{to_text(before)}\n{text}"

    def gold(self, cells: Cells) -> Any:
        """Return the gold as the cell has it."""
        gold = look_up(cells, self.roles.gold)
        is_read = self.table.is_text and self.options.gold_kind != "text"
        if is_read and isinstance(gold, str) and _OBJECT.match(gold):
            hint = "gold=COLUMN.KEY names what is in it; gold_kind=text where the text itself is right"
            raise CellError(f"expected a text as gold, got the object {show(gold)}", hint)
        if isinstance(gold, Mapping):
            raise CellError(f"expected a text, got {show(gold)}", name_parts("gold", self.roles.gold, gold))
        return gold

    def choices(self, cells: Cells) -> Mapping[str, str] | None:
        """Return the options of a row; None where it has none."""
        columns = self.roles.options
        if not columns:
            return self._class_names
        if len(columns) == 1:
            value = look_up(cells, columns[0])
            if value is None and columns[0] not in cells:
                raise CellError(f"the row has no {shown(columns[0])}")
            if isinstance(value, dict) and columns[0].startswith("\0"):
                return value
            if value is None:
                return None if columns[0].startswith("\0") else read_options(value)
            return read_options(value)
        texts = [look_up(cells, column) for column in columns]
        if self.roles.gold_is_option and not self.is_live:
            return _label_by_text([to_text(text) for text in texts if text not in (None, "")])
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

    def answers(
        self, cells: Cells, gold: GoldKind | None = None, *, are_positions: bool = False
    ) -> list[Answer] | None:
        """Return what the model answered; None where the row was not run.

        Once it is known what the golds are, answers are read as they need it.
        """
        column = self.roles.output
        value = look_up(cells, column) if column else None
        if value is None or value != value:  # noqa: PLR0124 - NaN, as pandas writes null
            return None
        if value == "" and self.table.is_text:
            if self.options.empty is None:
                hint = "empty=answer where it said nothing, empty=not_run where it was not asked"
                raise CellError(f"the cell {column} is empty: did the model say nothing, or was it not asked?", hint)
            if self.options.empty == "not_run":
                return None
        names = self.table.class_labels.get(column)
        if names is not None and isinstance(value, int):
            return [Answer(names[value])] if 0 <= value < len(names) else None
        if isinstance(value, list):
            if not all(isinstance(text, str) for text in value):
                raise CellError(f"expected texts as outputs, got {show(value)}")
            return [Answer(text) for text in value] or None
        if gold is not None and gold.options is NO_YES:
            text = to_text(value)
            return [Answer(_YES_NO.get(text.strip(), text))]
        if gold is not None and are_positions:
            (label,) = gold.read(value, self.choices(cells)) or ("",)
            return [Answer(label)]
        return [Answer(to_text(value, name_parts("output", column, value)))]

    def split_of(self, cells: Cells, split: str, *, uses_column: bool) -> Split:
        """Return HELM's name of the split: of the dataset's own, else of the column's where it names any."""
        if split in self.splits:
            return cast("Split", self.splits[split])
        if uses_column:
            return SPLITS[str(look_up(cells, self.roles.split)).strip().casefold()]
        return "test"

    def scores(self, cells: Cells) -> dict[str, float | None]:
        """Return the scores that the row was given; None for one that it was not, or of which nobody knows it."""
        given = {column: self._score(column, look_up(cells, column)) for column in self.roles.scores}
        value = look_up(cells, self.roles.source_scores) if self.roles.source_scores else None
        if not isinstance(value, Mapping):
            return given
        return {
            name: float(score) if score is not None and score - score == 0 else None
            for name, score in value.items()
            if score is None or isinstance(score, int | float)
        } | given

    def judgements(self, cells: Cells) -> list[dict[str, Any]]:
        """Return what was judged of the row. Raises CellError."""
        found: list[dict[str, Any]] = []
        for column in self.roles.judgements:
            value = look_up(cells, column)
            value = value.strip() if isinstance(value, str) else value
            if isinstance(value, str) and value.startswith("["):
                try:
                    value = json.loads(value)
                except ValueError as error:
                    raise CellError(f"the judgements of {column} are no JSON: {error}", "") from error
            if isinstance(value, list):
                found += self._read_judgements(column, value)
            elif value is None or value == "":
                found.append({"by": column, "kind": "model", "criterion": _CRITERION, "status": "not_run"})
            elif (number := to_number(value)) in (0.0, 1.0):
                found.append({"by": column, "kind": "model", "criterion": _CRITERION, "value": number})
            else:
                raise CellError(
                    f"the judgement {column} is {show(value)}",
                    "a verdict is 1 or 0, true/false, yes/no, C or I; else a list of judgements as in format 1",
                )
        return found

    def _read_judgements(self, column: str, value: list[Any]) -> list[dict[str, Any]]:
        flaws: list[str] = []
        right = read_judgements(
            value,
            lambda where, message, hint: flaws.append(
                f"{format_path((column, *where))}: {message}" + (f", {hint}" if hint else "")
            ),
        )
        if flaws:
            raise CellError(f"a judgement is wrong: {flaws[0]}", "docs/adapter_spec.md, Judgements")
        return [one.to_json() for one in right]

    def _score(self, column: str, value: Any) -> float | None:
        """Return a score that stands in a column of its own."""
        value = value.strip() if isinstance(value, str) else value
        if value is None or value == "":
            return None
        number = to_number(value)
        if number is None:
            hint = "scores are numbers, true/false, yes/no, or C, P, I, N; leave the cell empty where there is none"
            raise CellError(f"the score {column} is {show(value)}", name_parts("scores", column, value) or hint)
        return None if math.isnan(number) else number

    def refuse(self, message: str, hint: str, code: str, line: int | None = None) -> NoReturn:
        """Raise the error about the whole table, or a line of it."""
        location = Location(self.table.path, line)
        raise DatasetIntegrityError.at(location, message, hint, code=code)


def read_truth(cell: str) -> bool | None:
    """Return what CSV writes as true and false, spreadsheets in capitals and Python with one; None for other texts."""
    return {"true": True, "false": False}.get(cell.strip().casefold())


def _name_classes(names: Sequence[str]) -> Mapping[str, str]:
    """Return classes as options: under letters, or under their own names where there are more."""
    return to_options(names) if len(names) <= MOST_OPTIONS else {name: name for name in names}


def _label_by_text(texts: Sequence[str]) -> dict[str, str]:
    """Return options that go by their own texts: answers recorded as letters are about an order that is not known."""
    found: dict[str, str] = {}
    for text in texts:
        label = text.strip()
        while label in found:  # a second one that reads the same
            label += " "
        found[label] = text
    return found


_YES_NO = {"1": "yes", "0": "no"}
"""What answers a question whose gold is true or false, beside these and yes and no."""

_ROLES = {"HUMAN": "user", "USER": "user", "BOT": "assistant", "ASSISTANT": "assistant", "SYSTEM": "system"}


def _to_message(turn: Any) -> Message:
    """Return a turn of a conversation, `{role, content}` or OpenCompass's `{role, prompt}`."""
    role = turn.get("role") if isinstance(turn, Mapping) else None
    content = turn.get("content", turn.get("prompt")) if isinstance(turn, Mapping) else None
    if not isinstance(role, str) or role.upper() not in _ROLES or not isinstance(content, str):
        raise CellError(f"expected a turn of a conversation with role and content, got {show(turn)}")
    return {"role": _ROLES[role.upper()], "content": content}


def uses_adapted(roles: Roles) -> bool:
    """Whether a column is one that only the layout makes."""
    named = (
        roles.question,
        roles.gold,
        roles.output,
        *roles.options,
        roles.thought,
        roles.likelihoods,
        roles.source_scores,
    )
    return any(name.startswith("\0") for name in named)


def name_parts(role: str, column: str, value: Any) -> str:
    """Return how what is inside a cell is named, for a cell that is an object; "" for any other."""
    if not isinstance(value, Mapping) or column.startswith("\0"):
        return ""
    return "name what is in it: " + " or ".join(f"{role}={column}.{key}" for key in list(value)[:5])


def shown(column: str) -> str:
    """Return a column's name as errors have it; what a layout adapted has that of its role."""
    return column.lstrip("\0")
