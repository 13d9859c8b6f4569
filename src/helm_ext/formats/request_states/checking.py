"""Values held against their shape (`shapes`): all that is wrong with one, in words; and the shapes as JSON Schema."""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from typing_extensions import Required, get_type_hints, is_typeddict

from helm_ext import files
from helm_ext.errors import Path, did_you_mean, show
from helm_ext.formats.request_states import shapes
from helm_ext.formats.request_states.shapes import CLOSED, MAX_WHOLE, FileShape, StateShape

_KNOWN_STATE: msgspec.json.Decoder[StateShape] = msgspec.json.Decoder(StateShape)
"""Reads and checks a state in one step, and silently leaves out unknown keys. What it refuses is not explained."""
_NAMES: dict[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}
_MOST_LISTED = 9
"""Keys that are listed where none is near an unknown one."""


class Finding(NamedTuple):
    """What is wrong at one place of a value."""

    path: Path
    """Inside the value."""
    message: str
    hint: str
    code: str


def known_keys(place: Sequence[str]) -> Collection[str]:
    """Return the keys that the format reads in the objects that stand here in a state. Files may have others there."""
    shape: Any = StateShape
    for key in place:
        shape, _ = _keys(shape)[key]
        while not _has_keys(shape):
            kind, inside = _split(_main_option(shape))
            shape = inside[0] if kind is list else _main_option(shape)
    return _keys(shape)


def read_known(data: bytes) -> Any:
    """Return the state of a line if it is right and has no keys but those of the format, else None.

    What parsing it and `read_state` return for such a line, read and checked at once: short rows load in a quarter to a
    third less time. A test holds both equal. Unknown keys are dropped, and of two equal ones the first: such a line has
    more quotes.
    """
    try:
        state = _KNOWN_STATE.decode(data)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None
    return state if files.is_faithful(data, state) else None


def read_state(value: Any) -> tuple[Any, list[Finding], Sequence[Path]]:
    """Return a state and what is wrong with it, as `conform` does, and the places of unknown keys.

    Nearly all states are right, and msgspec knows in a tenth of the time.
    """
    try:
        made = msgspec.convert(value, StateShape)
    except (msgspec.ValidationError, OverflowError):
        made, findings = conform(value, StateShape)
        if findings:
            return made, findings, ()
    return made, [], _put_back(value, made)


def _put_back(given: Any, made: Any) -> tuple[Path, ...]:
    """Give objects the unknown keys back that were left out; return where. Written for speed: this runs once a row."""
    unknown: tuple[Path, ...] = ()
    if type(made) is list:
        for place, other in enumerate(made):
            if type(other) is dict and (inside := _put_back(given[place], other)):
                unknown += tuple((place, *path) for path in inside)
        return unknown
    if len(given) != len(made):
        unknown = tuple((key,) for key in given if key not in made)
        made.update({key: given[key] for (key,) in unknown})
    for key, other in made.items():
        if (type(other) is dict or type(other) is list) and other is not given[key]:
            for path in _put_back(given[key], other):
                unknown += ((key, *path),)
    return unknown


def conform(value: Any, shape: Any) -> tuple[Any, list[Finding]]:
    """Return what of a value has its shape, and what is wrong with the rest: all of it, in the order of the keys.

    Unknown keys are left out. 1.0 stands for 1 where a whole number is expected, as JSON Schema has it, and 1 for 1.0.
    """
    found: list[Finding] = []
    return _read(value, shape, (), found), found


def _read(value: Any, shape: Any, path: Path, found: list[Finding]) -> Any:
    """Return what of a value has its shape; what is wrong with the rest is added to `found`."""
    before, made = len(found), value
    for option in _options(shape):
        kind, inside = _split(option)
        if kind is dict and isinstance(value, dict):
            if _has_keys(option):
                return _read_object(value, option, path, found)
            made = {key: _read(one, inside[1], (*path, key), found) for key, one in value.items()} if inside else value
        elif kind is list and isinstance(value, list):
            made = [_read(one, inside[0], (*path, place), found) for place, one in enumerate(value)]
    if len(found) > before:
        return made
    try:
        made = _convert(made, shape)
    except (msgspec.ValidationError, OverflowError) as error:
        found.append(Finding(path, *_explain(value, shape, str(error))))
        return None
    if isinstance(made, float) and not math.isfinite(made) and _main_option(shape) is not Any:
        found.append(Finding(path, f"expected a finite number, got {show(value)}", "", "out-of-range"))
    return made


