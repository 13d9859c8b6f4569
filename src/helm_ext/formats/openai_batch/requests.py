"""The requests of a batch: which model is asked what, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from helm_ext.errors import DatasetSchemaError, Location, Problems, raise_for, show
from helm_ext.formats.imported.row import Message
from helm_ext.formats.imported.structs import RowError, StructLines

Endpoint = Literal["chat", "completions", "responses"]

_ENDPOINTS: dict[str, Endpoint] = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
    "/v1/responses": "responses",
}
_NO_SETTINGS = frozenset({"model", "messages", "prompt", "input", "instructions", "user", "metadata", "store"})


class _Part(msgspec.Struct):
    type: Literal["text", "input_text", "output_text"]
    text: str


class _Item(msgspec.Struct):
    """A message, or of the endpoint responses another item of the input."""

    type: str = "message"
    role: str = ""
    content: str | list[_Part] | None = None
    tool_calls: Any = None


class _Body(msgspec.Struct):
    model: str
    messages: list[_Item] | None = None
    prompt: str | list[Any] | None = None
    input: str | list[_Item] | None = None
    instructions: str | None = None
    previous_response_id: Any = None
    n: int | None = None
    echo: Any = None
    logprobs: Any = None
    max_tokens: Any = None


class _Line(msgspec.Struct):
    custom_id: str
    method: Literal["POST"]
    url: Literal["/v1/chat/completions", "/v1/completions", "/v1/responses"]
    body: _Body


@dataclass(slots=True)
class Request:
    """One request."""

    line: int
    """Where it stands in its file."""
    custom_id: str
    endpoint: Endpoint
    model: str
    question: str | list[Message]
    number: int
    """How many answers are asked for."""
    echo: bool
    """Whether the answer repeats the prompt."""
    is_scored: bool
    """Whether the log-probabilities of the prompt are asked for, and no answer in words."""
    settings: Mapping[str, Any]
    """Decoding parameters, as the body spells them."""


def read_requests(path: Path) -> tuple[dict[str, Request], str]:
    """Return the requests of a file by id, and its digest. Raises DatasetError with all problems."""
    problems = Problems(str(path))
    lines = StructLines(path, _Line, "request of a batch", problems)
    asked: dict[str, Request] = {}
    for request in _iter_requests(lines, path, problems, asked):
        asked[request.custom_id] = request
    if not asked and not problems.errors:
        problems.add((), "there are no requests", code="no-rows")
    raise_for(problems.finish())
    return asked, lines.digest


def read_first_model(path: Path) -> str:
    """Return the model that the first request asks. Raises DatasetError."""
    problems = Problems(str(path))
    first = next(_iter_requests(StructLines(path, _Line, "request of a batch", problems), path, problems, {}), None)
    raise_for(problems.finish())
    return first.model if first else ""


def _iter_requests(
    lines: StructLines, path: Path, problems: Problems, asked: Mapping[str, Request]
) -> Iterator[Request]:
    """Yield the requests that fit `asked`, those before; what is wrong with others goes to the problems."""
    for number, value in lines:
        line = msgspec.convert(value, _Line)
        try:
            request = _to_request(line, value["body"], number)
            _require_alike(request, asked)
        except RowError as error:
            place = Location(str(path), number, error.place)
            problems.add(place, str(error), error.hint, code=error.code or "request", kind=DatasetSchemaError)
            continue
        yield request


def _to_request(line: _Line, given: Mapping[str, Any], number: int) -> Request:
    endpoint, body = _ENDPOINTS[line.url], line.body
    for place, name in (("custom_id", line.custom_id), ("body.model", body.model)):
        if not name:
            raise RowError('expected a text, got ""', place=place)
    answers = 1 if body.n is None else body.n
    if answers < 1:
        raise RowError(f"expected a whole number from 1 on, got {answers}", place="body.n")
    question: str | list[Message]
    if endpoint == "chat":
        question = _read_items(body.messages or (), "body.messages")
    elif endpoint == "completions":
        question = _read_prompt(body.prompt)
    else:
        question = _read_input(body, given)
    echo = endpoint == "completions" and body.echo is True
    is_scored = echo and body.logprobs is not None and body.max_tokens in (0, 1)
    settings = {key: value for key, value in given.items() if key not in _NO_SETTINGS and value is not None}
    return Request(number, line.custom_id, endpoint, body.model, question, answers, echo, is_scored, settings)


def _require_alike(request: Request, asked: Mapping[str, Request]) -> None:
    first, known = next(iter(asked.values()), request), asked.get(request.custom_id)
    if known is not None:
        message = f"{show(request.custom_id)} stands on line {known.line} already: results cannot be told apart"
        raise RowError(message, place="custom_id", code="repeated-id")
    if request.model != first.model:
        message = f"{show(request.model)}, and requests before ask {show(first.model)}"
        raise RowError(message, "write a file for each model", place="body.model", code="several-models")
    if request.endpoint != first.endpoint or request.is_scored != first.is_scored:
        message = "requests before are of another kind (endpoint, or log-probabilities of the prompt)"
        raise RowError(message, "write a file for each kind", place="url", code="several-kinds")


def _read_items(items: Sequence[_Item], place: str) -> list[Message]:
    """Return a conversation. What is no text would be lost, and is refused."""
    messages: list[Message] = []
    for at, item in enumerate(items):
        where, is_call = f"{place}[{at}]", bool(item.tool_calls) or item.role in ("tool", "function")
        if item.type == "reasoning":
            continue
        if item.type != "message" or is_call:
            raise RowError("calls of tools are no part of a question in words", place=where, code="no-text")
        if not item.role or item.content is None:
            raise RowError("expected a message with role and content", place=where)
        content = item.content if isinstance(item.content, str) else "".join(part.text for part in item.content)
        messages.append({"role": item.role, "content": content})
    if not items:
        raise RowError("expected a list of messages", place=place)
    return messages


def _read_prompt(prompt: str | list[Any] | None) -> str:
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        hint = "several prompts of one request have one custom_id: write a request for each" if prompt else ""
        raise RowError(f"expected one text, got {show(prompt)}", hint, place="body.prompt")
    return prompt


def _read_input(body: _Body, given: Mapping[str, Any]) -> list[Message]:
    """Return instructions and input of the endpoint responses as a conversation."""
    if body.previous_response_id or given.get("prompt"):
        raise RowError("a part of what was asked stands on the provider's side", place="body", code="no-text")
    messages: list[Message] = [{"role": "system", "content": body.instructions}] if body.instructions else []
    if isinstance(body.input, str):
        return [*messages, {"role": "user", "content": body.input}]
    return messages + _read_items(body.input or (), "body.input")
