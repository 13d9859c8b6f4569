"""The fields of a sample that are read, of some forty (inspect_ai, log/_log.py, EvalSample), and its texts.

Everything else is skipped unparsed: events and store make up nearly all of a log. What only some samples need (texts
kept apart, events) is read from the same bytes when it is asked for.

Long texts and files stand once in a sample's `attachments`; in their place is `attachment://NAME` (`tc://NAME` in logs
of 2024). See inspect_ai, log/_condense.py (`resolve_attachment_fn`).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any

import msgspec
import numpy as np

from helm_ext.errors import DatasetIntegrityError, Location, show
from helm_ext.files import canonical_json, is_faithful, parse_json
from helm_ext.formats.imported.json_log import T, to_struct, without_nan
from helm_ext.formats.imported.row import Message as Turn

_PROTOCOLS = ("attachment://", "tc://")
_REMOVED = "<base64-data-removed>"
"""Stands for what a log was told not to hold (_util/constants.py)."""
_FEWEST = 64
"""Characters of base64 without a scheme before it. Shorter ones may be the name of a file."""


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

    @property
    def parts(self) -> list[Part]:
        """Pieces of the content; [] where it is one text."""
        return [] if isinstance(self.content, str) else self.content


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

    id: str | int
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
    input_refs: list[Annotated[list[int], msgspec.Meta(min_length=2, max_length=2)]] | None = None
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


def parse(data: bytes, kind: type[T], path: str, line: int = 1) -> T:
    """Read JSON that may hold NaN and Infinity, as inspect_ai writes scores.

    Raises DatasetSyntaxError for what is no JSON, DatasetSchemaError for other types than inspect_ai's.
    """
    try:
        return _read_sample(data) if kind is Sample else msgspec.json.decode(data, type=kind)  # type: ignore[return-value]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        parsed = to_struct(parse_json(data, path, line, allow_nan=True), kind, "sample of inspect_ai", path, line)
    if isinstance(parsed, Sample) and parsed.metadata:
        parsed.metadata = without_nan(parsed.metadata)
    return parsed


_PIECES = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _read_sample(data: bytes) -> Sample:
    """Read a sample. Raises MsgspecError where it, or what is read of it, has a key twice, or where this cannot be told
    (`is_faithful`). Of events and store, nearly all of a log, only the quotes are counted.
    """
    pieces = _PIECES.decode(data)
    read = {name: pieces[name] for name in Sample.__struct_fields__ if name in pieces}
    values = {name: msgspec.json.decode(piece) for name, piece in read.items()}
    is_whole = _count_quotes(data) == sum(map(_count_quotes, pieces.values())) + 2 * len(pieces)
    if not (is_whole and all(is_faithful(bytes(read[name]), value) for name, value in values.items())):
        raise msgspec.DecodeError("a key may be given twice")
    return msgspec.convert(values, Sample)


def _count_quotes(data: bytes | msgspec.Raw) -> int:
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord('"')))


@dataclass(slots=True)
class Logged:
    """A sample in an epoch, as it stands in a log."""

    sample: Sample
    path: str
    """What messages name: the file, of a `.eval` also the member."""
    line: int
    """Where it begins in what `path` names, from 1."""
    position: int
    """Where it begins in the file: its line, in a `.eval` its number."""
    read_extras: Callable[[], Extras]
    """Reads what only some samples are asked for."""


class Texts:
    """The texts of one sample."""

    def __init__(self, logged: Logged) -> None:
        self.media = 0
        """Images, files and the like in messages that were read."""
        self.media_removed = 0
        """Of these, what the log does not hold of a question (log_images=False)."""
        self._logged = logged

    @cached_property
    def extras(self) -> Extras:
        """What only some samples are asked for."""
        return self._logged.read_extras()

    def to_struct(self, value: Any, kind: type[T]) -> T:
        """Return what stands in an event as `kind`. Raises DatasetSchemaError that names the sample."""
        return to_struct(value, kind, "part of an event", self._logged.path, self._logged.line)

    def resolve(self, text: str) -> str:
        """Return a text, or the attachment that it stands for. Raises DatasetIntegrityError where there is none."""
        if not text.startswith(_PROTOCOLS):
            return text
        extras = self.extras
        attachments = extras.attachments or (extras.transcript.content if extras.transcript else {})
        found = attachments.get(text.partition("://")[2])
        if found is None:
            place, hint = Location(self._logged.path, self._logged.line), "the log is not whole"
            raise DatasetIntegrityError.at(place, f"no attachment {show(text)}", hint, code="attachment")
        return found

    def to_question(self, given: str | Sequence[Message]) -> str | list[Turn]:
        """Return the input of a sample: a text, or the turns of a conversation."""
        if isinstance(given, str):
            return self.resolve(given)
        return [{"role": message.role, "content": self.of_message(message)} for message in given]

    def find_media(self, given: str | Sequence[Message]) -> list[str]:
        """Return what tells the images and files of a sample's input from others: its URL or a digest of its bytes."""
        messages = () if isinstance(given, str) else given
        parts = [part for one in messages for part in one.parts]
        return [self._identify(part) for part in parts if part.type not in ("text", "reasoning")]

    def _identify(self, part: Part) -> str:
        given = next((one for one in (part.image, part.audio, part.video, part.document) if one is not None), None)
        if given is None:
            return f"{part.type} {_hash(canonical_json(part.data))}"
        value = self.resolve(given)
        self.media_removed += value == _REMOVED
        data = _decode(value)
        return f"{part.type} {value if data is None else _hash(data)}"

    def of_message(self, message: Message) -> str:
        """Return what a message says: its text parts, each on a line of its own, as for inspect_ai.

        Of what is no text (an image, a file) there is only a word, and it is counted.
        """
        if isinstance(message.content, str):
            return self.resolve(message.content)
        said = []
        for part in message.content:
            if part.text is not None and part.type == "text":
                said.append(self.resolve(part.text))
            elif part.type != "reasoning":
                self.media += 1
                said.append(f"[{part.type}]")
        return "\n".join(said)

    def thinking_of(self, message: Message) -> str | None:
        """Return the reasoning that a message keeps apart; None where it has none, or has it hidden."""
        if message.reasoning:
            return self.resolve(message.reasoning)
        parts = [part for part in message.parts if part.type == "reasoning"]
        said = [part.summary if part.redacted else part.reasoning for part in parts]
        return "\n".join(self.resolve(text) for text in said if text) or None


def _decode(value: str) -> bytes | None:
    """Return the bytes of a file that is written out; None for a URL or a path."""
    scheme, comma, data = value.partition(",")
    if not (scheme.startswith("data:") and comma):
        data = value if len(value) >= _FEWEST else ""
    elif not scheme.endswith(";base64"):
        return data.encode()
    try:
        return base64.b64decode(data, validate=True) or None
    except ValueError:
        return None


def _hash(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"
