"""Records as HELM's instances: conversations for its chat method, or written out as text; with their attributes, what
reports of a bundle can be grouped by (docs/innodata.md, "Attributes").

chat    messages are sent as they are, system included; the model's own template makes the prompt
text    System: You are terse.⏎⏎User: 2+2?⏎⏎Assistant: 4⏎⏎User: 3+3?⏎⏎Assistant:
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from helm_ext.evalset import EXTRA_KEY, Recorded, RowExtra
from helm_ext.formats.innodata.hub.records import Message, Record

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.scenarios.scenario import Instance

    from helm_ext.formats.innodata.options import Options

_TEXT_STOP = "\n\nUser:"
"""With `render="text"` a model that goes on to write the user's next turn is stopped there."""

_ROLE_TITLES = {"system": "System", "user": "User", "assistant": "Assistant"}


def to_adapter_spec(options: Options) -> AdapterSpec:
    """Return how models are asked: nothing is added to what a record says."""
    from helm.benchmark.adaptation.adapter_spec import ADAPT_CHAT, ADAPT_GENERATION, AdapterSpec

    stop = options.stop if options.stop is not None else [_TEXT_STOP] if options.render == "text" else []
    nothing = dict.fromkeys(
        ("instructions", "input_prefix", "input_suffix", "reference_prefix", "reference_suffix", "output_prefix",
         "output_suffix", "instance_prefix"), ""
    )  # fmt: skip
    return AdapterSpec(
        method=ADAPT_CHAT if options.render == "chat" else ADAPT_GENERATION,
        **nothing,
        max_train_instances=0,
        num_outputs=1,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        stop_sequences=list(stop),
    )


def to_instance(
    own_attributes: Mapping[str, str],
    attributes: Mapping[str, Sequence[str]],
    render: str,
    record: Record,
    recorded: Recorded | None,
) -> Instance:
    """Return a record as an instance. `attributes`: what reports are grouped by; `own_attributes`: the dataset's."""
    from helm.benchmark.scenarios.scenario import CORRECT_TAG, TEST_SPLIT, Input, Instance, Output, Reference

    extra: RowExtra = {}
    if record.extra:
        extra["data"] = record.extra
    mine = {key: text for key, text in own_attributes.items() if key in attributes and key not in record.extra}
    mine |= short_attributes({key: value for key, value in record.extra.items() if key in attributes})
    if mine:
        extra["attributes"] = {key: mine[key] for key in attributes if key in mine}
    if recorded is not None:
        extra["only"] = "recorded"  # who names replies wants them scored: another model is refused, not asked
        extra["recorded"] = recorded
    if render == "chat":
        shown = Input(messages=[{"role": m["role"], "content": m["content"]} for m in record.messages])
    else:
        shown = Input(text=render_text(record.messages))
    return Instance(
        input=shown,
        references=[Reference(Output(record.expected), tags=[CORRECT_TAG])],
        split=TEST_SPLIT,
        id=record.id,
        extra_data={EXTRA_KEY: extra},
    )


def render_text(messages: Iterable[Message]) -> str:
    """Write a conversation as a text prompt that ends where the assistant's reply begins."""
    turns = [f"{_ROLE_TITLES[message['role']]}: {message['content']}" for message in messages]
    return "\n\n".join([*turns, "Assistant:"])


MAX_ATTRIBUTES = 100
"""Reports are grouped by this many, the first ones by name: each row carries its values, and each has columns."""

_MAX_VALUES = 20
_MAX_LENGTH = 40
"""Characters of an attribute's name, and of a value: both stand in the titles of tables and columns."""
_NOT_GROUPED = ("description", "display_name", "license", "source", "url", "author", "citation")
"""Attributes that describe a dataset and do not divide it."""


class AttributeValues:
    """What reports can be grouped by, noted while records are read: each attribute and the values that occur.

    An attribute is a key of `meta.json` or an extra key of records, short itself, whose values are all short strings,
    whole numbers or true/false, with at most 20 different ones. A record's own value goes before the dataset's; with
    null or "" a record has none.
    """

    def __init__(self) -> None:
        self._records = 0
        self._own: dict[str, int] = {}
        """How many records have the key."""
        self._values: dict[str, set[str]] = {}
        self._unfit: set[str] = set()

    def add(self, record: Record) -> None:
        """Note the values of a record."""
        self._records += 1
        for key, value in record.extra.items():
            self._own[key] = self._own.get(key, 0) + 1
            self._note(key, value)

    def finish(self, meta_attributes: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        """Return the attributes by name, the values of each sorted, with those that the dataset has of its own."""
        for key, value in meta_attributes.items():
            if self._own.get(key, 0) < self._records:  # else every record has a value of its own
                self._note(key, value)
        return {key: tuple(sorted(self._values[key])) for key in sorted(self._values) if key not in self._unfit}

    def _note(self, key: str, value: Any) -> None:
        if key in self._unfit or _is_empty(value):
            return
        text = _as_value(key, value)
        if text is None:
            self._unfit.add(key)
            return
        values = self._values.setdefault(key, set())
        values.add(text)
        if len(values) > _MAX_VALUES:
            self._unfit.add(key)


def short_attributes(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes that can be shown, as they are shown."""
    return {key: text for key, value in values.items() if (text := _as_value(key, value))}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _as_value(key: str, value: Any) -> str | None:
    """Return an attribute's value as it is shown, or None for one that is no short scalar, or has no short name."""
    if key in _NOT_GROUPED or not isinstance(value, (str, int)) or not _is_short(key):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    return text if _is_short(text) else None


def _is_short(text: str) -> bool:
    return 0 < len(text) <= _MAX_LENGTH and text.isprintable()
