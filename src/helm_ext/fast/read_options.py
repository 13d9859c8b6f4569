"""What a run's page shows of rows with options that are ours: options with their letters, and the one that was read.

HELM's page lists references without letters, and has a "mapped output" only for a completion that is nothing but a
label. HELM's own runs are shown as HELM shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helm_ext.evalset import EXTRA_KEY

JSONObject = dict[str, Any]


def show_read(state: JSONObject) -> str | None:
    """Return what a completion was read as: `B. Mercury`, or `unmapped`; None for what we do not read as an option."""
    answer = (state.get("annotations") or {}).get("answer")
    if not isinstance(answer, dict) or "read_as" not in answer:
        return None
    return f"{answer['read_as']}. {answer['option']}" if answer.get("option") else str(answer["read_as"])


def with_letters(instance: JSONObject, state: JSONObject) -> JSONObject:
    """Return the instance of a state with labels before its references, if its completion is read as an option."""
    if show_read(state) is None:
        return instance
    extra = (state["instance"].get("extra_data") or {}).get(EXTRA_KEY) or {}
    labels: Mapping[str, str] = extra.get("labels") or state.get("output_mapping") or {}
    left = list(labels.items())
    references = []
    for reference in instance.get("references") or ():
        text = reference["output"].get("text")
        found = next((one for one in left if one[1] == text), None)
        if found is not None:
            left.remove(found)
        output = reference["output"] if found is None else {**reference["output"], "text": f"{found[0]}. {text}"}
        references.append({**reference, "output": output})
    return {**instance, "references": references}
