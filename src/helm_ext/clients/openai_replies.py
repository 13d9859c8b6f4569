"""What comes back by OpenAI's protocol: lines of files of results, bodies of replies, and HELM's RequestResult of them.

Pure functions. Lines are those of the Batch API
(https://platform.openai.com/docs/api-reference/batch/request-output), of `vllm run-batch`, and of whatever else answers
such requests: `custom_id`, `response` and `error`; the body of the reply stands in `response.body`, in older versions
of `vllm run-batch` in `response` itself. Lines of `answers.jsonl` (`clients.answers`) have `custom_id` and `body`, or
say why there is none.

A reply that cannot be read as the answer to its request is an error: HELM's clients take empty choices for a success,
and keep such a reply in the cache.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from helm.common.request import GeneratedOutput, Thinking, Token

from helm_ext.clients.client import NotedResult
from helm_ext.clients.openai_requests import Dialect, Endpoint, is_scored, seed_of
from helm_ext.errors import HelmExtError, show

if TYPE_CHECKING:
    from helm.common.request import Request

ROUNDING = 1e-3
"""How far above 0 a rounded log-probability may lie. Larger numbers are an error: some servers give probabilities."""


_NOT_RUN = ("batch_expired", "batch_cancelled")  # a code may be of any type, a list too
"""Codes of errors of a request that no model has seen."""


class ReplyError(HelmExtError):
    """A reply does not answer its request: another shape, another number of choices, no log-probabilities."""


@dataclass(frozen=True)
class Outcome:
    """What a line of a file of results says about a request: the body of the reply, or why there is no reply."""

    custom_id: str
    body: Any = None
    failure: str = ""
    is_not_run: bool = False
    """Whether no model has seen the request: the batch ended before."""


def parse_output(line: Any) -> Outcome:
    """Return what a line of a file of results says. Raises ReplyError for one that is no result."""
    if not isinstance(line, dict):
        raise ReplyError(f"expected an object, got {show(line)}")
    if "body" in line and not line.keys().isdisjoint(("method", "url")) and "response" not in line:
        raise ReplyError("this is a request, not its result")
    custom_id = line.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id:
        raise ReplyError(f"custom_id: expected a text, got {show(custom_id)}")
    if line.keys() == {"custom_id", "body"}:
        return Outcome(custom_id, body=line["body"])
    if line.keys() == {"custom_id", "failure", "is_not_run"}:
        return Outcome(custom_id, failure=str(line["failure"]), is_not_run=bool(line["is_not_run"]))
    response, error = line.get("response"), line.get("error")
    if error or response is None:
        code = error.get("code") if isinstance(error, dict) else None
        return Outcome(custom_id, failure=_explain(error, response), is_not_run=code in _NOT_RUN)
    if not isinstance(response, dict):
        raise ReplyError(f"response: expected an object, got {show(response)}")
    if "status_code" not in response and "choices" in response:
        return Outcome(custom_id, body=response)
    status, body = response.get("status_code"), response.get("body")
    if status != 200:
        return Outcome(custom_id, failure=f"status {show(status)}: {_explain(body, None)}")
    return Outcome(custom_id, body=body)


def _explain(error: Any, response: Any) -> str:
    """Return what an error says: OpenAI's object, vLLM's text or object, or the body of an HTTP error."""
    inner = error.get("error", error) if isinstance(error, dict) else error
    if isinstance(inner, dict):
        code, message = inner.get("code"), inner.get("message")
        return f"not run: {code}" if code in _NOT_RUN else show(inner if message is None else message)
    if isinstance(error, (dict, str)):
        return show(inner)
    if isinstance(response, dict) and "status_code" in response:
        return f"status {show(response['status_code'])}"
    return "no response and no error"


@dataclass(frozen=True)
class ReplyToken:
    """A token of a reply."""

    text: str
    logprob: float | None
    """None for the first token of a prompt, which nothing predicts."""
    offset: int | None
    """Where it begins in the choice's text, in characters as the server counts them."""


