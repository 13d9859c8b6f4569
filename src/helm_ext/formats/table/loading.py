"""From the arguments of a run entry to an opened table, and what was inferred in words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetIntegrityError, DatasetSyntaxError, Problems, RunEntryError, count, raise_for
from helm_ext.evalset import Source
from helm_ext.files import BOM
from helm_ext.files.content import open_raw
from helm_ext.files.store import RowStore
from helm_ext.formats.format import LINES, look
from helm_ext.formats.imported.row import CellError, Opened
from helm_ext.formats.registry import find_way_out
from helm_ext.formats.table.arrow import HUB, MAGIC, ParquetTable, SavedTable, is_saved_dataset
from helm_ext.formats.table.options import Options, list_said, read_options
from helm_ext.formats.table.profile import Profile
from helm_ext.formats.table.records import Record, RecordReader
from helm_ext.formats.table.roles import CANDIDATES, Roles, choose_roles
from helm_ext.formats.table.tables import KEPT, DelimitedTable, JsonTable, Table, plain_suffix

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


def _open_table(options: Options) -> tuple[Table, Roles]:
    """Open a table by what it is (folder, first bytes, ending), and say what its columns are. Raises DatasetError."""
    path, suffix = options.path, plain_suffix(options.path)
    table: Table
    if path.startswith(HUB) or (Path(path).is_dir() and is_saved_dataset(Path(path))):
        table = SavedTable(path)
        return table, choose_roles(table, options)
    with open_raw(path) as file:
        start = file.read(len(MAGIC))
    if (known := find_way_out(look(path))) is not None:
        raise DatasetSyntaxError.at(path, known.message, known.hint, code="foreign-file")
    if start == MAGIC or suffix == ".parquet":
        table = ParquetTable(path)
    elif options.sep is None and suffix in _DELIMITED and start.removeprefix(BOM)[:1] in (b"[", b"{"):
        hint = "call it .json or .jsonl; sep=comma where it is CSV all the same"
        raise DatasetSyntaxError.at(path, "the file is called CSV, and begins like JSON", hint, code="json-called-csv")
    elif options.sep is not None or suffix in _DELIMITED:
        table = DelimitedTable(path, sep=options.sep, header=options.header)
    elif suffix in (".json", *LINES):
        table = JsonTable(path)
    else:
        hint = "CSV needs the ending .csv or .tsv, or sep=comma; JSON needs .json or .jsonl"
        raise DatasetSyntaxError.at(path, "no kind of table is called so", hint, code="unknown-table")
    return table, choose_roles(table, options)


def _read_records(table: Table, roles: Roles, options: Options) -> tuple[RowStore[Record], Profile, int]:
    """Return the rows, what holds of all of them, and how many the file has. Raises DatasetError with all problems."""
    reader = RecordReader(table, roles, options)
    profile = Profile(reader)
    store: RowStore[Record] = RowStore(_pack, _unpack, KEPT)
    problems = Problems(table.path)
    lines = 0
    for line, cells, split in table.read(reader.columns):
        lines += 1
        if (name := reader.find_split(cells, split)) is None:
            continue
        try:
            record, whole = reader.begin(line, cells, name)
            profile.see(record)
            reader.complete(record, whole)
        except CellError as error:
            problems.add((), str(error), error.hint, code="cell", line=line, kind=DatasetIntegrityError)
            continue
        profile.see_answer(record)
        store.add(record)
    store.finish()
    problems.extend(profile.list_problems())
    raise_for(problems.finish())
    profile.finish()
    return store, profile, lines


def _pack(record: Record) -> list[Any]:
    return [getattr(record, name) for name in Record.__slots__]


def _unpack(values: Sequence[Any]) -> Record:
    return Record(*values)


def open_file(**arguments: Any) -> Opened:
    """Open a table. Raises DatasetError, RunEntryError."""
    options, mapping_digest = read_options(arguments)
    table, roles = _open_table(options)
    store, profile, lines = _read_records(table, roles, options)
    is_live, layout = not profile.recorded, roles.layout
    if is_live and (roles.output or roles.likelihoods):
        message = f"no row has an output: the column {roles.output} is empty"
        hint = "leave it out of the table to run a model on it"
        raise DatasetSyntaxError.at(options.path, message, hint, code="no-outputs")
    excluded = lines - profile.rows
    source = Source(
        tool=layout.tool if layout is not None and layout.tool else "table",
        model=_name_model(roles, table, profile),
        task=options.name or _dataset_name(options.path),
        scores=profile.scores,
        main=profile.main,
        counts={"lines": lines, **({"other_splits": excluded} if excluded else {})},
        notes=[*profile.notes()],
    )
    digest = hashlib.sha256(f"{mapping_digest}{table.digest}".encode()).hexdigest() if mapping_digest else table.digest
    return Opened(
        path=options.path,
        source=source,
        rows=lambda: map(profile.to_row, store.read(range(len(store)))),
        digest=lambda: digest,
        adapter_spec=_adapter_spec(roles, options, profile, is_live=is_live),
        scoring={
            **(layout.scoring if layout is not None and profile.gold.element == "text" else {}),
            **options.scoring,
        },
        may_be_live=is_live,
        is_measured=profile.is_measured,
        display_name=options.display_name or "",
        description=options.description or "",
    )


def _adapter_spec(roles: Roles, options: Options, profile: Profile, *, is_live: bool) -> dict[str, Any]:
    together = {} if profile.multi_label is None else {"multi_label": profile.multi_label}
    if not is_live:
        # What was asked is recorded already: only what says how answers are read applies.
        said = {key: value for key, value in options.adapter_spec.items() if key in _OF_ANSWERS}
        return {**({"method": "chat"} if profile.is_chat else {}), **said, **together}
    if profile.is_chat:
        return {"method": "chat", **options.adapter_spec, **together}
    has_options = bool(roles.options) or profile.gold.element != "text" or profile.gold.options is not None
    demonstrations = {"max_train_instances": _DEMONSTRATIONS if profile.train else 0}
    of_layout = roles.layout.live if roles.layout is not None else {}
    return {**(_CHOICE if has_options else _TEXT), **demonstrations, **of_layout, **options.adapter_spec, **together}


def _dataset_name(path: str) -> str:
    if path.startswith(HUB):
        return path.removeprefix(HUB).partition("@")[0].rpartition("/")[2]
    name = Path(path).name
    while (suffix := Path(name).suffix.lower()) in (".gz", ".zst", ".zstd", *_DELIMITED, ".json", *LINES, ".parquet"):
        name = name[: -len(suffix)]
    return name or Path(path).name


def _name_of_column(output: str, columns: Sequence[str]) -> str:
    """Return the model whose outputs a column holds: its name, where that is not merely "output" or the like.

    A path into a column names none, but a column may have a dot in its name: `gpt-4.1`.
    """
    return output if output in columns and output.casefold() not in CANDIDATES["output"] else ""


def _name_model(roles: Roles, table: Table, profile: Profile) -> str:
    """Return the model that a layout knows, the column of outputs is called after, or a column of models names."""
    of_layout = profile.model if roles.layout is not None and roles.layout.model is not None else ""
    return of_layout or _name_of_column(roles.output, table.columns) or profile.model


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
            )
    return outputs


def name_model(arguments: Mapping[str, Any]) -> str:
    """Return the model that the arguments name, "" where they name none. Raises DatasetError without outputs."""
    outputs = list_outputs(arguments)
    if len(outputs) > 1:
        return ""
    options, _ = read_options({**arguments, "output": outputs or None})
    table, roles = _open_table(options)
    is_of_layout = roles.layout is not None and roles.layout.model is not None
    if outputs and not is_of_layout and (named := _name_of_column(outputs[0], table.columns)):
        return named
    if not is_of_layout and not roles.output and not roles.likelihoods:
        hint = "say which hold them: output=COLUMN, or output=A+B for a run of each; columns: "
        hint += ", ".join(table.columns)
        message = "no column is called output or the like"
        raise DatasetSyntaxError.at(options.path, message, hint, code="no-outputs")
    if is_of_layout or RecordReader(table, roles, options).model_column:
        return _read_records(table, roles, options)[1].model  # all rows are read for it
    return ""


_WIDTH = 9


def describe(arguments: Mapping[str, Any]) -> list[str]:
    """Return in words which column was taken for what, and why. Raises DatasetError, RunEntryError."""
    outputs = list_outputs(arguments)
    options, _ = read_options({**arguments, "output": outputs[:1] or None})
    table, roles = _open_table(options)
    _, profile, _ = _read_records(table, roles, options)
    said = [("layout", f"{roles.layout.name} ({roles.layout.why})")] if roles.layout is not None else []
    for role, column in roles.columns():
        shown = "+".join(outputs) if role == "output" and outputs else column
        why = roles.reasons.get(role, "")
        if role == "split" and not profile.uses_split:
            shown, why = "-", f"{column} holds other words than train, validation and test"
        said.append((role, shown + (f" ({why})" if why else "")))
    said.append(("golds", profile.gold.reason))
    if profile.outputs_are_positions:
        said.append(("outputs", "positions, as the golds are"))
    said.append(("runs", _runs(outputs, profile)))
    said += [("note", note) for note in profile.notes()]
    title = f"{options.path}: {count(profile.rows, 'row')}, columns {', '.join(table.columns)}"
    return [title, *(f"{what:{_WIDTH}} {words}" for what, words in said)]


def _runs(outputs: Sequence[str], profile: Profile) -> str:
    if not profile.recorded:
        return "live: a model is asked, for no column is called output or the like, and output=COLUMN names none"
    if len(outputs) > 1:
        return f"recorded: one run for each of {', '.join(outputs)}"
    of = f"{profile.recorded} of {profile.rows} rows" if profile.recorded < profile.rows else "every row"
    return f"recorded: an output of {of}"
