"""What a state says that was asked by log-probabilities: one sum for each option (docs/adapter_spec.md, "Likelihoods").

The option that wins is the completion: its label. So such a row is recorded as any other, and reports show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helm_ext.errors import show
from helm_ext.evalset import EXTRA_KEY, Likelihood
from helm_ext.formats.request_states.reading import Place
from helm_ext.formats.request_states.recorded import find_result


def read_likelihoods(state: Mapping[str, Any]) -> list[Likelihood] | None:
    """Return the state's likelihoods, also those of a finished run of ours; None where it has none."""
    found = state.get("likelihoods")
    if found is None:
        earlier = (state["instance"].get("extra_data") or {}).get(EXTRA_KEY)
        found = earlier.get("likelihoods") if isinstance(earlier, dict) else None
    return found or None


def by_position(labels: Mapping[str, int], options: Sequence[str]) -> dict[str, int]:
    """Return labels of options that may read the same: in the order of the options, if that is what they name.

    A mapping from label to text leads to the first of two options that read the same.
    """
    if len(labels) == len(options) and all(
        options[position] == options[index] for index, position in enumerate(labels.values())
    ):
        return {label: index for index, label in enumerate(labels)}
    return dict(labels)


_ONE_EACH = "give one for each reference, in their order"


def settle_completion(
    state: dict[str, Any],
    likelihoods: Sequence[Likelihood],
    options: Sequence[str],
    labels: Mapping[str, int] | None,
    place: Place,
) -> None:
    """Make the label of the option that wins the state's completion, where the file gives none.

    `options` are the texts of the references, `labels` says where the option of each label stands among them. What
    contradicts them is reported.
    """
    if len(options) == len(likelihoods) == 1:
        _settle_one(state, likelihoods[0], options[0], place)
        return
    positions = {position: label for label, position in (labels or {}).items()}
    if len(positions) < len(options):
        _report(place, message="likelihoods compare options, and not every option of the row has a label")
        return
    if len(likelihoods) != len(options):
        message = f"there are {len(options)} references, and likelihoods of {len(likelihoods)}"
        _report(place, message=message, hint=_ONE_EACH)
        return
    names = [positions[position] for position in range(len(options))]
    for position, one in enumerate(likelihoods):  # written for speed
        text, option = one["text"], options[position]
        if text != option and text != names[position] and text.strip() not in (option.strip(), names[position].strip()):
            names_neither = f"the text of reference {position}, {show(option)}, nor its label, {show(names[position])}"
            _report(place, position, "text", message=f"{show(text)} is neither {names_neither}", hint=_ONE_EACH)
            return
    if len({one.get("alone") is None for one in likelihoods}) > 1:
        _report(place, message="`alone` is given for some options and not for others")
        return
    values = [one["logprob"] for one in likelihoods]
    winner = names[values.index(max(values))]
    said = _complete(state, winner)
    if said is not None and said.strip() != winner.strip():
        _report(
            place,
            message=f"the likeliest option is {show(winner)}, and the completion is {show(said)}",
            hint="leave the completion out, or give the label of the first of the likeliest options",
        )


def _settle_one(state: dict[str, Any], only: Likelihood, option: str, place: Place) -> None:
    """Make the option the completion if the model would have written it; else nobody knows what it would have."""
    if only["text"].strip() != option.strip():
        _report(place, 0, "text", message=f"{show(only['text'])} is not the text of the reference, {show(option)}")
    elif only.get("greedy") is None:
        _report(place, 0, "greedy", message="missing: with one option, it says whether the model would have written it")
    else:
        _complete(state, only["text"] if only["greedy"] else "")


def _complete(state: dict[str, Any], text: str) -> str | None:
    """Make a text the state's completion where it has none; return the one that it has. None for a failed one too."""
    result = find_result(state)
    if result is None:
        state["request"] = {**(state.get("request") or {}), "result": {"success": True}}
        result = state["request"]["result"]
    if result.get("success") is False:
        return None
    completions = result.get("completions")
    if completions and completions[0].get("text"):
        return str(completions[0]["text"])
    result["success"] = True
    result["completions"] = [{**(completions[0] if completions else {}), "text": text}]
    return None


def _report(place: Place, *where: int | str, message: str, hint: str = "") -> None:
    place.error("likelihoods", *where, message=message, hint=hint, code="likelihoods", is_integrity=True)
