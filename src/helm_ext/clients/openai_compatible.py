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

docs/reference/client.md describes the arguments, and what becomes of errors.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, ClassVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from helm.clients.client import CachingClient, Client
from helm.common.cache import CacheConfig
from helm.common.hierarchical_logger import hwarn
from helm.common.key_value_store import request_to_key
from helm.common.request import Request, RequestResult

from helm_ext.clients.client import NotedResult, RequestCache, fail, find_unenforced_limit
from helm_ext.clients.openai_replies import ReplyError, parse_reply, to_result
from helm_ext.clients.openai_requests import (
    PATHS,
    UNSET_TOP_K,
    Dialect,
    Endpoint,
    UnsendableError,
    is_scored,
    to_body,
)
from helm_ext.clients.server import Fault, Server, ServerError, run
from helm_ext.errors import DeploymentError, RunEntryError, did_you_mean, show

_ONE_STOPS_ALL = (
    "  hint: HELM's runner stops at the first request without an answer, also with missing=skip; with "
    "--runner-class-name helm_ext.running.StreamingRunner the others go on"
)


class OpenAICompatibleClient(Client):
    """Asks a server's chat or completions endpoint. The class path is public API.

    Every parameter of a request is sent; what cannot be sent is an error (`openai_requests`). A reply is read before it
    is put into HELM's cache (`openai_replies`), so that no broken one is cached, and one that another client cached is
    asked for again. Finish reasons are kept. What the server counted, the seed and the model's dated name are in the
    result's `notes`, which the executor of this package writes into the run's files.
    """

    taken_as_unset: ClassVar[Mapping[str, Any]] = {"top_k_per_token": UNSET_TOP_K}
    """Fields of a request and the values at which they are not sent: those of a request that does not set them."""

    def __init__(
        self,
        cache_config: CacheConfig,
        base_url: str | None = None,
        api_key: str | None = None,
        endpoint: Endpoint | None = None,
        openai_model_name: str | None = None,
        api_key_env: str | None = None,
        timeout: float = 600.0,
        retries: int = 5,
        retry_seconds: float = 60.0,
        **dialect: Any,
    ) -> None:
        """Take the arguments of `client_spec.args`; those of `Dialect` say how bodies are written.

        `endpoint`: by default `chat`. `base_url`: up to and with `/v1`. `api_key`: HELM takes it from its credentials.
        `api_key_env`: the environment variable that holds it. `openai_model_name`: the model's name for the server;
        without it, the part of HELM's name after the first `/`, as for HELM's own clients. `timeout`,
        `retries`, `retry_seconds`: see `Server`. Raises RunEntryError.
        """
        written = [one.name for one in fields(Dialect) if one.name not in ("model", "endpoint")]
        for name in dialect.keys() - written:
            known = [*inspect.signature(OpenAICompatibleClient).parameters][1:-1] + written
            hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
            raise RunEntryError(f"client_spec.args: unknown argument {name!r}\n  hint: {hint}")
        endpoint = endpoint or "chat"  # HELM hands over its credentials' `localEndpoint`, which there seldom is
        if timeout <= 0 or retries < 0 or retry_seconds < 0:
            raise RunEntryError(f"timeout={timeout}, retries={retries}, retry_seconds={retry_seconds}: too small")
        omit, extra_body = dialect.pop("omit", ()), dict(dialect.pop("extra_body", None) or {})
        omit = (omit,) if isinstance(omit, str) else tuple(omit)
        self.dialect = Dialect(openai_model_name or "", endpoint, omit=omit, extra_body=extra_body, **dialect)
        self.path = PATHS[endpoint]
        address, key = _require_address(base_url), _find_key(api_key, api_key_env)
        self.server = Server(address, key, timeout=timeout, retries=retries, retry_seconds=retry_seconds)
        self.cache = RequestCache.of(cache_config)
        self._has_warned_of_length = False
        self._sent: set[int] = set()
        self._sending: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    def check_requests(self, requests: Sequence[Request]) -> None:
        """Raise UnsendableError, once, for what of these requests cannot be sent; warn of what `omit` drops."""
        reasons: Counter[str] = Counter()
        for request in requests:
            try:
                to_body(request, self.dialect)
            except UnsendableError as error:
                reasons[str(error)] += 1
        deployment = requests[0].model_deployment if requests else ""
        if reasons:
            said = "\n".join(f"  {count} requests: {reason}" for reason, count in reasons.most_common(10))
            raise UnsendableError(f"{deployment}: {reasons.total()} of {len(requests)} requests cannot be sent\n{said}")
        if self.dialect.omit and not all(map(is_scored, requests)):
            names = ", ".join(self.dialect.omit)
            hwarn(f"{deployment}: {names}: not sent, as the deployment says (omit): the server's own values count")

    def make_request(self, request: Request) -> RequestResult:
        """Return the server's answer, or what went wrong after all attempts: HELM need not repeat it.

        HELM's own runner calls this, and its annotators; the streaming runner calls `send`.
        """
        if limit := find_unenforced_limit():
            return fail(limit)
        [cached] = self.find_kept([request])
        if cached is not None:
            return cached
        try:
            result = run(self.send(request, lambda _: None))
        except DeploymentError as error:
            return fail(str(error))
        self.cache.flush()
        if not result.success:
            result.error = f"{result.error}\n{_ONE_STOPS_ALL}"
        return result

    def find_kept(self, requests: Sequence[Request]) -> list[RequestResult | None]:
        """Return the answers that are in the cache: `clients.client.AsyncClient`."""
        found: list[RequestResult | None] = [None] * len(requests)
        keys: dict[int, Mapping[str, Any]] = {}
        for place, request in enumerate(requests):
            with suppress(UnsendableError):  # `send` says so
                keys[place] = self._make_key(to_body(request, self.dialect), request)
        for place, cached in zip(keys, self.cache.get_many(list(keys.values())), strict=True):
            if cached is not None:
                with suppress(ReplyError):  # another client cached it unread: it is asked for again
                    found[place] = self._read(cached, requests[place], cached=True)
        return found

    async def send(self, request: Request, retrying: Callable[[int], None]) -> RequestResult:
        """Return the server's answer, or what went wrong after all attempts: `clients.client.AsyncClient`.

        Equal requests are sent once, as long as there is a cache: a second run, which finds the one cached
        answer, has the same results as the first.
        """
        try:
            body = to_body(request, self.dialect)
        except UnsendableError as error:
            return fail(str(error))
        key = self._make_key(body, request)
        if not self.cache.keeps:
            return await self._send(request, body, key, retrying)
        name = hash(request_to_key(dict(key)))  # two of one hash cost a look into the cache
        async with self._sending.setdefault(name, asyncio.Lock()):
            if name in self._sent:
                [cached] = self.find_kept([request])
                if cached is not None:
                    return cached
            self._sent.add(name)
            return await self._send(request, body, key, retrying)

    async def _send(
        self, request: Request, body: dict[str, Any], key: Mapping[str, Any], retrying: Callable[[int], None]
    ) -> RequestResult:
        started = time.time()

        def read(reply: Any) -> NotedResult:
            """Read a reply, and cache it if it can be read."""
            try:
                result = self._read(reply, request, cached=False)
            except ReplyError as error:
                message = f"{self.server.url}{self.path}: the reply is of no use: {error}"
                raise ServerError(message, Fault.GARBLED) from error
            result.request_time, result.request_datetime = time.time() - started, int(started)
            times = {"request_time": result.request_time, "request_datetime": result.request_datetime}
            self.cache.put_many([(key, {**reply, **times})])
            return result

        try:
            result = await self.server.ask(self.path, body, read, retrying)
        except ServerError as error:
            if error.fault is Fault.ALL:
                raise DeploymentError(str(error)) from error
            failed = fail(str(error))
            failed.is_refused = error.fault is Fault.OWN and error.status is not None
            return failed
        self._look_at_length(result, request)
        return result

    def _make_key(self, body: Mapping[str, Any], request: Request) -> Mapping[str, Any]:
        """Return the key in HELM's cache: what was asked, and where. Servers of one name may hold other models."""
        return CachingClient.make_cache_key({**body, "url": self.server.url + self.path}, request)

    def _read(self, reply: Any, request: Request, *, cached: bool) -> NotedResult:
        """Return the result of a reply. Raises ReplyError."""
        parsed = parse_reply(
            reply, self.dialect.endpoint, number=request.num_completions, echo=bool(request.echo_prompt)
        )
        result = to_result(parsed, request, self.dialect)
        result.cached = cached
        result.request_time, result.request_datetime = reply.get("request_time"), reply.get("request_datetime")
        return result

    def _look_at_length(self, result: NotedResult, request: Request) -> None:
        """Warn, once, of a server that does not know the field with the limit of tokens."""
        counted = result.notes.get("usage", {}).get("completion_tokens")
        most = request.max_tokens * request.num_completions
        if self._has_warned_of_length or is_scored(request) or not isinstance(counted, int) or counted <= most:
            return
        self._has_warned_of_length = True
        hwarn(
            f"{request.model_deployment}: {counted} tokens came where {most} were asked for at most: the server does "
            f"not heed {self.dialect.limit_field}\n  hint: max_tokens_field: max_tokens in the deployment"
        )


