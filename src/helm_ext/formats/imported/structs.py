"""Lines of a log that are checked by msgspec structs; what is wrong with the others is said for each field."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import Any, TypeVar

import msgspec
import orjson

from helm_ext import files
from helm_ext.errors import DatasetSchemaError, Problems, format_path
from helm_ext.formats.format import look
from helm_ext.formats.imported.json_pieces import JsonPieces
from helm_ext.formats.request_states.checking import conform

T = TypeVar("T", bound=msgspec.Struct)


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
        complete: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        """`kind`: what each line must have; `what`: what it is then. What is wrong with lines goes to `problems`.

        `is_lenient`: NaN and Infinity are read, blank lines are refused, and the file may be one list of such objects.
        `complete`: makes values of those of an older version.
        """
        self._path, self._kind, self._what, self._problems = path, kind, what, problems
        self._is_lenient, self._complete = is_lenient, complete

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (line number, value) for each line that has the right shape. Raises DatasetError."""
        lenient = self._is_lenient
        is_list = lenient and look(self._path).start.lstrip().startswith(b"[")
        with JsonPieces(self._path) if is_list else files.LineSource(self._path) as source:
            lines = source.items() if isinstance(source, JsonPieces) else source
            for number, given in files.iter_json_lines(
                lines, str(self._path), self._problems, blank="error" if lenient else "skip", allow_nan=lenient
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
    except (msgspec.ValidationError, OverflowError) as error:
        found = conform(value, kind)[1]
        missing = [one.path for one in found if one.code == "missing-key"]
        if missing:
            place, names = missing[0] if len(missing) == 1 else (), ", ".join(map(format_path, missing))
            problems.add(place, f"no {what}: without {names}", line=line, code="shape")
        elif not found:
            problems.add((), f"no {what}: {error}", line=line, code="shape")
        for one in found if not missing else ():
            problems.add(one.path, one.message, one.hint, line=line, code="shape")
        return False
    return True


def to_struct(value: Any, kind: type[T], what: str, path: str, line: int | None = None) -> T:
    """Return a JSON value as a struct. Raises DatasetSchemaError with all that is wrong with it."""
    problems = Problems(path)
    if not report_flaws(value, kind, what, problems, line):
        raise DatasetSchemaError(problems.finish())
    return msgspec.convert(value, kind)


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