@dataclass(frozen=True)
class Choice:
    """One answer of a reply."""

    text: str
    finish_reason: str | None
    tokens: tuple[ReplyToken, ...] = ()
    thinking: str | None = None
    prompt_tokens: tuple[ReplyToken, ...] = ()
    """Where they are told apart from the text's (vLLM's `prompt_logprobs`)."""
    is_refusal: bool = False
    """The text stands in `refusal`, and `content` is null."""


@dataclass(frozen=True)
class Reply:
    """What a server answered."""

    choices: tuple[Choice, ...]
    """In the order of their index."""
    usage: Mapping[str, Any]
    """Tokens as the server counted them: `prompt_tokens`, `completion_tokens`, ...; empty where it says nothing."""
    model: str
    """The model's name as the server says it, which may be that of a dated version."""


def parse_reply(body: Any, endpoint: Endpoint, *, number: int = 1, echo: bool = False) -> Reply:
    """Return what the body of a reply says.

    `number`: how many choices were asked for. `echo`: log-probabilities were, so that they must be there.
    Raises ReplyError.
    """
    found = _get(body, "choices", list, "the reply")
    choices = [choice for choice in found if isinstance(choice, dict)]
    if len(choices) != number or len(found) != number:
        raise ReplyError(f"{len(found)} choices, and {number} were asked for")
    indices = [choice.get("index", position) for position, choice in enumerate(choices)]
    if sorted(indices, key=str) != sorted(range(number), key=str):
        raise ReplyError(f"choices have the indices {show(indices)}")
    ordered = [choice for _, choice in sorted(zip(indices, choices, strict=True), key=lambda pair: pair[0])]
    parse = _parse_message if endpoint == "chat" else _parse_text
    parsed = tuple(parse(choice) for choice in ordered)
    if echo and not all(choice.tokens or choice.prompt_tokens for choice in parsed):
        raise ReplyError("no log-probabilities of the prompt, which were asked for")
    usage = body.get("usage")
    return Reply(parsed, usage if isinstance(usage, dict) else {}, str(body.get("model") or ""))


def _get(value: Any, key: str, kind: type, where: str) -> Any:
    """Return a member of an object. Raises ReplyError unless it is of the kind."""
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, kind):
        names: dict[type, str] = {list: "a list", dict: "an object", str: "a string"}
        raise ReplyError(f"{where}: {key}: expected {names[kind]}, got {show(found)}")
    return found


def _optional_text(value: Mapping[str, Any], *keys: str) -> str | None:
    return next((value[key] for key in keys if isinstance(value.get(key), str) and value[key]), None)


def _finish_reason(choice: Mapping[str, Any]) -> str | None:
    reason = choice.get("finish_reason")
    if reason is not None and not isinstance(reason, str):
        raise ReplyError(f"finish_reason: expected a string, got {show(reason)}")
    return reason


def _parse_message(choice: dict[str, Any]) -> Choice:
    """Read a choice of the chat endpoint.

    A content of null is an empty answer where something says why: the model refused in words, thought until the limit
    of tokens, called a tool, or a filter took the text. Without that, the server has failed.
    """
    message = _get(choice, "message", dict, "choice")
    content, refusal = message.get("content"), _optional_text(message, "refusal")
    if isinstance(content, list):
        content = "".join(_get(part, "text", str, "content") for part in content)
    if content is not None and not isinstance(content, str):
        raise ReplyError(f"message.content: expected a string, got {show(content)}")
    thinking, reason = _optional_text(message, "reasoning_content", "reasoning"), _finish_reason(choice)
    calls = message.get("tool_calls") or message.get("function_call")
    if content is None and refusal is None and thinking is None and not calls and reason in (None, "stop"):
        raise ReplyError("message.content is null, and nothing says why")
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if tokens is not None and not isinstance(tokens, list):
        raise ReplyError(f"logprobs.content: expected a list, got {show(tokens)}")
    return Choice(
        text=content or refusal or "",
        finish_reason=reason,
        tokens=tuple(
            ReplyToken(_get(token, "token", str, "logprobs"), _to_number(token.get("logprob"), place), None)
            for place, token in enumerate(tokens or ())
        ),
        thinking=thinking,
        is_refusal=not content and refusal is not None,
    )


