"""From the arguments of a run entry to an opened table, and what was inferred in words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from helm_ext.errors import (
    DatasetIntegrityError,
    DatasetSyntaxError,
    Problems,
    RunEntryError,
    count,
    did_you_mean,
    raise_for,
)
from helm_ext.evalset import Source
from helm_ext.files import BOM
from helm_ext.files.content import open_raw
from helm_ext.files.store import RowStore
from helm_ext.formats.conversion import NOT_COPIED
from helm_ext.formats.format import LINES, look
from helm_ext.formats.imported.row import Opened, RowError
from helm_ext.formats.imported.tables import KEPT, DelimitedTable, JsonTable, Table, name_columns, plain_suffix
from helm_ext.formats.registry import find_way_out
from helm_ext.formats.table.arrow import HUB, MAGIC, ParquetTable, SavedTable, is_saved_dataset
from helm_ext.formats.table.profile import Profile
from helm_ext.formats.table.records import Record, RecordReader
from helm_ext.formats.table.roles import CANDIDATES, Options, choose_roles, list_said, read_options

_DELIMITED = (".csv", ".tsv", ".tab")

_QUESTION = {"input_prefix": "Question: ", "input_suffix": "\n", "output_prefix": "Answer: ", "output_suffix": "\n"}
_CHOICE = {
    **_QUESTION, "method": "multiple_choice_joint", "reference_prefix": "A. ", "reference_suffix": "\n",
    "instance_prefix": "\n", "max_tokens": 5, "stop_sequences": ["\n"],
}  # fmt: skip
"""HELM's own (`get_multiple_choice_joint_adapter_spec`)."""
_TEXT = {**_QUESTION, "method": "generation", "instance_prefix": "\n", "max_tokens": 100, "stop_sequences": ["\n"]}
"""HELM's own (`get_generation_adapter_spec`)."""

_OF_ANSWERS = ("multi_label", "output_format", "output_mapping_pattern", "eval_splits")
"""Keys of `adapter_spec` that are about answers, not about asking."""

_DEMONSTRATIONS = 5
"""In a prompt, where a table has a train split: HELM's default."""


def _open_table(options: Options) -> Table:
    """Open a table by what it is: folder, first bytes, ending. Raises DatasetError."""
    path, suffix = options.path, plain_suffix(options.path)
    if path.startswith(HUB) or (Path(path).is_dir() and is_saved_dataset(Path(path))):
        return SavedTable(path)
    with open_raw(path) as file:
        start = file.read(len(MAGIC))
    if (known := find_way_out(look(path))) is not None:
        raise DatasetSyntaxError.at(path, *known, code="foreign-file")
    if start == MAGIC or suffix == ".parquet":
        return ParquetTable(path)
    if options.sep is None and suffix in _DELIMITED and start.removeprefix(BOM)[:1] in (b"[", b"{"):
        hint = "call it .json or .jsonl; sep=comma where it is CSV all the same"
        raise DatasetSyntaxError.at(path, "the file is called CSV, and begins like JSON", hint, code="json-called-csv")
    if options.sep is not None or suffix in _DELIMITED:
        return DelimitedTable(path, sep=options.sep, header=options.header)
    if suffix in (".json", *LINES):
        return JsonTable(path)
    hint = "CSV needs the ending .csv or .tsv, or sep=comma; JSON needs .json or .jsonl"
    raise DatasetSyntaxError.at(path, "no kind of table is called so", hint, code="unknown-table")


