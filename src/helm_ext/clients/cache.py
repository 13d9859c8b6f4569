"""HELM's cache of requests and replies, with one connection per file and process.

HELM's `Cache.get` opens the file (a connection and a thread) for every request and commits every reply, which holds 64
threads to some 200 requests a second. Here the file stays open, and replies are written by the chunk.

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
from typing import Any, ClassVar

from helm.common.cache import BlackHoleCacheConfig, CacheConfig, SqliteCacheConfig, cache_stats, create_key_value_store
from helm.common.hierarchical_logger import hwarn
from helm.common.key_value_store import KeyValueStore, request_to_key

from helm_ext.errors import HelmExtError

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
