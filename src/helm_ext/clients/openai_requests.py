"""HELM's Request as the body of a request to a server that speaks OpenAI's protocol.

Pure functions. What a Request asks for and a body cannot say is an error, never dropped: an answer to another request
would be scored as if it were one to this. OpenAI's API: https://platform.openai.com/docs/api-reference (chat,
completions); HELM's own conversion: helm/clients/openai_client.py.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from helm_ext.errors import HelmExtError, RunEntryError, did_you_mean

if TYPE_CHECKING:
    from helm.common.request import Request

Endpoint = Literal["chat", "completions"]
ENDPOINTS: tuple[Endpoint, ...] = get_args(Endpoint)

MaxTokensField = Literal["max_tokens", "max_completion_tokens"]

PATHS: dict[Endpoint, str] = {"chat": "/chat/completions", "completions": "/completions"}
"""Where an endpoint is, below the `/v1` of a server's address."""

OMITTABLE = ("temperature", "top_p", "n", "presence_penalty", "frequency_penalty", "seed")
"""What may be omitted from a body, where the user says so: some models (o1, gpt-5) refuse these."""

MAX_STOPS = 4
"""OpenAI's API takes "up to 4 sequences"."""

_OWN_FIELDS = (
    "messages prompt echo logprobs prompt_logprobs temperature top_p n stop top_k presence_penalty frequency_penalty "
    "max_tokens max_completion_tokens model seed stream"
)
"""Fields of a body that are not for `extra_body`."""

UNSET_TOP_K = 1
"""Default of `Request.top_k_per_token`. HELM's adapters never set it, so it says nothing about sampling."""


class UnsendableError(HelmExtError):
    """A request asks for something that the body of a request to this endpoint cannot say."""


@dataclass(frozen=True)
class Dialect:
    """How requests are written for one model of one server. Raises RunEntryError for what makes no sense."""

    model: str
    """The name by which the server knows the model; "": the part of HELM's name after the first `/`."""
    endpoint: Endpoint
    omit: tuple[str, ...] = ()
    """Names of OMITTABLE that are not sent."""
    send_top_k: bool = False
    """Whether the server knows `top_k`, which is no part of OpenAI's API (vLLM does)."""
    seed: int | None = None
    """Sent with every request; with `Request.random`, one is made of both. None: the request's alone."""
    extra_token: bool = False
    """Ask for one token where HELM asks for none, which some servers refuse; the reply's token is dropped."""
    prompt_logprobs: bool = False
    """Ask for the prompt's log-probabilities by vLLM's `prompt_logprobs`, not by `echo` and `logprobs`."""
    max_tokens_field: MaxTokensField | None = None
    """How the limit of tokens is called; by default `max_completion_tokens` for chat, as OpenAI's API has it now."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """What is sent with every request beside it: `min_p`, `reasoning_effort`, ... Part of the cache's key."""

    @property
    def limit_field(self) -> MaxTokensField:
        """What the limit of tokens is called."""
        return self.max_tokens_field or ("max_completion_tokens" if self.endpoint == "chat" else "max_tokens")

    def __post_init__(self) -> None:
        if self.max_tokens_field not in (None, *get_args(MaxTokensField)):
            raise RunEntryError(f"max_tokens_field={self.max_tokens_field}: {' or '.join(get_args(MaxTokensField))}")
        if self.prompt_logprobs and (self.endpoint == "chat" or self.extra_token):
            raise RunEntryError("prompt_logprobs: for the endpoint completions, and without extra_token")
        for name in self.extra_body:
            if name in _OWN_FIELDS.split():
                raise RunEntryError(f"extra_body: {name}: the run says this, or another argument")
        if self.endpoint not in ENDPOINTS:
            raise RunEntryError(f"endpoint={self.endpoint}: expected {' or '.join(ENDPOINTS)}")
        for name in self.omit:
            if name not in OMITTABLE:
                hint = did_you_mean(name, OMITTABLE) or f"one of {', '.join(OMITTABLE)}"
                raise RunEntryError(f"omit={name}: cannot be left out of a request\n  hint: {hint}")


def is_scored(request: Request) -> bool:
    """Whether the prompt's own log-probabilities are asked for, and no text."""
    return bool(request.echo_prompt) and request.max_tokens == 0


_NOT_TEXT = {
    "embedding": "embeddings are asked for",
    "multimodal_prompt": "images and sound cannot be sent",
    "image_generation_parameters": "images are asked for",
    "response_format": "a JSON Schema for the reply cannot be sent",
}


