"""Replies in HELM's files: what one of the two writes the other finds, also while both have the file open."""

import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from helm.common.cache import BlackHoleCacheConfig, Cache, SqliteCacheConfig, cache_stats
from sqlitedict import SqliteDict

from helm_ext.clients import client as cache_module
from helm_ext.clients.client import CHUNK, RequestCache
from helm_ext.errors import HelmExtError


@pytest.fixture
def config(tmp_path):
    return SqliteCacheConfig(str(tmp_path / "cache.sqlite"))


def count(config):
    with SqliteDict(config.path) as stored:
        return len(stored)


def test_helm_finds_ours_and_we_find_helms_while_both_are_open(config):
    ours = RequestCache.of(config)
    ours.put_many([({"q": "ours"}, {"reply": 1})])
    ours.flush()
    helms = Cache(config)
    assert helms.get({"q": "ours"}, lambda: pytest.fail("asked again")) == ({"reply": 1}, True)
    assert helms.get({"q": "helms"}, lambda: {"reply": 2}) == ({"reply": 2}, False)
    assert ours.get_many([{"q": "helms"}]) == [{"reply": 2}]
    ours.put_many([({"q": "helms"}, {"reply": 3})])
    ours.flush()
    assert helms.get({"q": "helms"}, dict)[0] == {"reply": 3}


def test_there_is_one_for_a_file(config, tmp_path):
    (tmp_path / "sub").mkdir()
    other = SqliteCacheConfig(str(tmp_path / "sub" / ".." / "cache.sqlite"))
    assert RequestCache.of(config) is RequestCache.of(other)
    assert RequestCache.of(config) is not RequestCache.of(SqliteCacheConfig(str(tmp_path / "other.sqlite")))


@pytest.mark.parametrize(
    ("config", "found"), [(BlackHoleCacheConfig(), None), (None, None), (SqliteCacheConfig(":memory:"), {"reply": 1})]
)
def test_without_a_file(config, found):
    cache = RequestCache.of(config)
    cache.put_many([({"a": 1}, {"reply": 1})])
    cache.flush()
    assert cache.get_many([{"a": 1}]) == [found]


def test_a_full_chunk_is_written_at_once(config, monkeypatch):
    cache = RequestCache.of(config)
    monkeypatch.setattr("helm_ext.clients.client.CHUNK_SECONDS", 3600)
    cache.put_many([({"n": number}, {"reply": number}) for number in range(CHUNK - 1)])
    assert count(config) == 0
    cache.put_many([({"n": CHUNK}, {"reply": 0})])
    assert count(config) == CHUNK


def test_what_fills_no_chunk_is_written_soon(config):
    RequestCache.of(config).put_many([({"n": "last"}, {"reply": 0})])
    while not count(config):
        time.sleep(0.1)


def test_more_keys_than_a_query_takes(config):
    cache = RequestCache.of(config)
    keys = [{"n": number} for number in range(2500)]
    cache.put_many((key, {"reply": key["n"]}) for key in keys[::2])
    found = [reply and reply["reply"] for reply in cache.get_many(keys)]
    assert found == [number if number % 2 == 0 else None for number in range(2500)]


PROGRAM = """
import sys
from helm.common.cache import SqliteCacheConfig
from helm_ext.clients.client import RequestCache
cache = RequestCache.of(SqliteCacheConfig(sys.argv[1]))
for number in range(int(sys.argv[2])):
    cache.put_many([({"n": number}, {"reply": "x" * 100})])
    print(number + 1, flush=True)
"""


def test_a_killed_process_loses_a_chunk_at_most(config):
    program = [sys.executable, "-c", PROGRAM, config.path, str(10**9)]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.strip().isdigit() and int(line) >= 1234:
            break
    os.kill(process.pid, signal.SIGKILL)
    put = max([1234, *(int(line) for line in process.stdout if line.strip().isdigit())])
    process.wait()
    assert put - CHUNK <= count(config) <= put + 1


def test_a_process_that_ends_loses_nothing(config):
    subprocess.run([sys.executable, "-c", PROGRAM, config.path, "1"], check=True, capture_output=True)
    assert count(config) == 1


def test_a_broken_or_hostile_entry_is_none(config, tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "run"),)

    cache = RequestCache.of(config)
    values = [b"", b"\x80", b"\xff" * 50, pickle.dumps([1]), pickle.dumps({}), pickle.dumps({"a": Evil()})]
    for number, value in enumerate(values):
        cache.store.connection.execute('INSERT INTO "unnamed" VALUES (?, ?)', (f'{{"n": {number}}}', value))
    assert cache.get_many([{"n": number} for number in range(len(values))]) == [None] * len(values)
    assert not (tmp_path / "run").exists()


def test_a_file_that_cannot_be_opened(tmp_path):
    with pytest.raises(HelmExtError, match="the cache cannot be opened"):
        RequestCache.of(SqliteCacheConfig(str(tmp_path / "no" / "such" / "folder.sqlite")))
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to look at" * 20)
    with pytest.raises(HelmExtError, match="the cache cannot be opened"):
        RequestCache.of(SqliteCacheConfig(str(tmp_path / "text.sqlite")))


def test_a_file_that_cannot_be_written_is_told_of_once_and_nothing_is_lost_meanwhile(config, monkeypatch):
    said = []
    monkeypatch.setattr(cache_module, "hwarn", said.append)
    monkeypatch.setattr(cache_module, "LOCK_SECONDS", 0.1)
    cache = RequestCache.of(config)
    other = sqlite3.connect(config.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for number in range(3 * CHUNK):
        cache.put_many([({"n": number}, {"reply": number})])
    assert len(said) == 1
    assert "replies cannot be written" in said[0]
    other.execute("ROLLBACK")
    cache.flush()
    assert count(config) == 3 * CHUNK


def test_helm_counts_queries_and_computes(config):
    cache = RequestCache.of(config)
    counters = cache_stats.num_queries, cache_stats.num_computes
    before = [counter[config.path] for counter in counters]
    cache.get_many([{"n": 1}, {"n": 2}])
    cache.put_many([({"n": 1}, {"reply": 1})])
    assert [counter[config.path] - earlier for counter, earlier in zip(counters, before, strict=True)] == [2, 1]
