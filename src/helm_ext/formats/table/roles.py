"""Which column is what: as the user says, as a known layout has it, or by the one name that fits.

A guess needs exactly one candidate: two that fit are refused with both names. What a table holds beside is never taken
for a model's output.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from helm_ext.errors import DatasetError, DatasetSchemaError, Problems, RunEntryError, did_you_mean, raise_for, show
from helm_ext.formats.format import Argument
from helm_ext.formats.imported.gold import MOST_OPTIONS, to_options
from helm_ext.formats.imported.gold import Kind as GoldKind
from helm_ext.formats.imported.tables import Table, name_columns
from helm_ext.formats.table.layouts import Layout, find_layout, fold

SUFFIX = ".table.json"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a table is read, as a run entry or a mapping file says; None where that is to be inferred."""

    path: str
    question: str | None = None
    context: str | None = None
    options: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    gold: str | None = None
    output: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    scores: list[str] = []
    """Columns of scores that the outputs were given."""
    judgements: list[str] = []
    """Columns of what was judged of the outputs."""
    id: str | None = None
    split: str | None = None
    splits: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    """Of a dataset with several: those that are read."""
    by: list[str] = []
    sep: str | None = None
    header: Literal["yes", "no"] = "yes"
    gold_kind: GoldKind | None = None
    index_base: Annotated[int, msgspec.Meta(ge=0, le=1)] | None = None
    multi_label: bool | None = None
    empty: Literal["answer", "not_run"] | None = None
    name: str | None = None
    display_name: str | None = None
    description: str | None = None
    adapter_spec: dict[str, Any] = {}
    scoring: dict[str, Any] = {}


_SEVERAL_NAMES = frozenset({"by", "judgements", "options", "output", "scores", "splits"})
"""Keys that may hold one text in place of a list."""

_DESCRIBED = {
    "path": "the table, relative to this file; or `hub:OWNER/NAME@REVISION`",
    "name": "the dataset's name; absent: the table's",
    "display_name": "title in reports",
    "description": "what it is about",
    "adapter_spec": "how a live run asks: keys of `adapter_spec` (docs/adapter_spec.md)",
    "scoring": "how answers become scores: keys of `scoring` (docs/adapter_spec.md)",
}
"""Keys of a mapping file that are described otherwise than arguments."""


def read_options(arguments: Mapping[str, Any]) -> tuple[Options, str]:
    """Return what the arguments and the mapping file say, and the mapping file's digest, or "".

    Raises DatasetError for a mapping file, RunEntryError for arguments.
    """
    path = str(arguments["path"])
    given = {key: value for key, value in arguments.items() if value is not None and key != "path"}
    known = Options.__struct_fields__
    for key in given:
        if key not in known:
            hint = did_you_mean(key, known) or f"known: {', '.join(sorted(known))}"
            raise RunEntryError(f"table: unknown argument {key!r}\n  hint: {hint}")
    if not path.casefold().endswith(SUFFIX):
        return Options(path=path, **given), ""
    options, digest = read_mapping(path)
    return msgspec.structs.replace(options, **given), digest


def list_said(arguments: Mapping[str, Any], name: str) -> list[str]:
    """Return what the arguments, or else the mapping file, name: columns of outputs, say."""
    given, path = arguments.get(name), str(arguments.get("path", ""))
    if given is None and path.casefold().endswith(SUFFIX):
        given = getattr(read_mapping(path)[0], name)
    return list(given or ())


def read_mapping(path: str) -> tuple[Options, str]:
    """Return what a mapping file says, and the SHA-256 of its bytes. Raises DatasetError."""
    from helm_ext.files import locate, parse_json, read_source
    from helm_ext.formats.request_states.checking import conform

    source, problems = read_source(path), Problems(path)
    said = parse_json(source.data, path)
    known = Options.__struct_fields__
    if isinstance(said, dict):
        said.pop("$schema", None)
        for key in said.keys() & _SEVERAL_NAMES:
            said[key] = [said[key]] if isinstance(said[key], str) else said[key]
        for key in said.keys() - {*known}:
            hint = did_you_mean(key, known) or f"known: {', '.join(sorted(known))}"
            problems.add((key,), "unknown key", hint, code="mapping")
    made, findings = conform(said, Options)
    for one in findings:
        problems.add(one.path, one.message, one.hint, code="mapping")
    raise_for(problems.finish(lambda paths: locate(source.text(), paths)))
    table = made["path"] if made["path"].startswith("hub:") else str(Path(path).parent / made["path"])
    named = {"name": Path(path).name[: -len(SUFFIX)], **{key: one for key, one in made.items() if one is not None}}
    return Options(**{**named, "path": table}), source.digest