def _parse_text(choice: dict[str, Any]) -> Choice:
    """Read a choice of the completions endpoint."""
    logprobs = choice.get("logprobs")
    tokens = _parse_tokens(logprobs) if isinstance(logprobs, dict) else ()
    return Choice(
        text=_get(choice, "text", str, "choice"),
        finish_reason=_finish_reason(choice),
        tokens=tokens,
        # Asked for `echo` and `logprobs`, vLLM says both, and here also what it holds for likelier.
        prompt_tokens=() if tokens else _parse_prompt_tokens(choice.get("prompt_logprobs")),
    )


def _parse_prompt_tokens(found: Any) -> tuple[ReplyToken, ...]:
    """Read vLLM's `prompt_logprobs`: null for the first token, then {id: {logprob, rank, decoded_token}} of each.

    With several of a place it does not say which is the prompt's own; with 0 asked for, there is one.
    """
    if found is None:
        return ()
    if not isinstance(found, list):
        raise ReplyError(f"prompt_logprobs: expected a list, got {show(found)}")
    tokens = []
    for place, entry in enumerate(found):
        if entry is None and place == 0:
            tokens.append(ReplyToken("", None, None))  # its text is not told; nothing predicts it
            continue
        if not isinstance(entry, dict) or len(entry) != 1:
            raise ReplyError(f"prompt_logprobs: token {place + 1}: expected one entry, got {show(entry)}")
        [token] = entry.values()
        text = _get(token, "decoded_token", str, f"prompt_logprobs: token {place + 1}")
        tokens.append(ReplyToken(text, _to_number(token.get("logprob"), place), None))
    return tuple(tokens)


def _parse_tokens(logprobs: dict[str, Any]) -> tuple[ReplyToken, ...]:
    tokens, values = _get(logprobs, "tokens", list, "logprobs"), _get(logprobs, "token_logprobs", list, "logprobs")
    offsets = logprobs.get("text_offset")
    if len(tokens) != len(values):
        raise ReplyError(f"logprobs: {len(tokens)} tokens and {len(values)} log-probabilities")
    if not isinstance(offsets, list) or len(offsets) != len(tokens):
        offsets = [None] * len(tokens)
    if not all(isinstance(token, str) for token in tokens):
        raise ReplyError("logprobs.tokens: expected strings")
    return tuple(
        ReplyToken(token, _to_number(value, place), offset if isinstance(offset, int) else None)
        for place, (token, value, offset) in enumerate(zip(tokens, values, offsets, strict=True))
    )


