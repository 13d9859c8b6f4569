"""`NAME.table.json`: what a run entry would say of a table, in a file beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import Required, TypedDict

from helm_ext.errors import DatasetError, DatasetSchemaError, Location, Problem, did_you_mean, format_path, show
from helm_ext.files import locate, parse_json, read_source
from helm_ext.formats.json_schemas import to_json_schema
from helm_ext.formats.table.options import Options

__all__ = ["MAPPING_KEYS", "find_mapped", "is_mapping_file", "json_schema", "read_mapping"]

_SUFFIX = ".table.json"

Columns = str | Annotated[list[str], Field(min_length=1)]


_CLOSED = ConfigDict(strict=True, extra="forbid")


@with_config(_CLOSED)
class MappingModel(TypedDict, total=False):
    """How a table is read: which column is what, and how it is run."""

    schema_: Annotated[str, Field(alias="$schema")]
    """The JSON Schema that an editor checks the file against."""
    path: Required[str]
    """The table; relative to this file. Or a dataset of the Hub: `hub:OWNER/NAME@REVISION`."""
    question: str
    """The column of questions. Like every column, also a path with dots into it: `doc.query`."""
    context: str
    """The column whose text stands before the question."""
    options: Columns
    """The column of options, or a column for each of them."""
    gold: str
    """The column of right answers."""
    output: Columns
    """The column of a model's outputs; several: one run for each."""
    scores: Columns
    """The columns of scores that the outputs were given."""
    judgements: Columns
    """The columns of what was judged of the outputs."""
    id: str
    """The column of the rows' names."""
    split: str
    """The column that says `train`, `validation` or `test`."""
    splits: Annotated[list[str], Field(min_length=1)]
    """The splits that are read."""
    by: Annotated[list[str], Field(min_length=1)]
    """Columns whose values have scores of their own."""
    sep: str
    """`comma`, `semicolon`, `tab`, `pipe`, or the character."""
    header: Literal["yes", "no"]
    """`no`: the first line is a row, and columns are called 1, 2, 3."""
    gold_kind: Literal["label", "index", "text", "list", "flags"]
    """What a gold is, where it cannot be told."""
    index_base: Literal[0, 1]
    """The position of the first option."""
    empty: Literal["answer", "not_run"]
    """What an empty output is in CSV."""
    name: str
    """The dataset's name. Absent: the table's."""
    display_name: str
    """Title in reports."""
    description: str
    """What it is about."""
    adapter_spec: dict[str, Any]
    """How a live run asks: keys of `adapter_spec` (docs/adapter_spec.md)."""
    scoring: dict[str, Any]
    """How answers become scores: keys of `scoring` (docs/adapter_spec.md)."""


MAPPING_KEYS = frozenset(key for key in MappingModel.__annotations__ if key != "schema_") | {"$schema"}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a mapping file."""
    return to_json_schema(MappingModel, _CLOSED, title="table mapping")


def is_mapping_file(path: str) -> bool:
    """Whether a file is called as mapping files are."""
    return path.casefold().endswith(_SUFFIX)


def find_mapped(files: Iterable[Path]) -> Iterator[Path]:
    """Yield the tables that mapping files among these name. One that cannot be read is reported when it is used."""
    for each in files:
        if is_mapping_file(each.name):
            with suppress(DatasetError):
                yield Path(read_mapping(str(each))[0].path)


def read_mapping(path: str) -> tuple[Options, str]:
    """Return what a mapping file says, and the SHA-256 of its bytes. Raises DatasetError."""
    source = read_source(path)
    value = parse_json(source.data, path)
    try:
        said: dict[str, Any] = dict(TypeAdapter(MappingModel).validate_python(value))
    except ValidationError as error:
        raise DatasetSchemaError(_problems(error, path, source.text())) from None
    said.pop("$schema", None)
    said.pop("schema_", None)
    for key in ("options", "output", "scores", "judgements"):
        if isinstance(said.get(key), str):
            said[key] = [said[key]]
    table = said.pop("path")
    if not table.startswith("hub:"):
        table = str(Path(path).parent / table)
    options = Options(path=table, mapping_file=path, **said)
    return (options if options.name else replace(options, name=Path(path).name[: -len(_SUFFIX)])), source.digest


def _problems(error: ValidationError, path: str, text: str) -> list[Problem]:
    found: list[Problem] = []
    for item in error.errors(include_url=False):
        place = tuple(part for part in item["loc"] if isinstance(part, int) or part in MAPPING_KEYS or not found)
        line = locate(text, [place])[place] if place else None
        key = str(place[-1]) if place else ""
        if item["type"] == "extra_forbidden":
            message, hint = (
                "unknown key",
                did_you_mean(key, MAPPING_KEYS) or f"known: {', '.join(sorted(MAPPING_KEYS))}",
            )
        elif item["type"] == "missing":
            message, hint = "missing", ""
        else:
            said = item["msg"].removeprefix("Input should be ")
            message, hint = f"expected {said}, got {show(item['input'])}", ""
        location = Location(path, line, format_path(place))
        found.append(DatasetSchemaError.problem_at(location, message, hint, code="mapping"))
    return found
