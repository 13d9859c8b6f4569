"""`by=subject+level`: what reports group a row by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from helm_ext.errors import show

if TYPE_CHECKING:
    from helm_ext.formats.request_states.reading import Place

_HINT = "by= names keys whose values are texts, numbers, true or false"
_LONGEST = 100
"""Characters of a value: it becomes part of the name of a stat, and a heading on a page."""


def read_attributes(state: Mapping[str, Any], names: Sequence[str], place: Place) -> dict[str, str]:
    """Return the row's value of each name that it has one of; what cannot be grouped by is reported at its place.

    A name is a key of the instance's `extra_data`, of the instance, or of the state, the nearest first, or a path with
    dots: `metadata.subject`. null is no value.
    """
    found = {}
    for name in names:
        value = _read(state, name, "by", _HINT, place)
        text = str(value).lower() if isinstance(value, bool) else str("" if value is None else value).strip()
        if len(text) > _LONGEST:
            message = f"by={name}: {show(value)} is too long a heading"
            place.error("instance", name, message=message, hint=_HINT, code="by")
        elif text:
            found[name] = text
    return found


def read_cluster(state: Mapping[str, Any], name: str | None, place: Place) -> str | None:
    """Return the row's value of the key that names what it belongs to, found as those of `read_attributes` are.

    It may be of any length: it is never shown.
    """
    value = None if name is None else _read(state, name, "cluster", "its values are texts or numbers", place)
    return None if value is None else str(value)


def _read(state: Mapping[str, Any], name: str, argument: str, hint: str, place: Place) -> str | float | None:
    """Return a value that is a text, a number, true or false; report any other."""
    instance = state["instance"]
    for holder in (instance.get("extra_data") or {}, instance, state):
        value = _find(holder, name)
        if value is not None:
            if isinstance(value, str | int | float):
                return value
            place.error("instance", name, message=f"{argument}={name}: got {show(value)}", hint=hint, code=argument)
            break
    return None


def _find(holder: Any, name: str) -> Any:
    """Return the value of a key, or of a path of keys; None where there is none."""
    if not isinstance(holder, Mapping):
        return None
    if name in holder:
        return holder[name]
    key, dot, rest = name.partition(".")
    return _find(holder.get(key), rest) if dot else None
