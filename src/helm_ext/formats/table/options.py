"""What a run entry says of a table, or `NAME.table.json`, a mapping file beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from helm_ext.errors import Problems, RunEntryError, did_you_mean, raise_for
from helm_ext.formats.format import Argument
from helm_ext.formats.imported.gold import Kind as GoldKind

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
