"""HELM's Client for a server that speaks OpenAI's protocol: vLLM, llama.cpp, a gateway, a provider.

In `prod_env/model_deployments.yaml`:

    model_deployments:
      - name: local/my-model
        client_spec:
          class_name: helm_ext.clients.OpenAICompatibleClient
          args:
            base_url: http://localhost:8000/v1
            endpoint: chat
            openai_model_name: my-org/my-model
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from http.client import HTTPException
from typing import Any

from helm.clients.client import CachingClient
from helm.common.cache import CacheConfig
from helm.common.request import ErrorFlags, Request, RequestResult, wrap_request_time

from helm_ext.clients.openai_replies import ReplyError, parse_reply, to_result
from helm_ext.clients.openai_requests import PATHS, Dialect, Endpoint, UnsendableError, to_body
from helm_ext.errors import DatasetError, RunEntryError, show
from helm_ext.files import parse_json

__all__ = ["OpenAICompatibleClient", "ServerError"]

TIMEOUT = 600.0
"""Seconds in which nothing comes before a request is given up."""

PASSING_STATUSES = frozenset({408, 409, 425, 429})
"""Statuses that say "later", beside all from 500 on. HELM repeats such a request, and no other."""


class ServerError(Exception):
    """The server was not reached, or refused. `is_passing` says whether the same request may succeed later."""

    def __init__(self, message: str, *, is_passing: bool) -> None:
        super().__init__(message)
        self.is_passing = is_passing


class OpenAICompatibleClient(CachingClient):
    """Asks a server's chat or completions endpoint. The class path is public API.

    Every parameter of a request is sent; what cannot be sent is an error (`openai_requests`). A reply is read before it
    is put into HELM's cache (`openai_replies`), so that no broken one is kept. Finish reasons are kept, and what the
    server counted is in the result's `usage`.
    """

    def __init__(
        self,
        cache_config: CacheConfig,
        base_url: str | None = None,
        api_key: str | None = None,
        endpoint: Endpoint = "chat",
        openai_model_name: str | None = None,
        omit: Sequence[str] = (),
        send_top_k: bool = False,
        seed: int | None = None,
        extra_token: bool = False,
        timeout: float = TIMEOUT,
    ) -> None:
        """Take the arguments of `client_spec.args`; those of the request's body are described in `Dialect`.

        `base_url`: up to and with `/v1`. `api_key`: HELM takes it from its credentials. `openai_model_name`: the
        model's name for the server; without it, the part of HELM's name after the first `/`, as for HELM's own
        clients. `timeout`: seconds. Raises RunEntryError.
        """
        super().__init__(cache_config=cache_config)
        if not base_url or not base_url.startswith(("http://", "https://")):
            raise RunEntryError(
                f"base_url={show(base_url)}: expected the server's address\n  hint: base_url: http://localhost:8000/v1"
            )
        self.url = base_url.rstrip("/") + PATHS.get(endpoint, "")
        self.api_key = api_key
        self.openai_model_name = openai_model_name
        self.timeout = timeout
        self.dialect = Dialect(
            model="", endpoint=endpoint, omit=tuple(omit), send_top_k=send_top_k, seed=seed, extra_token=extra_token
        )

    def make_request(self, request: Request) -> RequestResult:
        """Return the server's answer, or what went wrong; HELM repeats what may pass."""
        try:
            body = to_body(request, self._dialect_for(request))
        except UnsendableError as error:
            return _fail(str(error), is_passing=False)

        def ask() -> dict[str, Any]:
            reply = post_json(self.url, body, api_key=self.api_key, timeout=self.timeout)
            self._read(reply, request)  # a reply that cannot be read must not come into the cache
            return dict(reply)

        try:
            reply, cached = self.cache.get(self.make_cache_key(body, request), wrap_request_time(ask))
            result = self._read(reply, request)
        except ServerError as error:
            return _fail(f"{self.url}: {error}", is_passing=error.is_passing)
        except ReplyError as error:
            return _fail(f"{self.url}: the reply is of no use: {error}", is_passing=True)
        result.cached = cached
        result.request_time = reply["request_time"]
        result.request_datetime = reply.get("request_datetime")
        return result

    def _dialect_for(self, request: Request) -> Dialect:
        return replace(self.dialect, model=self.openai_model_name or request.model_engine)

    def _read(self, reply: Any, request: Request) -> Any:
        parsed = parse_reply(
            reply, self.dialect.endpoint, number=request.num_completions, echo=bool(request.echo_prompt)
        )
        return to_result(parsed, request, extra_token=self.dialect.extra_token)


def _fail(message: str, *, is_passing: bool) -> RequestResult:
    return RequestResult(
        success=False,
        cached=False,
        error=message,
        completions=[],
        embedding=[],
        error_flags=ErrorFlags(is_retriable=is_passing, is_fatal=True),
    )


def post_json(url: str, body: Any, *, api_key: str | None = None, timeout: float = TIMEOUT) -> Any:
    """Send a body and return the JSON that comes back. Raises ServerError."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    asked = urllib.request.Request(url, json.dumps(body).encode("ascii"), headers, method="POST")  # noqa: S310 - http(s), see __init__
    try:
        with urllib.request.urlopen(asked, timeout=timeout) as response:  # noqa: S310
            data = response.read()
    except urllib.error.HTTPError as error:
        is_passing = error.code >= 500 or error.code in PASSING_STATUSES
        raise ServerError(f"status {error.code}: {_explain(error)}", is_passing=is_passing) from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise ServerError(f"no answer: {reason}", is_passing=True) from error
    try:
        return parse_json(data, url)
    except DatasetError as error:
        raise ServerError(
            f"the reply is not JSON: {show(data[:100].decode(errors='replace'))}", is_passing=True
        ) from error


def _explain(error: urllib.error.HTTPError) -> str:
    """Return what the server says is wrong: OpenAI's `error.message`, else the beginning of its text."""
    try:
        text = error.read().decode(errors="replace")
    except OSError:
        return str(error.reason)
    try:
        said = json.loads(text)
    except ValueError:
        return show(text)
    inner = said.get("error", said) if isinstance(said, dict) else said
    return str(inner["message"])[:500] if isinstance(inner, dict) and "message" in inner else show(inner)
