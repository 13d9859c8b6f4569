"""Files that appear together: two writers at once, writers that were killed, file systems without locks."""

import os
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from filelock import FileLock

from helm_ext.files import writing as module
from helm_ext.files.writing import StagedFiles, append_file, staged


def write(files, *names, text="[]"):
    for name in names:
        with files.open(name) as file:
            file.write(text.encode())


def shown(folder):
    return {path.name: path.read_text() for path in folder.glob("[!.]*")}


def leftovers(folder):
    return sorted(path.name for path in folder.glob(".staged-*"))


def abandon(folder, *, lock=True):
    """Make what a killed process leaves: a staging folder whose lock nobody holds."""
    left = folder / ".staged-1-dead"
    left.mkdir()
    (left / "stats.json.part").write_text("[1")
    if lock:
        (left / "lock").touch()
    return left


def test_files_appear_together(tmp_path):
    with staged(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
    with staged(tmp_path) as files:
        write(files, "a.json", "b.json")
        assert shown(tmp_path) == {}
        assert list(tmp_path.rglob("*.json")) == []  # no reader takes it for a run's
    assert shown(tmp_path) == {"a.json": "[]", "b.json": "[]"}
    with suppress(OSError), staged(tmp_path) as files:
        write(files, "a.json", text="third")
        raise OSError("broken")
    assert shown(tmp_path) == {"a.json": "[]", "b.json": "[]"}
    assert leftovers(tmp_path) == []
    assert os.stat(tmp_path / "a.json").st_mode & 0o777 == 0o666 & ~umask()  # as any file


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_of_two_writers_the_last_to_commit_wins_whole(tmp_path):
    first, second = StagedFiles(tmp_path), StagedFiles(tmp_path)
    write(first, "a.json", "b.json", text="first")
    write(second, "a.json", "b.json", text="second")
    second.commit()
    assert set(shown(tmp_path).values()) == {"second"}
    second.discard()
    assert set(shown(tmp_path).values()) == {"second"}
    first.commit()
    first.discard()
    assert set(shown(tmp_path).values()) == {"first"}
    assert leftovers(tmp_path) == []


def test_commits_wait_for_each_other(tmp_path, monkeypatch):
    """While files are put in place the folder is locked."""
    held = []

    def look(self, target):
        other = FileLock(tmp_path / ".commit.lock")
        with pytest.raises(module.Timeout):
            other.acquire(timeout=0)
        held.append(target.name)
        os.replace(self, target)

    with staged(tmp_path) as files:
        write(files, "a.json", "b.json")
        monkeypatch.setattr(type(tmp_path), "replace", look)
    assert held == ["a.json", "b.json"]


def test_parts_that_are_gone_leave_the_old_files(tmp_path):
    with staged(tmp_path) as files:
        write(files, "a.json", "b.json", text="old")
    files = StagedFiles(tmp_path)
    write(files, "a.json", "b.json", text="new")
    files.part("b.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"b\.json\.part"):
        files.commit()
    files.discard()
    assert shown(tmp_path) == {"a.json": "old", "b.json": "old"}


def test_what_killed_writers_left_is_removed_at_once(tmp_path):
    """Before anything is written, so that a full disk has room again, and once more at the end."""
    left = abandon(tmp_path)
    with staged(tmp_path) as files:
        write(files, "a.json")
        assert not left.exists()
        abandon(tmp_path, lock=False)
    assert leftovers(tmp_path) == []
    assert shown(tmp_path) == {"a.json": "[]"}


def test_a_writer_at_work_is_never_cleared_away(tmp_path):
    at_work = StagedFiles(tmp_path)
    write(at_work, "a.json", text="slow")
    os.utime(at_work.part("a.json").parent, (0, 0))  # age is no reason
    with staged(tmp_path) as files:
        write(files, "a.json", text="fast")
    assert len(leftovers(tmp_path)) == 1
    at_work.commit()
    at_work.discard()
    assert shown(tmp_path) == {"a.json": "slow"}


@pytest.mark.parametrize(("days", "stays"), [(0, True), (2, False)])
def test_without_locks_only_old_leftovers_go(tmp_path, monkeypatch, days, stays):
    """A file system without flock: runs go on, with a warning."""

    def refuse(self, *args, **options):
        raise NotImplementedError("FileSystem does not appear to support flock")

    warnings = []
    monkeypatch.setattr(module.FileLock, "acquire", refuse)
    monkeypatch.setattr(module, "hwarn", warnings.append)
    left = abandon(tmp_path)
    then = time.time() - days * 24 * 3600
    os.utime(left, (then, then))
    with staged(tmp_path) as files:
        write(files, "a.json", "b.json")
    assert shown(tmp_path) == {"a.json": "[]", "b.json": "[]"}
    assert left.exists() is stays
    assert "this file system has no locks" in warnings[0]


def test_leftovers_that_vanish_meanwhile(tmp_path, monkeypatch):
    def vanish(self, *args, **options):
        raise PermissionError("another user's")

    lock = module._lock_of(tmp_path / ".staged-gone")
    monkeypatch.setattr(type(lock), "acquire", vanish)
    assert module._is_abandoned(tmp_path / ".staged-gone") is False


def test_sigterm_leaves_nothing_behind(tmp_path):
    """As `kill`, `timeout` and schedulers end a process."""
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from helm_ext.files.writing import staged\n"
        "with staged(Path(sys.argv[1])) as files, files.open('a.json') as file:\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"writing\n"
        assert len(leftovers(tmp_path)) == 1
        process.terminate()
        assert process.wait(30) == 143
    assert (shown(tmp_path), leftovers(tmp_path)) == ({}, [])


def test_a_part_that_is_shorter_than_what_was_written_is_an_error(tmp_path):
    (tmp_path / "part").write_bytes(b"[1,2")
    with (tmp_path / "part").open("rb") as part, (tmp_path / "whole").open("wb") as whole:
        append_file(part, whole, 4)
        with pytest.raises(OSError, match="1 of 5 bytes are missing"):
            append_file(part, whole, 5)
