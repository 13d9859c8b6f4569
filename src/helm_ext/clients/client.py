"""What live clients share: what they can do and say beyond HELM's, and HELM's cache with one connection per file.

`helm_ext.running.executor` asks for `ListClient` and `AsyncClient` by their methods, so that a client of any package
may have them.

HELM's `Cache.get` opens the file (a connection and a thread) for every request and commits every reply, which holds 64
threads to some 200 requests a second. In `RequestCache` the file stays open, and replies are written by the chunk.
Keys, values and file are HELM's (`helm.common.key_value_store`): what one of the two has written, the other one finds.
The file keeps sqlite's plain journal. With a write-ahead log, which is no faster by the chunk, sqlite refuses HELM's
own connections ("database is locked") as long as ours is open, and HELM's tokenizers and annotators use the same files.
A process that is killed loses the replies that still waited: at most CHUNK, or those of the last CHUNK_SECONDS.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import pickle
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from helm.common.cache import BlackHoleCacheConfig, CacheConfig, SqliteCacheConfig, cache_stats, create_key_value_store
from helm.common.hierarchical_logger import hwarn
from helm.common.key_value_store import KeyValueStore, request_to_key
from helm.common.request import ErrorFlags, Request, RequestResult

from helm_ext.errors import HelmExtError

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState


MAX_COST_ENV, MAX_TOKENS_ENV = "HELM_EXT_MAX_COST", "HELM_EXT_MAX_TOKENS"

NOTES_KEY = "helm_ext"
"""Where a result's notes stand in `RequestState.annotations`."""


@runtime_checkable
class ListClient(Protocol):
    """A client that takes the requests of a row (of one instance and training trial) together.

    It is called from as many threads as `--num-threads` says; one that can do one thing at a time holds a lock. It
    makes its own attempts: no row is asked twice. An exception, or a result without success, is a failure of the row.
    """

    def make_requests(self, requests: Sequence[Request]) -> list[RequestResult]:
        """Return the results in the order of the requests. Raises DeploymentError where no other row can succeed."""


@runtime_checkable
class AsyncClient(Protocol):
    """A client that waits for many answers at once, on the event loop of `helm_ext.clients.server`."""

    def find_kept(self, requests: Sequence[Request]) -> list[RequestResult | None]:
        """Return the answers that are in the cache, None where there is none. Called before the others are sent."""

    async def send(self, request: Request, retrying: Callable[[int], None]) -> RequestResult:
        """Return the answer to a request that `find_kept` did not find, after the client's own attempts.

        `retrying` is called with 1 when the request begins to wait for another attempt, and with -1 when it no longer
        does. Raises DeploymentError where no other request can succeed either.
        """


# A client may also have `check_requests(requests: Sequence[Request]) -> None`. It is called with all requests of a run
# before the first is sent, and raises HelmExtError, once, for whatever of them it cannot send.


class NotedResult(RequestResult):
    """HELM's RequestResult with what the answer says of itself, in attributes that HELM's files do not hold.

    The runner puts the notes into `RequestState.annotations["helm_ext"]`: JSON, such as `usage` (OpenAI's names:
    `prompt_tokens`, `completion_tokens`), `seed`, `device`.
    """

    notes: Mapping[str, Any] = MappingProxyType({})
    is_refused: bool = False
    """Of a failure: the server is there and refuses this one request (too long a prompt). Others need not fail."""


def notes_of(result: RequestResult | None) -> Mapping[str, Any]:
    """Return a result's notes; {} where it has none."""
    return getattr(result, "notes", {})


def is_refused(result: RequestResult) -> bool:
    """Whether a failure says nothing about other requests (`NotedResult.is_refused`)."""
    return getattr(result, "is_refused", False)


def annotate_with_notes(states: Sequence[RequestState]) -> None:
    """Put the results' notes into the states' annotations, in place: before a run is written, after it is measured.

    HELM's annotators put their annotations in place of all others, and metrics such as its SafetyScoreMetric refuse
    states with more than one.
    """
    for state in states:
        if notes := notes_of(state.result):
            vars(state)["annotations"] = {**(state.annotations or {}), NOTES_KEY: dict(notes)}


