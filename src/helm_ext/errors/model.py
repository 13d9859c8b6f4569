"""Problems, their places, the exceptions that carry them, and how values, names and places are written in them."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from typing_extensions import Self

SHOWN_VALUE_LENGTH = 80
"""At most this many characters of a value are shown: data may be private, and terminals are narrow."""

Path = tuple[str | int, ...]
"""A place inside a document: ("request_states", 3, "instance", "id")."""

_COMPARED_LENGTH = 100
"""Longer names are not compared: the time grows with the product of two lengths, and nobody mistypes so long a name."""

SHOWN_PROBLEMS = 20
"""An exception's text lists this many problems and counts the rest; `problems` has them all."""

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file. `line` counts from 1; `field` is a path such as `request_states[3].instance.id`."""

    path: str
    line: int | None = None
    field: str = ""

    def __str__(self) -> str:
        parts = [self.path if self.line is None else f"{self.path}:{self.line}"]
        if self.field:
            parts.append(self.field)
        return ": ".join(parts)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong (or odd, for a warning) at one place.

    `code` is a short stable name (`unknown-key`, `no-correct-reference`) for tools and tests; `kind` says
    which exception an error of this sort becomes.
    """

    message: str
    location: Location
    hint: str = ""
    severity: Severity = "error"
    code: str = ""
    kind: type[DatasetError] | None = field(default=None, compare=False, repr=False)
    number: int = 1
    """How many problems this one stands for: those of its code that are not listed, where it is not 1."""

    def __str__(self) -> str:
        text = f"{self.location}: {self.message}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


def to_problem(error: Exception, path: str, code: str = "") -> Problem:
    """Return the problem of a file that an exception's text describes, its hint apart."""
    message, _, hint = str(error).removeprefix(f"{path}: ").partition("\n  hint: ")
    return Problem(message, Location(path), hint, code=code)


class HelmExtError(Exception):
    """Base class of everything this package raises on purpose. Its text is written for the user, and may be printed."""

    def __str__(self) -> str:
        return printable(super().__str__())


class DatasetError(HelmExtError, ValueError):
    """A dataset cannot be used. `problems` holds all that was found, errors and warnings."""

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = () if isinstance(problems, str) else tuple(problems)
        self.message = problems if isinstance(problems, str) else ""
        super().__init__(self.message or [str(problem) for problem in self.problems])

    @classmethod
    def problem_at(
        cls, place: Location | PathLike[str] | str, message: str, hint: str = "", line: int | None = None, *, code: str
    ) -> Problem:
        """Return a problem of this kind: in a file, in one of its lines, or at a Location."""
        location = place if isinstance(place, Location) else Location(str(place), line)
        return Problem(message, location, hint, code=code, kind=cls)

    @classmethod
    def at(
        cls, place: Location | PathLike[str] | str, message: str, hint: str = "", line: int | None = None, *, code: str
    ) -> Self:
        """Return the error of one problem, ready to be raised; the arguments are those of `problem_at`."""
        return cls([cls.problem_at(place, message, hint, line, code=code)])

    def __str__(self) -> str:
        if self.message:
            return printable(self.message)
        errors = [problem for problem in self.problems if problem.severity == "error"]
        lines = [str(problem) for problem in errors[:SHOWN_PROBLEMS]]
        if len(errors) > SHOWN_PROBLEMS:
            more = sum(problem.number for problem in errors[SHOWN_PROBLEMS:])
            lines.append(f"... and {more} more; `helm-ext validate FILE --format json` lists them")
        return printable("\n".join(lines))

    def __reduce__(self) -> tuple[type[DatasetError], tuple[Sequence[Problem] | str]]:
        """Pickle by constructor argument: HELM's multi-GPU workers send exceptions between processes."""
        return type(self), (self.message or self.problems,)


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """No such file, or no dataset of that name in the folders searched."""


class DatasetSyntaxError(DatasetError):
    """Bytes that cannot be read as the format's syntax: not UTF-8, not JSON, truncated."""


class DatasetSchemaError(DatasetError):
    """Well-formed JSON of the wrong shape: types, unknown or missing keys."""


class DatasetIntegrityError(DatasetError):
    """The right shape, but the parts contradict each other."""


class DatasetChangedError(DatasetError):
    """The bytes are not the ones that the run was planned with."""


class TransformError(DatasetError):
    """A transform script (UltraEval) is missing, cannot be loaded, raised, or returned the wrong thing."""


class HubError(HelmExtError):
    """The dataset hub refused an operation; nothing was changed."""


class RecordedError(HelmExtError, ValueError):
    """Recorded completions are missing, failed, or were asked for where a file has none."""


class DeploymentError(HelmExtError):
    """A model cannot be asked at all: its address, its name or the key is wrong, or nobody answers."""


class RunEntryError(HelmExtError, ValueError):
    """The arguments of a run entry are unknown, contradict each other, or name nothing."""


def raise_for(problems: Sequence[Problem]) -> None:
    """Raise one DatasetError with all `problems` if any of them is an error; its class is that of the first error."""
    for problem in problems:
        if problem.severity == "error":
            raise (problem.kind or DatasetSchemaError)(problems)


def show(value: Any) -> str:
    """Return `value` as JSON (or its repr), shortened to SHOWN_VALUE_LENGTH characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    text = printable(text)
    return text if len(text) <= SHOWN_VALUE_LENGTH else text[: SHOWN_VALUE_LENGTH - 1] + "…"


_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 without tab and line feed, DEL, C1, what changes the direction of a line, and lone surrogates (not UTF-8)."""


def printable(text: str) -> str:
    """Return `text` with JSON's escapes for the characters that a terminal would obey: JSON keeps its meaning."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def count(number: int, one: str, many: str = "") -> str:
    """Return `1 row` or `2 rows`; `many` where it is not `one` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def near_words(word: str, known: Iterable[str]) -> list[str]:
    """Return up to three of the known words that are spelt nearly as `word`, the nearest first."""
    if len(word) > _COMPARED_LENGTH:
        return []
    by_lower = {name.lower(): name for name in known if len(name) <= _COMPARED_LENGTH}
    return [by_lower[name] for name in difflib.get_close_matches(word.lower(), by_lower, n=3, cutoff=0.6)]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?" for the known words nearest to `word`, or "" when none is near."""
    near = near_words(word, known)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def format_path(path: Path) -> str:
    """Write a path as the reader would: `request_states[3].instance.id`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier():
            text += f".{part}" if text else part
        else:
            text += f"[{show(part)}]"
    return text