def _require_address(base_url: str | None) -> str:
    """Return a server's address, to which paths can be added. Raises RunEntryError."""
    shown, hint = f"base_url={show(base_url)}", "\n  hint: base_url: http://localhost:8000/v1"
    try:
        parts = urlsplit(base_url or "")
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:  # not a port number, brackets of IPv6 that are not closed
        raise RunEntryError(f"{shown}: no address: {error}{hint}") from error
    if "@" in parts.netloc:
        raise RunEntryError("base_url holds a password\n  hint: api_key in credentials.conf, or api_key_env")
    if base_url is None or not is_address or parts.query or parts.fragment or any(map(str.isspace, base_url)):
        raise RunEntryError(f"{shown}: expected the server's address, without ?, # or a space: paths are added{hint}")
    address = base_url.rstrip("/")
    if found := next((path for path in PATHS.values() if address.endswith(path)), None):
        raise RunEntryError(f"{shown}: {found} is added to it\n  hint: base_url: {address.removesuffix(found)}")
    return address


def _find_key(of_helm: str | None, variable: str | None) -> str | None:
    """Return the key, of an environment variable if one is named. Raises RunEntryError, which does not show it."""
    key, where = of_helm, "the key in HELM's credentials"
    if variable:
        key, where = os.environ.get(variable), f"api_key_env={variable}"
        if not key:
            raise RunEntryError(f"{where}: no such environment variable, or an empty one")
    if key and (not key.isprintable() or key != key.strip()):
        raise RunEntryError(f"{where}: a line break, a space or another character that no key has stands in it")
    return key
