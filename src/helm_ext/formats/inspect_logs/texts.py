"""Texts of a sample: messages and their parts, and what stands apart as an attachment.

Long texts and files stand once in a sample's `attachments`; in their place is `attachment://NAME` (`tc://NAME` in logs
of 2024). See inspect_ai, log/_condense.py (`resolve_attachment_fn`).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from helm_ext.errors import DatasetIntegrityError, Location, show
from helm_ext.files import canonical_json
from helm_ext.formats.imported.row import Message as Turn
from helm_ext.formats.imported.structs import T, to_struct
from helm_ext.formats.inspect_logs.reading import Logged
from helm_ext.formats.inspect_logs.samples import Extras, Message, Part

_PROTOCOLS = ("attachment://", "tc://")
_REMOVED = "<base64-data-removed>"
"""Stands for what a log was told not to hold (_util/constants.py)."""
_FEWEST = 64
"""Characters of base64 without a scheme before it. Shorter ones may be the name of a file."""


class Texts:
    """The texts of one sample."""

    def __init__(self, logged: Logged) -> None:
        self.media = 0
        """Images, files and the like in messages that were read."""
        self.media_removed = 0
        """Of these, what the log does not hold of a question (log_images=False)."""
        self._logged = logged
        self._extras: Extras | None = None

    @property
    def extras(self) -> Extras:
        """What only some samples are asked for; read once."""
        if self._extras is None:
            self._extras = self._logged.read_extras()
        return self._extras

    def to_struct(self, value: Any, kind: type[T]) -> T:
        """Return what stands in an event as `kind`. Raises DatasetSchemaError that names the sample."""
        return to_struct(value, kind, "part of an event", self._logged.path, self._logged.line)

    def resolve(self, text: str) -> str:
        """Return a text, or the attachment that it stands for. Raises DatasetIntegrityError where there is none."""
        if not text.startswith(_PROTOCOLS):
            return text
        found = self._attachments().get(text.partition("://")[2])
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
        parts = [part for one in messages if not isinstance(one.content, str) for part in one.content]
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
        if isinstance(message.content, str):
            return None
        parts = [part for part in message.content if part.type == "reasoning"]
        said = [part.summary if part.redacted else part.reasoning for part in parts]
        return "\n".join(self.resolve(text) for text in said if text) or None

    def _attachments(self) -> Mapping[str, str]:
        extras = self.extras
        return extras.attachments or (extras.transcript.content if extras.transcript else {})


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
