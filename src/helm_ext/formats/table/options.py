"""What a run entry says of a table, or `NAME.table.json`, a mapping file beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from helm_ext.errors import DatasetError, DatasetSchemaError, Location, RunEntryError, did_you_mean, raise_for, show
from helm_ext.formats.arguments import PATH, SEVERAL, TEXT, Argument, Kind, one_of, read_path
from helm_ext.formats.imported.format import SHARED_ARGUMENTS
from helm_ext.formats.imported.gold import Kind as GoldKind

_SUFFIX = ".table.json"


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a table is read; None where that is to be inferred."""

    path: str
    question: str | None = None
    context: str | None = None
    options: Sequence[str] | None = None
    gold: str | None = None
    output: Sequence[str] | None = None
    scores: Sequence[str] = ()
    """Columns of scores that the outputs were given."""
    judgements: Sequence[str] = ()
    """Columns of what was judged of the outputs."""
    id: str | None = None
    split: str | None = None
    splits: Sequence[str] | None = None
    """Of a dataset with several: those that are read."""
    by: Sequence[str] = ()
    sep: str | None = None
    header: Literal["yes", "no"] = "yes"
    gold_kind: GoldKind | None = None
    index_base: int | None = None
    empty: Literal["answer", "not_run"] | None = None
    name: str | None = None
    display_name: str | None = None
    description: str | None = None
    adapter_spec: dict[str, Any] = field(default_factory=dict)
    scoring: dict[str, Any] = field(default_factory=dict)


def _path(name: str, value: Any) -> str:
    return str(value) if str(value).startswith("hub:") else read_path(name, value)


def _base(name: str, value: Any) -> int:
    if value not in (0, 1):
        raise RunEntryError(f"{name}={value}: expected 0 or 1")
    return int(value)


READ = (
    Argument("path", replace(PATH, parse=_path), "the table, a folder of `save_to_disk`, a mapping file "
             "`NAME.table.json`, or `hub:OWNER/NAME@REVISION`", names_data=True),
    Argument("question", TEXT, "the column of questions; like every column, also a path with dots into it: "
             "`doc.query`", "the only one called so", names_data=True),
    Argument("options", SEVERAL, "the column of options, or a column for each: `A+B+C+D`", "found by name",
             names_data=True),
    Argument("gold", TEXT, "the column of right answers", "the only one called so", names_data=True),
    Argument("output", SEVERAL, "the column of a model's outputs; several, `gpt+llama`: `helm-ext score` makes one "
             "run of each", "the only one called so; without one, a model is asked", names_data=True),
    Argument("scores", SEVERAL, "columns of scores that the output was given: numbers, true/false, yes/no, or C, "
             "P, I, N; `main_metric=` may name one", "none", names_data=True),
    Argument("judgements", SEVERAL, "columns of what was judged of the output: lists of judgements as in format "
             "1, or one judge's verdict, 1 or 0, true/false, yes/no, C or I, empty where there is none", "none",
             names_data=True),
    Argument("id", TEXT, "the column of the rows' names", "found by name", names_data=True),
    Argument("context", TEXT, "the column whose text stands before the question", "found by name",
             names_data=True),
    Argument("split", TEXT, "the column that says `train`, `validation` or `test`", "found by name",
             names_data=True),
    Argument("splits", SEVERAL, "the splits that are read", "all", names_data=True),
    Argument("gold_kind", one_of("label", "index", "text", "list", "flags"), "what a gold is",
             "decided over the whole column", names_data=True),
    Argument("index_base", Kind("`0` or `1`", _base), "the position of the first option", "decided over the whole "
             "column", names_data=True),
    Argument("empty", one_of("answer", "not_run"), "what an empty output is in CSV", "refused", names_data=True),
    Argument("sep", TEXT, "`comma`, `semicolon`, `tab`, `pipe`, or the character", "what the header has most of",
             names_data=True),
    Argument("header", one_of("yes", "no"), "`no`: the first line is a row, columns are called `1`, `2`, `3`",
             "`yes`", names_data=True),
)  # fmt: skip
"""Arguments that say how a table is read."""

_BY = next(argument for argument in SHARED_ARGUMENTS if argument.name == "by")


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
    if not path.casefold().endswith(_SUFFIX):
        return Options(path=path, **given), ""
    options, digest = read_mapping(path)
    return replace(options, **given), digest


def list_said(arguments: Mapping[str, Any], name: str) -> list[str]:
    """Return what the arguments, or else the mapping file, name: columns of outputs, say."""
    given, path = arguments.get(name), str(arguments.get("path", ""))
    if given is None and path.casefold().endswith(_SUFFIX):
        given = getattr(read_mapping(path)[0], name)
    return list(given or ())


