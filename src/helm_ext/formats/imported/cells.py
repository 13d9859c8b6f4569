"""Lists that the cells of a table spell: in CSV and TSV every cell is a text."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from helm_ext.errors import show

_LONGEST_LITERAL = 1 << 20
"""Characters of a list that is written as Python does: the parser of Python needs far more memory than text."""


class CellError(ValueError):
    """A cell that does not hold what it should. `hint` says what to do.

    `is_of_numpy`: it is a list as numpy prints it.
    """

    def __init__(self, message: str, hint: str = "", *, is_of_numpy: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.is_of_numpy = is_of_numpy


def spells_list(cell: Any) -> bool:
    """Return whether a cell of text looks as if it spelt a list."""
    return isinstance(cell, str) and cell.startswith("[") and cell.endswith("]")


def parse_list(text: str) -> Any:
    """Return the list or object that a text spells, as JSON or else as a Python literal. Raises CellError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    hint = 'write it as JSON: ["a", "b"]'
    if len(text) > _LONGEST_LITERAL:
        raise CellError("this is no JSON, and too long to be read as Python", hint)
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise CellError(f"expected a list, got {show(text)}", hint) from None
    if _SIDE_BY_SIDE.search(_LITERAL.sub("s", text)):
        message = f"{show(text)} is a list as numpy prints it: without commas its parts cannot be told apart"
        raise CellError(message, hint, is_of_numpy=True)
    return value


_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_SIDE_BY_SIDE = re.compile(r"s\s*s")
"""Two texts without a comma between them: Python joins them to one, numpy's print means two."""
