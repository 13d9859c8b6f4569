"""Values as other tools spell them: lists in cells of CSV, words for scores, the answers of agents."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from helm_ext.errors import show
from helm_ext.formats.imported.row import is_finite_number

_LONGEST_LITERAL = 1 << 20
"""Characters of a list that is written as Python does: the parser of Python needs far more memory than text."""
_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_SIDE_BY_SIDE = re.compile(r"s\s*s")
"""Two texts without a comma between them: Python joins them to one, numpy's print means two."""
_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partially correct, incorrect, no answer."""
_LOWER_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_SUBMIT = "submit"
_DELIMITER = "\n\n"
"""What `react` puts between what the model said and its answer."""


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


def to_number(value: Any) -> float | None:
    """Return a score's value as inspect_ai counts it; NaN for what was not scored, None for what is no number."""
    if isinstance(value, str):
        known = _WORDS.get(value, _LOWER_WORDS.get(value.lower()))
        if known is not None:
            return known
        try:
            number = float(value)
        except ValueError:
            return None
        return number if math.isfinite(number) else None
    if isinstance(value, int) and not is_finite_number(int(value)):
        return None
    return float(value) if isinstance(value, int | float) else None


class Call(NamedTuple):
    """A call of a tool."""

    name: str
    arguments: Mapping[str, Any]


def find_answer(calls: Sequence[Call], said: str, completion: str) -> str:
    """Return the answer of a message that calls tools: what its last call submits, where one does.

    inspect_ai's agents end by calling a tool, `submit(answer)` unless a task names it otherwise, and make a completion
    of what the model said beside the call and of the answer (agent/_react.py, solver/_basic_agent.py). A message may
    say nothing beside a call; outputs made in code then say `tool call for tool NAME` (model/_model_output.py).
    `said`: the text beside the calls; `completion`: what the task made of it, "" where nothing was made. Without a call
    that submits an answer it is the completion, else what was said.
    """
    for call in reversed(calls):
        submitted = _only_text(call.arguments)
        if submitted is None:
            continue
        if call.name == _SUBMIT and completion in ("", said):
            return submitted
        answer = submitted.strip()
        is_made_of_it = completion == answer or completion.endswith(f"{_DELIMITER}{answer}")
        if is_made_of_it and (answer or call.name == _SUBMIT):
            return submitted
    text = completion or said
    return "" if text in [f"tool call for tool {call.name}" for call in calls] else text


def _only_text(arguments: Mapping[str, Any]) -> str | None:
    """Return the value of a call's only argument, as text."""
    values = list(arguments.values())
    return str(values[0]) if len(values) == 1 and isinstance(values[0], str | int | float) else None