def find_mapped(files: Iterable[Path]) -> Iterator[Path]:
    """Yield the tables that mapping files among these name. One that cannot be read is reported when it is used."""
    for each in files:
        if each.name.casefold().endswith(_SUFFIX):
            with suppress(DatasetError):
                yield Path(read_mapping(str(each))[0].path)


_TEXT_FORM: Mapping[str, Any] = {"type": "string"}
_SEVERAL_FORM: Mapping[str, Any] = {
    "anyOf": [_TEXT_FORM, {"type": "array", "items": _TEXT_FORM, "minItems": 1}],
}
_CHOICES: Mapping[str, Sequence[Any]] = {
    "header": ("yes", "no"), "gold_kind": get_args(GoldKind), "index_base": (0, 1), "empty": ("answer", "not_run"),
}  # fmt: skip
_KEYS: Mapping[str, Mapping[str, Any]] = {
    argument.name: {
        **({"enum": [*_CHOICES[argument.name]]} if argument.name in _CHOICES
           else _SEVERAL_FORM if argument.kind is SEVERAL else _TEXT_FORM),
        "description": argument.description,
    }
    for argument in (*READ, _BY)
} | {
    "$schema": {**_TEXT_FORM, "description": "the JSON Schema that an editor checks the file against"},
    "path": {**_TEXT_FORM, "description": "the table, relative to this file; or `hub:OWNER/NAME@REVISION`"},
    "name": {**_TEXT_FORM, "description": "the dataset's name; absent: the table's"},
    "display_name": {**_TEXT_FORM, "description": "title in reports"},
    "description": {**_TEXT_FORM, "description": "what it is about"},
    "adapter_spec": {
        "type": "object", "description": "how a live run asks: keys of `adapter_spec` (docs/adapter_spec.md)",
    },
    "scoring": {
        "type": "object", "description": "how answers become scores: keys of `scoring` (docs/adapter_spec.md)",
    },
}  # fmt: skip
"""Key of a mapping file to the JSON Schema of what it may be."""


def read_mapping(path: str) -> tuple[Options, str]:
    """Return what a mapping file says, and the SHA-256 of its bytes. Raises DatasetError."""
    from helm_ext.files import locate, parse_json, read_source

    source = read_source(path)
    said = parse_json(source.data, path)
    if not isinstance(said, dict):
        raise DatasetSchemaError.at(path, f"expected an object, got {show(said)}", code="mapping")
    wrong = {key: _find_flaw(value, _KEYS.get(key)) for key, value in said.items()}
    wrong |= {} if "path" in said else {"path": "missing"}
    lines = locate(source.text(), [(key,) for key, flaw in wrong.items() if flaw and key in said])
    raise_for([
        DatasetSchemaError.problem_at(
            Location(path, lines.get((key,)), key), flaw,
            "" if key in _KEYS else did_you_mean(key, _KEYS) or f"known: {', '.join(sorted(_KEYS))}", code="mapping",
        )
        for key, flaw in wrong.items() if flaw
    ])  # fmt: skip
    said.pop("$schema", None)
    for key in said:
        if isinstance(said[key], str) and "anyOf" in _KEYS[key]:
            said[key] = [said[key]]
    table = said.pop("path")
    if not table.startswith("hub:"):
        table = str(Path(path).parent / table)
    options = Options(path=table, **said)
    return (options if options.name else replace(options, name=Path(path).name[: -len(_SUFFIX)])), source.digest


def _find_flaw(value: Any, form: Mapping[str, Any] | None) -> str:
    """Return what is wrong with a value that should be of this form, "" for nothing."""
    if form is None:
        return "unknown key"
    if "enum" in form:
        is_right = any(value == one and type(value) is type(one) for one in form["enum"])
        wanted = f"one of {', '.join(map(str, form['enum']))}"
    elif "anyOf" in form:
        texts = value if isinstance(value, list) else [value]
        is_right, wanted = bool(texts) and all(isinstance(text, str) for text in texts), "a text, or a list of texts"
    else:
        is_text = form["type"] == "string"
        is_right, wanted = isinstance(value, str if is_text else dict), "a text" if is_text else "an object"
    return "" if is_right else f"expected {wanted}, got {show(value)}"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a mapping file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "table mapping", "type": "object",
        "properties": dict(_KEYS), "required": ["path"], "additionalProperties": False,
    }  # fmt: skip
