"""A server that is asked over HTTP: many requests at once, attempts that end, and what its errors mean.

aiohttp, because its cost per request does not grow with the number of requests in flight; see docs/reference/client.md
for how httpx, on which OpenAI's package stands, was measured and what it does instead. It is imported when the first
request is sent: recorded runs need none of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import json
import os
import random
import re
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from helm_ext.errors import show
from helm_ext.files import MAX_DEPTH, is_deeper

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

CONNECT_SECONDS = 4.0
"""How long a name is looked up and a connection is made. Short: a wrong address is to be told at once."""

FIRST_DELAY = 1.0
"""Seconds before the second attempt; twice as many before each further one. Up to half of it, at random, is dropped."""

LONGEST_DELAY = 8.0

RETRIES_GARBLED = 2
"""At most so often a request is sent again after replies that cannot be read."""

SHOWN = 500
"""Characters of what a server says that are shown."""


_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""By process: a forked one has no threads of its parent, and starts a loop of its own."""

_starting = threading.Lock()


def _get_loop() -> asyncio.AbstractEventLoop:
    with _starting:
        if os.getpid() not in _loops:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="helm-ext-event-loop", daemon=True).start()
        return _loops[os.getpid()]


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop and wait for its result. May be called by any thread but the loop's own.

    Where the waiting is interrupted (Ctrl-C), the coroutine is cancelled and has ended when this returns.
    """
    ended = threading.Event()

    async def to_the_end() -> T:
        try:
            return await coroutine
        finally:
            ended.set()

    future = asyncio.run_coroutine_threadsafe(to_the_end(), _get_loop())
    try:
        return future.result()
    except BaseException:
        if future.cancel():
            ended.wait(timeout=10)
        raise


class Fault(Enum):
    """What an error says about the next request."""

    PASSING = "the same request may succeed later"
    BUSY = "the same request will succeed later, says the server"
    GARBLED = "a reply came that cannot be read; another one may be better"
    OWN = "this request fails, another one need not"
    ALL = "no request can succeed"


_PASSING_STATUSES = frozenset({408, 409, 425, 429})
"""Beside all from 500 on."""

_STATUSES_OF_ALL = frozenset({402, 405})
"""What has been paid, or the address; beside 401 and 404, of which more is said."""

_CODES_OF_ALL = frozenset({"insufficient_quota", "billing_hard_limit_reached", "account_deactivated"})
"""OpenAI's codes of a 429 that does not pass."""

_NO_MODEL = re.compile(
    r"\b(unknown|invalid|unsupported|no such|not a valid) model\b|\bmodel( name| id)? (is )?(unknown|invalid)\b"
    r"|\bmodel\b(?!')[^.]{0,60}(not|n't) (be )?(exist|found|available)",
    re.IGNORECASE,
)


