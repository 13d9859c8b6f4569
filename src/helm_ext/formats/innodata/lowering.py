"""Records as HELM's instances: conversations for its chat method, or written out as text.

chat    messages are sent as they are, system included; the model's own template makes the prompt
text    System: You are terse.⏎⏎User: 2+2?⏎⏎Assistant: 4⏎⏎User: 3+3?⏎⏎Assistant:
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from helm_ext.evalset import EXTRA_KEY, Recorded, RowExtra
from helm_ext.formats.innodata.attributes import short_attributes
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
