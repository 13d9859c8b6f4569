"""Nothing is lost: uploads killed at every step, and many uploaders at once.

`kill -9` ends a process between two system calls or within one. So every call that an upload makes to the operating
system is counted, and an upload is killed before each of them, and in the middle of each write. What a power
failure does to unsynced data cannot be tested this way; the order of fsync calls is, in `test_everything_is_synced`.
"""

import json
import os
import random
import signal
import stat
from collections import Counter
from pathlib import Path

import bundles
import pytest
from processes import fork, wait

from helm_ext import hub
from helm_ext.errors import HubError

pytestmark = [pytest.mark.slow, pytest.mark.nightly("src/helm_ext/formats/innodata/hub", "src/helm_ext/files")]

UPLOADERS = 32
UPLOADS_EACH = 4

CALLS = ("open", "write", "fsync", "link", "replace", "mkdir", "unlink", "close", "stat")


def make(folder, number, *, rows=1, name="demo"):
    records = [bundles.record(str(i), str(number)) for i in range(rows)]
    return bundles.make(folder / str(number), records, name=name)


def killed_at(step, when):
    """Patch the operating system's calls so that the process dies before the step-th of them.

    "within": of those that sync what was written, of which half has come to the disk.
    """
    count = 0

    def wrap(name, call):
        def wrapped(*arguments, **options):
            nonlocal count
            count += 1
            if count < step:
                return call(*arguments, **options)
            if when == "within" and not stat.S_ISDIR(os.fstat(arguments[0]).st_mode):
                os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

        return wrapped

    for name in CALLS if when == "before" else ("fsync",):
        setattr(os, name, wrap(name, getattr(os, name)))


def require_old_or_new_state(root, path, before):
    """Check the hub after a kill, upload the same again, and check once more. Returns whether version 2 was there."""
    versions = hub.versions("demo", root)
    assert hub.names(root) == ["demo"]
    assert versions[: len(before)] == before
    assert len(versions) - len(before) in (0, 1)
    assert hub.verify(hub=root) == []
    was_there = len(versions) > len(before)
    if was_there:
        with pytest.raises(HubError, match=f"this ZIP is version {len(versions)} already"):
            hub.upload(path, root)
    else:
        assert hub.upload(path, root).version.number == len(before) + 1
    assert len(hub.versions("demo", root)) == len(before) + 1
    assert hub.verify(hub=root) == []
    return was_there


@pytest.mark.parametrize("when", ["before", "within"])
@pytest.mark.parametrize("first", [True, False], ids=["new hub", "second version"])
def test_killed_at_every_step(tmp_path, when, first):
    old, new = make(tmp_path, 1), make(tmp_path, 2)
    outcomes = Counter()
    for step in range(1, 1000):
        root = tmp_path / f"hub{step}"
        before = [] if first else [hub.upload(old, root).version]

        def task(root=root, step=step):
            killed_at(step, when)
            hub.upload(new, root)

        outcome = wait(fork(task))
        if outcome == 0:
            break
        assert outcome == "killed"
        if first and not hub.names(root):
            assert hub.upload(new, root).version.number == 1
            outcomes["old"] += 1
        else:
            outcomes["new" if require_old_or_new_state(root, new, before) else "old"] += 1
    # The state was seen to be old before the claim, and new after it.
    assert outcomes["old"] >= (8 if when == "before" else 2)
    assert outcomes["new"] >= 1


def test_many_uploaders_at_once(tmp_path):
    """Every ZIP is uploaded by two processes, in different orders; each gets one version and one refusal."""
    root = tmp_path / "hub"
    distinct = UPLOADERS * UPLOADS_EACH // 2
    paths = [make(tmp_path / "zips", number) for number in range(distinct)]

    def task(worker):
        mine = [paths[(worker * UPLOADS_EACH + i) % distinct] for i in range(UPLOADS_EACH)]
        random.Random(worker).shuffle(mine)
        results = []
        for path in mine:
            try:
                results.append((str(path), hub.upload(path, root).version.number))
            except HubError as error:
                results.append((str(path), str(error)))
        (tmp_path / f"worker{worker}.json").write_text(json.dumps(results))

    pids = [fork(lambda worker=worker: task(worker)) for worker in range(UPLOADERS)]
    assert [wait(pid) for pid in pids] == [0] * UPLOADERS
    results = [
        row for worker in range(UPLOADERS) for row in json.loads((tmp_path / f"worker{worker}.json").read_text())
    ]
    accepted = {path: outcome for path, outcome in results if isinstance(outcome, int)}
    refused = [(path, outcome) for path, outcome in results if not isinstance(outcome, int)]
    assert len(results) == UPLOADERS * UPLOADS_EACH
    assert sorted(accepted.values()) == list(range(1, distinct + 1))
    assert len(refused) == distinct
    for path, message in refused:
        assert f"this ZIP is version {accepted[path]} already" in message
    versions = hub.versions("demo", root)
    assert [version.number for version in versions] == list(range(1, distinct + 1))
    assert len({version.digest for version in versions}) == distinct
    assert hub.verify(hub=root) == []
    assert not list(Path(root).rglob("*.part"))


def test_everything_is_synced(tmp_path, monkeypatch):
    """Each file is synced before it gets its name, and each folder after; the entry comes last."""
    log = []
    names = {}
    original = {name: getattr(os, name) for name in CALLS}

    def open_(path, *arguments, **options):
        handle = original["open"](path, *arguments, **options)
        names[handle] = Path(path).name
        return handle

    def fsync(handle):
        log.append(("sync", "part" if names[handle].endswith(".part") else names[handle]))
        original["fsync"](handle)

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("link", "replace"):
        monkeypatch.setattr(os, name, lambda *a, name=name: (log.append((name, Path(a[1]).suffix)), original[name](*a)))
    path = make(tmp_path, 1)
    log.clear()
    hub.upload(path, tmp_path / "hub")
    steps = [step for step in log if step[0] != "sync" or step[1] in {"part", "blobs", "versions"}]
    assert steps == [
        ("sync", "part"),
        ("replace", ".zip"),
        ("sync", "blobs"),
        ("sync", "part"),
        ("link", ".json"),
        ("sync", "versions"),
    ]
