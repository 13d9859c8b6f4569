"""A line of samples: what it must have, what of it tells rows, repeats and scores apart, and what it says."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from helm_ext.errors import DatasetSchemaError, Problems, show
from helm_ext.files import canonical_json
from helm_ext.formats.every_eval_ever.record import Aggregate, JSONObject, require_version
from helm_ext.formats.imported.gold import to_options
from helm_ext.formats.imported.row import Message, is_finite_number
from helm_ext.formats.imported.structs import StructLines

_REPEAT_KEYS = ("epoch", "trial")
"""Keys of `metadata` that number the times a question was asked: inspect's converter, and our export."""
LABELS = "option_labels"
"""The key of `metadata` under which our export keeps the labels of options, as a JSON list."""
_LM_EVAL_METRICS = "lm_eval_metrics"
"""The key of `metadata` under which upstream's converter keeps lm-eval's scores of a sample, as a JSON object."""


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


class Sample(NamedTuple):
    """A line that has the right shape."""

    line: int
    value: JSONObject

    @property
    def id(self) -> str:
        """The id of its question."""
        return str(self.value["sample_id"])

    @property
    def evaluation(self) -> str:
        """What it is a sample of."""
        return str(self.value["evaluation_name"])

    @property
    def result_id(self) -> str | None:
        """The result that its score belongs to."""
        return self.value.get("evaluation_result_id")

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What else is said of it."""
        return self.value.get("metadata") or {}

    @property
    def references(self) -> list[str]:
        """What is right."""
        return self.value["input"]["reference"]

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
    def score(self) -> float:
        """Its score."""
        return float(self.value["evaluation"]["score"])

    @property
    def asked(self) -> bytes:
        """A digest of the question as it was asked."""
        return _digest([self.value["input"], (self.value.get("messages") or [])[:-1]])

    @property
    def content(self) -> bytes:
        """A digest of the question and of what came back."""
        return _digest([self.value["input"], self.value.get("output"), self.value.get("messages")])


def open_samples(path: Path, problems: Problems) -> StructLines:
    """Return the lines of a file that have the right shape; what is wrong with others goes to the problems."""
    return StructLines(path, _Line, "sample of Every Eval Ever", problems)


def read_samples(
    lines: Iterable[tuple[int, JSONObject]], path: Path, aggregate: Aggregate | None, problems: Problems
) -> Iterator[Sample]:
    """Yield the lines that do not contradict themselves or their aggregate; what is wrong goes to the problems.

    Raises DatasetError for a file that cannot be read, and for a version that is not known.
    """
    for number, value in lines:
        wrong = [*_find_contradictions(value, aggregate)]
        for key, message in wrong:
            problems.add((key,), message, line=number, code="shape", kind=DatasetSchemaError)
        if not wrong:
            require_version(value["schema_version"], str(path), number)
            yield Sample(number, value)


def _find_contradictions(value: JSONObject, aggregate: Aggregate | None) -> Iterator[tuple[str, str]]:
    is_single = value["interaction_type"] == "single_turn"
    for key, is_needed, shape in (
        ("output", is_single, "an object with raw, a list of texts"),
        ("messages", not is_single, "a list of objects with role"),
    ):
        given = value.get(key)
        if (given is not None) is not is_needed:
            yield (
                key,
                f"expected {shape if is_needed else 'null'}, as {value['interaction_type']} has it, got {show(given)}",
            )
    for key, right in (("evaluation_id", aggregate.evaluation_id), ("model_id", aggregate.model)) if aggregate else ():
        if value[key] != right:
            yield key, f"{show(value[key])} is not that of the aggregate, {show(right)}"


def read_options(sample: Sample) -> dict[str, str] | None:
    """Return the options of a sample, by label: its own labels where it has some, else A, B, C, ..."""
    choices = sample.value["input"].get("choices")
    if not choices:
        return None
    labels = read_json(sample.metadata.get(LABELS))
    if isinstance(labels, list) and len(labels) == len(choices) == len({*map(str, labels)}):
        return dict(zip(map(str, labels), choices, strict=True))
    if len(choices) > 26:
        return {str(number): text for number, text in enumerate(choices, 1)}
    return to_options(choices)


def name_scores(sample: Sample, aggregate: Aggregate | None) -> tuple[dict[str, float], bool]:
    """Return the scores of a sample by the names of their results, and whether its result can be told."""
    results = aggregate.find(sample.result_id, sample.evaluation) if aggregate else []
    if len(results) == 1:
        return {results[0].name: sample.score}, True
    metrics = read_json(sample.metadata.get(_LM_EVAL_METRICS))
    by_name = {
        result.name: float(value)
        for result in results
        for metric, value in (metrics.items() if isinstance(metrics, dict) else ())
        if is_finite_number(value) and (result.described == metric or result.described.startswith(f"{metric} ("))
    }
    if by_name:
        return by_name, True
    return {sample.result_id or sample.evaluation: sample.score}, not results


def read_list(text: str) -> list[str] | None:
    """Return the texts of a Python list of texts, None for any other text. No code is run."""
    if not text.startswith("["):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) and value and all(isinstance(one, str) for one in value) else None


def read_conversation(formatted: str | None) -> list[Message] | None:
    """Return the messages of a prompt that is written as a JSON list of them; None for any other prompt."""
    if not formatted or not formatted.startswith('[{"role": '):
        return None
    turns = read_json(formatted)
    if not isinstance(turns, list):
        return None
    fits = all(isinstance(t, dict) and t.keys() == {"role", "content"} and isinstance(t["content"], str) for t in turns)
    return turns if fits else None


def read_json(text: Any) -> Any:
    """Return the value of a JSON text; None for anything else."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(canonical_json(value), digest_size=12).digest()
