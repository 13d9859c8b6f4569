"""Whose completions a file holds: runs of ours, and what is converted from them, name it in each row's request."""

from __future__ import annotations

import contextlib
from typing import Any

from helm_ext.errors import DatasetError, Problems
from helm_ext.formats.request_states.reading import open_file

_RECORDED = "recorded/"


def read_model(path: str) -> str:
    """Return the X of the `recorded/X` that every row names; "" where one names none, or two differ.

    The names of live models do not count: a file with requests may have been written before anybody answered them.
    What is wrong with the file, its reader says later.
    """
    found = ""
    with contextlib.suppress(DatasetError):
        reader = open_file(path, Problems(path))
        try:
            for state in reader.states():
                name = _name(state.value)
                if not name or (found and name != found):
                    return ""
                found = name
        finally:
            reader.close()
    return found


def _name(row: Any) -> str:
    """Return the recorded model that a row names, without the prefix: its deployment has an organization's name too."""
    request = row.get("request") if isinstance(row, dict) else None
    named = [request.get(key) for key in ("model_deployment", "model")] if isinstance(request, dict) else []
    recorded = [name for name in named if isinstance(name, str) and name.startswith(_RECORDED)]
    return recorded[0].removeprefix(_RECORDED) if recorded else ""
