"""A row of a finished run as lines of samples of Every Eval Ever: what is the same in those of each score."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from helm_ext.analysis.export.tables import as_text, to_json
from helm_ext.analysis.judged import to_portable
from helm_ext.analysis.predictions import Prediction
from helm_ext.formats.every_eval_ever.record import KEPT

JSONObject = dict[str, Any]


def to_shared(row: Prediction, *, counts_tokens: bool) -> JSONObject:
    """Return what is the same in all lines of a row. `counts_tokens`: whether its numbers of tokens were measured."""
    kept: JSONObject = row.data.get(KEPT) or {}
    turns = [message for message in row.messages or () if message["role"] != "system"]
    is_dialogue = len(turns) > 1
    raw = kept.get("raw", row.input or (as_text(turns[-1].get("content")) if turns else ""))
    reference = kept.get("reference", row.gold)
    said: JSONObject = {"raw": raw, "reference": reference}
    formatted = _format(row, is_dialogue=is_dialogue)
    if formatted is not None and (formatted != raw or kept):
        said["formatted"] = formatted
    asked_each = any(completion["reference_index"] is not None for completion in row.completions)
    if row.options or asked_each:
        said["choices"] = list(row.options.values()) if row.options else [one["text"] for one in row.references]
    outputs = [completion["text"] for completion in row.completions]
    if row.read.method == "log_likelihood":  # of options that were asked about by themselves, the chosen one
        outputs = [] if row.read.text is None else [row.read.text]
    shared: JSONObject = {
        "sample_hash": to_hash(raw, reference),
        "interaction_type": "multi_turn" if is_dialogue else "single_turn",
        "input": said,
        "evaluation": {},
    }
    if is_dialogue:
        messages = [
            {"turn_idx": turn, "role": message["role"], "content": as_text(message.get("content"))}
            for turn, message in enumerate(row.messages or ())
        ]
        if outputs:
            messages.append({"turn_idx": len(messages), "role": "assistant", "content": outputs[0]})
        shared |= {"output": None, "messages": messages, "evaluation": {"num_turns": len(messages)}}
    else:
        output: JSONObject = {"raw": outputs}
        thoughts = [completion["thinking"] for completion in row.completions if completion["thinking"]]
        shared |= {"output": {**output, **({"reasoning_trace": thoughts} if thoughts else {})}, "messages": None}
    shared["answer_attribution"] = _attribute(row, outputs, shared["messages"])
    shared |= _measure(row, counts_tokens=counts_tokens)
    shared["metadata"] = _to_metadata(row, outputs[1:] if is_dialogue else ())
    return shared


def _measure(row: Prediction, *, counts_tokens: bool) -> JSONObject:
    """Return times and tokens, where they were measured: of HELM's own runs without a tokenizer tokens are not."""
    measured: JSONObject = {}
    if row.request_time is not None:
        measured["performance"] = {"latency_ms": row.request_time * 1000}
    tokens = [row.scores.get(name) for name in ("num_prompt_tokens", "num_output_tokens")]
    if counts_tokens and None not in tokens:
        read, written = (int(number or 0) for number in tokens)
        measured["token_usage"] = {
            "input_tokens": read, "output_tokens": written, "total_tokens": read + written
        }  # fmt: skip
    return measured


def _format(row: Prediction, *, is_dialogue: bool) -> str | None:
    """Return what the model was sent, where it is more than the bare question: a conversation as JSON."""
    kept: JSONObject | None = row.data.get(KEPT)
    if kept is not None and is_dialogue:
        return kept.get("formatted")
    if kept is not None and "raw" not in kept:
        return None
    if row.prompt or (kept is not None and row.input):
        return row.prompt or row.input
    turns = row.messages or []
    if kept is not None and len(turns) == 1:  # a text, beside conversations
        return as_text(turns[0].get("content"))
    return to_json(turns) if len(turns) > 1 else None


def _attribute(row: Prediction, outputs: Sequence[str], messages: Sequence[JSONObject] | None) -> list[JSONObject]:
    if not outputs:
        return []
    unread = row.read.method == "unknown"
    turn = len(messages) - 1 if messages else 0
    return [
        {
            "turn_idx": turn,
            "source": "messages[turn_idx].content" if messages else "output.raw",
            "extracted_value": outputs[0] if unread else row.read.text or "",
            "extraction_method": "none" if unread else row.read.method,
            "is_terminal": True,
        }
    ]


def to_hash(raw: str, reference: Sequence[str]) -> str:
    """Return the hash that tells one question from another across models and tools.

    Upstream's recipe (.agents/skills/eee-dataset-conversion/reference/instance-level.md): ASCII, compact, sorted.
    """
    text = json.dumps({"raw": raw, "reference": list(reference)}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _to_metadata(row: Prediction, other_outputs: Sequence[str]) -> dict[str, str]:
    """Return what else is known of a row, as text."""
    said: dict[str, Any] = {
        "trial": row.trial,
        "split": row.split,
        "sub_split": row.sub_split,
        "perturbation": row.perturbation,
        "answer_label": row.read.label,
        "option_labels": list(row.options) if row.options else None,
        "left_out": row.left_out,
        "cluster": row.cluster,
        "likelihoods": row.likelihoods or None,
        "other_outputs": list(other_outputs) or None,
        "judgements": to_portable(row) or None,
    }
    own = {**row.attributes, **{key: value for key, value in row.data.items() if key != KEPT}}
    known = {key: value for key, value in said.items() if value is not None}
    texts = {key: as_text(value) for key, value in known.items()}
    for key, value in own.items():
        if value is not None and texts.get(key) != as_text(value):
            texts[key if key not in texts else f"data.{key}"] = as_text(value)
    return texts
