"""Lines of a log that are checked by msgspec structs, and what is wrong with the others, in words for the user.

msgspec tells quickly whether a value fits; its own words name one field, in Python's types. Here all fields are named,
each with the value that stands there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path as FilePath
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
import orjson

from helm_ext import files
from helm_ext.errors import DatasetSchemaError, Path, Problems, format_path, show
from helm_ext.files.content import Line

T = TypeVar("T", bound=msgspec.Struct)

_MISSING = "missing"

_TITLES = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


class RowError(Exception):
    """A row cannot be read: what is wrong, where, and what to do. Who knows the file makes a DatasetError of it."""

    def __init__(
        self, message: str, hint: str = "", *, place: str = "", line: int | None = None, code: str = ""
    ) -> None:
        super().__init__(message)
        self.hint, self.place, self.line, self.code = hint, place, line, code


class StructLines:
    """A JSON Lines file of one kind of struct; iterate once. `digest` is complete after the last line."""

    digest = ""
    """SHA-256 of the bytes on disk."""

    def __init__(
        self,
        path: FilePath,
        kind: type[msgspec.Struct],
        what: str,
        problems: Problems,
        *,
        is_lenient: bool = False,
        cut: Callable[[Iterable[Line]], Iterable[Line]] = iter,
        complete: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        """`kind`: what each line must have; `what`: what it is then. What is wrong with lines goes to `problems`.

        `is_lenient`: NaN and Infinity are read, and blank lines are refused. `cut`: makes lines of those of an older
        version of the file, and `complete` values.
        """
        self._path, self._kind, self._what, self._problems = path, kind, what, problems
        self._is_lenient, self._cut, self._complete = is_lenient, cut, complete

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (line number, value) for each line that has the right shape. Raises DatasetError."""
        with files.LineSource(self._path) as source:
            for number, given in files.iter_json_lines(
                self._cut(source),
                str(self._path),
                self._problems,
                blank="error" if self._is_lenient else "skip",
                allow_nan=self._is_lenient,
            ):
                value = self._complete(given)
                if report_flaws(value, self._kind, self._what, self._problems, number):
                    yield number, value
            self.digest = source.digest


def report_flaws(
    value: Any, kind: type[msgspec.Struct], what: str, problems: Problems, line: int | None = None
) -> bool:
    """Add a problem for each field of `value` that does not fit; return whether there is none.

    `what`: what the value is if it has all required fields, for the message about those that are missing.
    """
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        flaws = list(find_flaws(value, kind))
        missing = [format_path(place) for place, message in flaws if message == _MISSING]
        if missing:
            flaws = [((), f"no {what}: without {', '.join(missing)}")]
        for place, message in flaws:
            problems.add(place, message, line=line, code="shape")
        return False
    return True


def to_struct(value: Any, kind: type[T], what: str, path: str, line: int | None = None) -> T:
    """Return a JSON value as a struct. Raises DatasetSchemaError with all that is wrong with it."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        problems = Problems(path)
        report_flaws(value, kind, what, problems, line)
        raise DatasetSchemaError(problems.finish()) from None


def find_flaws(value: Any, kind: Any, place: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the place and the message of everything in a JSON value that is not of a type that msgspec knows."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        pass
    else:
        return
    for one in _members(kind):
        origin, inner = get_origin(one), get_args(one)
        if isinstance(value, dict) and _is_struct(one):
            for field in msgspec.structs.fields(one):
                if field.encode_name in value:
                    yield from find_flaws(value[field.encode_name], field.type, (*place, field.encode_name))
                elif field.required:
                    yield (*place, field.encode_name), _MISSING
            return
        if isinstance(value, dict) and origin is dict:
            for key, each in value.items():
                yield from find_flaws(each, inner[1], (*place, key))
            return
        if isinstance(value, list) and origin is list:
            for number, each in enumerate(value):
                yield from find_flaws(each, inner[0], (*place, number))
            return
    yield place, f"expected {_name(kind)}, got {show(value)}"


def _members(kind: Any) -> tuple[Any, ...]:
    """Return the types of which a value has one."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _name(kind: Any) -> str:
    """Return a type as users call it; what may be null or absent is named without that."""
    members = [one for one in _members(kind) if one not in (NoneType, msgspec.UnsetType)]
    if len(members) > 1:
        return " or ".join(map(_name, members))
    (one,) = members or [NoneType]
    if get_origin(one) is Literal:
        return f"one of {', '.join(map(str, get_args(one)))}"
    if one is list or get_origin(one) in (list, tuple):
        of = get_args(one)[:1]
        return "a list of texts" if of == (str,) else "a list of objects" if of and _is_struct(of[0]) else "a list"
    return _TITLES.get(one, "an object")


def without_nan(value: Any) -> Any:
    """Return a JSON value with null for NaN and Infinity, which no browser reads."""
    try:
        if b"null" not in orjson.dumps(value):  # as which they are written
            return value
    except TypeError:  # an integer of more than 64 bits
        pass
    return _without_nan(value)


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    return [_without_nan(one) for one in value] if isinstance(value, list) else value
