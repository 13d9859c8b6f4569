"""What an agent gave as its answer: the argument of its last tool call, where that is the call that submits it.

inspect_ai's agents end by calling a tool, `submit(answer)` unless a task names it otherwise, and make a completion of
what the model said beside the call and of the answer (agent/_react.py, solver/_basic_agent.py). A message may say
nothing beside a call; model outputs that are made in code then say `tool call for tool NAME` (model/_model_output.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_SUBMIT = "submit"
_DELIMITER = "\n\n"
"""What `react` puts between what the model said and its answer."""


class Call(NamedTuple):
    """A call of a tool."""

    name: str
    arguments: Mapping[str, Any]


def find_answer(calls: Sequence[Call], said: str, completion: str) -> str:
    """Return the answer of a message that calls tools.

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
