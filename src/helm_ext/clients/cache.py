"""HELM's cache of requests and replies, with one connection a file and process.

HELM's `Cache.get` opens the file (a connection and a thread) for every request and commits every reply, which holds 64
threads to some 200 requests a second. Here the file stays open, and replies are written by the chunk.

Keys, values and file are HELM's (`helm.common.key_value_store`): what one of the two has written, the other one finds.
The file keeps sqlite's plain journal. With a write-ahead log, which is no faster by the chunk, sqlite refuses HELM's
own connections ("database is locked") as long as ours is open, and HELM's tokenizers and annotators use the same files.

A process that is killed loses what no chunk was written with: at most CHUNK replies, or those of CHUNK_SECONDS.
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
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from helm.common.cache import BlackHoleCacheConfig, CacheConfig, SqliteCacheConfig, cache_stats, create_key_value_store
from helm.common.hierarchical_logger import hwarn
from helm.common.key_value_store import KeyValueStore, request_to_key

from helm_ext.errors import HelmExtError

__all__ = ["CHUNK", "RequestCache"]

CHUNK = 100
"""Replies that are written together."""

CHUNK_SECONDS = 0.5
"""How long a reply waits for others to be written with."""

LOCK_SECONDS = 30
"""How long another process may hold the file."""

LOOKED_UP = 500
"""Keys in one query; sqlite before 3.32 allows 999."""


class RequestCache(ABC):
    """Replies by request. Every method may be called by any thread; other processes may use the same file."""

    _open: ClassVar[dict[tuple[object, int], RequestCache]] = {}
    _opening: ClassVar[threading.Lock] = threading.Lock()

    keeps: bool = True
    """Whether what is put in is found again: not where the user disabled the cache."""

    @staticmethod
    def of(config: CacheConfig | None) -> RequestCache:
        """Return the cache of a configuration: the same one for the same file, as long as the process lives.

        Raises HelmExtError for a file that sqlite cannot open.
        """
        if isinstance(config, SqliteCacheConfig) and config.path != ":memory:":
            key: tuple[object, int] = (os.path.realpath(config.path), os.getpid())
        else:
            key = (config, os.getpid())
        with RequestCache._opening:
            if key not in RequestCache._open:
                made = _FileCache(config) if isinstance(config, SqliteCacheConfig) else _StoreCache(config)
                RequestCache._open[key] = made
            return RequestCache._open[key]

    @staticmethod
    def flush_all() -> None:
        """Return when everything is written, of all caches of this process."""
        for (_, process), cache in list(RequestCache._open.items()):
            if process == os.getpid():
                cache.flush()

    @abstractmethod
    def get_many(self, keys: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        """Return the replies to these requests, None where there is none."""

    @abstractmethod
    def put_many(self, pairs: Iterable[tuple[Mapping[str, Any], dict[str, Any]]]) -> None:
        """Keep replies; those of a key that is there are replaced. They are found at once, and soon written."""

    @abstractmethod
    def flush(self) -> None:
        """Return when everything is written."""


class _StoreCache(RequestCache):
    """HELM's own stores: MongoDB, and the one that keeps nothing."""

    def __init__(self, config: CacheConfig | None) -> None:
        self.keeps = config is not None and not isinstance(config, BlackHoleCacheConfig)
        self.stats_key = "disabled_cache" if config is None else config.cache_stats_key
        self.store: KeyValueStore | None = None if config is None else create_key_value_store(config).__enter__()
        self.lock = threading.Lock()

    def get_many(self, keys: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        _count_queries(self.stats_key, len(keys))
        if self.store is None:
            return [None] * len(keys)
        with self.lock:
            return [self.store.get(key) for key in keys]

    def put_many(self, pairs: Iterable[tuple[Mapping[str, Any], dict[str, Any]]]) -> None:
        pairs = list(pairs)
        _count_computes(self.stats_key, len(pairs))
        if self.store is not None:
            with self.lock:
                self.store.multi_put(pairs)

    def flush(self) -> None:
        """Nothing waits."""


class _FileCache(RequestCache):
    """A file of HELM's. Replies that are not written yet are in `pending`, by their keys as the file has them."""

    def __init__(self, config: SqliteCacheConfig) -> None:
        self.path = config.path
        self.stats_key = config.cache_stats_key
        self.lock = threading.RLock()
        self.pending: dict[str, dict[str, Any]] = {}
        self.has_pending = threading.Event()
        self.writer: threading.Thread | None = None
        self.is_failing = False
        try:
            self.connection = sqlite3.connect(
                self.path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False
            )
            self.connection.execute("PRAGMA synchronous=NORMAL")
            self.connection.execute('CREATE TABLE IF NOT EXISTS "unnamed" (key TEXT PRIMARY KEY, value BLOB)')
        except sqlite3.Error as error:
            raise HelmExtError(f"{self.path}: the cache cannot be opened: {error}") from error
        atexit.register(self.flush)

    def get_many(self, keys: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        _count_queries(self.stats_key, len(keys))
        names = [request_to_key(key) for key in keys]
        with self.lock:
            found = {name: self.pending[name] for name in names if name in self.pending}
            asked = list(dict.fromkeys(name for name in names if name not in found))
            for start in range(0, len(asked), LOOKED_UP):
                part = asked[start : start + LOOKED_UP]
                marks = ",".join("?" * len(part))
                query = f'SELECT key, value FROM "unnamed" WHERE key IN ({marks})'  # noqa: S608 - question marks
                for name, value in self.connection.execute(query, part):
                    read = _read(value)
                    if read is not None:
                        found[name] = read
        return [found.get(name) for name in names]

    def put_many(self, pairs: Iterable[tuple[Mapping[str, Any], dict[str, Any]]]) -> None:
        named = {request_to_key(key): value for key, value in pairs}
        _count_computes(self.stats_key, len(named))
        with self.lock:
            self.pending.update(named)
            if len(self.pending) >= CHUNK and not self.is_failing:
                self._write()
            elif self.pending:
                if self.writer is None:
                    self.writer = threading.Thread(target=self._write_soon, name="request-cache", daemon=True)
                    self.writer.start()
                self.has_pending.set()

    def flush(self) -> None:
        with self.lock:
            self._write()

    def _write_soon(self) -> None:
        """Write what waits, some time after the first of it came."""
        while self.has_pending.wait():
            time.sleep(CHUNK_SECONDS)
            self.flush()

    def _write(self) -> None:
        """Write what waits, in one transaction. What cannot be written stays in memory, and that is said, once."""
        self.has_pending.clear()
        if not self.pending:
            return
        rows = [(name, pickle.dumps(value, pickle.HIGHEST_PROTOCOL)) for name, value in self.pending.items()]
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.executemany('REPLACE INTO "unnamed" (key, value) VALUES (?, ?)', rows)
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            if not self.is_failing:
                self.is_failing = True
                hwarn(f"{self.path}: replies cannot be written to the cache, a later run will ask again: {error}")
            return
        self.is_failing = False
        self.pending.clear()


class _PlainUnpickler(pickle.Unpickler):
    """Reads what JSON can say. A cache file that somebody else made must not run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} in a cache")


def _read(value: bytes) -> dict[str, Any] | None:
    """Return a reply, or None for what is none: it will be asked for again, and replaced."""
    try:
        found = _PlainUnpickler(io.BytesIO(value)).load()
    except Exception:  # noqa: BLE001 - pickle raises nearly anything for broken bytes
        return None
    return found if isinstance(found, dict) and found else None


def _count_queries(stats_key: str, number: int) -> None:
    """Count for the line that HELM prints at the end of a run."""
    with cache_stats.lock:
        cache_stats.num_queries[stats_key] += number


def _count_computes(stats_key: str, number: int) -> None:
    with cache_stats.lock:
        cache_stats.num_computes[stats_key] += number
