"""Records as an EvalSet: conversations for HELM's chat method, or written out as text.

chat    messages are sent as they are, system included; the model's own template makes the prompt
text    System: You are terse.⏎⏎User: 2+2?⏎⏎Assistant: 4⏎⏎User: 3+3?⏎⏎Assistant:
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from helm_ext.errors import Location, Problem
from helm_ext.evalset import EXTRA_KEY, EvalSet, Places, Recorded, RowExtra
from helm_ext.formats.innodata.attributes import MAX_ATTRIBUTES, AttributeValues, short_attributes
from helm_ext.hub.chat_records import Message, Record

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.scenarios.scenario import Instance

    from helm_ext.files.store import RowStore
    from helm_ext.formats.innodata.options import Options
    from helm_ext.formats.innodata.replies import Replies
    from helm_ext.hub.meta import Meta

TEXT_STOP = "\n\nUser:"
"""With `render="text"` a model that goes on to write the user's next turn is stopped there."""

_ROLE_TITLES = {"system": "System", "user": "User", "assistant": "Assistant"}


@dataclass
class Content:
    """What was read of one split."""

    meta: Meta
    version: int | None
    """Of a dataset on the hub."""
    bundle_digest: str
    digest: str
    """Of the bundle, with `replies` of both files."""
    records: RowStore[Record]
    ids: Sequence[str] | None
    """Where models may be asked about them."""
    attributes: AttributeValues
    """Of these records."""
    counts: dict[str, int]
    warnings: list[Problem] = field(default_factory=list)
    replies: Replies | None = None


def to_evalset(content: Content, options: Options) -> EvalSet:
    """Return the records, ready for HELM. Raises RunEntryError for metrics that cannot be measured."""
    meta, version = content.meta, content.version
    label = meta.name if version is None else f"{meta.name} v{version}"
    shown, description = meta.attributes.get("display_name"), meta.attributes.get("description")
    own_attributes = short_attributes(meta.attributes)
    attributes = content.attributes.finish(meta.attributes)
    warnings = [*content.warnings]
    if len(attributes) > MAX_ATTRIBUTES:
        message = f"{len(attributes)} attributes: reports are grouped by the first {MAX_ATTRIBUTES} of their names"
        where = Location(str(options.dataset or options.path))
        warnings.append(Problem(message, where, severity="warning", code="many-attributes"))
        attributes = dict(islice(attributes.items(), MAX_ATTRIBUTES))
        own_attributes = {key: own_attributes[key] for key in attributes if key in own_attributes}

    from helm_ext.formats.innodata.stored import make_instances

    make = partial(_to_instance, own_attributes, attributes, options.render)
    return EvalSet(
        name=meta.name,
        format="innodata",
        digest=content.digest,
        question_digest=content.bundle_digest,  # whoever's replies: one column
        instances=make_instances(content.records, content.replies, content.ids, make),
        adapter_spec=_to_adapter_spec(options),
        scoring=options.to_scoring(),
        display_name=(f"{shown} v{version}" if version else shown) if isinstance(shown, str) else label,
        description=description if isinstance(description, str) else f"Chat dataset {label}, {options.split} split",
        tags=tuple(f"{key}={value}" for key, value in own_attributes.items()),
        warnings=tuple(warnings),
        counts=content.counts,
        # A record stands on each line: a blank one before the last is an error.
        places=Places(f"{options.dataset or options.path}/{options.split}.jsonl", range(1, len(content.records) + 1)),
        attributes=attributes,
    )


def _to_adapter_spec(options: Options) -> AdapterSpec:
    from helm.benchmark.adaptation.adapter_spec import ADAPT_CHAT, ADAPT_GENERATION, AdapterSpec

    stop = options.stop if options.stop is not None else [TEXT_STOP] if options.render == "text" else []
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


def _to_instance(
    own_attributes: Mapping[str, str],
    attributes: Mapping[str, Sequence[str]],
    render: str,
    record: Record,
    recorded: Recorded | None,
) -> Instance:
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
