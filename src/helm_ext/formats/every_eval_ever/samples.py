"""A line of samples: what it must have, and what of it tells rows, repeats and scores apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from helm_ext.errors import DatasetSchemaError, Problems, show
from helm_ext.files import canonical_json
from helm_ext.formats.every_eval_ever.record import Aggregate, require_version
from helm_ext.formats.imported.structs import StructLines

JSONObject = dict[str, Any]

_REPEAT_KEYS = ("epoch", "trial")
"""Keys of `metadata` that number the times a question was asked: inspect's converter, and our export."""


class _Input(msgspec.Struct):
    raw: str
    reference: list[str]
    formatted: str | None = None
    choices: list[str] | None = None


class _Output(msgspec.Struct):
    raw: list[str]
    reasoning_trace: str | list[Any] | None = None


class _Message(msgspec.Struct):
    role: str
    content: str | None = None


class _Attribution(msgspec.Struct):
    extracted_value: Any


class _Evaluation(msgspec.Struct):
    score: float
    is_correct: bool


class _Line(msgspec.Struct):
    schema_version: str
    evaluation_id: str
    model_id: str
    evaluation_name: str
    sample_id: str
    interaction_type: Literal["single_turn", "multi_turn", "agentic"]
    input: _Input
    answer_attribution: list[_Attribution]
    evaluation: _Evaluation
    evaluation_result_id: str | None = None
    output: _Output | None = None
    messages: list[_Message] | None = None
    error: str | None = None
    metadata: JSONObject | None = None


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

    def pack(self) -> Sequence[Any]:
        """Return the sample as a record; `Sample(*record)` is the sample."""
        return self.line, self.value

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

    def __init__(self, path: Path, aggregate: Aggregate | None, problems: Problems) -> None:
        self._path = str(path)
        self._lines = StructLines(path, _Line, "sample of Every Eval Ever", problems)
        self._aggregate = aggregate
        self._problems = problems

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes on disk."""
        return self._lines.digest

    def __iter__(self) -> Iterator[Sample]:
        """Yield the lines that have the right shape; what is wrong with others goes to the problems.

        Raises DatasetError for a file that cannot be read, and for a version that is not known.
        """
        for number, value in self._lines:
            if self._fits(value, number):
                require_version(value["schema_version"], self._path, number)
                yield Sample(number, value)

    def _fits(self, value: JSONObject, line: int) -> bool:
        """Report where a line contradicts itself or its aggregate, and return whether it does not."""
        is_single, wrong = value["interaction_type"] == "single_turn", []
        output, messages = value.get("output"), value.get("messages")
        if is_single and output is None:
            wrong.append(("output", f"expected an object with raw, a list of texts, got {show(output)}"))
        if is_single and messages is not None:
            wrong.append(("messages", f"expected null, as single_turn has it, got {show(messages)}"))
        if not is_single and output is not None:
            wrong.append(("output", f"expected null, as conversations have it, got {show(output)}"))
        if not is_single and messages is None:
            wrong.append(("messages", "expected a list of objects with role, got null"))
        for place, message in wrong:
            self._problems.add((place,), message, line=line, code="shape", kind=DatasetSchemaError)
        named = self._aggregate
        of_other = [
            (key, right)
            for key, right in (("evaluation_id", named.evaluation_id), ("model_id", named.model))
            if value[key] != right
        ] if named else []  # fmt: skip
        for key, right in of_other:
            message = f"{show(value[key])} is not that of the aggregate, {show(right)}"
            self._problems.add((key,), message, line=line, code="other-record", kind=DatasetSchemaError)
        return not (wrong or of_other)


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(canonical_json(value), digest_size=12).digest()
