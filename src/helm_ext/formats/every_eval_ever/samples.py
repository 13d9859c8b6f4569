"""A line of samples: what it must have, and what of it tells rows, repeats and scores apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from helm_ext.errors import DatasetSchemaError, Problems, show
from helm_ext.files import LineSource, canonical_json, iter_json_lines
from helm_ext.formats.every_eval_ever.record import Aggregate, require_version
from helm_ext.formats.every_eval_ever.schema import ENUMS, REQUIRED_OF_INSTANCE, find_missing
from helm_ext.formats.imported.row import is_finite_number

__all__ = ["Sample", "SampleFile"]

JSONObject = dict[str, Any]

_TEXTS = ("schema_version", "evaluation_id", "model_id", "sample_id", "evaluation_name")
_REPEAT_KEYS = ("epoch", "trial")
"""Keys of `metadata` that number the times a question was asked: inspect's converter, and our export."""


class Sample:
    """A line that has the right shape."""

    __slots__ = ("evaluation", "id", "line", "metadata", "result_id", "value")

    def __init__(self, line: int, value: JSONObject) -> None:
        self.line = line
        self.value = value
        self.id: str = value["sample_id"]
        """The id of its question."""
        self.evaluation: str = value["evaluation_name"]
        """What it is a sample of."""
        self.result_id: str | None = value.get("evaluation_result_id")
        """The result that its score belongs to."""
        self.metadata: Mapping[str, Any] = value.get("metadata") or {}
        """What else is said of it."""

    @property
    def repeat(self) -> str | None:
        """Which time the question was asked, where the line says it."""
        return next((str(self.metadata[key]) for key in _REPEAT_KEYS if key in self.metadata), None)

    @property
    def is_scored(self) -> bool:
        """Whether its score was made of an answer: a line must have one, and says 0 where the request failed."""
        output = self.value.get("output")
        return self.value.get("error") is None and not (output is not None and not output["raw"])

    @property
    def asked(self) -> bytes:
        """A digest of the question as it was asked."""
        return _digest([self.value["input"], (self.value.get("messages") or [])[:-1]])

    @property
    def content(self) -> bytes:
        """A digest of the question and of what came back."""
        return _digest([self.value["input"], self.value.get("output"), self.value.get("messages")])


class SampleFile:
    """A file of samples; iterate once. `digest` is complete after the last line."""

    def __init__(
        self, path: Path, aggregate: Aggregate | None, problems: Problems, *, is_checked: bool = False
    ) -> None:
        """`is_checked`: every line was found right before."""
        self._is_checked = is_checked
        self._path = path
        self._aggregate = aggregate
        self._problems = problems
        self.digest = ""
        """SHA-256 of the bytes on disk."""

    def __iter__(self) -> Iterator[Sample]:
        """Yield the lines that have the right shape; what is wrong with others goes to the problems.

        Raises DatasetError for a file that cannot be read, and for a version that is not known.
        """
        with LineSource(self._path) as lines:
            for number, value in iter_json_lines(lines, str(self._path), self._problems):
                if self._is_checked:
                    yield Sample(number, value)
                elif _check(number, value, self._aggregate, self._problems):
                    require_version(value["schema_version"], str(self._path), number)
                    yield Sample(number, value)
            self.digest = lines.digest


def _check(line: int, value: Any, aggregate: Aggregate | None, problems: Problems) -> bool:
    """Report what is wrong with a line, and return whether nothing is. Written for speed: this runs once a line."""
    if _is_plain(value) and (
        aggregate is None
        or (value["evaluation_id"] == aggregate.evaluation_id and value["model_id"] == aggregate.model)
    ):
        return True
    if not isinstance(value, dict):
        problems.add((), f"expected an object, got {show(value)}", line=line, code="shape", kind=DatasetSchemaError)
        return False
    missing = find_missing(value, REQUIRED_OF_INSTANCE)
    if missing:
        message = f"no sample of Every Eval Ever: without {', '.join(missing)}"
        problems.add((), message, line=line, code="shape", kind=DatasetSchemaError)
        return False
    before = problems.errors
    for where, expected, holds in _rules(value):
        if not holds:
            found: Any = value
            for key in where:
                found = found.get(key) if isinstance(found, dict) else None
            message = f"expected {expected}, got {show(found)}"
            problems.add(where, message, line=line, code="shape", kind=DatasetSchemaError)
    if aggregate is not None:
        for key, right in (("evaluation_id", aggregate.evaluation_id), ("model_id", aggregate.model)):
            if value[key] != right:
                message = f"{show(value[key])} is not that of the aggregate, {show(right)}"
                problems.add((key,), message, line=line, code="other-record", kind=DatasetSchemaError)
    return problems.errors == before


