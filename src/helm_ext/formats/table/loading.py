"""From the arguments of a run entry to an opened table, and what was inferred in words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetSyntaxError, RunEntryError, count, did_you_mean
from helm_ext.evalset import Source
from helm_ext.files import BOM
from helm_ext.files.opening import open_raw
from helm_ext.formats.foreign import find_way_out
from helm_ext.formats.imported.row import Opened
from helm_ext.formats.seen import look
from helm_ext.formats.table.arrow import HUB, MAGIC, ParquetTable, SavedTable, is_saved_dataset
from helm_ext.formats.table.delimited import DELIMITERS, DelimitedTable
from helm_ext.formats.table.json_tables import JsonTable
from helm_ext.formats.table.mapping_file import is_mapping_file, read_mapping
from helm_ext.formats.table.options import Options
from helm_ext.formats.table.profile import Profile, make_profile
from helm_ext.formats.table.roles import OUTPUT_NAMES, Roles, choose_roles
from helm_ext.formats.table.rows import read_rows
from helm_ext.formats.table.table import Table, plain_suffix
from helm_ext.formats.table.values import Values

DELIMITED = (".csv", ".tsv", ".tab")

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


def read_options(arguments: Mapping[str, Any]) -> tuple[Options, str]:
    """Return what the arguments and the mapping file say, and the mapping file's digest, or "".

    Raises DatasetError for a mapping file, RunEntryError for arguments.
    """
    path = str(arguments["path"])
    given = {key: value for key, value in arguments.items() if value is not None and key != "path"}
    known = {field.name for field in fields(Options)}
    for key in given:
        if key not in known:
            hint = did_you_mean(key, known) or f"known: {', '.join(sorted(known))}"
            raise RunEntryError(f"table: unknown argument {key!r}\n  hint: {hint}")
    if not is_mapping_file(path):
        return Options(path=path, **given), ""
    options, digest = read_mapping(path)
    return replace(options, **given), digest


def open_table(options: Options) -> Table:
    """Open a table by what it is: folder, first bytes, ending. Raises DatasetError."""
    path = options.path
    if path.startswith(HUB) or (Path(path).is_dir() and is_saved_dataset(Path(path))):
        return SavedTable(path)
    with open_raw(path) as file:
        start = file.read(len(MAGIC))
    if (known := find_way_out(look(path))) is not None:
        raise DatasetSyntaxError.at(path, known.message, known.hint, code="foreign-file")
    if start == MAGIC or plain_suffix(path) == ".parquet":
        return ParquetTable(path)
    if options.sep is None and plain_suffix(path) in DELIMITED and start.removeprefix(BOM)[:1] in (b"[", b"{"):
        hint = "call it .json or .jsonl; sep=comma where it is CSV all the same"
        raise DatasetSyntaxError.at(path, "the file is called CSV, and begins like JSON", hint, code="json-called-csv")
    if options.sep is not None or plain_suffix(path) in DELIMITED:
        sep = options.sep
        if sep is not None and sep not in DELIMITERS and len(sep) != 1:
            raise RunEntryError(f"sep={sep}: expected one character, or one of {', '.join(DELIMITERS)}")
        return DelimitedTable(path, sep=sep, header=options.header)
    if plain_suffix(path) in (".json", ".jsonl", ".ndjson", ".jsonlines"):
        return JsonTable(path)
    raise DatasetSyntaxError.at(
        path,
        "no kind of table is called so",
        "CSV needs the ending .csv or .tsv, or sep=comma; JSON needs .json or .jsonl",
        code="unknown-table",
    )


def open_file(**arguments: Any) -> Opened:
    """Open a table. Raises DatasetError, RunEntryError."""
    options, mapping_digest = read_options(arguments)
    values, profile = _look(options)
    table, roles = values.table, values.roles
    is_live = not profile.recorded
    if is_live and (roles.output or roles.likelihoods):
        message = f"no row has an output: the column {roles.output} is empty"
        raise DatasetSyntaxError.at(
            options.path, message, "leave it out of the table to run a model on it", code="no-outputs"
        )
    layout = roles.layout
    source = Source(
        tool=layout.tool if layout is not None and layout.tool else "table",
        model=profile.model or _model_of(roles.output, table.columns) or profile.row_model,
        task=options.name or _dataset_name(options.path),
        scores=profile.scores,
        main=profile.main,
        counts={"lines": table.lines, **({"other_splits": profile.excluded} if profile.excluded else {})},
        notes=profile.notes,
    )

    def digest() -> str:
        found = table.digest()
        return hashlib.sha256(f"{mapping_digest}{found}".encode()).hexdigest() if mapping_digest else found

    return Opened(
        path=options.path,
        source=source,
        rows=lambda: read_rows(values, profile),
        digest=digest,
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


def _open_columns(options: Options) -> tuple[Table, Roles]:
    """Open a table, and say what its columns are."""
    table = open_table(options)
    first = table.first()
    if first is None:
        raise DatasetSyntaxError.at(options.path, "there are no rows", code="no-rows")
    return table, choose_roles(table, options, first)


def _look(options: Options) -> tuple[Values, Profile]:
    table, roles = _open_columns(options)
    values = Values(table, roles, options)
    return values, make_profile(values)


def _adapter_spec(roles: Roles, options: Options, profile: Profile, *, is_live: bool) -> dict[str, Any]:
    if not is_live:
        # What was asked is recorded already: only what says how answers are read applies.
        said = {key: value for key, value in options.adapter_spec.items() if key in _OF_ANSWERS}
        return {**({"method": "chat"} if profile.is_chat else {}), **said}
    if profile.is_chat:
        spec: dict[str, Any] = {"method": "chat"}
    else:
        has_options = bool(roles.options) or profile.gold.element != "text" or profile.gold.options is not None
        spec = dict(_CHOICE if has_options else _TEXT)
        spec["max_train_instances"] = _DEMONSTRATIONS if profile.train else 0
        if roles.layout is not None:
            spec.update(roles.layout.live)
    return {**spec, **options.adapter_spec}


def _dataset_name(path: str) -> str:
    if path.startswith(HUB):
        return path.removeprefix(HUB).partition("@")[0].rpartition("/")[2]
    name = Path(path).name
    while (suffix := Path(name).suffix.lower()) in (".gz", ".zst", ".zstd", *DELIMITED, ".json", ".jsonl", ".ndjson",
                                                    ".jsonlines", ".parquet"):  # fmt: skip
        name = name[: -len(suffix)]
    return name or Path(path).name


def _model_of(output: str, columns: Sequence[str]) -> str:
    """Return the model whose outputs a column holds: its name, where that is not merely "output" or the like.

    A path into a column names none, but a column may have a dot in its name: `gpt-4.1`.
    """
    return output if output in columns and output.casefold() not in OUTPUT_NAMES else ""


def list_said(arguments: Mapping[str, Any], name: str) -> list[str]:
    """Return what the arguments, or else the mapping file, name: columns of outputs, say."""
    given, path = arguments.get(name), str(arguments.get("path", ""))
    if given is None and is_mapping_file(path):
        given = getattr(read_mapping(path)[0], name)
    return list(given or ())


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
    table, roles = _open_columns(options)
    if roles.layout is not None and roles.layout.model is not None:
        return _look(options)[1].model
    if outputs and (named := _model_of(outputs[0], table.columns)):
        return named
    if roles.output or roles.likelihoods:
        has_models = Values(table, roles, options).model_column  # all rows are read for it
        return _look(options)[1].row_model if has_models else ""
    hint = f"say which hold them: output=COLUMN, or output=A+B for a run of each; columns: {', '.join(table.columns)}"
    raise DatasetSyntaxError.at(options.path, "no column is called output or the like", hint, code="no-outputs")


_WIDTH = 9


def describe(arguments: Mapping[str, Any]) -> list[str]:
    """Return in words which column was taken for what, and why. Raises DatasetError, RunEntryError."""
    outputs = list_outputs(arguments)
    options, _ = read_options({**arguments, "output": outputs[:1] or None})
    values, profile = _look(options)
    table, roles = values.table, values.roles
    lines = [f"{options.path}: {count(profile.rows, 'row')}, columns {', '.join(table.columns)}"]
    if roles.layout is not None:
        lines.append(f"{'layout':{_WIDTH}} {roles.layout.name} ({roles.layout.why})")
    for role, column in roles.columns():
        shown = "+".join(outputs) if role == "output" and outputs else column
        if column.startswith("\0") and roles.layout is not None:
            shown = roles.layout.shown[role]
        why = roles.reasons.get(role, "")
        if role == "split" and not profile.uses_split:
            shown, why = "-", f"{column} holds other words than train, validation and test"
        lines.append(f"{role:{_WIDTH}} {shown}" + (f" ({why})" if why else ""))
    lines.append(f"{'golds':{_WIDTH}} {profile.gold.reason}")
    if profile.outputs_are_positions:
        lines.append(f"{'outputs':{_WIDTH}} positions, as the golds are")
    lines.append(f"{'runs':{_WIDTH}} {_runs(outputs, profile)}")
    return [*lines, *(f"{'note':{_WIDTH}} {note}" for note in profile.notes)]


def _runs(outputs: Sequence[str], profile: Profile) -> str:
    if not profile.recorded:
        return "live: a model is asked, for no column is called output or the like, and output=COLUMN names none"
    of = f"of {profile.recorded} of {profile.rows} rows" if profile.recorded < profile.rows else "of every row"
    return f"recorded: one run for each of {', '.join(outputs)}" if len(outputs) > 1 else f"recorded: an output {of}"
