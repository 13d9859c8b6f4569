"""What can be wrong, where, and how it is said.

A problem is rendered on one line, with its hint on a second:

    adapter_specs/x.json:118: request_states[3].instance.references[0].output.text: expected a string, got 42
      hint: write "42" in quotes

Whoever reads a file collects its problems in `Problems` and raises them all at once.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import logging
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partialmethod
from os import PathLike
from pathlib import PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self


Default = TypeVar("Default")

SHOWN_VALUE_LENGTH = 80
"""At most this many characters of a value are shown: data may be private, and terminals are narrow."""

Path = tuple[str | int, ...]
"""A place inside a document: ("request_states", 3, "instance", "id")."""

_COMPARED_LENGTH = 100
"""Longer names are not compared: the time grows with the product of two lengths, and nobody mistypes so long a name."""

SHOWN_PROBLEMS = 20
"""An exception's text lists this many problems and counts the rest; `problems` has them all."""

Severity = Literal["error", "note", "warning"]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file. `line` counts from 1; `field` is a path such as `request_states[3].instance.id`."""

    path: str
    line: int | None = None
    field: str = ""

    def at(self, name: str) -> Location:
        """Return the place of a field in the same line."""
        return Location(self.path, self.line, name)

    def __str__(self) -> str:
        parts = [self.path if self.line is None else f"{self.path}:{self.line}"]
        if self.field:
            parts.append(self.field)
        return ": ".join(parts)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong (or odd, for a warning; good to know, for a note) at one place.

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
    place: Path = field(default=(), compare=False, repr=False)
    """Where it is in the document, while its line is not known."""
    also: Path = field(default=(), compare=False, repr=False)
    """A second place in the document, the last that the message names."""

    @classmethod
    def warning(cls, place: Location | PathLike[str] | str, message: str, hint: str = "", *, code: str) -> Problem:
        """Return a warning: of a file, or at a Location."""
        return cls(message, place if isinstance(place, Location) else Location(str(place)), hint, "warning", code)

    def __str__(self) -> str:
        text = f"{self.location}: {self.message}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


def say_hints_once(problems: Sequence[Problem]) -> list[Problem]:
    """Return problems of which those that follow one another with one hint have it once, at the last."""
    following = [*(problem.hint for problem in problems[1:]), ""]
    return [
        replace(problem, hint="") if problem.hint == hint else problem
        for problem, hint in zip(problems, following, strict=False)
    ]


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
        lines = [str(problem) for problem in say_hints_once(errors[:SHOWN_PROBLEMS])]
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


KEPT_PROBLEMS = 1_000
"""This many problems of one code are kept; the rest is counted."""


class Problems:
    """Collects errors and warnings of one file, or of several that belong together.

        problems = Problems("x.json")
        problems.add(Location("x.jsonl", 7, "id"), "must not be empty", code="id-empty")
        problems.add(("rows", 3, "id"), "must not be empty", code="id-empty")  # its line: when all is read
        raise_for(problems.finish(locate))

    Of each code the first 1,000 are kept. One more problem then counts the others (`Problem.number`).
    """

    def __init__(self, path: str = "") -> None:
        self.path = path
        """The document in which places given as paths are."""
        self._problems: list[Problem] = []
        self._numbers = Counter[Severity]()
        self._kept = Counter[tuple[Severity, str]]()
        self._left_out = Counter[tuple[Severity, str]]()

    @property
    def errors(self) -> int:
        """How many errors were added, those that were not kept included."""
        return self._numbers["error"]

    @property
    def warnings(self) -> int:
        """How many warnings were added, those that were not kept included."""
        return self._numbers["warning"]

    def add(
        self,
        place: Location | Path,
        message: str,
        hint: str = "",
        *,
        code: str,
        kind: type[DatasetError] = DatasetSchemaError,
        severity: Severity = "error",
        line: int | None = None,
        also: Path = (),
    ) -> None:
        """Add a problem at `place`: a Location, or a path in the document, with its `line` where that is known.

        `kind` is the exception that an error becomes. The line of `also` is added to the message.
        """
        location = place if isinstance(place, Location) else Location(self.path, line, format_path(place))
        unknown = place if not isinstance(place, Location) and line is None else ()
        self.extend([Problem(message, location, hint, severity, code, kind, place=unknown, also=also)])

    warn = partialmethod(add, severity="warning")
    """Add a warning, as `add` an error."""

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add problems that were found elsewhere, with their places."""
        for problem in problems:
            key = (problem.severity, problem.code)
            self._numbers[problem.severity] += problem.number
            if self._kept[key] >= KEPT_PROBLEMS:
                self._left_out[key] += problem.number
            else:
                self._kept[key] += 1
                self._problems.append(problem)

    def merge(self, other: Problems) -> None:
        """Add what was found in the part of the file that follows. What `other` is given later on goes here too."""
        self.extend(other._problems)
        for key, number in other._left_out.items():
            self._numbers[key[0]] += number
            self._left_out[key] += number
        other.__dict__ = self.__dict__  # places of its rows still hold `other`: both are one from now on

    def finish(self, locate: Callable[[Sequence[Path]], Mapping[Path, int]] | None = None) -> list[Problem]:
        """Return all problems: errors, then warnings, each in the order of the files, and last what was not kept.

        `locate` returns the lines of paths, such as `files.locate` does; it is called once, and only if there are any.
        """
        paths = [path for problem in self._problems for path in (problem.place, problem.also) if path]
        lines = locate(paths) if locate is not None and paths else {}
        found = [_place(problem, lines) for problem in self._problems]
        found.sort(key=lambda problem: (problem.severity, problem.location.path, problem.location.line or 0))
        first = {(problem.severity, problem.code): problem for problem in reversed(found)}
        for key in self._kept:
            if number := self._left_out[key]:
                sample = first[key]
                message = f"... and {count(number, f'more {sample.severity}')} like these ({sample.code})"
                place = Location(sample.location.path)
                found.append(replace(sample, message=message, hint="", number=number, location=place))
        return sorted(found, key=lambda problem: problem.severity)


