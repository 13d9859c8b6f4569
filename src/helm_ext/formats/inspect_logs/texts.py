"""Texts of a sample: messages and their parts, and what stands apart as an attachment.

Long texts and files stand once in a sample's `attachments`; in their place is `attachment://NAME` (`tc://NAME` in logs
of 2024). See inspect_ai, log/_condense.py (`resolve_attachment_fn`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helm_ext.errors import DatasetIntegrityError, Location, Problem, show
from helm_ext.formats.imported.row import Message as Turn
from helm_ext.formats.inspect_logs.reading import Logged
from helm_ext.formats.inspect_logs.samples import Extras, Message, T, to_type

__all__ = ["Texts"]

_PROTOCOLS = ("attachment://", "tc://")


class Texts:
    """The texts of one sample."""

    def __init__(self, logged: Logged) -> None:
        self.media = 0
        """Images, files and the like in messages that were read."""
        self._logged = logged
        self._extras: Extras | None = None

    @property
    def extras(self) -> Extras:
        """What only some samples are asked for; read once."""
        if self._extras is None:
            self._extras = self._logged.read_extras()
        return self._extras

    def to_type(self, value: Any, kind: type[T]) -> T:
        """Return what stands in an event as `kind`. Raises DatasetSchemaError that names the sample."""
        return to_type(value, kind, self._logged.path, self._logged.line)

    def resolve(self, text: str) -> str:
        """Return a text, or the attachment that it stands for. Raises DatasetIntegrityError where there is none."""
        if not text.startswith(_PROTOCOLS):
            return text
        found = self._attachments().get(text.partition("://")[2])
        if found is None:
            place, hint = Location(self._logged.path, self._logged.line), "the log is not whole"
            problem = Problem(f"no attachment {show(text)}", place, hint, code="attachment", kind=DatasetIntegrityError)
            raise DatasetIntegrityError([problem])
        return found

    def to_question(self, given: str | Sequence[Message]) -> str | list[Turn]:
        """Return the input of a sample: a text, or the turns of a conversation."""
        if isinstance(given, str):
            return self.resolve(given)
        return [{"role": message.role, "content": self.of_message(message)} for message in given]

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
