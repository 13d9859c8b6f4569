"""What models said of a log's answers: scores of inspect_ai that a model gave, as judgements.

A score is one if its scorer is `model_graded_qa` or `model_graded_fact`, or if it holds the conversation with the
grader (`metadata.grading`; scorer/_model.py). Of a panel of graders the log has one reply at most, and the votes
(`metadata.panel`): one judgement of all of them. Not read as judgements: scores that somebody edited, values that are
no grades, and scores of `precomputed_scores`, of which the log says neither whether a person or a model gave them, nor
how their rows were chosen.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

from helm_ext.files import canonical_json
from helm_ext.formats.imported.values import to_number
from helm_ext.formats.inspect_logs.header import Header
from helm_ext.formats.inspect_logs.samples import SampleScore, Texts

_GRADERS = ("model_graded_qa", "model_graded_fact")
_NOT_FOUND = "Grade not found in model output: "
"""Begins the explanation where the grader's reply has no grade. Before 0.3.245 or so the value is "I" then."""
_OF_MODEL = ("model", "model_role")


class JudgementReader:
    """Reads the judgements of one log."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._told = {scorer.name.rpartition("/")[2]: scorer.options or {} for scorer in header.scorers}
        """What scorers were told, by their names."""
        self.partial: set[str] = set()
        """Criteria with grades between wrong and right. Known when all samples were seen."""

    def read(self, name: str, score: SampleScore, texts: Texts) -> dict[str, Any] | None:
        """Return a score as a judgement without its scale; None for a score that no model gave."""
        metadata = score.metadata or {}
        grading = metadata.get("grading")
        if not (name in _GRADERS or isinstance(grading, list)) or score.history:
            return None
        asked, said = (_message(grading, place, texts) for place in (0, 1))
        explanation = texts.resolve(score.explanation or "")
        is_unread = explanation.startswith(_NOT_FOUND)
        value = None if is_unread or isinstance(score.value, list | Mapping) else to_number(score.value)
        is_none = is_unread or (isinstance(score.value, float) and math.isnan(score.value))
        if not is_none and (value is None or value not in (0.0, 0.5, 1.0)):
            return None
        options = self._told.get(name, {})
        if value == 0.5 or options.get("partial_credit"):
            self.partial.add(name)
        made: dict[str, Any] = {
            "by": self._find_grader(options, grading), "kind": "model", "criterion": name,
            "status": "unparsed" if is_none else "ok", "rubric_sha256": self._digest_rubric(name, options),
        }  # fmt: skip
        if not is_none:
            made["value"] = value
        reply = said if said is not None else explanation.removeprefix(_NOT_FOUND)
        if isinstance(metadata.get("panel"), Mapping):
            made["params"] = {"panel": metadata["panel"]}  # the reply that the log has is that of one of them
        elif reply:
            made["reply"] = reply
        if asked is not None:
            made["prompt_sha256"] = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()
        return made

    def settle(self, judgement: Mapping[str, Any], completion: int) -> dict[str, Any]:
        """Return a judgement with its scale, when all samples were seen."""
        scale = [0, 0.5, 1] if judgement["criterion"] in self.partial else [0, 1]
        return {**judgement, "scale": scale, "completion": completion}

    def _find_grader(self, options: Mapping[str, Any], grading: Any) -> str:
        """Return who graded: as the scorer was told, as the reply says, or who had the role of a grader."""
        given = options.get("model")
        if given:
            return " + ".join(_name(one) for one in (given if isinstance(given, list) else [given]))
        reply = grading[1] if isinstance(grading, list) and len(grading) > 1 else None
        if isinstance(reply, Mapping) and isinstance(reply.get("model"), str) and reply["model"]:
            return str(reply["model"])
        bound = (self._header.spec.model_roles or {}).get(options.get("model_role") or "grader")
        return _name(bound) if bound else "not recorded"

    def _digest_rubric(self, name: str, options: Mapping[str, Any]) -> str:
        """Return a digest of what the grader was told: of inspect_ai's own words its version stands for them."""
        told = {key: value for key, value in options.items() if key not in _OF_MODEL}
        version = None if "template" in told and "instructions" in told else self._header.version
        return hashlib.sha256(canonical_json([name, told, version])).hexdigest()


def _message(grading: Any, place: int, texts: Texts) -> str | None:
    """Return the text of a message of the conversation with the grader; None where the log has none."""
    if not isinstance(grading, list) or len(grading) <= place or not isinstance(grading[place], Mapping):
        return None
    content = grading[place].get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "".join(text for text in parts if isinstance(text, str))
    return texts.resolve(content) if isinstance(content, str) else None


def _name(model: Any) -> str:
    if isinstance(model, list):
        return " + ".join(map(_name, model))
    return str(model.get("model") if isinstance(model, Mapping) else model)
