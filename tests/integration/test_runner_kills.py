"""The streaming runner's files when runs are killed, and when two runs write to one folder.

`kill -9` ends a process between two calls to the operating system or within one. So a writer is killed before each call
that changes a name, and at random moments of writing. Every line of every file says which writer it is from: what is
there afterwards must be of one writer, and all of it or not a run that HELM takes for complete.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import textwrap
import time
from collections import Counter

import processes
import pytest

from helm_ext.files.staged import staged

pytestmark = [pytest.mark.slow, pytest.mark.nightly("src/helm_ext/running", "src/helm_ext/files/staged")]

FILES = ["run_spec.json", "scenario.json", "scenario_state.json", "stats.json", "per_instance_stats.json"]
KILLS = int(os.environ.get("HELM_EXT_TEST_KILLS", "25"))
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
"""Audit events of calls that change names; Python announces each one before it is made."""


def write_run(folder, writer, lines=3, after_staging=lambda: None):
    """Stage the five files of a run, `lines` rows each, and put them in place."""
    with staged(folder) as files:
        for name in FILES:
            with files.open(name) as file:
                file.write(b"[")
                for line in range(lines):
                    file.write(b'["%s", %d],\n' % (writer.encode(), line))
                file.write(b"null]")
        after_staging()


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


def fork(task):
    """Run `task` in a child process that never returns to pytest; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        task()
        code = 0
    finally:
        os._exit(code)


def wait(pid):
    """Return "killed", or the exit code."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return "killed" if status == -signal.SIGKILL else status


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


def test_killed_at_random_moments(tmp_path):
    """One folder survives all of it: big files, so that most kills fall into the writing."""
    lines = 10_000
    moments = random.Random(11)
    folder = tmp_path / "run"
    folder.mkdir()
    started = time.perf_counter()
    write_run(folder, "old", lines)
    duration = time.perf_counter() - started
    killed, seen, before = 0, Counter(), "old"
    while killed < KILLS:
        pid = fork(lambda name=f"new{killed}": write_run(folder, name, lines))
        time.sleep(moments.uniform(0, 1.1 * duration))
        os.kill(pid, signal.SIGKILL)
        if wait(pid) != "killed":
            before = require_old_nothing_or_new(folder, lines)
        else:
            killed += 1
            after = require_old_nothing_or_new(folder, lines)
            seen["unchanged" if after == before else after] += 1
            before = after
            # What one killed writer left is removed by the next, killed or not: it does not pile up.
            assert len(list(folder.glob(".staged-*"))) <= 2
    assert seen["unchanged"] >= KILLS // 2
    require_repair(folder)


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


MEET = """
    '''Let two runs meet when both have written their files, and before either puts them in place.'''
    import os, time
    from pathlib import Path
    from helm_ext.running import runner
    from helm_ext.files import staged

    commit = staged.StagedFiles.commit

    def meet_and_commit(self):
        Path(f"here-{os.getpid()}").touch()
        deadline = time.monotonic() + 120
        while len(list(Path().glob("here-*"))) < 2:
            if time.monotonic() > deadline:
                raise TimeoutError("the other run did not come")
            time.sleep(0.01)
        commit(self)

    staged.StagedFiles.commit = meet_and_commit
"""


def test_two_real_runs_into_one_folder(tmp_path):
    (tmp_path / "meet.py").write_text(textwrap.dedent(MEET))
    command = [
        "helm-run", "--run-entries", "simple1:model=simple/model1", "--suite", "s", "-m", "12",
        "--disable-cache", "--runner-class-name", "helm_ext.running.StreamingRunner", "--plugins", "./meet.py",
    ]  # fmt: skip
    runs = [
        processes.start(tmp_path, *command, output=tmp_path / f"{number}.log")
        for number in range(2)
    ]  # fmt: skip
    for number, run in enumerate(runs):
        assert run.wait(240) == 0, (tmp_path / f"{number}.log").read_text()[-3000:]
    assert len(list(tmp_path.glob("here-*"))) == 2
    folder = processes.only_run(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == sorted([".commit.lock", *FILES])
    state, rows = (processes.load(folder / name) for name in ("scenario_state.json", "per_instance_stats.json"))
    ids = {state["instance"]["id"] for state in state["request_states"]}
    assert len(state["request_states"]) == 3 * len(ids)  # trials
    assert {row["instance_id"] for row in rows} == ids
    assert processes.stat_means(folder)["num_instances"] == len(ids)
    assert processes.load(folder / "run_spec.json")["name"] == folder.name