def _convert(value: Any, shape: Any) -> Any:
    """Return a value of this shape. Raises msgspec.ValidationError, OverflowError."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError:
        if isinstance(value, float) and value.is_integer() and abs(value) < MAX_WHOLE:
            return msgspec.convert(int(value), shape)
        raise


def _explain(value: Any, shape: Any, said: str) -> tuple[str, str, str]:
    """Return message, hint and code for a value that msgspec refuses, and what it says of it."""
    wanted = [option for option in _options(shape) if option is not NoneType]
    kind, inside = _split(wanted[0])
    expected = (
        " or ".join(map(show, inside)) if kind is Literal else " or ".join(_NAMES[_split(one)[0]] for one in wanted)
    )
    _, limit, beyond = said.partition("` ")
    if limit:
        is_finite = not isinstance(value, float) or math.isfinite(value)
        within = f"{expected} {beyond}" if is_finite else "a finite number"
        return f"expected {within}, got {show(value)}", "", "out-of-range"
    hint = _hint_at_type(value, wanted[0]) if len(wanted) == 1 else ""
    code = "wrong-value" if kind is Literal else "wrong-type"
    return f"expected {expected}, got {show(value)}", hint, code


def _read_object(value: Mapping[str, Any], shape: Any, path: Path, found: list[Finding]) -> dict[str, Any]:
    made = {}
    for key, (inside, is_required) in _keys(shape).items():
        if key in value:
            before = len(found)
            read = _read(value[key], inside, (*path, key), found)
            if len(found) == before or (isinstance(read, dict) and any(map(_has_keys, _options(inside)))):
                made[key] = read
        elif is_required:
            found.append(Finding((*path, key), "missing", _hint_at_missing(key, inside, value), "missing-key"))
    if shape in CLOSED:
        unknown = [key for key in value if key not in _keys(shape)]
        found += [Finding((*path, key), "unknown key", _hint_at_unknown(key, shape), "unknown-key") for key in unknown]
    return made


def _has_keys(shape: Any) -> bool:
    """Whether a shape is that of an object: a typed dict, or a struct."""
    return is_typeddict(shape) or (isinstance(shape, type) and issubclass(shape, msgspec.Struct))


@cache
def _keys(shape: Any) -> dict[str, tuple[Any, bool]]:
    """Return the keys of an object: the shape of each, and whether it must be there."""
    if not is_typeddict(shape):
        return {key.encode_name: (key.type, key.required) for key in msgspec.structs.fields(shape)}
    hints: dict[str, Any] = get_type_hints(shape, include_extras=True)
    return {
        key: (get_args(inside)[0], True) if get_origin(inside) is Required else (inside, False)
        for key, inside in hints.items()
    }


@cache
def _options(shape: Any) -> tuple[Any, ...]:
    """Return what a value of this shape may be."""
    return get_args(shape) if get_origin(shape) in (Union, UnionType) else (shape,)


def _main_option(shape: Any) -> Any:
    """Return what a value is, if it is not null."""
    return next(option for option in _options(shape) if option is not NoneType)


@cache
def _split(shape: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the kind of a shape, and what is inside."""
    if get_origin(shape) is Annotated:
        shape = get_args(shape)[0]
    return dict if _has_keys(shape) else get_origin(shape) or shape, get_args(shape)


# Hints


def _hint_at_type(value: Any, shape: Any) -> str:
    kind, inside = _split(shape)
    if kind is Literal and isinstance(value, str):
        return did_you_mean(value, inside)
    if kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        return f'write "{value}" in quotes'
    if kind in (int, float) and isinstance(value, str):
        return "write the number without quotes"
    meant = _wrap(value, shape)
    return "" if meant is None else f"write {show(meant)}"


