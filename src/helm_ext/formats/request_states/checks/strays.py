"""Keys that nothing reads, where somebody may have meant one that is read.

Rows may have keys of their own; they are kept (`RowExtra.data`). But a key that is spelt nearly as one of the format's,
or that the format has at another place, was hardly meant as such: a completion under `request.completions` would never
be scored. Such keys are warned of.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from helm_ext.errors import Path
from helm_ext.formats.request_states import shapes
from helm_ext.formats.request_states.checking import known_keys
from helm_ext.formats.request_states.checks.rule import File, Rule
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.tally import MOST_KEPT, First

_REFERENCE: Path = ("instance", "references")
_RESULT: Path = ("request", "result")
_COMPLETION: Path = ("request", "result", "completions")

_HELMS_RESULT: Path = ("result",)
_HELMS_COMPLETION: Path = ("result", "completions")

_READABLE_KEYS: dict[Path, frozenset[str]] = {
    (): known_keys(shapes.StateShape),
    ("instance",): known_keys(shapes.InstanceShape),
    ("instance", "input"): known_keys(shapes.InputShape),
    _REFERENCE: known_keys(shapes.ReferenceShape),
    ("request",): known_keys(shapes.RequestShape),
    **dict.fromkeys((_RESULT, _HELMS_RESULT), known_keys(shapes.ResultShape)),
    **dict.fromkeys((_COMPLETION, _HELMS_COMPLETION), known_keys(shapes.CompletionShape)),
}
"""The places in a state, and the keys that are read there."""

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


class StrayKeys(Rule):
    """Keys that nothing reads, where somebody may have meant one that is read."""

    def __init__(self, header: Header) -> None:  # noqa: ARG002
        self.found: dict[tuple[Path, str], First] = {}
        """(place in the state, key) to where it was seen."""

    def see(self, row: Row, state: State) -> None:
        if row.is_helm or state.is_known:
            return
        for place, given in _find_objects(state.value, row):
            if not _READABLE_KEYS[place].issuperset(given):
                for key in given:
                    self._look_at(place, key, row)

    def _look_at(self, place: Path, key: str, row: Row) -> None:
        if row.found[0][0] == "ok" and (place, key) in _ANSWERS:
            return  # it may be the row's own: only a row without a recorded completion can tell
        if key not in _READABLE_KEYS[place] and _guess(place, key):
            self.found.setdefault((place, key), First()).add(row)

    def report(self, file: File) -> None:  # noqa: ARG002
        for (place, key), first in self.found.items():
            message, hint = "this key, which means nothing here", _guess(place, key)
            first.warn(*place, key, message=message, hint=hint, code="stray-key")


def _find_objects(state: Mapping[str, Any], row: Row) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the objects of a valid state that may have keys which mean something elsewhere, and their places."""
    if row.extra:
        yield (), state
    if row.has_unknown:
        instance = state["instance"]
        yield ("instance",), instance
        yield ("instance", "input"), instance["input"]
        for reference in instance.get("references") or ():
            yield _REFERENCE, reference
    request = state.get("request")
    if request:
        yield ("request",), request
        result = request.get("result")
        if result:
            yield _RESULT, result
            for completion in result.get("completions") or ():
                yield _COMPLETION, completion
    result = state.get("result")
    if result:
        yield _HELMS_RESULT, result
        for completion in result.get("completions") or ():
            yield _HELMS_COMPLETION, completion


@lru_cache(MOST_KEPT)  # rows have the same keys again and again, as a rule: a file may have some of its own in each row
def _guess(place: Path, key: str) -> str:
    """Return what may have been meant, or ""."""
    hint = _HINTS.get((place, key)) or _ANSWERS.get((place, key))
    if hint:
        return hint
    if key in _PLACES:
        return f"{key} is read in {_PLACES[key]}"
    near = difflib.get_close_matches(key.lower(), sorted(_READABLE_KEYS[place]), n=1, cutoff=_NEAR)
    return f"did you mean {near[0]!r}?" if near else ""