def _to_number(value: Any, place: int) -> float | None:
    """Return a log-probability. Only that of a first token may be null."""
    if value is None and place == 0:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ReplyError(f"log-probability of token {place + 1}: expected a number, got {show(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not -math.inf < number <= ROUNDING:
        raise ReplyError(f"log-probability of token {place + 1}: {show(value)} is no such number")
    return number


def to_result(reply: Reply, request: Request, dialect: Dialect) -> NotedResult:
    """Return HELM's result for the request that was answered. The reply's times are not those of a request.

    Raises ReplyError where the prompt's tokens cannot be told from those after it.
    """
    if is_scored(request):
        completions = [_to_scored(choice, reply, request, dialect.extra_token) for choice in reply.choices]
    else:
        completions = [_to_generated(choice, request) for choice in reply.choices]
    result = NotedResult(success=True, embedding=[], completions=completions, cached=False)
    result.notes = _make_notes(reply, seed_of(request, dialect))
    return result


def _make_notes(reply: Reply, seed: int | None) -> dict[str, Any]:
    """Return what is worth keeping beside the answers: numbers of tokens, the model's name, the seed that was sent."""
    notes: dict[str, Any] = {}
    if usage := _numbers(reply.usage):
        notes["usage"] = usage
    details = usage.get("completion_tokens_details", {})
    if "reasoning_tokens" in details:
        notes["reasoning_tokens"] = details["reasoning_tokens"]
    if reply.model:
        notes["answered_by"] = reply.model
    if any(choice.is_refusal for choice in reply.choices):
        notes["refused"] = True
    if seed is not None:
        notes["seed"] = seed
    return notes


def _numbers(counted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole numbers of `usage`, those one level deeper too; servers add all kinds of things."""
    numbers: dict[str, Any] = {}
    for name, value in counted.items():
        if _is_count(value):
            numbers[name] = value
        elif isinstance(value, dict) and (inner := {key: one for key, one in value.items() if _is_count(one)}):
            numbers[name] = inner
    return numbers


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _to_generated(choice: Choice, request: Request) -> GeneratedOutput:
    """Return a completion, which ends before the first stop sequence: not every server stops there.

    The tokens then end with the last one that begins before it. The reason of a truncated text is `stop`, as in HELM's
    `truncate_and_tokenize_response_text`.
    """
    start = len(request.prompt) if request.echo_prompt else 0
    ends = [choice.text.find(stop, start) for stop in request.stop_sequences if stop]
    end = min((found for found in ends if found >= 0), default=None)
    if end is None:
        return _make_output(choice.text, choice.tokens, choice.finish_reason, choice.thinking)
    begins = accumulate((len(token.text) for token in choice.tokens), initial=0)
    tokens = tuple(token for token, begin in zip(choice.tokens, begins, strict=False) if begin < end)
    return _make_output(choice.text[:end], tokens, "stop", choice.thinking)


def _to_scored(choice: Choice, reply: Reply, request: Request, extra_token: bool) -> GeneratedOutput:
    """Return the prompt with its tokens, without what the server generated beyond it."""
    prompt, tokens = request.prompt, choice.tokens
    if choice.prompt_tokens:
        first, *others = choice.prompt_tokens
        spelled = "".join(token.text for token in others)
        if first.logprob is None and prompt.endswith(spelled):
            first = ReplyToken(prompt[: len(prompt) - len(spelled)], None, 0)
        return _make_output(prompt, (first, *others), choice.finish_reason, None)
    # A prompt's first token is predicted by nothing; one with a number may be the first of an answer.
    if tokens and tokens[0].logprob is not None and _squeeze(prompt) not in _squeeze(choice.text):
        raise ReplyError(f"the prompt was asked for (echo), and a text came back without it: {show(choice.text)}")
    if extra_token:
        # Servers put the token that ends a text into the list and not into the text, so the text does not tell.
        counted = reply.usage.get("completion_tokens")
        counted = counted if isinstance(counted, int) and not isinstance(counted, bool) else 1
        if not 0 <= counted <= len(tokens):
            raise ReplyError(f"usage.completion_tokens: {show(counted)}, of {len(tokens)} tokens in all")
        tokens = tokens[: len(tokens) - counted]
    elif choice.text != prompt and choice.text.startswith(prompt):
        raise ReplyError(
            "the server generated text where none was asked for\n  hint: extra_token: true (--extra-token)"
        )
    if not tokens:
        raise ReplyError("no log-probabilities of the prompt, which were asked for")
    goes_on = choice.text.startswith(prompt)
    return _make_output(prompt if goes_on else choice.text, tokens, choice.finish_reason, None)


def _squeeze(text: str) -> str:
    """Return a text without what tokenizers change: spaces, and forms of letters."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def _make_output(
    text: str, tokens: tuple[ReplyToken, ...], finish_reason: str | None, thinking: str | None
) -> GeneratedOutput:
    # HELM cannot write a token without a log-probability; its own clients write 0.0 for a prompt's first one.
    made = [Token(text=token.text, logprob=token.logprob or 0.0) for token in tokens]
    return GeneratedOutput(
        text=text,
        logprob=sum(token.logprob for token in made),
        tokens=made,
        finish_reason=None if finish_reason is None else {"reason": finish_reason},
        thinking=None if thinking is None else Thinking(text=thinking),
    )
