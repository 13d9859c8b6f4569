"""What can be wrong, where, and how it is said.

    HelmExtError
    ├── DatasetError            a dataset cannot be used; carries *all* problems that were found
    │   ├── DatasetNotFoundError    (also a FileNotFoundError) no such file or dataset
    │   ├── DatasetSyntaxError      not JSON, not UTF-8, truncated, not a ZIP
    │   ├── DatasetSchemaError      JSON, but not of the format's shape
    │   ├── DatasetIntegrityError   the right shape, but it contradicts itself (digests, sizes, splits, labels)
    │   ├── DatasetChangedError     other bytes than the ones that the run was planned with
    │   └── TransformError          a user's transform script failed or returned the wrong thing
    ├── HubError                the dataset hub refused
    ├── RecordedError           recorded completions are missing, or were asked for where there are none
    └── RunEntryError           (also a ValueError) the arguments of a run entry make no sense

A problem is rendered on one line, with its hint on a second:

    adapter_specs/x.json:118: request_states[3].instance.references[0].output.text: expected a string, got 42
      hint: write "42" in quotes
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "DatasetChangedError",
    "DatasetError",
    "DatasetIntegrityError",
    "DatasetNotFoundError",
    "DatasetSchemaError",
    "DatasetSyntaxError",
    "HelmExtError",
    "HubError",
    "Location",
    "Problem",
    "RecordedError",
    "RunEntryError",
    "TransformError",
    "count",
    "did_you_mean",
    "show",
    "to_problem",
]

SHOWN_VALUE_LENGTH = 80
"""At most this many characters of a value are shown: data may be private, and terminals are narrow."""

SHOWN_PROBLEMS = 20
"""An exception's text lists this many problems and counts the rest; `problems` has them all."""

Severity = Literal["error", "warning"]


def show(value: Any) -> str:
    """Return `value` as JSON (or its repr), shortened to SHOWN_VALUE_LENGTH characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    # A lone surrogate cannot be printed on a UTF-8 terminal; an error message must always be printable.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= SHOWN_VALUE_LENGTH else text[: SHOWN_VALUE_LENGTH - 1] + "…"


def count(number: int, one: str, many: str = "") -> str:
    """Return `1 row` or `2 rows`; `many` where it is not `one` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?" for the known words nearest to `word`, or "" when none is near."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(by_lower[name]) for name in near)}?" if near else ""


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

    `code` is a short stable name (`unknown-key`, `no-correct-reference`) for tools and tests; `kind` says which
    exception an error of this sort becomes.
    """

    message: str
    location: Location
    hint: str = ""
    severity: Severity = "error"
    code: str = ""
    kind: type[DatasetError] | None = field(default=None, compare=False, repr=False)
    number: int = 1
    """How many problems this one stands for: the last of a long list counts those that are not listed."""

    def __str__(self) -> str:
        text = f"{self.location}: {self.message}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


def to_problem(error: Exception, path: str, code: str = "") -> Problem:
    """Return the problem of a file that an exception's text describes, its hint apart."""
    message, _, hint = str(error).removeprefix(f"{path}: ").partition("\n  hint: ")
    return Problem(message, Location(path), hint, code=code)


class HelmExtError(Exception):
    """Base class of everything this package raises on purpose. Its text is written for the user."""


class DatasetError(HelmExtError, ValueError):
    """A dataset cannot be used. `problems` holds all that was found, errors and warnings."""

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = () if isinstance(problems, str) else tuple(problems)
        self.message = problems if isinstance(problems, str) else ""
        super().__init__(self.message or [str(problem) for problem in self.problems])

    def __str__(self) -> str:
        if self.message:
            return self.message
        errors = [problem for problem in self.problems if problem.severity == "error"]
        lines = [str(problem) for problem in errors[:SHOWN_PROBLEMS]]
        if len(errors) > SHOWN_PROBLEMS:
            more = len(errors) - SHOWN_PROBLEMS
            lines.append(f"... and {more} more; `helm-ext validate FILE --format json` lists them")
        return "\n".join(lines)

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


class RunEntryError(HelmExtError, ValueError):
    """The arguments of a run entry are unknown, contradict each other, or name nothing."""


def raise_for(problems: Sequence[Problem]) -> None:
    """Raise one DatasetError with all `problems` if any of them is an error; its class is that of the first error."""
    for problem in problems:
        if problem.severity == "error":
            raise (problem.kind or DatasetSchemaError)(problems)