def fail(message: str) -> NotedResult:
    """Return a failure that does not pass: HELM need not ask again, for the client has made its attempts."""
    flags = ErrorFlags(is_retriable=False, is_fatal=True)
    return NotedResult(success=False, cached=False, error=message, completions=[], embedding=[], error_flags=flags)


def find_unenforced_limit(*, is_local: bool = False) -> str:
    """Return why a request that HELM's own code sends may not be sent; "" where the user set no limit.

    The streaming runner counts what is spent. HELM's runner counts nothing, nor do its annotators, which ask a judge:
    they would spend beyond the limit without a word. `is_local`: a model of this machine's costs no money.
    """
    names = (MAX_TOKENS_ENV,) if is_local else (MAX_COST_ENV, MAX_TOKENS_ENV)
    name = next((name for name in names if os.environ.get(name)), None)
    if name is None:
        return ""
    return (
        f"{name}={os.environ[name]}: the limit cannot be kept: this request is one of HELM's own runner, or of an "
        "annotator, which count nothing\n"
        "  hint: --runner-class-name helm_ext.running.StreamingRunner keeps limits of the model that is evaluated; "
        f"without {name} nothing is limited"
    )


CHUNK = 100
"""How many replies are written together."""

CHUNK_SECONDS = 0.5
"""How long a reply waits for others to be written with."""

LOCK_SECONDS = 30
"""How long another process may hold the file."""

LOOKED_UP = 500
"""Keys in one query; sqlite before 3.32 allows 999."""