class ServerError(Exception):
    """A request was not answered. `retry_after`: seconds that the server asks to wait."""

    def __init__(
        self, message: str, fault: Fault, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.status = status
        self.retry_after = retry_after


class Server:
    """One address, asked from the event loop of this process (`run`)."""

    def __init__(
        self, url: str, api_key: str | None, *, timeout: float = 600.0, retries: int = 5, retry_seconds: float = 60.0
    ) -> None:
        """Take an address and its key.

        `timeout`: seconds for a whole reply; then a request is given up, and not sent again. Reasoning models think for
        minutes and send nothing. `retries`: how often a request is sent again after errors that may pass; where the
        server says when to come again, time alone decides. `retry_seconds`: how long a request may wait in all after
        its first error. No attempt begins later.
        """
        self.url = url
        self.api_key = api_key
        self.timeout = timeout
        self.retries = {Fault.PASSING: retries, Fault.GARBLED: min(retries, RETRIES_GARBLED)}
        self.retry_seconds = retry_seconds
        self.has_connected = False
        self.has_answered = False
        self._session: aiohttp.ClientSession | None = None
        self._resume_at = 0.0

    async def ask(
        self, path: str, body: Any, read: Callable[[Any], T], retrying: Callable[[int], None] = lambda _: None
    ) -> T:
        """Send a body, again where that may help, and return what `read` makes of the reply.

        `read` raises ServerError for a reply that is of no use. `retrying`: see `clients.client.AsyncClient`. Raises
        ServerError when no attempt is left, or none would help.
        """
        data = json.dumps(body).encode("ascii")
        failed_at: float | None = None
        sent: Counter[Fault] = Counter()
        while True:
            if (pause := self._resume_at - time.monotonic()) > 0:
                await asyncio.sleep(pause * (1 + random.random() / 10))  # noqa: S311 - not all at one moment
            try:
                made = read(await self._post(path, data))
            except ServerError as error:
                sent[error.fault] += 1
                now = time.monotonic()
                failed_at = now if failed_at is None else failed_at
                delay = self._delay(error, sent[error.fault])
                if delay is None or now + delay - failed_at > self.retry_seconds:
                    again = sent.total() - 1
                    tail = f" (sent again {again} times)" if again and error.fault is not Fault.ALL else ""
                    message = f"{error}{tail}"
                    if self.api_key:  # servers repeat what they were sent
                        message = message.replace(self.api_key, "***")
                    raise ServerError(message, error.fault, status=error.status) from error
                if error.fault is Fault.BUSY:
                    self._resume_at = max(self._resume_at, now + delay)
                retrying(1)
                try:
                    await asyncio.sleep(delay)
                finally:
                    retrying(-1)
            else:
                self.has_answered = True
                return made

    async def list_models(self) -> list[dict[str, Any]]:
        """Return the models that the server lists, by their `id`; [] where it lists none, or does not answer."""

        async def get() -> Any:
            async with self._get_session().get(f"{self.url}/models", allow_redirects=False) as response:
                return (await response.json(content_type=None))["data"]

        try:
            listed = await asyncio.wait_for(get(), CONNECT_SECONDS)
        except Exception:  # noqa: BLE001 - it is for a hint alone
            return []
        return [one for one in listed or () if isinstance(one, dict) and isinstance(one.get("id"), str)]

    def _delay(self, error: ServerError, number: int) -> float | None:
        """Return how long to wait after the `number`th fault of this kind; None where no attempt follows."""
        if error.fault is Fault.BUSY and error.retry_after is not None:
            # A server that is wrong about the time again and again is asked ever more rarely.
            least = min(FIRST_DELAY * 2.0 ** (number - 3), LONGEST_DELAY)
            return max(error.retry_after, least) + random.random() / 2  # noqa: S311
        if number > self.retries.get(error.fault, 0):
            return None
        return FIRST_DELAY * 2.0 ** (number - 1) * (1 - random.random() / 2)  # noqa: S311

    async def _post(self, path: str, data: bytes) -> Any:
        """Send once and return the JSON that comes back. Raises ServerError."""
        import aiohttp

        url = self.url + path
        try:
            async with self._get_session().post(url, data=data, allow_redirects=False) as response:
                text = await response.read()
                if response.status != 200:
                    raise await self._explain(path, response.status, response.headers, text, data)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            fault = Fault.PASSING if self.has_connected else Fault.ALL
            hint = "" if self.has_connected else "\n  hint: is the server running, and is its address (base_url) right?"
            raise ServerError(f"nobody answers at {url}: {_reason(error)}{hint}", fault) from error
        except aiohttp.InvalidURL as error:
            raise ServerError(f"{url}: no address", Fault.ALL) from error
        except asyncio.TimeoutError as error:
            message = f"{url}: no whole reply within {self.timeout:g} s"
            raise ServerError(message, Fault.OWN) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ServerError(f"{url}: the connection broke: {_reason(error)}", Fault.PASSING) from error
        try:
            return _parse_reply(text)
        except (ValueError, RecursionError) as error:
            said = show(text[:100].decode(errors="replace"))
            raise ServerError(f"{url}: the reply is not JSON: {said}", Fault.GARBLED) from error

    def _get_session(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None or self._session.closed:
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            if self.api_key:
                headers["Authorization"] = f"Bearer {self.api_key}"
            address = urlsplit(self.url)  # whose proxy aiohttp would look for at each request, in a thread
            proxy = None if proxy_bypass(address.hostname or "") else getproxies().get(address.scheme)
            trace = aiohttp.TraceConfig()
            trace.on_connection_create_end.append(self._note_connection)
            self._session = aiohttp.ClientSession(
                trace_configs=[trace],
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=self.timeout, connect=CONNECT_SECONDS),
                proxy=proxy,
            )
            weakref.finalize(self, _close, self._session)
        return self._session

    async def _note_connection(self, *_: Any) -> None:
        self.has_connected = True

    async def _explain(
        self, path: str, status: int, headers: Mapping[str, str], text: bytes, data: bytes
    ) -> ServerError:
        """Return what a reply with another status than 200 means."""
        url, (said, code) = self.url + path, _what_it_says(text)
        message, fault, wait = f"{url}: status {status}: {said}", Fault.ALL, _retry_after(headers)
        is_early = not self.has_answered
        model = str(json.loads(data).get("model"))
        is_about_name = code == "model_not_found" or _is_about_name(said, model)
        if code in _CODES_OF_ALL:
            pass
        elif status >= 500 or status in _PASSING_STATUSES:
            fault = Fault.PASSING if wait is None else Fault.BUSY
        elif status == 401 or (status == 403 and is_early):
            which = "the key that it was sent" if self.api_key else "requests without a key"
            hint = "api_key in credentials.conf, or the deployment's api_key_env"
            message = f"{url}: the server refuses {which} (status {status}): {said}\n  hint: {hint}"
        elif 300 <= status < 400:
            target = show(str(headers.get("Location", "")))
            message = f"{url}: the server sends on to {target}; base_url is another"
        elif status == 404 or (is_early and status in (400, 422) and is_about_name):
            known = [model["id"] for model in await self.list_models()]
            if known and model not in known:
                names = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
                message = (
                    f"{url}: the server does not know the model {model!r} (status {status}): {said}\n"
                    f"  hint: openai_model_name in the deployment; it knows {names}"
                )
            elif status == 404:
                hint = f"base_url, which ends with /v1 for most servers, or the model's name {model!r}"
                message = f"{message}\n  hint: the address or the model is wrong: {hint}"
            else:
                fault = Fault.OWN
        elif status not in _STATUSES_OF_ALL:
            fault = Fault.OWN
        return ServerError(message, fault, status=status, retry_after=wait)


def _close(session: aiohttp.ClientSession) -> None:
    """Close a session: when its server goes, or the process ends. Waits a second for it at most."""
    loop = _loops.get(os.getpid())
    if loop is None or not loop.is_running():
        return
    future = asyncio.run_coroutine_threadsafe(session.close(), loop)
    with contextlib.suppress(RuntimeError):
        if asyncio.get_running_loop() is loop:
            return
    with contextlib.suppress(Exception):
        future.result(timeout=1)


def _parse_reply(data: bytes) -> Any:
    """Return the JSON of a reply. Raises ValueError, RecursionError.

    What no answer needs is not in the way of one: a byte order mark, NaN or Infinity (null), and half of an escaped
    surrogate pair, which no file could hold (U+FFFD). What is nested too deep for the cache is refused.
    """
    found = json.loads(data.decode("utf-8-sig"), parse_constant=lambda _: None)
    if is_deeper(found, MAX_DEPTH):
        raise ValueError("nested too deep")
    if b"\\ud" in data.lower():
        text = json.dumps(found, ensure_ascii=False)
        found = json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    return found


def _is_about_name(said: str, model: str) -> bool:
    """Whether a refusal is of the model's name: it says so, or has the name in quotes or behind the word "model".

    "This model's maximum context length" is about one prompt, and "a" may be a model.
    """
    name = re.escape(model)
    named = rf"([`'\"]){name}\1|\bmodel([ _](name|id))?\W+{name}(?!\w)"
    return "model" in said.lower() and bool(_NO_MODEL.search(said) or re.search(named, said, re.IGNORECASE))


def _reason(error: BaseException) -> str:
    found = getattr(error, "os_error", None) or error
    return getattr(found, "strerror", None) or str(found) or type(found).__name__


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait: a number or a date."""
    value = headers.get("Retry-After", "")
    try:
        is_number = value.replace(".", "", 1).isdecimal()
        seconds = float(value) if is_number else email.utils.parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, seconds)


def _what_it_says(text: bytes) -> tuple[str, str]:
    """Return what a server says is wrong (OpenAI's `error.message`, else the beginning of its text), and its code."""
    decoded = text.decode(errors="replace")
    try:
        said = json.loads(decoded)
    except (ValueError, RecursionError):
        return show(decoded), ""
    inner = said.get("error", said) if isinstance(said, dict) else said
    if isinstance(inner, dict) and "message" in inner:
        return str(inner["message"])[:SHOWN], str(inner.get("code") or inner.get("type") or "")
    return show(inner), ""
