"""What the cells of one row say: question, options, gold, outputs, scores, split. Each row is read alone, and once."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from helm_ext.errors import DatasetIntegrityError, did_you_mean, format_path, show
from helm_ext.formats.imported.gold import MOST_OPTIONS, to_options
from helm_ext.formats.imported.row import Answer, Message, Row, RowError, as_object, is_grade, is_nan, to_number
from helm_ext.formats.imported.tables import Cells, Table, label_options, look_up, read_options, to_json_value, to_text
from helm_ext.formats.table.roles import Options, Roles, label_columns, option_labels
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

OBJECT = re.compile(r"""\{\s*(['"])\w+\1\s*:""")
"""How an object begins that is written as text."""

_ROLES = {"HUMAN": "user", "USER": "user", "BOT": "assistant", "ASSISTANT": "assistant", "SYSTEM": "system"}


@dataclass(slots=True, kw_only=True)
class Record(Row):
    """A row, read as far as it can be read alone: what its gold and its outputs mean, all rows together decide."""

    split_name: str = ""
    """As the dataset or a column has it, in lower case; "" where neither does."""
    model: str = ""
    """Whose output it is, where a layout or a column of models says so."""
    order: list[str] | None = None
    """The labels in the order in which a live run shows the options, where the file has the right one always first."""
    numeric: Sequence[str] = ()
    """Scores written as numbers: grades and truths lie between 0 and 1, of a number nobody says where it ends."""


class RecordReader:
    """Reads the rows of a table whose columns are known."""

    def __init__(self, table: Table, roles: Roles, options: Options) -> None:
        """Raises DatasetError for splits that are not there."""
        self.table, self.roles, self.options = table, roles, options
        self._adapt = roles.layout.adapt if roles.made else None
        self.is_live = not roles.output and not roles.likelihoods
        self._shuffles = self.is_live and (roles.gold_is_option or roles.layout.shuffles)
        self._labels = option_labels(roles.options) if len(roles.options) > 1 else []
        are_texts = roles.gold_is_option or options.gold_kind not in (None, "label")
        self._by_column = {} if are_texts else label_columns(roles.options)
        names = table.class_labels.get(roles.gold, ()) if not roles.options else ()
        self._classes = to_options(names) if len(names) <= MOST_OPTIONS else {name: name for name in names}
        taken = {column for _, column in roles.columns()} | set(options.by)
        named = [one for one in table.columns if one.casefold() in _MODEL_COLUMNS and one not in taken]
        self.model_column = "" if self.is_live or not named else named[0]
        """The column that says whose output a row's is; "" where there is none, or it was named for another."""
        self._splits = _choose_splits(table, options, has_column=bool(roles.split))

    @property
    def columns(self) -> list[str] | None:
        """The columns that are read; None for all, where a layout looks into the row."""
        if self._adapt is not None:
            return None
        roles = self.roles
        named = [roles.question, roles.context, *roles.options, roles.gold, roles.output, roles.id, roles.split,
                 roles.likelihoods, roles.source_scores, *roles.scores, *roles.judgements, self.model_column,
                 *self.options.by]  # fmt: skip
        columns = {name if name in self.table.columns else name.partition(".")[0] for name in named}
        return [column for column in self.table.columns if column in columns]

    @property
    def unused(self) -> list[str]:
        """The columns of which nothing is read."""
        read = self.columns
        return [] if read is None else [column for column in self.table.columns if column not in read]

    def find_split(self, cells: Cells, split: str) -> str | None:
        """Return the name of a row's split, "" where it has none; None for one that is not read."""
        if self.table.splits:
            return self._splits.get(split)
        if not self.roles.split:
            return ""
        name = str(look_up(cells, self.roles.split))
        wanted = self.options.splits
        return name.strip().casefold() if wanted is None or name in wanted else None

    def begin(self, line: int, cells: Cells, split: str) -> tuple[Record, Cells]:
        """Return what is decided over whole columns, the model, options and gold, and all cells. Raises RowError.

        A row with a mistake elsewhere has its part in what is decided. `complete` reads the rest.
        """
        layout = self.roles.layout
        if self._adapt is not None:
            try:
                made = {
                    layout.made[role]: value for role, value in self._adapt(cells).items() if role in self.roles.made
                }
            except RowError as error:
                raise RowError(str(error), error.hint or f"the table looks like {layout.name}") from error
            cells = {**cells, **made}
        record = Record(line=line, id=None, question="", split_name=split)
        if layout.model is not None:
            record.model = layout.model(cells)
        elif self.model_column:
            name = look_up(cells, self.model_column)
            record.model = "" if name is None else str(name).strip()
        record.options = self._read_options(cells)
        record.gold = self._read_gold(cells)
        return record, cells

    def complete(self, record: Record, cells: Cells) -> None:
        """Read the rest of the row. Raises RowError."""
        roles = self.roles
        record.question = self._read_question(cells)
        record.likelihoods = look_up(cells, self.roles.likelihoods) or () if roles.likelihoods else ()
        if not self.is_live and not record.likelihoods:
            texts = self._read_outputs(cells)
            record.answers = None if texts is None else list(map(Answer, texts))
        if roles.scores or roles.source_scores:
            self._read_scores(record, cells)
        record.judgements = [
            one for column in roles.judgements for one in _read_judgements(column, look_up(cells, column))
        ]
        given = look_up(cells, roles.id) if roles.id else None
        record.id = given if isinstance(given, str | int) and not isinstance(given, bool) else None
        if self._shuffles and record.options is not None:
            # In an order that the texts of question and options alone decide.
            options, question = record.options, look_up(cells, self.roles.question)
            record.order = sorted(
                options, key=lambda label: hashlib.sha256(f"{question}\0{options[label]}".encode()).digest()
            )
        record.chain_of_thought = look_up(cells, self.roles.thought) if roles.thought else ""
        record.data = self._read_data(cells)

    def _read_question(self, cells: Cells) -> str | list[Message]:
        """Return what is asked, after its context."""
        roles = self.roles
        value = look_up(cells, self.roles.question)
        if isinstance(value, list):
            return [_to_message(turn) for turn in value]
        if _is_empty(value):
            raise RowError(f"the row has no question: {roles.name('question')} is {show(value)}")
        text = to_text(value, self._name_parts("question", roles.question, value))
        before = look_up(cells, roles.context) if roles.context else None
        return text if before in (None, "") else f"{to_text(before)}\n{text}"

    def _read_gold(self, cells: Cells) -> Any:
        gold = look_up(cells, self.roles.gold)
        if isinstance(gold, str):
            if self.table.is_text and self.options.gold_kind != "text" and OBJECT.match(gold):
                hint = "gold=COLUMN.KEY names what is in it; gold_kind=text where the text itself is right"
                raise RowError(f"expected a text as gold, got the object {show(gold)}", hint)
            return self._by_column.get(gold.strip(), gold)
        if isinstance(gold, Mapping):
            raise RowError(f"expected a text, got {show(gold)}", self._name_parts("gold", self.roles.gold, gold))
        return gold

    def _read_options(self, cells: Cells) -> dict[str, str] | None:
        """Return the options of a row; None where it has none."""
        columns = self.roles.options
        if not columns:
            return self._classes or None
        if "options" in self.roles.made:
            return cells.get(columns[0])
        if len(columns) == 1:
            try:
                return read_options(look_up(cells, columns[0]))
            except RowError as error:
                error.place = columns[0]
                raise
        texts = [look_up(cells, column) for column in columns]
        if self.roles.gold_is_option and not self.is_live:
            return _label_by_text([to_text(text) for text in texts if not _is_empty(text)])
        if all(type(text) is str and text and not text.isspace() for text in texts):
            return dict(zip(self._labels, texts, strict=True))
        while texts and _is_empty(texts[-1]):
            texts.pop()
        for column, text in zip(columns, texts, strict=False):
            if _is_empty(text):
                hint = "write its text; options that a row has not are its last ones, and empty"
                raise RowError(f"the option {column} is empty, and a later one is not", hint)
        return label_options(texts, self._labels[: len(texts)])

    def _read_outputs(self, cells: Cells) -> list[str] | None:
        """Return what the model answered; None where the row was not run."""
        column = self.roles.output
        value = look_up(cells, self.roles.output) if column else None
        if value is None or is_nan(value):  # as pandas writes null
            return None
        if self.table.is_text and _is_empty(value):
            if self.options.empty is None:
                hint = "empty=answer where it said nothing, empty=not_run where it was not asked"
                raise RowError(f"the cell {column} is empty: did the model say nothing, or was it not asked?", hint)
            if self.options.empty == "not_run":
                return None
        if column in self.table.class_labels and isinstance(value, int):
            name = self.table.name_class(column, value)
            return None if name is None else [name]
        if isinstance(value, list):
            if not all(isinstance(text, str) for text in value):
                raise RowError(f"expected texts as outputs, got {show(value)}")
            return value or None
        return [to_text(value, self._name_parts("output", column, value))]

    def _read_scores(self, record: Record, cells: Cells) -> None:
        """Read the scores of an answer. One that a tool gave to a row without an answer is none."""
        value = as_object(look_up(cells, self.roles.source_scores) if self.roles.source_scores else None)
        given: dict[str, Any] = {
            name: score for name, score in value.items() if score is None or isinstance(score, int | float)
        }
        for name, column in self.roles.score_columns.items():
            score = look_up(cells, column)
            given[name] = score = (score.strip() or None) if isinstance(score, str) else score
            if score is not None and to_number(score) is None:
                hint = "scores are numbers (4.5, 80), true/false, yes/no, or C, P, I, N; empty where there is none"
                said = f"the score {column} is {show(score)}"
                raise RowError(said, self._name_parts("scores", column, score) or hint)
        is_answered = record.answers is not None or bool(record.likelihoods)
        numbers = {name: to_number(score) if is_answered else None for name, score in given.items()}
        record.source_scores = {name: None if is_nan(number) else number for name, number in numbers.items()}
        record.numeric = [
            name for name, number in record.source_scores.items() if not (number is None or is_grade(given[name]))
        ]

    def _read_data(self, cells: Cells) -> dict[str, Any]:
        """Return the values that reports group by; of class labels, the names."""
        kept: dict[str, Any] = {}
        for column in self.options.by:
            value = look_up(cells, column)
            if (name := self.table.name_class(column, value)) is not None:
                kept[column] = name
            elif value is not None:
                # pandas writes 2020.0 where another cell of the column is empty
                is_whole = isinstance(value, float) and value.is_integer()
                kept[column] = int(value) if is_whole else to_json_value(value)
        return kept

    def _name_parts(self, role: str, column: str, value: Any) -> str:
        """Return how what is inside a cell is named, for a cell that is an object; "" for any other."""
        if not isinstance(value, Mapping) or role in self.roles.made:
            return ""
        return "name what is in it: " + " or ".join(f"{role}={column}.{key}" for key in list(value)[:5])


def _is_empty(value: Any) -> bool:
    """Whether a cell shows nothing: a spreadsheet does not tell white space from that."""
    return value is None or (isinstance(value, str) and not value.strip())


def _choose_splits(table: Table, options: Options, *, has_column: bool) -> dict[str, Split]:
    """Return what those splits of a dataset that are read are to HELM. Raises DatasetError for others than it has."""

    def refuse(message: str, hint: str) -> DatasetIntegrityError:
        return DatasetIntegrityError.at(table.path, message, hint, code="split")

    wanted = options.splits
    if not table.splits:
        if wanted and not has_column:
            raise refuse(f"splits={'+'.join(wanted)}: the table has one split", "leave splits= out")
        return {}
    for name in wanted or ():
        if name not in table.splits:
            hint = did_you_mean(str(name), table.splits) or f"known: {', '.join(table.splits)}"
            raise refuse(f"there is no split {show(name)}", hint)
    chosen = [name for name in table.splits if wanted is None or name in wanted]
    if len(chosen) == 1:
        return {chosen[0]: SPLITS.get(chosen[0].casefold(), "test")}
    if unknown := [name for name in chosen if name.casefold() not in SPLITS]:
        message = f"the split {show(unknown[0])} is neither train, validation nor test"
        raise refuse(message, f"read one alone, or those that are: splits={'+'.join(table.splits)}")
    return {name: SPLITS[name.casefold()] for name in chosen}


def _label_by_text(texts: Sequence[str]) -> dict[str, str]:
    """Return options that go by their own texts: answers recorded as letters are about an order that is not known."""
    found: dict[str, str] = {}
    for text in texts:
        label = text.strip()
        while label in found:  # a second one that reads the same
            label += " "
        found[label] = text
    return found


def _to_message(turn: Any) -> Message:
    """Return a turn of a conversation, `{role, content}` or OpenCompass's `{role, prompt}`."""
    said = as_object(turn)
    role, content = said.get("role"), said.get("content", said.get("prompt"))
    if not isinstance(role, str) or role.upper() not in _ROLES or not isinstance(content, str):
        raise RowError(f"expected a turn of a conversation with role and content, got {show(turn)}")
    return {"role": _ROLES[role.upper()], "content": content}


def _read_judgements(column: str, value: Any) -> list[dict[str, Any]]:
    """Return what was judged of the row in one column: a verdict, or a list of judgements. Raises RowError."""
    value = value.strip() if isinstance(value, str) else value
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise RowError(f"the judgements of {column} are no JSON: {error}", "") from error
    if isinstance(value, list):
        flaws: list[str] = []
        right = read_judgements(
            value,
            lambda where, message, hint: flaws.append(
                f"{format_path((column, *where))}: {message}" + (f", {hint}" if hint else "")
            ),
        )
        if flaws:
            raise RowError(f"a judgement is wrong: {flaws[0]}", "docs/adapter_spec.md, Judgements")
        return [one.to_json() for one in right]
    verdict = {"by": column, "kind": "model", "criterion": _CRITERION}
    if value is None or value == "":
        return [{**verdict, "status": "not_run"}]
    number = None if value == "N" else to_number(value)  # "no" of some judges, "no answer" of others: 0 to inspect_ai
    if number not in (0.0, 1.0):
        hint = f"a verdict is 1 or 0, true/false, yes/no, C or I; on another scale it is a score: scores={column}"
        raise RowError(f"the judgement {column} is {show(value)}", hint)
    return [{**verdict, "value": number}]