class Loaded:
    """A table as the arguments of a run entry say that it is read. Raises DatasetError, RunEntryError."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        """Read what the arguments and the header say; `read` the rows then."""
        self.options, self._mapping_digest = read_options(arguments)
        self.table = _open_table(self.options)
        self.roles = choose_roles(self.table, self.options)
        self._reader = RecordReader(self.table, self.roles, self.options)

    def read(self) -> Profile:
        """Read the rows, and return what holds of all of them. Raises DatasetError with all problems."""
        table, reader = self.table, self._reader
        profile = Profile(reader)
        self._rows = RowStore(Record, KEPT)
        self._lines = 0
        problems = Problems(table.path)
        for line, cells, split in table.read(reader.columns):
            self._lines += 1
            if (name := reader.find_split(cells, split)) is None:
                continue
            try:
                record, whole = reader.begin(line, cells, name)
                profile.see(record)
                reader.complete(record, whole)
            except RowError as error:
                where = (error.place,) if error.place else ()
                problems.add(where, str(error), error.hint, code="cell", line=line, kind=DatasetIntegrityError)
                continue
            profile.see_answer(record)
            self._rows.add(record)
        self._rows.finish()
        problems.extend(profile.list_problems())
        raise_for(problems.finish())
        profile.finish()
        return profile

    def open(self) -> Opened:
        """Return the table, read and ready to be scored or run."""
        profile, options, roles, table = self.read(), self.options, self.roles, self.table
        is_live, layout = not profile.recorded, roles.layout
        if is_live and (roles.output or roles.likelihoods):
            message = f"no row has an output: the column {roles.output} is empty"
            hint = "leave it out of the table to run a model on it"
            column, _, key = roles.output.partition(".")
            if key and isinstance(held := table.first.get(column), Mapping):
                hint = did_you_mean(key, held) or f"{column} holds {name_columns(held)}"
            raise DatasetSyntaxError.at(options.path, message, hint, code="no-outputs")
        excluded = self._lines - profile.rows
        of_layout = profile.model if layout.model is not None else ""
        source = Source(
            tool=layout.tool or "table",
            model=of_layout or self._named or profile.model,
            task=options.name or _dataset_name(options.path),
            settings={NOT_COPIED: name_columns(unused)} if (unused := self._reader.unused) else {},
            scores=profile.scores,
            main=profile.main,
            counts={"lines": self._lines, **({"other_splits": excluded} if excluded else {})},
            notes=[*profile.notes()],
        )
        digest = table.digest
        if self._mapping_digest:
            digest = hashlib.sha256(f"{self._mapping_digest}{digest}".encode()).hexdigest()
        scoring = layout.scoring if profile.gold.element == "text" else {}
        return Opened(
            path=options.path,
            source=source,
            rows=lambda: map(profile.to_row, self._rows.read(range(len(self._rows)))),
            digest=digest,
            adapter_spec=self._adapter_spec(profile, is_live=is_live),
            scoring={**scoring, **options.scoring},
            may_be_live=is_live,
            is_measured=profile.is_measured,
            display_name=options.display_name or "",
            description=options.description or "",
        )

    def _adapter_spec(self, profile: Profile, *, is_live: bool) -> dict[str, Any]:
        roles, said = self.roles, self.options.adapter_spec
        if profile.multi_label is not None:
            said = {**said, "multi_label": profile.multi_label}
        if not is_live:
            # What was asked is recorded already: only what says how answers are read applies.
            said = {key: value for key, value in said.items() if key in _OF_ANSWERS}
        if profile.is_chat:
            return {"method": "chat", **said}
        if not is_live:
            return said
        has_options = bool(roles.options) or profile.gold.element != "text" or profile.gold.options is not None
        demonstrations = {"max_train_instances": _DEMONSTRATIONS if profile.train else 0}
        return {**(_CHOICE if has_options else _TEXT), **demonstrations, **roles.layout.live, **said}

    def require_outputs(self, outputs: Sequence[str]) -> None:
        """Raise DatasetError unless each of these can be the column of outputs, beside what the others are."""
        for output in outputs:
            choose_roles(self.table, msgspec.structs.replace(self.options, output=[output]))

    @property
    def _named(self) -> str:
        """The model that a column of outputs is called after: where the user named it, and it is not merely "output".

        A path into a column names none, but a column may have a dot in its name: `gpt-4.1`.
        """
        output = self.roles.output
        is_plain = output.casefold() in CANDIDATES["output"] or output not in self.table.columns
        return "" if is_plain or not self.options.output else output

    def name_model(self) -> str:
        """Return the model that a layout knows, the column of outputs is called after, or a column of models names.

        "" for none. Raises DatasetError without outputs.
        """
        roles, table = self.roles, self.table
        is_of_layout = roles.layout.model is not None
        if self._named and not is_of_layout:
            return self._named
        if not is_of_layout and not roles.output and not roles.likelihoods:
            hint = "say which hold them: output=COLUMN, or output=A+B for a run of each; columns: "
            message = "no column is called output or the like"
            raise DatasetSyntaxError.at(table.path, message, hint + name_columns(table.columns), code="no-outputs")
        if is_of_layout or self._reader.model_column:
            return self.read().model  # all rows are read for it
        return ""

    def describe(self, outputs: Sequence[str]) -> list[str]:
        """Return in words which column was taken for what, and why. `outputs`: the columns that are named, all."""
        profile, roles, table = self.read(), self.roles, self.table
        said = [("layout", f"{roles.layout.name} ({roles.layout.why})")] if roles.layout.name else []
        for role, column in roles.columns():
            shown = "+".join(outputs) if role == "output" and outputs else column
            why = roles.reasons.get(role, "")
            if role == "split" and not profile.uses_split:
                shown, why = "-", f"{column} holds other words than train, validation and test"
            said.append((role, shown + (f" ({why})" if why else "")))
        said.append(("golds", profile.gold.reason))
        if profile.outputs_are_positions:
            said.append(("outputs", "positions, as the golds are"))
        if not profile.recorded:
            runs = "live: a model is asked, for no column is called output or the like, and output=COLUMN names none"
        elif len(outputs) > 1:
            runs = f"recorded: one run for each of {', '.join(outputs)}"
        else:
            is_some = profile.recorded < profile.rows
            runs = f"recorded: an output of {f'{profile.recorded} of {profile.rows} rows' if is_some else 'every row'}"
        whose = f"{outputs[0]}: " if len(outputs) > 1 else ""  # the others are not read for this
        said += [("runs", runs), *(("note", f"{whose}{note}") for note in profile.notes())]
        title = f"{table.path}: {count(profile.rows, 'row')}, columns {name_columns(table.columns)}"
        return [title, *(f"{what:{_WIDTH}} {words}" for what, words in said)]


_WIDTH = 9


def _dataset_name(path: str) -> str:
    if path.startswith(HUB):
        return path.removeprefix(HUB).partition("@")[0].rpartition("/")[2]
    name = Path(path).name
    while (suffix := Path(name).suffix.lower()) in (".gz", ".zst", ".zstd", *_DELIMITED, ".json", *LINES, ".parquet"):
        name = name[: -len(suffix)]
    return name or Path(path).name


def list_outputs(arguments: Mapping[str, Any]) -> list[str]:
    """Return the columns of outputs that are named: each is a run.

    Raises RunEntryError where scores, or judgements, are named with several: whose are they?
    """
    outputs = list_said(arguments, "output")
    for role in ("scores", "judgements") if len(outputs) > 1 else ():
        if named := list_said(arguments, role):
            raise RunEntryError(
                f"table: {role}={'+'.join(named)} would be those of {len(outputs)} models, {'+'.join(outputs)}\n"
                f"  hint: score them one by one, output={outputs[0]} with its own {role}"
                + (", under one name for all, which compare needs: scores=NAME=COLUMN" if role == "scores" else "")
            )
    return outputs
