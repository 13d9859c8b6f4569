"""`NAME.table.json`: what a run entry would say of a table, in a file beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import Required, TypedDict

from helm_ext.errors import DatasetError, DatasetSchemaError, Location, Problem, did_you_mean, format_path, show
from helm_ext.files import locate, parse_json, read_source
from helm_ext.formats.arguments import SEVERAL
from helm_ext.formats.imported.format import SHARED_ARGUMENTS
from helm_ext.formats.imported.gold import Kind
from helm_ext.formats.json_schemas import to_json_schema
from helm_ext.formats.table.options import READ, Options

_SUFFIX = ".table.json"

_SEVERAL = str | Annotated[list[str], Field(min_length=1)]
_CHOICES: Mapping[str, Any] = {
    "header": Literal["yes", "no"], "gold_kind": Kind, "index_base": Literal[0, 1],
    "empty": Literal["answer", "not_run"],
}  # fmt: skip
_CLOSED = ConfigDict(strict=True, extra="forbid")
_BY = next(argument for argument in SHARED_ARGUMENTS if argument.name == "by")
_TYPES: Mapping[str, Any] = {
    argument.name: Annotated[
        _SEVERAL if argument.kind is SEVERAL else _CHOICES.get(argument.name, str),
        Field(description=argument.description),
    ]
    for argument in (*READ, _BY)
} | {
    "$schema": Annotated[str, Field(description="the JSON Schema that an editor checks the file against")],
    "path": Required[
        Annotated[str, Field(description="the table, relative to this file; or `hub:OWNER/NAME@REVISION`")]
    ],
    "name": Annotated[str, Field(description="the dataset's name; absent: the table's")],
    "display_name": Annotated[str, Field(description="title in reports")],
    "description": Annotated[str, Field(description="what it is about")],
    "adapter_spec": Annotated[
        dict[str, Any], Field(description="how a live run asks: keys of `adapter_spec` (docs/adapter_spec.md)")
    ],
    "scoring": Annotated[
        dict[str, Any], Field(description="how answers become scores: keys of `scoring` (docs/adapter_spec.md)")
    ],
}
"""Key of a mapping file to what it may be."""

_MODEL = with_config(_CLOSED)(TypedDict("MappingModel", _TYPES, total=False))  # type: ignore[operator]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a mapping file."""
    return to_json_schema(_MODEL, _CLOSED, title="table mapping")


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
        said: dict[str, Any] = dict(TypeAdapter(_MODEL).validate_python(value))
    except ValidationError as error:
        raise DatasetSchemaError(_problems(error, path, source.text())) from None
    said.pop("$schema", None)
    for argument in (*READ, _BY):
        if argument.kind is SEVERAL and isinstance(said.get(argument.name), str):
            said[argument.name] = [said[argument.name]]
    table = said.pop("path")
    if not table.startswith("hub:"):
        table = str(Path(path).parent / table)
    options = Options(path=table, **said)
    return (options if options.name else replace(options, name=Path(path).name[: -len(_SUFFIX)])), source.digest


def _problems(error: ValidationError, path: str, text: str) -> list[Problem]:
    found: list[Problem] = []
    for item in error.errors(include_url=False):
        place = tuple(part for part in item["loc"] if isinstance(part, int) or part in _TYPES or not found)
        line = locate(text, [place])[place] if place else None
        key = str(place[-1]) if place else ""
        if item["type"] == "extra_forbidden":
            message, hint = (
                "unknown key",
                did_you_mean(key, _TYPES) or f"known: {', '.join(sorted(_TYPES))}",
            )
        elif item["type"] == "missing":
            message, hint = "missing", ""
        else:
            said = item["msg"].removeprefix("Input should be ")
            message, hint = f"expected {said}, got {show(item['input'])}", ""
        location = Location(path, line, format_path(place))
        found.append(DatasetSchemaError.problem_at(location, message, hint, code="mapping"))
    return found