def _is_plain(value: Any) -> bool:
    """Whether a line is certainly right: a single turn, each field of its commonest type. Else the rules are asked."""
    try:
        given, output, evaluation = value["input"], value["output"], value["evaluation"]
        texts = [value[key] for key in _TEXTS]
        texts.append(given["raw"])
        optional = (value.get("evaluation_result_id"), given.get("formatted"), value.get("error"))
        return (
            value["interaction_type"] == "single_turn"
            and value.get("messages") is None
            and all([type(text) is str for text in texts])  # noqa: C419
            and all([text is None or type(text) is str for text in optional])  # noqa: C419
            and _are_texts(given["reference"])
            and _are_texts(output["raw"])
            and (given.get("choices") is None or _are_texts(given["choices"]))
            and is_finite_number(evaluation["score"])
            and type(evaluation["is_correct"]) is bool
            and type(value.get("metadata")) in (dict, NoneType)
            and type(value["answer_attribution"]) is list
            and all([type(said) is dict and "extracted_value" in said for said in value["answer_attribution"]])  # noqa: C419
        )
    except (KeyError, TypeError, AttributeError):
        return False


def _rules(value: JSONObject) -> Iterator[tuple[tuple[str, ...], str, bool]]:
    """Yield (field, what it must be, whether it is)."""
    given, output, messages = value["input"], value.get("output"), value.get("messages")
    kinds = ENUMS["interaction_type"]
    yield ("interaction_type",), f"one of {', '.join(kinds)}", value["interaction_type"] in kinds
    for key in _TEXTS:
        yield (key,), "text", isinstance(value[key], str)
    yield ("evaluation_result_id",), "text", isinstance(value.get("evaluation_result_id"), str | None)
    yield ("input", "raw"), "text", isinstance(given["raw"], str)
    yield ("input", "formatted"), "text", isinstance(given.get("formatted"), str | None)
    yield ("input", "reference"), "a list of texts", _are_texts(given["reference"])
    choices = given.get("choices")
    yield ("input", "choices"), "a list of texts", choices is None or _are_texts(choices)
    yield ("error",), "text", isinstance(value.get("error"), str | None)
    yield ("metadata",), "an object", isinstance(value.get("metadata"), dict | None)
    said = value["answer_attribution"]
    are_answers = isinstance(said, list) and all(isinstance(s, dict) and "extracted_value" in s for s in said)
    yield ("answer_attribution",), "a list of objects with extracted_value", are_answers
    score = value["evaluation"]["score"]
    yield ("evaluation", "score"), "a number", is_finite_number(score)
    yield ("evaluation", "is_correct"), "true or false", isinstance(value["evaluation"]["is_correct"], bool)
    if value["interaction_type"] == "single_turn":
        raw = output.get("raw") if isinstance(output, dict) else None
        yield ("output",), "an object with raw, a list of texts", _are_texts(raw)
        yield ("messages",), "null, as single_turn has it", messages is None
    elif value["interaction_type"] in kinds:
        yield ("output",), "null, as conversations have it", output is None
        yield ("messages",), "a list of objects with role", _are_messages(messages)


def _are_texts(value: Any) -> bool:
    return type(value) is list and all([type(one) is str for one in value])  # noqa: C419


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict) and isinstance(one.get("role"), str) and isinstance(one.get("content"), str | None)
        for one in value
    )


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(canonical_json(value), digest_size=12).digest()
