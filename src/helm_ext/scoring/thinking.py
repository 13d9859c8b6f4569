"""A model's thinking is no part of its answer: it is moved where HELM keeps it, `GeneratedOutput.thinking`.

Done once, before anything reads a completion, for recorded and for live ones; so the run's files show the same, and a
file that is scored again is scored alike. Tokens and log-probabilities stay: they are those of the whole completion.
`scoring.thinking: "keep"` leaves completions as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.scenarios.scenario import Instance
from helm.common.request import GeneratedOutput, Thinking

from helm_ext import parsing


def move_thinking(state: RequestState) -> None:
    """Move what was thought out of the texts of a state's completions, in place.

    A row stays as it is if one of its references holds such a tag: there it is part of what is asked for.
    """
    if state.result is None or state.reference_index is not None:
        return
    completions = state.result.completions
    for place, completion in enumerate(completions):
        if "<" not in completion.text:  # nearly all
            continue
        found = parsing.split_thinking(completion.text)
        if found is not None and not any(
            parsing.names_thinking(reference.output.text) for reference in state.instance.references
        ):
            completions[place] = _move(completion, *found)


def _move(completion: GeneratedOutput, thought: str, answer: str) -> GeneratedOutput:
    known = completion.thinking.text if completion.thinking is not None else None
    return replace(completion, text=answer, thinking=Thinking(text="\n".join(filter(None, [known, thought]))))


def find_thinking(scenario_state: ScenarioState) -> Iterator[Instance]:
    """Yield the instances with a completion that was thought about, each once."""
    seen = set()
    for state in scenario_state.request_states:
        if state.result is None or state.reference_index is not None:
            continue
        if any(completion.thinking is not None for completion in state.result.completions):
            key = state.instance.id, state.instance.perturbation
            if key not in seen:
                seen.add(key)
                yield state.instance
