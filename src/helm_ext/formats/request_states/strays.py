"""Keys that nothing reads, where somebody may have meant one that is read.

Rows may have keys of their own; they are kept (`RowExtra.data`). But a key that is spelt nearly as one of the format's,
or that the format has at another place, was hardly meant as such: a completion under `request.completions` would never
be scored. Such keys are warned of.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from helm_ext.formats.request_states import models
from helm_ext.formats.request_states.rows import First, Row, known_keys
from helm_ext.formats.request_states.wording import Path

__all__ = ["Strays"]

_REFERENCE: Path = ("instance", "references")
_RESULT: Path = ("request", "result")
_COMPLETION: Path = ("request", "result", "completions")

_Place = tuple[Path, frozenset[str]]
"""A place in a state, and the keys that are read there."""

_IN_STATE: _Place = (), known_keys(models.StateModel)
_IN_INSTANCE: _Place = ("instance",), known_keys(models.InstanceModel)
_IN_INPUT: _Place = ("instance", "input"), known_keys(models.InputModel)
_IN_REFERENCE: _Place = _REFERENCE, known_keys(models.ReferenceModel)
_IN_REQUEST: _Place = ("request",), known_keys(models.RequestModel)
_IN_RESULT: _Place = _RESULT, known_keys(models.ResultModel)
_IN_COMPLETION: _Place = _COMPLETION, known_keys(models.CompletionModel)
_IN_HELMS_RESULT: _Place = ("result",), known_keys(models.ResultModel)
_IN_HELMS_COMPLETION: _Place = ("result", "completions"), known_keys(models.CompletionModel)

_PLACES = {
    "completions": "request.result",
    "success": "request.result",
    "result": "request",
    "input": "instance",
    "references": "instance",
    "split": "instance",
    "chain_of_thought": "instance",
    "tags": "the reference itself",
}
"""Keys that mean the same wherever they stand, and where they are read."""

_A_COMPLETION = 'a completion is read in request.result.completions: [{"text": ...}]'

_HINTS: dict[tuple[Path, str], str] = {
    **{(_REFERENCE, key): 'write "tags": ["correct"]' for key in ("correct", "is_correct")},
    **{
        (place, "completion"): "did you mean 'completions', a list of {\"text\": ...}?"
        for place in (_RESULT, ("result",))
    },
    **{(place, "completion"): _A_COMPLETION for place in ((), ("instance",), ("request",))},
}

_ANSWERS: dict[tuple[Path, str], str] = {
    **{
        (place, key): _A_COMPLETION
        for place in ((), ("request",), _RESULT, ("result",))
        for key in ("text", "output", "response", "prediction")
    },
    **{
        (place, key): "the text of a completion is read in 'text'"
        for place in (_COMPLETION, ("result", "completions"))
        for key in ("output", "response", "prediction", "completion", "content", "message")
    },
}
"""Keys that may be a row's own, and are taken for a completion only where none is recorded."""

_NEAR = 0.85
"""Of difflib: `tag` and `Tags` are near `tags`, `idx` and `input_text` are near nothing."""


class Strays:
    """Counts them. One look at each key of each place; a key that is none is not looked at again."""

    def __init__(self) -> None:
        self.found: dict[tuple[Path, str], tuple[First, str]] = {}
        """(place in the state, key) to where it was seen, and what may have been meant."""
        self._own: set[tuple[Path, str]] = set()

    def look(self, state: Mapping[str, Any], row: Row) -> None:
        """Look at the keys of a row. Written for speed: this runs once a row."""
        for (place, known), value in _objects(state):
            if not known.issuperset(value):
                for key in value.keys() - known:
                    self._look_at(place, key, known, row)

    def _look_at(self, place: Path, key: str, known: frozenset[str], row: Row) -> None:
        if (place, key) in self._own or ((place, key) in _ANSWERS and row.found[0][0] == "ok"):
            return
        if (place, key) not in self.found:
            hint = _guess(place, key, known)
            if not hint:
                self._own.add((place, key))
                return
            self.found[place, key] = First(), hint
        self.found[place, key][0].add(row)


def _objects(state: Mapping[str, Any]) -> Iterator[tuple[_Place, Mapping[str, Any]]]:
    """Yield the objects of a valid state whose keys mean something, and their places."""
    yield _IN_STATE, state
    instance = state["instance"]
    yield _IN_INSTANCE, instance
    yield _IN_INPUT, instance["input"]
    for reference in instance.get("references") or ():
        yield _IN_REFERENCE, reference
    request = state.get("request")
    if request:
        yield _IN_REQUEST, request
        result = request.get("result")
        if result:
            yield _IN_RESULT, result
            for completion in result.get("completions") or ():
                yield _IN_COMPLETION, completion
    result = state.get("result")
    if result:
        yield _IN_HELMS_RESULT, result
        for completion in result.get("completions") or ():
            yield _IN_HELMS_COMPLETION, completion


def _guess(place: Path, key: str, known: frozenset[str]) -> str:
    """Return what may have been meant, or ""."""
    hint = _HINTS.get((place, key)) or _ANSWERS.get((place, key))
    if hint:
        return hint
    if key in _PLACES:
        return f"{key} is read in {_PLACES[key]}"
    near = difflib.get_close_matches(key.lower(), sorted(known), n=1, cutoff=_NEAR)
    return f"did you mean {near[0]!r}?" if near else ""
