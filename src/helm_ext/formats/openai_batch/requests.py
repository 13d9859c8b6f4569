"""One line of the input: which model is asked what, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from helm_ext.errors import did_you_mean, show
from helm_ext.formats.imported.row import Message

Endpoint = Literal["chat", "completions", "responses"]

_ENDPOINTS: dict[str, Endpoint] = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
    "/v1/responses": "responses",
}
_NO_SETTINGS = frozenset({"model", "messages", "prompt", "input", "instructions", "user", "metadata", "store"})
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


class LineError(ValueError):
    """What is wrong with a line: a field, what it is, and a hint."""

    def __init__(self, place: str, message: str, hint: str = "", *, code: str = "request") -> None:
        super().__init__(message)
        self.place = place
        self.hint = hint
        self.code = code


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
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Decoding parameters, as the body spells them."""


def parse_request(line: Any, number: int) -> Request:
    """Return a line of the input, and its number in the file, as a request. Raises LineError."""
    if not isinstance(line, dict):
        raise LineError("", f"expected an object, got {show(line)}")
    for key in ("custom_id", "method", "url", "body"):
        if key not in line:
            hint = "this is a result: give it with output=" if "response" in line else ""
            raise LineError(key, "missing", hint)
    custom_id, url, body = line["custom_id"], line["url"], line["body"]
    if not isinstance(custom_id, str) or not custom_id:
        raise LineError("custom_id", f"expected a text, got {show(custom_id)}")
    if line["method"] != "POST":
        raise LineError("method", f'expected "POST", got {show(line["method"])}')
    if not isinstance(url, str) or url not in _ENDPOINTS:
        known = ", ".join(_ENDPOINTS)
        raise LineError(
            "url", f"no answers in words come from {show(url)}", did_you_mean(str(url), _ENDPOINTS) or known
        )
    if not isinstance(body, dict):
        raise LineError("body", f"expected an object, got {show(body)}")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise LineError("body.model", f"expected a text, got {show(model)}")
    endpoint = _ENDPOINTS[url]
    answers = 1 if body.get("n") is None else body["n"]
    if type(answers) is not int or answers < 1:
        raise LineError("body.n", f"expected a whole number from 1 on, got {show(answers)}")
    echo = endpoint == "completions" and body.get("echo") is True
    return Request(
        number,
        custom_id,
        endpoint,
        model,
        _READ[endpoint](body),
        answers,
        echo,
        echo and body.get("logprobs") is not None and body.get("max_tokens") in (0, 1),
        {key: value for key, value in body.items() if key not in _NO_SETTINGS and value is not None},
    )


def _read_messages(body: Mapping[str, Any]) -> list[Message]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise LineError("body.messages", f"expected a list of messages, got {show(messages)}")
    return [_read_message(message, f"body.messages[{at}]") for at, message in enumerate(messages)]


def _read_message(message: Any, place: str) -> Message:
    if not isinstance(message, dict):
        raise LineError(place, f"expected an object, got {show(message)}")
    role = message.get("role")
    if not isinstance(role, str):
        raise LineError(f"{place}.role", f"expected a text, got {show(role)}")
    if message.get("tool_calls") or role in ("tool", "function"):
        raise LineError(place, "calls of tools are no part of a question in words", code="tool-call")
    return {"role": role, "content": _read_content(message.get("content"), f"{place}.content")}


def _read_content(content: Any, place: str) -> str:
    """Return a content, the texts of its parts together. A part that is no text would be lost."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise LineError(place, f"expected a text or its parts, got {show(content)}")
    texts = []
    for at, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get("text") if isinstance(part, dict) else None
        if kind not in _TEXT_PARTS or not isinstance(text, str):
            raise LineError(f"{place}[{at}]", f"only text is read, got {show(part)}", code="no-text")
        texts.append(text)
    return "".join(texts)


def _read_prompt(body: Mapping[str, Any]) -> str:
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        hint = "several prompts of one request have one custom_id: write a request for each" if prompt else ""
        raise LineError("body.prompt", f"expected one text, got {show(prompt)}", hint)
    return prompt


def _read_input(body: Mapping[str, Any]) -> list[Message]:
    """Return instructions and input of the endpoint responses as a conversation."""
    given, instructions = body.get("input"), body.get("instructions")
    if body.get("previous_response_id") or body.get("prompt"):
        raise LineError("body", "a part of what was asked stands on the provider's side", code="no-text")
    messages: list[Message] = []
    if isinstance(instructions, str) and instructions:
        messages.append({"role": "system", "content": instructions})
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise LineError("body.input", f"expected a text or a list of items, got {show(given)}")
    return messages + _read_items(given)


def _read_items(items: Sequence[Any]) -> list[Message]:
    messages = []
    for at, item in enumerate(items):
        kind = item.get("type", "message") if isinstance(item, dict) else None
        if kind == "reasoning":
            continue
        if kind != "message":
            raise LineError(f"body.input[{at}]", f"only messages are read, got {show(item)}", code="no-text")
        messages.append(_read_message(item, f"body.input[{at}]"))
    return messages


_READ: dict[Endpoint, Callable[[Mapping[str, Any]], str | list[Message]]] = {
    "chat": _read_messages,
    "completions": _read_prompt,
    "responses": _read_input,
}
