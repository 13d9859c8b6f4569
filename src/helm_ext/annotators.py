"""Annotators: what `helm-server` shows beside a prediction."""

from __future__ import annotations

from typing import Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.annotation.annotator import Annotator

from helm_ext.evalset import Scoring
from helm_ext.metrics import read_answer

__all__ = ["AnswerAnnotator"]


class AnswerAnnotator(Annotator):
    """Shows which option a completion was read as. The score is made from the same reading (`read_answer`).

    HELM's own "mapped output" on the predictions page knows only completions that are exactly a label.
    """

    name = "answer"

    def __init__(self, metrics: list[str], output_mapping_pattern: str | None = None, **scoring: Any) -> None:
        self.scoring = Scoring(metrics=tuple(metrics), **scoring)
        self.pattern = output_mapping_pattern

    def annotate(self, request_state: RequestState) -> dict[str, str]:
        """Return the label and the option's text, or that nothing was read."""
        if request_state.result is None or request_state.reference_index is not None:
            return {}
        answer = read_answer(request_state.result.completions[0].text, request_state, self.scoring, self.pattern)
        if answer.label is None:
            return {"read_as": "unmapped"}
        return {"read_as": answer.label, "option": answer.text}
