"""File formats. Each is a package with one `Format` object; the table of them is in `registry`.

    file ──Format.load──▶ EvalSet ──planning──▶ RunSpec

For Python code:

    >>> from helm_ext import formats
    >>> problems, counts = formats.check("adapter_specs/short_answer_qa.json")
    >>> evalset = formats.load("adapter_specs/short_answer_qa.json")
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import missing_package_named
from helm_ext.formats.format import Argument, Claim, Format, Kind, Plan, Seen
from helm_ext.formats.registry import all_formats, detect, files_in, format_names, get_format

if TYPE_CHECKING:
    from helm_ext.errors import Problem
    from helm_ext.evalset import EvalSet

__all__ = [
    "Argument",
    "Claim",
    "Format",
    "Kind",
    "Plan",
    "Seen",
    "all_formats",
    "check",
    "detect",
    "files_in",
    "format_names",
    "get_format",
    "load",
]


@missing_package_named()
def load(path: str | Path, **arguments: Any) -> EvalSet:
    """Read a dataset file of any format; the arguments are those of its run entry, with their types.

    Raises DatasetError with all problems, RunEntryError for arguments.
    """
    format_ = detect(path)
    return format_.load(**format_.name_file(path), **arguments)


@missing_package_named()
def check(path: str | Path, *, execute: bool = True, **arguments: Any) -> tuple[list[Problem], dict[str, int]]:
    """Return all problems of a dataset file of any format and what was counted; raise nothing for bad data.

    Unless `execute`, no code of the user's (transform scripts) is run.
    """
    format_ = detect(path)
    return format_.check(execute=execute, **format_.name_file(path), **arguments)
