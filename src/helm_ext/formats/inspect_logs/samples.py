"""The fields of a sample that are read, of some forty (inspect_ai, log/_log.py, EvalSample).

Everything else is skipped unparsed: events and store make up nearly all of a log. What only some samples need (texts
kept apart, events) is read from the same bytes when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from helm_ext.files import parse_json
from helm_ext.formats.imported.structs import T, to_struct, without_nan


class Part(msgspec.Struct):
    """A piece of a message that is no plain text as a whole."""

    type: str = "text"
    text: str | None = None
    reasoning: str | None = None
    summary: str | None = None
    redacted: bool | None = None
    refusal: bool | None = None
    image: str | None = None
    audio: str | None = None
    video: str | None = None
    document: str | None = None
    data: Any = None


class ToolCall(msgspec.Struct):
    """A call of a tool."""

    function: str = ""
    arguments: dict[str, Any] | None = None


class Message(msgspec.Struct):
    """A turn of a conversation."""

    content: str | list[Part] = ""
    role: str = ""
    tool_calls: list[ToolCall] | None = None
    reasoning: str | None = None
    """Where logs before 0.3.60 or so keep it."""


class _Token(msgspec.Struct):
    logprob: float


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class Choice(msgspec.Struct):
    """One of the completions that a model was asked for at once; inspect_ai scores the first."""

    message: Message
    stop_reason: str | None = None
    logprobs: _Logprobs | None = None


class Output(msgspec.Struct):
    """What the model made of the sample, as the task's solver left it."""

    choices: list[Choice] = []
    completion: str | None = None


class SampleScore(msgspec.Struct):
    """What a scorer made of it."""

    value: Any = None
    """A text, number, true or false, or a list or object of these."""
    explanation: str | None = None
    metadata: dict[str, Any] | None = None
    history: list[Any] | None = None
    """Edits: not empty where somebody changed the score afterwards."""


class Sample(msgspec.Struct):
    """One question in one epoch."""

    id: int | str
    epoch: int
    input: str | list[Message]
    target: str | list[str]
    choices: list[str] | None = None
    output: Output | None = None
    scores: dict[str, SampleScore] | None = None
    score: SampleScore | None = None
    """Of the only scorer, in logs of 2024."""
    metadata: dict[str, Any] | None = None
    error: Any = None
    limit: Any = None
    invalidation: Any = None


class Event(msgspec.Struct):
    """Something that happened. What `input` and `output` are depends on the kind of the event."""

    event: str = ""
    type: str | None = None
    name: str | None = None
    action: str | None = None
    role: str | None = None
    intermediate: bool | None = None
    input: Any = None
    input_refs: list[tuple[int, int]] | None = None
    output: Any = None


class EventsData(msgspec.Struct):
    """What several events share."""

    messages: list[Message] = []


class _Transcript(msgspec.Struct):
    events: list[Event] = []
    content: dict[str, str] = {}


class Extras(msgspec.Struct):
    """What only some samples are asked for."""

    attachments: dict[str, str] = {}
    """Texts and files that stand once, by the name under which the sample refers to them."""
    events: list[Event] = []
    events_data: EventsData | None = None
    transcript: _Transcript | None = None
    """Events and attachments, in logs of 2024."""


def parse_quickly(kind: type[T]) -> Callable[[bytes], T | None]:
    """Return what reads bytes as `kind`, or returns None where they are no such JSON, or no strict one (NaN)."""
    decode = msgspec.json.Decoder(kind).decode

    def read(data: bytes) -> T | None:
        try:
            return decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    return read


def parse(data: bytes, kind: type[T], path: str, line: int = 1) -> T:
    """Read JSON that may hold NaN and Infinity, as inspect_ai writes scores.

    Raises DatasetSyntaxError for what is no JSON, DatasetSchemaError for other types than inspect_ai's.
    """
    parsed = to_struct(parse_json(data, path, line, allow_nan=True), kind, "sample of inspect_ai", path, line)
    if isinstance(parsed, Sample) and parsed.metadata:
        parsed.metadata = without_nan(parsed.metadata)
    return parsed
