"""What is wrong with a value, in our words: pydantic's findings become ours."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError
from typing_extensions import get_type_hints, is_typeddict

from helm_ext.errors import Path, did_you_mean, show
from helm_ext.formats.request_states import header_models


class Finding(NamedTuple):
    """What is wrong at one place of a value."""

    path: Path
    """Inside the value."""
    message: str
    hint: str
    code: str


_EXPECTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "finite_number": "a finite number",
}

_HINTS = {
    ("adapter_spec", "max_tokens"): "max_tokens stands in adapter_spec itself",
    ("adapter_spec", "stop_sequences"): "stop_sequences stands in adapter_spec itself",
}


def describe(error: ValidationError, value: Any) -> list[Finding]:
    """Return what pydantic found wrong with `value`, one finding for each place, in order."""
    grouped: dict[Path, list[Mapping[str, Any]]] = {}
    for item in error.errors(include_url=False):
        grouped.setdefault(_path(item, value), []).append(item)
    return [_finding(path, items) for path, items in grouped.items()]


def _path(item: Mapping[str, Any], value: Any) -> Path:
    """Return the error's place without pydantic's names of the alternatives of a union."""
    path = tuple(item["loc"])
    if item["type"] in ("missing", "extra_forbidden"):
        return path
    while path and not _is_at(value, path, item["input"]):
        path = path[:-1]
    return path


def _is_at(value: Any, path: Path, wanted: Any) -> bool:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return False
    return value is wanted


def _finding(path: Path, items: Sequence[Mapping[str, Any]]) -> Finding:
    kind = items[0]["type"]
    got = items[0]["input"]
    if kind == "missing":
        return Finding(path, "missing", _missing_key_hint(path, got), "missing-key")
    if kind == "extra_forbidden":
        return Finding(path, "unknown key", _unknown_key_hint(path), "unknown-key")
    expected = " or ".join(dict.fromkeys(_expected(item) for item in items))
    if kind in ("greater_than_equal", "less_than_equal", "finite_number"):
        code = "out-of-range"
    else:
        code = "wrong-type" if kind != "literal_error" else "wrong-value"
    return Finding(path, f"expected {expected}, got {show(got)}", _type_hint(kind, items, got), code)


def _expected(item: Mapping[str, Any]) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind == "literal_error":
        return str(context["expected"]).replace("'", '"')
    if kind == "greater_than_equal":
        return f"at least {context['ge']:g}"
    if kind == "less_than_equal":
        return f"at most {context['le']:g}"
    return _EXPECTED.get(kind, "another value")


def _type_hint(kind: str, items: Sequence[Mapping[str, Any]], got: Any) -> str:
    if kind == "literal_error" and isinstance(got, str):
        return did_you_mean(got, [word.strip("'") for word in str(items[0]["ctx"]["expected"]).split(" or ")])
    if len(items) > 1:
        return ""
    place = next((part for part in reversed(items[0]["loc"]) if isinstance(part, str)), "")
    if kind == "string_type" and place == "split":
        return "write train, test or valid"
    if kind == "string_type" and isinstance(got, (int, float)) and not isinstance(got, bool):
        return f'write "{got}" in quotes'
    if place in ("references", "completions") and isinstance(got, (int, float)) and not isinstance(got, bool):
        got = str(got)
    if kind == "list_type" and (isinstance(got, str) or (place in _AS_LIST and isinstance(got, Mapping))):
        return f"write [{_AS_LIST.get(place, _as_it_is)(got)}]"
    if kind in ("int_type", "float_type") and isinstance(got, str):
        return "write the number without quotes"
    if kind == "dict_type" and isinstance(got, str):
        return _AS_OBJECT.get(place, "").format(show(got))
    return ""


_AS_OBJECT = {
    "input": 'write {{"text": {}}}',
    "output": 'write {{"text": {}}}',
    "completions": 'write {{"text": {}}}',
    "references": 'write {{"output": {{"text": {}}}}}',
}
"""What a text stands for at places where an object is expected, by the last key of the path."""


def _as_it_is(got: Any) -> str:
    return show(got)


def _as_completion(got: Any) -> str:
    return show({"text": got} if isinstance(got, str) else got)


def _as_reference(got: Any) -> str:
    text = got if isinstance(got, str) else got.get("text")
    return show({"output": {"text": text}, "tags": ["correct"]} if isinstance(text, str) else got)


_AS_LIST: dict[str, Callable[[Any], str]] = {"completions": _as_completion, "references": _as_reference}
"""How an element of a list is written of which only the element is there, or its text."""


def _missing_key_hint(path: Path, given: Any) -> str:
    """Return where the value of a missing key may be, in the object that lacks it."""
    if not isinstance(given, Mapping):
        return ""
    if path[-1] == "output" and "text" in given:
        return f'write "output": {{"text": {show(given["text"])}}}'
    if path[-1] == "instance" and ("input" in given or "references" in given):
        return 'put the row\'s keys into "instance": {...}'
    return near_key(str(path[-1]), given)


def near_key(missing: str, given: Mapping[str, Any]) -> str:
    """Return a hint to a key that is spelt nearly as the missing one, or ""."""
    by_lower = {str(key).lower(): key for key in given if key != missing}
    near = difflib.get_close_matches(missing, by_lower, n=1, cutoff=0.8)
    return f"{by_lower[near[0]]!r} is there: write {missing!r}" if near else ""


def _unknown_key_hint(path: Path) -> str:
    key = str(path[-1])
    inside = path[:-1]
    if inside == ("adapter_spec", "decoding_parameters") and ("adapter_spec", key) in _HINTS:
        return _HINTS["adapter_spec", key]
    known = _known_keys(inside)
    guess = did_you_mean(key, known)
    if guess:
        return guess
    if not inside and key in header_models.AdapterSpecModel.__annotations__:
        return f"{key} stands in adapter_spec"
    if inside == ("adapter_spec",) and key in header_models.DecodingModel.__annotations__:
        return f"{key} stands in adapter_spec.decoding_parameters"
    return f"known keys: {', '.join(known)}" if len(known) <= 9 else ""


_CLOSED_PLACES: dict[Path, Any] = {
    (): header_models.FileModel,
    ("adapter_spec",): header_models.AdapterSpecModel,
    ("adapter_spec", "decoding_parameters"): header_models.DecodingModel,
    ("scoring",): header_models.ScoringModel,
}


def _known_keys(inside: Path) -> list[str]:
    model = _CLOSED_PLACES.get(inside)
    if model is None or not is_typeddict(model):
        return list(header_models.SubstitutionModel.__annotations__)
    return ["$schema" if name == "schema_" else name for name in get_type_hints(model)]
