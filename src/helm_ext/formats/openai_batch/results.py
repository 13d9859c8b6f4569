"""What came back for the requests of a batch: answers, or why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from helm_ext.clients.openai_replies import (
    Choice,
    Outcome,
    ReplyError,
    ReplyToken,
    parse_output,
    parse_reply,
)
from helm_ext.errors import DatasetIntegrityError, DatasetSchemaError, Location, Problems, raise_for, show
from helm_ext.files import LineSource, iter_json_lines
from helm_ext.formats.imported.row import Answer, as_object
from helm_ext.formats.openai_batch.requests import Request

_CUT_BY = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Why a response is incomplete, in the words of the other endpoints."""
_HINT = "name the files that belong together: output=FILE+FILE"


@dataclass(slots=True)
class Result:
    """What came back for one request."""

    answers: tuple[Answer, ...] = ()
    tokens: tuple[ReplyToken, ...] = ()
    """Of a request that is scored by log-probabilities: the prompt's."""
    failed: str = ""
    is_not_run: bool = False
    model: str = ""
    """As the reply spells it: that of a dated version."""
    calls_tools: bool = False
    """Whether an answer is a call of a tool, and no text."""


class Results(dict[str, Result]):
    """The results of a batch, by custom_id."""

    def __init__(self, asked: Mapping[str, Request]) -> None:
        super().__init__()
        self._asked = asked
        self._places: dict[str, Location] = {}
        self.counts = Counter({"lines": len(asked)})
        self.digests: list[str] = []

    def read(self, path: Path) -> None:
        """Take the results of a file. Raises DatasetError with all problems."""
        problems = Problems(str(path))
        with LineSource(path) as lines:
            for number, value in iter_json_lines(lines, str(path), problems):
                self._take(value, Location(str(path), number), problems)
            self.digests.append(lines.digest)
        raise_for(problems.finish())

    def _take(self, value: Any, place: Location, problems: Problems) -> None:
        try:
            outcome = parse_output(value)
        except ReplyError as error:
            problems.add(place, str(error), code="output", kind=DatasetSchemaError)
            return
        custom_id = outcome.custom_id
        request = self._asked.get(custom_id)
        if request is None:
            message = f"{show(custom_id)} is no request of this batch"
            problems.add(place, message, _HINT, code="unknown-id", kind=DatasetIntegrityError)
            return
        try:
            result = _parse_result(outcome, request)
        except ReplyError as error:
            result = Result(failed=f"the reply is of no use: {error}")
        known = self.get(custom_id)
        if known == result:
            self.counts["duplicates"] += 1
        elif known is not None:
            first = self._places[custom_id]
            message = f"another result for {show(custom_id)} stands in {Path(first.path).name}:{first.line}"
            problems.add(place, message, _HINT, code="two-results", kind=DatasetIntegrityError)
        else:
            self[custom_id], self._places[custom_id] = result, place
            if result.calls_tools:
                self.counts["tool_calls"] += 1
            if any(answer.finish_reason == "content_filter" for answer in result.answers):
                self.counts["filtered"] += 1


def _parse_result(outcome: Outcome, request: Request) -> Result:
    """Return what a result says. Raises ReplyError for a reply that does not fit the request."""
    if outcome.failure:
        return Result(is_not_run=True) if outcome.is_not_run else Result(failed=outcome.failure)
    body = outcome.body
    if request.endpoint == "responses":
        return _parse_response(body)
    reply = parse_reply(body, request.endpoint, number=request.number, echo=request.is_scored)
    if request.is_scored:
        choice = reply.choices[0]
        return Result(tokens=_without_beginning(choice), model=reply.model)
    answers = tuple(_to_answer(choice, request) for choice in reply.choices)
    return Result(answers, model=reply.model, calls_tools=any(map(_calls_tools, body["choices"])))


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
    offsets = [token.offset for token in tokens if token.offset is not None]
    if offsets and len(offsets) == len(tokens):
        number = sum(offset - offsets[0] < len(prompt) for offset in offsets)
        start = len(choice.text) if number == len(offsets) else offsets[number] - offsets[0]
        return choice.text[start:], tokens[number:]
    if not choice.text.startswith(prompt):
        raise ReplyError("the answer should repeat the prompt (echo), and begins otherwise")
    return choice.text[len(prompt) :], ()


def _parse_response(body: Any) -> Result:
    """Return the answer of the endpoint responses: the texts of its messages, without the reasoning."""
    if not isinstance(body, dict) or not isinstance(body.get("output"), list):
        raise ReplyError(f"output: expected a list, got {show(as_object(body).get('output', body))}")
    model, status = str(body.get("model") or ""), body.get("status")
    if status in ("failed", "cancelled"):
        error = body.get("error")
        said = error.get("message") if isinstance(error, dict) else error
        return Result(failed=f"{status}: {show(said)}" if said else str(status), model=model)
    if status not in ("completed", "incomplete", None):
        return Result(failed=f"status {show(status)}", model=model)
    parts = list(_iter_parts(body["output"]))
    texts = [text for kind, text in parts if kind == "output_text"]
    refusals = [text for kind, text in parts if kind == "refusal"]
    calls = any(isinstance(item, dict) and str(item.get("type")).endswith("_call") for item in body["output"])
    reason = as_object(body.get("incomplete_details")).get("reason")
    answer = Answer(
        "".join(texts) or "".join(refusals),
        finish_reason=_CUT_BY.get(str(reason), "length") if status == "incomplete" else "stop",
        thinking="\n".join(filter(None, (text for kind, text in parts if kind == "reasoning"))) or None,
        is_refusal=bool(refusals) and not any(texts),
    )
    return Result((answer,), model=model, calls_tools=calls and not texts and not refusals)


def _iter_parts(items: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield kind and text of the parts of a response. Raises ReplyError for what is no part, or has no text."""
    for item in items:
        kind = item.get("type") if isinstance(item, dict) else None
        key = {"message": "content", "reasoning": "summary"}.get(str(kind))
        parts = (item.get(key) or []) if key else []
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise ReplyError(f"output: {key}: expected a list of objects, got {show(parts)}")
        for part in parts:
            of = "reasoning" if kind == "reasoning" else part.get("type")
            if of in ("reasoning", "output_text", "refusal"):
                text = part.get("refusal" if of == "refusal" else "text")
                if not isinstance(text, str) and (of != "reasoning" or text):
                    raise ReplyError("output: expected texts in the parts of a message")
                yield of, text or ""
