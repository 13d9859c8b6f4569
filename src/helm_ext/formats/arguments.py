"""How the arguments of a format are declared: name, type, default, and one line on what it means.

From one declaration are made: the reading of run entries and of `--arg KEY=VALUE`, the list in `--help`, the nearest
known name for a wrong one, the digits in a dataset's group, and the tables in docs/.

HELM hands values over as strings, and as numbers where they look like some
(`helm.common.object_spec.parse_object_spec`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from helm_ext.errors import RunEntryError, did_you_mean


@dataclass(frozen=True)
class Kind:
    """What type the values of an argument have."""

    title: str
    """As documentation and `--help` show it."""
    parse: Callable[[str, Any], Any]
    """From an argument's name and the value that HELM read to the typed value; raises RunEntryError."""


@dataclass(frozen=True)
class Argument:
    """One argument of a run entry."""

    name: str
    kind: Kind
    description: str
    """One line, without a full stop at the end. Markdown is fine."""
    default: str = ""
    """What holds where it is absent, as documentation shows it."""
    names_data: bool = False
    """Whether it says which data are read. The digest covers these, so another value alone makes no other column."""
    in_run_entry: bool = True
    """False: taken by `load` and `helm-ext convert` alone, because HELM has a run expander of that name."""


def parse_arguments(entry: str, known: Iterable[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given arguments with their types, in the order in which they were given.

    Raises RunEntryError for an unknown name (with the nearest known one) and for a value that is not of its type.
    """
    kinds = {argument.name: argument.kind for argument in known}
    for name in given:
        if name not in kinds:
            hint = did_you_mean(name, kinds) or f"known: {', '.join(kinds)}"
            raise RunEntryError(f"{entry}: unknown argument {name!r}\n  hint: {hint}")
    return {name: kinds[name].parse(name, value) for name, value in given.items()}


def as_helm_reads(value: str) -> str | int | float:
    """Convert a value as `helm.common.object_spec.parse_object_spec` does."""
    for convert in (int, float):
        try:
            return convert(value)
        except ValueError:
            continue
    return value


def to_table(arguments: Iterable[Argument]) -> str:
    """Return the arguments as a Markdown table, for docs/."""
    rows = [
        f"| `{argument.name}` | {_in_cell(argument.kind.title)} | {_in_cell(argument.description)} | "
        f"{_in_cell(argument.default)} |"
        for argument in arguments
        if argument.in_run_entry
    ]
    return "\n".join(["| argument | type | meaning | absent |", "|---|---|---|---|", *rows]) + "\n"


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _text(_name: str, value: Any) -> str:
    return str(value)


def _as_given(_name: str, value: Any) -> Any:
    return value


def _whole_number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise RunEntryError(f"{name}={value}: expected a whole number")
    return value


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RunEntryError(f"{name}={value}: expected a number")
    return value


def _flag(name: str, value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    word = str(value).lower()
    if word not in words:
        raise RunEntryError(f"{name}={value}: expected true or false")
    return words[word]


def _several(_name: str, value: Any) -> list[str]:
    return str(value).split("+")


def read_path(_name: str, value: Any) -> str:
    """Return a path as it goes into names: relative where it lies below the working directory.

    HELM splits run entries at commas; a path with a comma is written with `%2C`.
    """
    path = str(value)
    if "%" in path and not os.path.exists(path):  # noqa: PTH110
        path = unquote(path)
    if os.path.isabs(path):  # noqa: PTH117
        relative = os.path.relpath(path)
        return path if relative.startswith(os.pardir) else relative
    return path


def one_of(*choices: str) -> Kind:
    """Return the kind whose values are these words."""

    def choose(name: str, value: Any) -> str:
        if value not in choices:
            hint = did_you_mean(str(value), choices) or f"one of {', '.join(choices)}"
            raise RunEntryError(f"{name}={value}: not a choice\n  hint: {hint}")
        return str(value)

    return Kind(" or ".join(f"`{choice}`" for choice in choices), choose)


TEXT = Kind("text", _text)
AS_GIVEN = Kind("text or number", _as_given)
"""A name that HELM may have turned into a number: the format finds what it stands for."""
WHOLE_NUMBER = Kind("whole number", _whole_number)
NUMBER = Kind("number", _number)
FLAG = Kind("`true` or `false`", _flag)
SEVERAL = Kind("`a+b`", _several)
"""HELM splits run entries at commas, so lists are written with `+`."""
PATH = Kind("path", read_path)

MISSING = Argument(
    "missing",
    one_of("error", "skip"),
    "rows without a usable recording, and those of a live run whose requests fail: `skip` leaves them out of the score "
    "and counts them",
    "`error`",
)
"""An argument of every format; importers have their own description of it, and skip by default (`imported/format.py`,
`EvalSetScenario.skips_missing`). The run decides (`helm_ext.adaptation`), so `load` never sees it."""

THINKING = Argument(
    "thinking",
    one_of("move", "keep"),
    "what a model thinks before it answers (`<think>`...): moved out of its completion before anything is scored, or "
    "kept as a part of the answer",
    "`move`",
)
"""An argument of every format whose completions are texts."""
