"""Annotators: what `helm-server` shows beside a prediction."""

from __future__ import annotations

from typing import Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.annotation.annotator import Annotator

from helm_ext import parsing
from helm_ext.evalset import Scoring
from helm_ext.scoring.answers import AnswerReader, get_options, keep_answers, move_thinking


class AnswerAnnotator(Annotator):
    """Shows which option a completion was read as. The score is made from the same reading (`AnswerReader`).

    HELM's own "mapped output" on the predictions page knows only completions that are exactly a label.
    """

    name = "answer"

    def __init__(
        self,
        metrics: list[str],
        output_mapping_pattern: str | None = None,
        multi_label: bool = False,
        **scoring: Any,
    ) -> None:
        self.reader = AnswerReader(
            Scoring(metrics=tuple(metrics), **scoring), output_mapping_pattern, multi_label=multi_label
        )

    def annotate(self, request_state: RequestState) -> dict[str, str]:
        """Return the label and the option's text (all of them, where several are asked for), or that none was read."""
        if request_state.result is None or request_state.reference_index is not None:
            return {}
        if self.reader.scoring.thinking == "move":
            move_thinking(request_state)
        options = get_options(request_state)
        completions = request_state.result.completions
        if not self.reader.is_list:
            completions = completions[:1]
        texts_read = [(completion.text, parsing.is_cut_off(completion.finish_reason)) for completion in completions]
        answers = [self.reader.read(text, options, is_cut_off=cut) for text, cut in texts_read]
        keep_answers(request_state, self.reader, options, dict(zip(texts_read, answers, strict=True)))
        if len(answers) == 1:
            [answer] = answers
            labels, texts = answer.labels, answer.options
        else:
            labels = tuple(label for answer in answers for label in answer.labels)
            texts = tuple(option for answer in answers for option in answer.options)
        if not labels:
            return {"read_as": "unmapped"}
        return {"read_as": ", ".join(labels), "option": ", ".join(filter(None, texts))}