class RequestCache:
    """Replies by request. Every method may be called by any thread; other processes may use the same file."""

    _open: ClassVar[dict[tuple[object, int], RequestCache]] = {}
    _opening: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, config: CacheConfig) -> None:
        self.stats_key = config.cache_stats_key
        self.keeps = not isinstance(config, BlackHoleCacheConfig)
        """Whether what is put in is found again: not where the user disabled the cache."""
        self.store = _File(config.path) if isinstance(config, SqliteCacheConfig) else _HelmStore(config)
        self.lock = threading.RLock()
        self.pending: dict[str, tuple[Mapping[str, Any], dict[str, Any]]] = {}
        """Replies that are not written yet, by their keys as the file has them."""
        self.has_pending = threading.Event()
        self.writer: threading.Thread | None = None
        self.is_failing = False
        atexit.register(self.flush)

    @staticmethod
    def of(config: CacheConfig | None) -> RequestCache:
        """Return the cache of a configuration: the same one for the same file, as long as the process lives.

        Raises HelmExtError for a file that sqlite cannot open.
        """
        config = config or BlackHoleCacheConfig()
        is_file = isinstance(config, SqliteCacheConfig) and config.path != ":memory:"
        key = (os.path.realpath(config.path) if is_file else config, os.getpid())
        with RequestCache._opening:
            if key not in RequestCache._open:
                RequestCache._open[key] = RequestCache(config)
            return RequestCache._open[key]

    @staticmethod
    def flush_all() -> None:
        """Return when everything is written, of all caches of this process."""
        for (_, process), cache in list(RequestCache._open.items()):
            if process == os.getpid():
                cache.flush()

    def get(self, request: Mapping[str, Any], compute: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], bool]:
        """Return the reply, and whether it was there: what HELM's clients ask of HELM's Cache."""
        [found] = self.get_many([request])
        if found is not None:
            return found, True
        made = compute()
        self.put_many([(request, made)])
        return made, False

    def get_many(self, keys: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        """Return the replies to these requests, None where there is none."""
        with cache_stats.lock:  # for the line that HELM prints at the end of a run
            cache_stats.num_queries[self.stats_key] += len(keys)
        names = [request_to_key(key) for key in keys]
        with self.lock:
            found = {name: self.pending[name][1] for name in names if name in self.pending}
            asked = {name: key for name, key in zip(names, keys, strict=True) if name not in found}
            found |= self.store.get_many(asked)
        return [found.get(name) for name in names]

    def put_many(self, pairs: Iterable[tuple[Mapping[str, Any], dict[str, Any]]]) -> None:
        """Store replies, in place of those with the same key. They are found at once, and written soon."""
        named = {request_to_key(key): (key, value) for key, value in pairs}
        with cache_stats.lock:
            cache_stats.num_computes[self.stats_key] += len(named)
        if not self.keeps:
            return
        with self.lock:
            self.pending.update(named)
            if len(self.pending) >= CHUNK and not self.is_failing:
                self.flush()
            elif self.pending:
                if self.writer is None:
                    self.writer = threading.Thread(target=self._write_soon, name="request-cache", daemon=True)
                    self.writer.start()
                self.has_pending.set()

    def flush(self) -> None:
        """Write the replies that wait. Those that cannot be written stay in memory, and one warning says so."""
        with self.lock:
            self.has_pending.clear()
            if not self.pending:
                return
            try:
                self.store.put_many(self.pending)
            except Exception as error:  # noqa: BLE001 - sqlite's, or of MongoDB's driver
                if not self.is_failing:
                    path = self.store.path
                    hwarn(f"{path}: replies cannot be written to the cache, a later run will ask again: {error}")
                self.is_failing = True
            else:
                self.is_failing = False
                self.pending.clear()

    def _write_soon(self) -> None:
        """Write the replies that wait, CHUNK_SECONDS after the first of them came."""
        while self.has_pending.wait():
            time.sleep(CHUNK_SECONDS)
            self.flush()


class _HelmStore:
    """HELM's own stores: MongoDB, and the one that keeps nothing."""

    def __init__(self, config: CacheConfig) -> None:
        self.path = config.cache_stats_key
        self.store: KeyValueStore = create_key_value_store(config).__enter__()

    def get_many(self, keys: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        return {name: value for name, key in keys.items() if (value := self.store.get(key)) is not None}

    def put_many(self, named: Mapping[str, tuple[Mapping[str, Any], dict[str, Any]]]) -> None:
        self.store.multi_put(named.values())


class _File:
    """A file of HELM's."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.connection = sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
            self.connection.execute("PRAGMA synchronous=NORMAL")
            self.connection.execute('CREATE TABLE IF NOT EXISTS "unnamed" (key TEXT PRIMARY KEY, value BLOB)')
        except sqlite3.Error as error:
            raise HelmExtError(f"{path}: the cache cannot be opened: {error}") from error

    def get_many(self, keys: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        names, found = list(keys), {}
        for start in range(0, len(names), LOOKED_UP):
            part = names[start : start + LOOKED_UP]
            marks = ",".join("?" * len(part))
            query = f'SELECT key, value FROM "unnamed" WHERE key IN ({marks})'  # noqa: S608 - question marks
            for name, value in self.connection.execute(query, part):
                if (read := _read(value)) is not None:
                    found[name] = read
        return found

    def put_many(self, named: Mapping[str, tuple[Mapping[str, Any], dict[str, Any]]]) -> None:
        """Write replies in one transaction. Raises sqlite3.Error."""
        rows = [(name, pickle.dumps(value, pickle.HIGHEST_PROTOCOL)) for name, (_, value) in named.items()]
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.executemany('REPLACE INTO "unnamed" (key, value) VALUES (?, ?)', rows)
            self.connection.execute("COMMIT")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise


class _PlainUnpickler(pickle.Unpickler):
    """Reads what JSON can say. A cache file that somebody else made must not run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} in a cache")


def _read(value: bytes) -> dict[str, Any] | None:
    """Return a reply, or None if the entry is not one: it will be asked for again, and replaced."""
    try:
        found = _PlainUnpickler(io.BytesIO(value)).load()
    except Exception:  # noqa: BLE001 - pickle raises nearly anything for broken bytes
        return None
    return found if isinstance(found, dict) and found else None
