"""What a state says about a request that was made earlier (docs/adapter_spec.md, "Recorded completions")."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from helm_ext.errors import Path, show
from helm_ext.evalset import Recorded, RecordedState
from helm_ext.formats.request_states.reading import Place
from helm_ext.scoring.scores.likelihoods import count_reference_tokens

Status = Literal["ok", "not_run", "failed", "unscored", "too_long"]

_HELM_KEYS = ("train_trial_index", "reference_index")
_STATE_FIELDS = (
    "reference_index",
    "request_mode",
    "train_trial_index",
    "output_mapping",
    "num_train_instances",
    "prompt_truncated",
)
_MODES = {
    "multiple_choice_separate_original": ("original",),
    "multiple_choice_separate_calibrated": ("original", "calibration"),
}


def is_helm_state(state: Mapping[str, Any]) -> bool:
    """Whether a state was written by HELM, where several states may be about one instance."""
    return any(key in state for key in _HELM_KEYS)


def drop_nonfinite(value: Any) -> int:
    """Replace each NaN and infinity inside an object or list by None, in place, and return how many there were.

    HELM would write them as they are, and no browser reads such a file. Any other value holds none.
    """
    if not isinstance(value, (dict, list)):
        return 0
    count = 0
    for key, child in list(value.items()) if isinstance(value, dict) else enumerate(value):
        if isinstance(child, float):
            if not math.isfinite(child):
                value[key] = None
                count += 1
        elif isinstance(child, (dict, list)):
            count += drop_nonfinite(child)
    return count


def find_result(state: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the state's result: under `request`, or in HELM's place beside it."""
    request = state.get("request")
    inside = request.get("result") if request else None
    return inside if inside is not None else state.get("result")


def read_recorded(state: Mapping[str, Any], place: Place, *, is_helm: bool) -> tuple[Status, RecordedState | None]:
    """Return the state's status, and the recording if it can be used.

    A placeholder (no completions, or an empty text without tokens and without `success`) is not a wrong answer, and
    neither is a completion without a text, which is reported.
    """
    result = find_result(state)
    if result is None:
        return "not_run", None
    success = result.get("success")
    if success is False:
        return "failed", None
    completions = result.get("completions")
    if not completions:
        return "not_run", None
    if (
        success is None
        and len(completions) == 1
        and not completions[0].get("text")
        and not completions[0].get("tokens")
    ):
        return "not_run", None
    for number, completion in enumerate(completions):
        if completion.get("text") is None:
            inside = (state.get("request") or {}).get("result") is result
            _report_no_text(completion, number, place, ("request", "result") if inside else ("result",))
            return "not_run", None
    recorded: RecordedState = {"result": result}
    request = state.get("request")
    if request and (len(request) > 1 or "result" not in request):
        recorded["request"] = asked = dict(request)
        asked.pop("result", None)
    if is_helm:
        for name in _STATE_FIELDS:
            if state.get(name) is not None:
                recorded[name] = state[name]  # type: ignore[literal-required]
    return "ok", recorded


def _report_no_text(completion: Mapping[str, Any], number: int, place: Place, where: Path) -> None:
    keys = ", ".join(map(show, sorted(completion)))
    texts = [key for key, value in completion.items() if isinstance(value, str)]
    place.error(
        *where, "completions", number, "text",
        message=("null" if "text" in completion else "missing")
        + f", so there is no answer to score; the completion has {keys or 'no key at all'}",
        hint=f'{show(texts[0])} is there: write "text"' if len(texts) == 1 else
        'an empty answer is "text": "", a request that failed has "success": false',
        code="no-text",
    )  # fmt: skip


def combine(
    found: Sequence[tuple[Status, RecordedState | None]],
    method: str,
    options: Sequence[str],
    num_train_trials: int,
    *,
    of_whole: bool = False,
) -> Recorded:
    """Return what is recorded for one instance. It is `ok` only when every request that its method makes is there.

    `options` are the texts of its references. `of_whole`: whether the log-probability of prompt and option together is
    compared, so that nothing must tell where the option begins.
    """
    statuses = {status for status, _ in found}
    if "unscored" in statuses:
        return {"status": "unscored", "states": [], "skip": True}
    if "too_long" in statuses:
        return {"status": "too_long", "states": [], "skip": True}
    if "failed" in statuses:
        return {"status": "failed", "states": []}
    states = [state for _, state in found if state is not None]
    if not states:
        return {"status": "not_run", "states": []}
    if method in _MODES:
        needed = _needed(method, len(options), num_train_trials)
        if "not_run" in statuses or not _is_complete(states, needed, None if of_whole else options):
            there = {_asked(state) for state in states if tells_option(state, options)}
            return {"status": "not_run", "states": [], "requests": (len(there & needed), len(needed))}
    elif "not_run" in statuses or not _is_joint(states, num_train_trials):
        return {"status": "not_run", "states": []}
    return {"status": "ok", "states": states}


def tells_option(state: RecordedState, options: Sequence[str]) -> bool:
    """Whether the log-probability of the option that the state is about can be told.

    The first completion's tokens end with the option, and each of these has a log-probability. So have the others, but
    for the first token of a text, which never has one.
    """
    index = state.get("reference_index")
    tokens = state["result"]["completions"][0].get("tokens") or []
    if index is None or not 0 <= index < len(options) or any(token.get("logprob") is None for token in tokens[1:]):
        return False
    count = count_reference_tokens([token["text"] for token in tokens], options[index])
    return count is not None and (count < len(tokens) or tokens[0].get("logprob") is not None)


def _needed(method: str, reference_count: int, num_train_trials: int) -> set[tuple[Any, ...]]:
    return {
        (trial, index, mode)
        for trial in range(num_train_trials)
        for index in range(reference_count)
        for mode in _MODES[method]
    }


def _asked(state: RecordedState) -> tuple[Any, ...]:
    """Return what a request of a method that asks about each option was about: trial, reference, mode."""
    return state.get("train_trial_index", 0), state.get("reference_index"), state.get("request_mode") or "original"


def _is_complete(states: Sequence[RecordedState], needed: set[tuple[Any, ...]], options: Sequence[str] | None) -> bool:
    present = Counter(_asked(state) for state in states)
    # Several trials (AdapterSpec.num_trials) ask each request the same number of times.
    return (
        set(present) >= needed
        and len(set(present.values())) == 1
        and (options is None or all(tells_option(state, options) for state in states))
    )


def _is_joint(states: Sequence[RecordedState], num_train_trials: int) -> bool:
    if any("reference_index" in state for state in states):
        return False
    present = Counter(state.get("train_trial_index", 0) for state in states)
    return set(present) >= set(range(num_train_trials)) and len(set(present.values())) == 1
