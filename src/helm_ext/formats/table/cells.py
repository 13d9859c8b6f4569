"""Values of cells: paths into them, lists that are written as text, and options in the shapes that datasets have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helm_ext.errors import show
from helm_ext.formats.imported.gold import to_options
from helm_ext.formats.imported.row import CellError, parse_list

Cells = Mapping[str, Any]
"""Column to value. A column that a row lacks is absent."""


def look_up(cells: Cells, path: str) -> Any:
    """Return the value of a column, or of a path with dots (`doc.query`, `results.0.text`); None where there is none.

    A column whose own name has dots is found first. On the way, a text is read as the list or object it spells
    (SimpleQA's `metadata.topic`).
    """
    if path in cells:
        return cells[path]
    column, dot, rest = path.partition(".")
    if not dot:
        return None
    value = cells.get(column)
    for key in rest.split("."):
        if isinstance(value, str):
            try:
                value = parse_list(value)
            except CellError:
                return None
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, Sequence) and not isinstance(value, str) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def to_text(value: Any, hint: str = "") -> str:
    """Return a single value as text: 72 and 72.0 are "72". Raises CellError, with the hint, for what has parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value - value == 0:
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, int):
        return str(value)
    raise CellError(f"expected a text, got {show(value)}", hint)


def to_json_value(value: Any) -> Any:
    """Return a value that HELM can write: dates and the like as text, bytes left out."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None  # NaN and infinity are no JSON
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    return None if isinstance(value, bytes) else str(value)


def read_options(value: Any) -> dict[str, str]:
    """Return the options that one cell holds: label to text.

    Known shapes: a list of texts; `{"text": [...], "label": [...]}` (ARC) and `{"choices": [...], "labels": [...]}`
    (TruthfulQA, whose labels are flags); a list of `{"label": ..., "text": ...}`; an object of label to text. A cell of
    text is read as the list it spells. Labels are A, B, ... where there are none. Raises CellError.
    """
    if isinstance(value, str):
        value = parse_list(value)
    texts, labels = value, None
    if isinstance(value, Mapping):
        if isinstance(value.get("text"), list | tuple):
            texts, labels = value["text"], value.get("label")
        elif isinstance(value.get("choices"), list | tuple):
            texts = value["choices"]
        else:
            texts, labels = list(value.values()), list(value)
    elif isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
        texts, labels = [item.get("text") for item in value], [item.get("label") for item in value]
        labels = None if None in labels else labels
    if not isinstance(texts, list | tuple):
        raise CellError(f"expected a list of options, got {show(value)}")
    return label_options(texts, labels)


def label_options(texts: Sequence[Any], labels: Sequence[Any] | None) -> dict[str, str]:
    """Return options under their labels, or A, B, ...; then those that a row lacks at the end are left out.

    Raises CellError for fewer than two, and for labels that are missing or doubled.
    """
    texts = list(texts)
    while labels is None and texts and texts[-1] is None:
        texts.pop()
    if len(texts) < 2:
        raise CellError(f"expected two or more options, got {len(texts)}")
    written = [to_text(text) for text in texts]
    if labels is None:
        try:
            return to_options(written)
        except ValueError as error:
            raise CellError(str(error)) from None
    named = [to_text(label).strip() for label in labels]
    if len(named) != len(written) or len(set(named)) != len(named) or "" in named:
        raise CellError(f"{len(written)} options and the labels {show(list(labels))}: each needs one of its own")
    return dict(zip(named, written, strict=True))
