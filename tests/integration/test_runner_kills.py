"""The streaming runner's files when runs are killed, and when two runs write to one folder.

`kill -9` ends a process between two calls to the operating system or within one. So a writer is killed before each call
that changes a name, and before some of the rows it writes. Every line of every file says which writer it is from: what is
there afterwards must be of one writer, and all of it or not a run that HELM takes for complete.
"""

import json
import os
import signal
import sys
from collections import Counter

import pytest
from processes import fork, wait

from helm_ext.files.writing import staged

pytestmark = [pytest.mark.slow, pytest.mark.nightly("src/helm_ext/running", "src/helm_ext/files/writing")]

FILES = ["run_spec.json", "scenario.json", "scenario_state.json", "stats.json", "per_instance_stats.json"]
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
"""Audit events of calls that change names; Python announces each one before it is made."""


def write_run(folder, writer, lines=3, killed_at=-1):
    """Stage the five files of a run, `lines` rows each, and put them in place. `killed_at`: before that row of all."""
    with staged(folder) as files:
        for place, name in enumerate(FILES):
            with files.open(name) as file:
                file.write(b"[")
                for line in range(lines):
                    if place * lines + line == killed_at:
                        os.kill(os.getpid(), signal.SIGKILL)
                    file.write(b'["%s", %d],\n' % (writer.encode(), line))
                file.write(b"null]")


def read_run(folder, lines=3):
    """Return whose files are there and how many; fails if they are of several writers or not whole."""
    found = {name: json.loads((folder / name).read_text()) for name in FILES if (folder / name).exists()}
    writers = {row[0] for rows in found.values() for row in rows[:-1]}
    assert len(writers) <= 1
    assert all(len(rows) == lines + 1 for rows in found.values())
    return "".join(writers), len(found)


def require_old_nothing_or_new(folder, lines=3):
    """Check a folder that "old" wrote and "new" was killed in. Returns what is there."""
    writer, count = read_run(folder, lines)
    if count == len(FILES):
        return writer
    assert not (folder / FILES[-1]).exists()  # what HELM misses: it runs again, and --skip-completed-runs too
    return "incomplete"


def require_repair(folder):
    """The next run puts all right, and leaves nothing behind."""
    write_run(folder, "next")
    assert read_run(folder) == ("next", len(FILES))
    assert sorted(path.name for path in folder.iterdir()) == sorted([".commit.lock", *FILES])


def kill_at(step):
    """Let this process die before the step-th call that changes a name."""
    count = 0

    def watch(event, _arguments):
        nonlocal count
        if event in CHANGES:
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def test_killed_before_every_change(tmp_path):
    seen = []
    for step in range(1, 100):
        folder = tmp_path / str(step)
        folder.mkdir()
        write_run(folder, "old")

        def task(folder=folder, step=step):
            kill_at(step)
            write_run(folder, "new")

        outcome = wait(fork(task))
        if outcome == 0:
            break
        assert outcome == "killed"
        seen.append(require_old_nothing_or_new(folder))
        require_repair(folder)
    # First the old run whole, then none, then the new one whole: 5 files taken away, 5 put in place.
    assert seen == sorted(seen, key=["old", "incomplete", "new"].index)
    assert Counter(seen)["incomplete"] == 9
    assert Counter(seen)["old"] >= 2
    assert Counter(seen)["new"] >= 2


def test_writers_at_once_never_mix(tmp_path):
    """Six processes put their files into one folder, again and again."""
    writers, rounds = 6, 8
    write_run(tmp_path, "first")

    def task(number):
        for turn in range(rounds):
            write_run(tmp_path, f"{number}-{turn}")

    pids = [fork(lambda number=number: task(number)) for number in range(writers)]
    assert [wait(pid) for pid in pids] == [0] * writers
    writer, count = read_run(tmp_path)
    assert count == len(FILES)
    assert writer.endswith(f"-{rounds - 1}")
    assert list(tmp_path.glob(".staged-*")) == []