def _place(problem: Problem, lines: Mapping[Path, int]) -> Problem:
    location, message = problem.location, problem.message
    if problem.place in lines:
        location = replace(location, line=lines[problem.place])
    if problem.also in lines:
        message = f"{message} (line {lines[problem.also]})"
    return replace(problem, location=location, message=message, place=(), also=())


COMMANDS = ("helm-run", "helm-summarize")


def say_plainly() -> None:
    """Let errors that this package raises on purpose end HELM's commands with `error: ...`, and exit code 1.

    HELM's commands catch nothing, so that Python would print where in the code the error was found, and the text for
    the user below it. Other programs, and other errors, are left as they are. What HELM's log says of data and of
    servers' replies cannot steer the terminal.
    """
    logging.getLogger("helm").addFilter(_make_printable)
    if PurePath(sys.argv[0] if sys.argv else "").name not in COMMANDS or sys.excepthook is not sys.__excepthook__:
        return
    sys.excepthook = _print_error


def _print_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, HelmExtError):
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a command's output
    else:
        sys.__excepthook__(kind, error, trace)


def _make_printable(record: logging.LogRecord) -> bool:
    record.msg, record.args = printable(record.getMessage()), None
    return True


_PACKAGES = {"calibration": "uncertainty-calibration", "sklearn": "scikit-learn", "yaml": "PyYAML"}
"""Modules whose package has another name."""


def describe_missing(error: ModuleNotFoundError) -> str:
    """Return which package is missing, with the way out. Raises `error` again for a module of this package."""
    module = (error.name or "").partition(".")[0]
    if module in ("", "helm", "helm_ext"):
        raise error
    package = _PACKAGES.get(module, module.replace("_", "-"))
    return f"this needs the package {package}, which is not installed\n  hint: pip install {package}"


@contextlib.contextmanager
def missing_package_named() -> Iterator[None]:
    """Raise HelmExtError that names it for a package that is not installed; of a function as a decorator."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise HelmExtError(describe_missing(error)) from error


def read_number(
    name: str,
    default: Default,
    *,
    least: float,
    most: float = 1_000_000,
    whole: bool = True,
    kind: str = "",
    unset: str = "the default",
    wrong: type[HelmExtError] = HelmExtError,
) -> float | Default:
    """Return the number that an environment variable holds. Raises `wrong` for what is no such number.

    `kind`: what it is, in words. `unset`: what holds without it.
    """
    given = os.environ.get(name, "").strip()
    if not given:
        return default
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not least <= number < most or (whole and not number.is_integer()):
        kind = kind or ("a whole number" if whole else "a number")
        raise wrong(f"{name}={show(given)}: expected {kind} from {least:g} on\n  hint: unset it for {unset}")
    return number
