"""The right text where a task lets the model write and has `doc_to_choice`: there `target` is a position.

lm-eval compares the answer with `doc_to_choice(doc)[doc_to_target(doc)]` and logs the position alone, as a text
(lm_eval/api/task.py, process_results; lm_eval/evaluator.py). What the choices are stands in the task's config, in the
results file; without it, a position is told from an answer by what the harness counted as right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from helm_ext.errors import show
from helm_ext.formats.lm_eval.golds import find_in, to_position
from helm_ext.formats.lm_eval.requests import RequestError

__all__ = ["read_choice", "require_compared"]

_HINT = "gold=doc.KEY names where the right text stands"
_KEY = re.compile(r"\{\{-?\s*(?:doc\.)?([A-Za-z_][\w.]*)\s*-?\}\}")
"""A Jinja template that names a key and does nothing else."""


def read_choice(sample: Mapping[str, Any], doc_to_choice: Any) -> tuple[str, ...]:
    """Return the text that the harness compared with; () for a negative position, a hidden answer.

    `doc_to_choice`: as the results file has it. Raises RequestError where the choices are not known, or there is no
    such one.
    """
    target: str = sample["target"]
    choices = _find_choices(sample["doc"], doc_to_choice)
    if choices is None:
        raise RequestError(
            f"target {show(target)} is the position of a choice, and doc_to_choice of the task is code or a template "
            f"whose choices are not logged: {show(doc_to_choice)}",
            _HINT,
        )
    position = to_position(target)
    if position is None or position >= len(choices):
        raise RequestError(f"target {show(target)} is no position of the task's {len(choices)} choices", _HINT)
    return (choices[position],) if position >= 0 else ()


def _find_choices(doc: Any, given: Any) -> list[str] | None:
    """Return the texts of the choices of a row; None where the log does not say them."""
    if isinstance(given, dict):
        given = list(given.values())
    elif isinstance(given, str):
        match = _KEY.fullmatch(given.strip())
        is_key = isinstance(doc, dict) and given in doc
        given = find_in(doc, match[1]) if match is not None else doc[given] if is_key else None
    is_list = isinstance(given, list) and bool(given) and all(isinstance(one, str) for one in given)
    return given if is_list else None


def require_compared(sample: Mapping[str, Any]) -> None:
    """Raise RequestError where the logged `exact_match` shows that a `target` that could be a position was no gold.

    An answer that is the target cannot be wrong, and one that was right has the target in it, whatever case, marks or
    parts the task ignores.
    """
    target, logged = sample["target"], sample.get("exact_match")
    found = sample["filtered_resps"][0] if sample["filtered_resps"] else None
    is_scored = "exact_match" in sample["metrics"] and logged in (0, 1)
    if not is_scored or not isinstance(found, str) or to_position(target) is None:
        return
    is_in = target.lower() in found.lower().replace(",", "")
    if (logged == 0 and found == target) or (logged == 1 and not is_in):
        raise RequestError(
            f"target {show(target)} is not what the harness compared with: the answer {show(found)} has exact_match "
            f"{logged:g}; it may be the position of a choice (doc_to_choice), which the results file would name",
            f"results=FILE names the results file; {_HINT}",
        )
