"""The result of one request: its answers, or why it has no answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from helm_ext.clients.openai_replies import Choice, Outcome, ReplyError, ReplyToken, parse_reply
from helm_ext.errors import show
from helm_ext.formats.imported.row import Answer
from helm_ext.formats.openai_batch.requests import Request

_CUT_BY = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Why a response is incomplete, in the words of the other endpoints."""


@dataclass(slots=True)
class Result:
    """What came back for one request."""

    answers: tuple[Answer, ...] = ()
    tokens: tuple[ReplyToken, ...] = ()
    """Of a request that is scored by log-probabilities: the prompt's."""
    text: str = ""
    """There the text that they spell."""
    failed: str = ""
    is_not_run: bool = False
    model: str = ""
    """As the reply spells it: that of a dated version."""
    calls_tools: bool = False
    """Whether an answer is a call of a tool, and no text."""


def parse_result(outcome: Outcome, request: Request) -> Result:
    """Return what a result says. Raises ReplyError for a reply that does not fit the request."""
    if outcome.failure:
        return Result(is_not_run=True) if outcome.is_not_run else Result(failed=outcome.failure)
    body = outcome.body
    if request.endpoint == "responses":
        return _parse_response(body)
    reply = parse_reply(body, request.endpoint, number=request.number, echo=request.is_scored)
    if request.is_scored:
        choice = reply.choices[0]
        return Result(tokens=_without_beginning(choice), text=choice.text, model=reply.model)
    calls = any(_calls_tools(each) for each in body["choices"])
    answers = tuple(_to_answer(choice, request) for choice in reply.choices)
    return Result(answers, model=reply.model, calls_tools=calls)


def _calls_tools(choice: Mapping[str, Any]) -> bool:
    """Whether a choice calls tools instead of an answer in words. `function_call` is the older name."""
    message = choice.get("message")
    if not isinstance(message, dict) or message.get("content"):
        return False
    return bool(message.get("tool_calls") or message.get("function_call"))


def _without_beginning(choice: Choice) -> tuple[ReplyToken, ...]:
    """Return the tokens with offsets into the choice's text.

    vLLM counts the special token that begins a prompt ("<s>") into the offsets, and leaves it out of the text.
    """
    spelt = "".join(token.text for token in choice.tokens)
    added = len(spelt) - len(choice.text)
    if added <= 0 or not spelt.endswith(choice.text) or choice.tokens[0].offset != 0:
        return choice.tokens
    moved = (replace(token, offset=None if token.offset is None else token.offset - added) for token in choice.tokens)
    return tuple(token for token in moved if token.offset is None or token.offset >= 0)


def _to_answer(choice: Choice, request: Request) -> Answer:
    text, tokens = choice.text, choice.tokens
    if request.echo:
        text, tokens = _without_prompt(choice, str(request.question))
    known = [token.logprob for token in tokens if token.logprob is not None]
    return Answer(
        text,
        finish_reason=choice.finish_reason or "",
        thinking=choice.thinking,
        logprob=sum(known) if known else None,
        is_refusal=choice.is_refusal,
    )


def _without_prompt(choice: Choice, prompt: str) -> tuple[str, tuple[ReplyToken, ...]]:
    """Return what follows the prompt that the answer repeats: the tokens say where it ends.

    A server may spell the prompt in other characters than the request; where it gives no tokens, the two must be equal.
    """
    tokens = _without_beginning(choice)
    offsets = [token.offset for token in tokens]
    if offsets and None not in offsets:
        first = offsets[0] or 0
        end = next((offset for offset in offsets if offset is not None and offset - first >= len(prompt)), None)
        start = len(choice.text) if end is None else end - first
        kept = tuple(token for token in tokens if token.offset is not None and token.offset - first >= len(prompt))
        return choice.text[start:], kept
    if not choice.text.startswith(prompt):
        raise ReplyError("the answer should repeat the prompt (echo), and begins otherwise")
    return choice.text[len(prompt) :], ()


def _parse_response(body: Any) -> Result:
    """Return the answer of the endpoint responses: the texts of its messages, without the reasoning."""
    if not isinstance(body, dict) or not isinstance(body.get("output"), list):
        raise ReplyError(f"output: expected a list, got {show(body.get('output') if isinstance(body, dict) else body)}")
    model, status = str(body.get("model") or ""), body.get("status")
    if status in ("failed", "cancelled"):
        error = body.get("error")
        said = error.get("message") if isinstance(error, dict) else error
        return Result(failed=f"{status}: {show(said)}" if said else str(status), model=model)
    if status not in ("completed", "incomplete", None):
        return Result(failed=f"status {show(status)}", model=model)
    texts: list[Any] = []
    refusals: list[Any] = []
    thoughts: list[Any] = []
    calls = False
    for item in body["output"]:
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "message":
            for part in _parts(item, "content"):
                if part.get("type") == "output_text":
                    texts.append(part.get("text"))
                elif part.get("type") == "refusal":
                    refusals.append(part.get("refusal"))
        elif kind == "reasoning":
            thoughts += [part.get("text") for part in _parts(item, "summary")]
        calls = calls or str(kind).endswith("_call")
    if not all(isinstance(text, str) for text in (*texts, *refusals)):
        raise ReplyError("output: expected texts in the parts of a message")
    answer = Answer(
        "".join(texts) or "".join(refusals),
        finish_reason=_why_it_ends(body) if status == "incomplete" else "stop",
        thinking="\n".join(filter(None, thoughts)) or None,
        is_refusal=bool(refusals) and not any(texts),
    )
    return Result((answer,), model=model, calls_tools=calls and not texts and not refusals)


def _parts(item: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the parts of an item of a response. Raises ReplyError for what is no list of objects."""
    parts = item.get(key) or []
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise ReplyError(f"output: {key}: expected a list of objects, got {show(parts)}")
    return parts


def _why_it_ends(body: Mapping[str, Any]) -> str:
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return _CUT_BY.get(str(reason), "length")