def _wrap(value: Any, shape: Any) -> Any:
    """Return the object or list that a part of it, such as its text, may stand for; None where there is none."""
    kind, inside = _split(_main_option(shape))
    if kind is str:
        return value if isinstance(value, str) else str(value) if type(value) in (int, float) else None
    if kind is list:
        meant = value if isinstance(value, dict) and is_typeddict(inside[0]) else _wrap(value, inside[0])
        return None if meant is None else [meant]
    if not is_typeddict(shape):
        return None
    keys = _keys(shape)
    (key, *others) = [key for key, (_, is_required) in keys.items() if is_required] or [*{"text"} & keys.keys(), ""][:1]
    meant = _wrap(value, keys[key][0]) if key and not others else None
    return None if meant is None else {key: meant}


def _hint_at_missing(key: str, shape: Any, holder: Mapping[str, Any]) -> str:
    """Return where the value of a missing key may be, in the object that lacks it."""
    misplaced = [name for name in (_keys(shape) if is_typeddict(shape) else ()) if name in holder]
    if misplaced:
        return f'put {", ".join(misplaced)} into "{key}": {{...}}'
    by_lower = {str(name).lower(): name for name in holder}
    near = difflib.get_close_matches(key, by_lower, n=1, cutoff=0.8)
    return f"{by_lower[near[0]]!r} is there: write {key!r}" if near else ""


_ELSEWHERE = {
    "adapter_spec": shapes.AdapterSpecShape,
    "adapter_spec.decoding_parameters": shapes.DecodingShape,
    "scoring": shapes.ScoringShape,
}


def _hint_at_unknown(key: str, shape: Any) -> str:
    known = list(_keys(shape))
    if guess := did_you_mean(key, known):
        return guess
    for place, other in _ELSEWHERE.items():
        if key in _keys(other):
            return f"{key} stands in {place}"
    return f"known keys: {', '.join(known)}" if len(known) <= _MOST_LISTED else ""


_READ_IN = {
    **dict.fromkeys(("completions", "success"), "request.result"), "result": "request",
    **dict.fromkeys(("input", "references", "split", "chain_of_thought"), "instance"),
}  # fmt: skip
"""Keys that mean the same wherever they stand, and where they are read."""
_NEAR = 0.85
"""Of difflib: `tag` and `Tags` are near `tags`, `idx` and `input_text` are near nothing."""


@lru_cache(1_000)  # rows have the same keys again and again, as a rule: a file may have some of its own in each row
def guess_key(place: tuple[str, ...], key: str) -> str:
    """Return what may have been meant by a key that nothing reads, at a place in a state; "" for one of the file's."""
    near = difflib.get_close_matches(key.lower(), sorted(known_keys(place)), n=1, cutoff=_NEAR)
    return f"did you mean {near[0]!r}?" if near else f"{key} is read in {_READ_IN[key]}" if key in _READ_IN else ""


# For editors


def json_schema(scoring: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file: keys of `scoring` are described by this, others by comments."""
    schemas = msgspec.json.schema(FileShape)["$defs"]
    for name, schema in schemas.items():
        shape = getattr(shapes, name)
        described = _read_descriptions(shape) if shape is not shapes.ScoringShape else scoring or {}
        schema["properties"] = {
            key: {**schema["properties"][key], **({"description": described[key]} if key in described else {})}
            for key in _keys(shape)
        }
        schema["additionalProperties"] = shape not in CLOSED
    whole = schemas.pop(FileShape.__name__)
    whole["properties"]["$schema"]["description"] = "The JSON Schema that an editor checks the file against."
    start = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**start, **whole, "title": "adapter_spec + request_states", "$defs": schemas}


def _read_descriptions(shape: type) -> dict[str, str]:
    """Return the comments at the keys of a typed dict, or above them."""
    described, above = {}, ""
    for line in inspect.getsource(shape).splitlines():
        found = re.fullmatch(r" {4}(?:(\w+): .*?)?(?: *# (.*))?", line)
        key, text = (found[1], found[2]) if found is not None else (None, None)
        if key is not None and (said := f"{above} {text or ''}".strip()):
            described[key] = said
        above = f"{above} {text or ''}".strip() if key is None else ""
    return described