def json_schema(arguments: Iterable[Argument]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a mapping file, whose keys are those of the arguments and some more."""
    schema = msgspec.json.schema(Options)["$defs"]["Options"]
    keys = {"$schema": {"type": "string"}, **schema["properties"]}
    keys |= {key: {"anyOf": [{"type": "string"}, keys[key]]} for key in _SEVERAL_NAMES}
    described = {argument.name: argument.description for argument in arguments}
    described |= {**_DESCRIBED, "$schema": "the JSON Schema that an editor checks the file against"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "table mapping", "type": "object",
        "properties": {key: {**form, "description": described[key]} for key, form in keys.items()},
        "required": ["path"], "additionalProperties": False,
    }  # fmt: skip


CANDIDATES: Mapping[str, Sequence[str]] = {
    "question": ("question", "prompt", "input", "query", "problem", "instruction"),
    "context": ("passage", "context"),
    "options": ("choices", "options", "endings"),
    "gold": (
        "answer", "answerkey", "label", "target", "gold", "answers", "expected", "reference", "expected_output",
        "expectedoutput", "ground_truth", "correct_answer",
    ),
    "output": ("output", "response", "prediction", "completion", "generated"),
    "id": ("id", "idx", "ind", "qid"),
    "split": ("split",),
}  # fmt: skip
"""Role to the names, in lower case and with _ for a space, that a column of it may have."""

_NAMED = ("scores", "judgements")
"""Roles that the user alone gives."""

_GROUP = re.compile(r"(?:(option|opt|choice|ending|answer|sol)[ _-]?)?([a-z]|\d\d?)", re.IGNORECASE)
"""A column that holds one option: `A`, `option_a`, `choice1`."""

_WRONG = re.compile(r"(?:distractor|(?:incorrect|wrong)[ _-]?(?:answer|option|choice)?)[ _-]?\d\d?", re.IGNORECASE)
"""A column that holds one wrong option: `distractor1` (SciQ), `Incorrect Answer 1` (GPQA)."""


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The columns of a table by what they are for. "" for what there is not; a path with dots leads into a cell.

    What a layout makes of a row (`made`) has the words for it instead of a column.
    """

    question: str
    gold: str
    context: str = ""
    options: tuple[str, ...] = ()
    """One column that holds all options of a row, or a column for each."""
    output: str = ""
    id: str = ""
    split: str = ""
    thought: str = ""
    likelihoods: str = ""
    source_scores: str = ""
    """The cell of a layout that holds its scores by name."""
    score_columns: Mapping[str, str] = field(default_factory=dict)
    """The columns of scores that the user named, by what the scores are called."""
    judgements: tuple[str, ...] = ()
    """The columns of judgements that the user named."""
    layout: Layout = field(default_factory=Layout)
    made: frozenset[str] = frozenset()
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Role to why it is this column, in words."""

    @property
    def scores(self) -> tuple[str, ...]:
        """The columns of scores that the user named."""
        return (*self.score_columns.values(),)

    @property
    def gold_is_option(self) -> bool:
        """Whether the column of golds is one of those of the options (SciQ, GPQA): nothing says how they are shown."""
        return len(self.options) > 1 and self.gold in self.options

    def name(self, role: str) -> str:
        """Return what errors call the column of a role."""
        return role if role in self.made else str(getattr(self, role))

    def columns(self) -> list[tuple[str, str]]:
        """Return (role, column) of what the user knows of."""
        return [
            (role, column if isinstance(column, str) else "+".join(column))
            for role in (*CANDIDATES, *_NAMED)
            if (column := getattr(self, role))
        ]


def choose_roles(table: Table, options: Options) -> Roles:
    """Return what each column of a table is. Raises DatasetError with the candidates."""
    return _Chooser(table, options).choose()


class _Chooser:
    def __init__(self, table: Table, options: Options) -> None:
        self._table = table
        self._given = options
        self._columns = table.columns
        self._reasons: dict[str, str] = {}
        self._made: set[str] = set()
        self._layout = find_layout(table.columns, table.first)
        self._scores = dict(self._name_score(said) for said in options.scores)
        single = {role: [getattr(options, role)] for role in ("question", "gold", "context", "id", "split")}
        named = {**single, "options": options.options, "output": options.output,
                 "scores": self._scores.values(), "judgements": options.judgements}  # fmt: skip
        self._taken = {column: role for role, columns in named.items() for column in columns or () if column}
        """Columns that the user has named, to what: each is what he says, and nothing else."""

    def choose(self) -> Roles:
        given = self._given
        for column in given.by:
            self._known("by", column)
        if given.header == "no" and not (given.question and given.gold):
            return self._of_headerless()
        question, gold = self._one("question", given.question), self._one("gold", given.gold)
        if not question or (not gold and not given.scores):  # what has its scores needs no gold
            raise self._missing("question" if not question else "gold")
        roles = Roles(
            question=question, gold=gold, context=self._one("context", given.context), options=self._options(gold),
            output=self._output(), id=self._one("id", given.id),
            split="" if self._table.splits and not given.split else self._one("split", given.split),
            score_columns={name: self._known("scores", column) for name, column in self._scores.items()},
            judgements=tuple(self._known("judgements", column) for column in given.judgements),
            **{role: self._of_layout(role) for role in ("thought", "likelihoods", "source_scores")},
            layout=self._layout, made=frozenset(self._made), reasons=self._reasons,
        )  # fmt: skip
        self._require_apart(roles)
        return roles

    def _one(self, role: str, given: str | None) -> str:
        """Return the column of a role: the given one, the layout's, or the only one that is called so."""
        if given is not None:
            return self._known(role, given)
        if found := self._of_layout(role):
            return found
        candidates = self._candidates(role)
        if len(candidates) > 1:
            raise self._ambiguous(role, candidates)
        if candidates:
            self._reasons[role] = "the only column with a name for it"
        return candidates[0] if candidates else ""

    def _candidates(self, role: str) -> list[str]:
        """Return the columns that are called so, without those that the user has named for something else."""
        names = CANDIDATES[role]
        return [column for column in self._columns if fold(column) in names and column not in self._taken]

    def _of_layout(self, role: str) -> str:
        layout = self._layout
        if found := layout.made.get(role) or layout.roles.get(role, ""):
            self._reasons[role] = f"as in {layout.name}"
            if role in layout.made:
                self._made.add(role)
        return found

    def _known(self, role: str, column: str) -> str:
        """Return a column that was named. Raises DatasetError for one that the table does not have."""
        if column not in self._columns and column.partition(".")[0] not in self._columns:
            hint = did_you_mean(column, self._columns)
            if plus := next((one for one in self._columns if "+" in one and column in one.split("+")), ""):
                hint = f"a + within a name is written %2B: {role}={plus.replace('+', '%2B')}"
            joined = f"; several are joined by +: {role}=A+B" if role in _SEVERAL_NAMES else ""
            hint = hint or f"columns: {name_columns(self._columns)}{joined}"
            raise self._error(f"{role}={column}: there is no such column", hint, "unknown-column")
        self._reasons[role] = "as given"
        return column

    def _name_score(self, said: str) -> tuple[str, str]:
        """Return the name and the column of `NAME=COLUMN`, or of a column that has no other name."""
        name, sign, column = said.partition("=")
        return (name, column) if sign and said not in self._columns else (said, said)

    def _output(self) -> str:
        given = self._given.output
        if given is None:
            return self._one("output", None)
        if len(given) > 1:
            each = " and ".join(f"output={column}" for column in given)
            hint = f"a run entry has one model's outputs, {each}; helm-ext score makes a run of each"
            raise self._error(f"output={'+'.join(given)} names {len(given)} columns", hint, "several-outputs")
        return self._known("output", given[0])

    def _options(self, gold: str) -> tuple[str, ...]:
        given = self._given.options
        if given is not None:
            return tuple(self._known("options", column) for column in self._require_letters([*given]))
        if found := self._of_layout("options"):
            return (found,)
        if wrong := [column for column in self._columns if _WRONG.fullmatch(column.strip())]:
            self._reasons["options"] = "the right one, and a column for each wrong one"
            return (gold, *wrong)
        single = self._candidates("options")
        groups = self._find_groups(gold)
        if len(single) + len(groups) > 1:
            raise self._ambiguous("options", [*single, *("+".join(group) for group in groups)])
        if single:
            self._reasons["options"] = "the only column with a name for it"
            return (single[0],)
        if groups:
            self._reasons["options"] = "a column for each option"
            return tuple(groups[0])
        return ()

    def _find_groups(self, gold: str) -> list[list[str]]:
        """Return the columns that hold one option each, A+B+C+D or choice1+choice2, in the order of the options.

        Where one of them is named for something else (`output=answer3` beside `answer1`, `answer2`), its fellows are no
        options either. A column beyond a gap is none of them: `output=m` says nothing about A to D.
        """
        named: dict[tuple[str, bool], dict[int, str]] = {}
        """What columns of one series have in common, the word in front and whether they are numbered, to each by its
        position."""
        for column in self._columns:
            match = _GROUP.fullmatch(column.strip())
            if match is None:
                continue
            word, mark = (match[1] or "").casefold(), match[2].casefold()
            if word or not mark.isdecimal():
                position = int(mark) if mark.isdecimal() else ord(mark) - ord("a")
                named.setdefault((word, mark.isdecimal()), {})[position] = column
        taken = {*self._taken, *self._given.by, gold}
        groups = []
        for (_, is_number), group in named.items():
            first = 1 if is_number and 0 not in group else 0
            marks = list(itertools.takewhile(group.__contains__, itertools.count(first)))
            columns = [group[mark] for mark in marks]
            beyond = [group[mark] for mark in sorted(group) if mark not in marks and group[mark] not in taken]
            if not marks or not taken.isdisjoint(columns) or len(marks) + len(beyond) < 2:
                continue
            if beyond:
                every = "+".join([*columns, *beyond])
                hint = f"name those that are: options={every}"
                message = f"the columns of options have a gap: {', '.join([*columns, *beyond])}"
                raise self._error(message, hint, "options-gap")
            groups.append(self._require_letters(columns))
        return groups

    def _require_letters(self, columns: list[str]) -> list[str]:
        """Return columns of options, of which there are no more than letters."""
        if len(columns) <= MOST_OPTIONS:
            return columns
        message = f"{len(columns)} columns of options, {columns[0]} to {columns[-1]}, and letters for {MOST_OPTIONS}"
        raise self._error(message, "name fewer, or the one column that holds them all: options=COLUMN", "options")

    def _of_headerless(self) -> Roles:
        """Return the roles of a table without header like the first MMLU's: question, options, letter."""
        *before, gold = self._columns
        letter = str((self._table.first or {}).get(gold)).strip()
        letters = [chr(ord("A") + index) for index in range(len(before) - 1)]
        if len(before) < 3 or letter not in letters:
            hint = "say which column is what by its number: question=1,options=2+3+4+5,gold=6"
            message = "without a header, columns are known by their numbers alone"
            raise self._error(message, hint, "no-header")
        why = "no header: a question, its options, and the letter of the right one, as in the first MMLU"
        return Roles(
            question=before[0], options=tuple(before[1:]), gold=gold,
            reasons=dict.fromkeys(("question", "options", "gold"), why),
        )  # fmt: skip

    def _require_apart(self, roles: Roles) -> None:
        """Raise DatasetError for a column that is two things."""
        used: dict[str, str] = {}
        single = [
            (role, column)
            for role, column in roles.columns()
            if role not in ("options", *_NAMED) and role not in roles.made
        ]
        several = [(role, one) for role in ("options", *_NAMED) for one in getattr(roles, role)]
        for role, column in [*single, *several]:
            other = used.setdefault(column, role)
            if other != role and not (role == "options" and other == "gold" and roles.gold_is_option):
                message = f"the column {show(column)} would be both {other} and {role}"
                raise self._error(message, f"say which is which: {other}=COLUMN, {role}=COLUMN", "column-twice")

    def _missing(self, role: str) -> DatasetError:
        wanted = ", ".join(CANDIDATES[role])
        taken = [f"{other}={one} takes that" for one, other in self._taken.items() if fold(one) in CANDIDATES[role]]
        message = f"{taken[0]} column, and no other" if taken else "no column"
        hint = f"say which: {role}=COLUMN; columns: {name_columns(self._columns[:30])}"
        if role == "gold" and len(self._columns) > 2:
            hint += "; where outputs were scored and nothing is right: output=COLUMN and scores=COLUMN"
        if self._table.is_text and self._given.header != "no":
            hint += "; sep= where cells are parted otherwise; header=no where the first line is a row already"
        return self._error(f"{message} is called {wanted}: which is the {role}?", hint, f"no-{role}")

    def _ambiguous(self, role: str, candidates: Sequence[str]) -> DatasetError:
        said = " or ".join(f"{role}={column}" for column in candidates)
        return self._error(f"{len(candidates)} columns could be the {role}", f"say which: {said}", "ambiguous-column")

    def _error(self, message: str, hint: str, code: str) -> DatasetError:
        return DatasetSchemaError.at(self._table.path, message, hint, code=code)


def option_labels(columns: Sequence[str]) -> list[str]:
    """Return the labels that columns of options go by (`A`, `option_b`); A, B, ... where they are no letters."""
    marks = [match[2] for column in columns if (match := _GROUP.fullmatch(column.strip())) is not None]
    if len(marks) != len(columns) or any(mark.isdecimal() for mark in marks) or len(set(marks)) < len(marks):
        return list(to_options(columns))
    return [mark.upper() for mark in marks]


def label_columns(columns: Sequence[str]) -> dict[str, str]:
    """Return the labels by the names of columns like `option_b` and `choice2`: golds may say these."""
    labels = option_labels(columns) if len(columns) > 1 else []
    named = [(_GROUP.fullmatch(column), column, label) for column, label in zip(columns, labels, strict=False)]
    return {column: label for match, column, label in named if match is not None and match[1]}
