"""Rows that are stored on disk are the rows that were put there, and nothing of them stays behind."""

import gc
import math
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helm.benchmark import runner

from helm_ext.errors import HelmExtError
from helm_ext.files import store as module
from helm_ext.files.store import Folder, RowStore, SpillWriter

KINDS = [1, 1.0, True, -0.0, 10**300]
ODD = [2**63, -(2**70), 2**64 - 1, KINDS, math.inf, "\udc00", "甲\0", None, {"": [], "k": {"a": 1.5, "b": {}}}]
"""What JSON files and tables may hold; msgpack has no integers beyond 64 bits and no half surrogates."""


def make_rows(number):
    return [[n, {"text": "x" * (n % 50), "odd": ODD[n % len(ODD)]}] for n in range(number)]


@pytest.fixture
def output(tmp_path, monkeypatch):
    """HELM's output folder, as of a run."""
    monkeypatch.setattr(runner, "_BENCHMARK_OUTPUT_PATH", str(tmp_path))
    return tmp_path


def fill(rows, kept):
    store = RowStore(list, kept)
    for row in rows:
        store.add(row)
    store.finish()
    return store


@pytest.mark.parametrize("number", [0, 3, 4, 5, 6, 57])
def test_what_is_stored_is_read_in_any_order(output, monkeypatch, number):
    monkeypatch.setattr(module, "SEGMENT_ROWS", 5)
    rows = make_rows(number)
    store = fill(rows, 3)
    assert (store.kept is None) == (number > 3)
    order = [*range(number), *range(number - 1, -1, -1), *range(0, number, 7), *[number // 2] * min(number, 2)]
    expected = repr([rows[n] for n in order])  # a number keeps its kind
    assert repr(list(store.read(order))) == expected
    assert repr(list(pickle.loads(pickle.dumps(store)).read(order))) == expected


def test_several_processes_write_what_one_store_holds(output):
    rows = make_rows(40)
    folder = Folder()
    one, other = SpillWriter(folder.path), SpillWriter(folder.path)
    segments = []
    for writer, some in ((one, rows[:7]), (other, rows[7:30]), (one, []), (one, rows[30:])):
        for row in some:
            writer.add(row)
        segments.append(writer.end())
    store = RowStore(list, 0)
    store.take(segments, folder)
    assert list(store.read(range(40))) == rows
    assert list(pickle.loads(pickle.dumps(store)).read(range(39, -1, -1))) == rows[::-1]


def list_folder(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_what_is_stored_goes_with_the_store(output):
    store = fill(make_rows(5), 1)
    (staging,) = list_folder(output)
    assert len([one for one in list_folder(output / staging) if one != "lock"]) == 1
    rows = store.read([4, 0])
    assert next(rows) == make_rows(5)[4]
    del store
    gc.collect()
    assert list(rows) == make_rows(1)  # who reads needs it
    del rows
    gc.collect()
    assert list_folder(output) == []


def test_what_a_killed_process_has_stored_is_removed_by_the_next(output):
    script = (
        "import os, signal, sys\n"
        "from helm.benchmark.runner import set_benchmark_output_path\n"
        "from helm_ext.files.store import RowStore\n"
        "set_benchmark_output_path(sys.argv[1])\n"
        "store = RowStore(list, 0)\n"
        "store.add([1])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(output)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = list_folder(output)
    store = fill(make_rows(2), 0)
    (mine,) = list_folder(output)
    assert mine != left
    assert list(store.read([1])) == make_rows(2)[1:]


def test_without_a_run_rows_lie_with_the_users_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(runner, "_BENCHMARK_OUTPUT_PATH", str(tmp_path / "nowhere"))
    store = fill(make_rows(2), 0)
    (segment, *_) = store._segments
    assert Path(segment.path).is_relative_to(tmp_path)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is needed")
def test_a_full_disk_is_said(output, monkeypatch):
    store = RowStore(list, 0)
    monkeypatch.setattr(module, "open", lambda *_, **more: open("/dev/full", "wb", buffering=0), raising=False)
    with pytest.raises(HelmExtError, match=r"rows of a large file cannot be kept here: No space left[^\0]*hint:"):
        store.add([1])


def test_a_folder_that_cannot_be_written_is_said(output, monkeypatch):
    (output / "file").write_text("")
    monkeypatch.setattr(runner, "_BENCHMARK_OUTPUT_PATH", str(output / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(output / "file"))
    with pytest.raises(HelmExtError, match="cannot be kept here"):
        RowStore(list, 0).add([1])
    assert os.listdir(output) == ["file"]