def to_body(request: Request, dialect: Dialect) -> dict[str, Any]:
    """Return the body of the request. Raises UnsendableError."""
    for name, what in _NOT_TEXT.items():
        if getattr(request, name):
            raise UnsendableError(f"{name}: {what}")
    if dialect.endpoint == "chat" and request.echo_prompt:
        raise UnsendableError(
            "echo_prompt: log-probabilities of the prompt are asked for, and replies of the chat endpoint hold none\n"
            "  hint: the endpoint completions, with a model that has it"
        )
    if dialect.endpoint == "completions" and request.messages:
        raise UnsendableError(
            "messages: the completions endpoint takes a text\n"
            "  hint: the endpoint chat; or render=text, which writes a conversation as a text (innodata:)"
        )
    if bool(request.messages) == bool(request.prompt):
        both = "messages and a prompt are both there, and only one of them can be sent"
        raise UnsendableError(both if request.prompt else "the prompt is empty")
    body: dict[str, Any] = {"model": dialect.model or request.model_engine, **dialect.extra_body}
    if dialect.endpoint == "chat":
        messages = request.messages or [{"role": "user", "content": request.prompt}]
        body["messages"] = [dict(message) for message in messages]
    else:
        body["prompt"] = request.prompt
    if is_scored(request):
        if request.num_completions != 1:
            raise UnsendableError(f"num_completions={request.num_completions}: a prompt is scored once")
        if dialect.prompt_logprobs:  # 0: of the prompt's own tokens, and no others beside them
            return {**body, "max_tokens": 1, "prompt_logprobs": 0, "temperature": 0}
        return {**body, "max_tokens": int(dialect.extra_token), "echo": True, "logprobs": 1, "temperature": 0}
    if request.max_tokens < 1:
        raise UnsendableError(f"max_tokens={request.max_tokens}: no text would be generated")
    body[dialect.limit_field] = request.max_tokens
    body |= _sampling_fields(request, dialect)
    if len(request.stop_sequences) > MAX_STOPS:
        count = len(request.stop_sequences)
        raise UnsendableError(f"stop_sequences: {count} of them, and OpenAI's API takes {MAX_STOPS}")
    if request.stop_sequences:
        body["stop"] = list(request.stop_sequences)
    if request.echo_prompt:
        body |= {"echo": True, "logprobs": 1}
    return body


def _sampling_fields(request: Request, dialect: Dialect) -> dict[str, Any]:
    """Return how the text is sampled. All of it is sent, also OpenAI's defaults: servers may have others."""
    fields: dict[str, Any] = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "n": request.num_completions,
        "presence_penalty": request.presence_penalty,
        "frequency_penalty": request.frequency_penalty,
    }
    if "n" in dialect.omit and request.num_completions != 1:
        raise UnsendableError(f"num_completions={request.num_completions}: cannot be said without n, which is omitted")
    fields = {name: value for name, value in fields.items() if name not in dialect.omit}
    # The likeliest token is among any number of likeliest ones: at temperature 0 this says nothing about the answer.
    # HELM's joint multiple choice sets it to num_outputs (5 by default) and means candidates to be shown.
    if request.top_k_per_token != UNSET_TOP_K and request.temperature != 0:
        if not dialect.send_top_k:
            raise UnsendableError(
                f"top_k={request.top_k_per_token} at temperature {request.temperature:g}: no part of OpenAI's API "
                "(HELM's joint multiple choice sets it to num_outputs)\n"
                "  hint: --top-k (client argument send_top_k: true) sends it, to a server that knows it, as vLLM does"
            )
        fields["top_k"] = request.top_k_per_token
    if (seed := seed_of(request, dialect)) is not None:
        fields["seed"] = seed
    return fields


def seed_of(request: Request, dialect: Dialect) -> int | None:
    """Return the seed that is sent with a request; None where nobody set one, or nothing is sampled.

    HELM gives requests that must differ different values of `random`: the numbers of trials, or the file's seed. A
    number is sent as it is.
    """
    seed, random = dialect.seed, request.random
    if is_scored(request) or "seed" in dialect.omit:
        return None
    if random is None:
        return seed
    if seed is None and re.fullmatch(r"[0-9]{1,18}", random):
        return int(random)
    mixed = random if seed is None else f"{seed}:{random}"
    return int.from_bytes(hashlib.sha256(mixed.encode()).digest()[:4], "big") >> 1
