"""A hub that several people use: other users' umasks and files, folders and disks that fail, clocks that differ."""

import errno
import json
import os
import shutil
import tempfile
import time
import traceback
from pathlib import Path

import bundles
import fsspec
import numpy as np  # noqa: F401 - what a process imports after it has become another user may not be readable to it
import pytest
from bundles import record
from typer.testing import CliRunner

from helm_ext import hub
from helm_ext.cli.hub import hub_app
from helm_ext.errors import HelmExtError, HubError


def make(folder, *records, name="demo", train=(), **attributes):
    return bundles.make(folder, records, train, name=name, **attributes)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "hub"


@pytest.fixture
def run(root):
    """`helm-ext hub`, which must never end in a traceback."""

    def run(*arguments):
        done = CliRunner().invoke(hub_app, [*map(str, arguments), "--hub", str(root)])
        assert done.exception is None or isinstance(done.exception, (SystemExit, HelmExtError)), done.exception
        return done

    return run


@pytest.fixture
def shared():
    """A folder that every user may enter: pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="helm-ext-shared-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


class TestSeveralUsers:
    """Tests that run as root become two ordinary users; others stay who they are, and change their umask only."""

    USERS = (4001, 4002) if os.geteuid() == 0 else (None, None)

    def call(self, user, umask, function, *arguments):
        """Return what `function` returns, or raises as HubError, in a process of that user."""
        reader, writer = os.pipe()
        process = os.fork()
        if not process:
            try:
                os.umask(umask)
                if user is not None:
                    os.setgroups([])
                    os.setgid(user)
                    os.setuid(user)
                said = function(*arguments)
            except HubError as error:
                said = f"HubError: {error}"
            except BaseException:
                said = traceback.format_exc()
            os.write(writer, json.dumps(said).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            said = json.loads(file.read())
        os.waitpid(process, 0)
        return said

    @staticmethod
    def upload(path, root):
        return hub.upload(path, root).version.number

    @staticmethod
    def read(root):
        with hub.open_version(hub.resolve("demo", None, root), root) as bundle:
            return [len(list(bundle.records("test"))), len(hub.verify(hub=root))]

    @pytest.mark.long
    @pytest.mark.parametrize("umask", [0o077, 0o027, 0o002])
    @pytest.mark.parametrize("mode", [0o1777, 0o777])
    def test_a_shared_folder_is_read_and_written_by_all_whatever_their_umask(self, shared, umask, mode):
        root = shared / "hub"
        root.mkdir()
        root.chmod(mode)
        first, second = self.USERS
        for number, user in enumerate((first, second, first), 1):
            path = make(shared, record("a", str(number)))
            assert self.call(user, umask, self.upload, path, root) == number
            for reader in self.USERS:
                assert self.call(reader, umask, self.read, root) == [1, 0]

    def test_a_hub_that_the_first_upload_makes_is_as_open_as_its_owners_umask(self, shared):
        first, _ = self.USERS
        path = make(shared)
        for name, umask, expected in (("open", 0o022, 0o755), ("private", 0o077, 0o700)):
            self.call(first, umask, self.upload, path, shared / name)
            for found in [shared / name, *(shared / name).rglob("*")]:
                wanted = expected if found.is_dir() else expected & 0o444 | 0o200
                assert found.stat().st_mode & 0o777 == wanted, found

    def test_a_folder_that_the_user_may_not_write_to(self, shared):
        first, second = self.USERS
        assert self.call(first, 0o022, self.upload, make(shared), shared / "hub") == 1
        for folder in (shared / "hub/blobs", shared / "hub/datasets/demo/versions"):
            folder.chmod(0o555)
        said = self.call(second, 0o022, self.upload, make(shared, record("b")), shared / "hub")
        assert said.startswith("HubError: ")
        assert said.endswith("Permission denied; nothing was changed")
        assert self.call(second, 0o022, self.read, shared / "hub") == [1, 0]


def test_part_files_are_as_old_as_the_file_servers_clock_says(root, tmp_path, monkeypatch):
    hub.upload(make(tmp_path), root)
    young, old, future = (
        root / "datasets/demo/versions/.00000002.json.1-ab.part",
        *(root / f"blobs/.{n}-ab.part" for n in (1, 2)),
    )
    for part, age in ((young, 80_000), (old, 90_000), (future, -(10**7))):
        part.write_bytes(b"half")
        os.utime(part, (time.time() - age,) * 2)
    assert ([version.number for version in hub.versions("demo", root)], hub.verify(hub=root)) == ([1], [])
    monkeypatch.setattr(time, "time", lambda: 4e9)  # our own clock is decades ahead
    hub.upload(make(tmp_path, record("b")), root)
    assert (young.exists(), old.exists(), future.exists()) == (True, False, True)


def test_a_part_file_that_vanishes_is_said_and_not_taken_for_a_missing_version(root, tmp_path, monkeypatch):
    original = os.link

    def link(source, target):
        Path(source).unlink()
        original(source, target)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(HubError, match="a file vanished while it was written; nothing was changed"):
        hub.upload(make(tmp_path), root)


# What a disk can do


def folder_instead(path):
    path.unlink()
    path.mkdir()


def broken_link_instead(path):
    path.unlink()
    path.symlink_to("nowhere")


def loop_instead(path):
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


@pytest.mark.parametrize("spoil", [folder_instead, broken_link_instead, loop_instead])
@pytest.mark.parametrize("what", ["blobs/*.zip", "datasets/demo/versions/00000001.json"])
def test_files_that_cannot_be_read(root, run, tmp_path, what, spoil):
    hub.upload(make(tmp_path), root)
    hub.upload(make(tmp_path, name="sound"), root)
    digest = hub.resolve("demo", hub=root).digest
    (spoiled,) = root.glob(what.replace("*", digest))
    spoil(spoiled)
    verified = run("verify")
    assert verified.exit_code == 1
    assert "2 datasets verified, 1 problem\n" in verified.stdout
    assert run("download", "demo", "--out", tmp_path / "hub").exit_code == 1
    for command in (["list"], ["show", "demo"], ["upload", tmp_path / "demo.zip"]):
        run(*command)


def test_a_disk_that_cannot_read_a_bundle(root, tmp_path, monkeypatch):
    hub.upload(make(tmp_path), root)

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("helm_ext.formats.innodata.hub.bundle.sha256_of", fail)
    with pytest.raises(HubError, match=r"demo@1: the bundle .* cannot be read: .*Input/output error"):
        hub.load("demo", hub=root)
    (problem,) = hub.verify(hub=root)
    assert "Input/output error" in str(problem)


def test_one_damaged_entry_does_not_hide_the_others(root, run, tmp_path):
    for name in ("demo", "other"):
        hub.upload(make(tmp_path, name=name), root)
    hub.upload(make(tmp_path, record("b")), root)
    (root / "datasets/demo/versions/00000002.json").write_text("[" * 10_000)
    listed = run("list")
    assert listed.exit_code == 1
    assert listed.stderr.startswith("error: demo: ")
    assert "00000002.json: damaged entry" in listed.stderr
    assert listed.stdout.split()[-5:-1][:2] == ["other", "1"]
    as_json = run("list", "--json")
    assert (as_json.exit_code, [entry["name"] for entry in json.loads(as_json.stdout)]) == (1, ["other"])
    (root / "datasets/demo/versions/00000002.json").unlink()
    (root / "datasets/demo/versions/00000001.json").write_text("{}")
    hub.upload(make(tmp_path, name="third"), root)
    assert "third" in run("list").stdout


def test_a_dataset_whose_versions_cannot_be_listed_is_named(root, run, tmp_path):
    for name in ("demo", "other"):
        hub.upload(make(tmp_path, name=name), root)
    shutil.rmtree(root / "datasets/demo/versions")
    loop_instead(root / "datasets/demo/versions")
    assert hub.names(root) == ["demo", "other"]
    listed, verified = run("list"), run("verify")
    assert (listed.exit_code, verified.exit_code) == (1, 1)
    assert "versions: cannot be listed: Too many levels of symbolic links" in listed.stderr
    assert "other" in listed.stdout
    assert verified.stdout.startswith("error: demo: ")
    assert "2 datasets verified, 1 problem" in verified.stdout
    assert [problem.code for problem in hub.verify(hub=root)] == ["damaged-entry"]


def test_verify_reads_the_store_and_not_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = f"memory://verify-{tmp_path.name}"
    hub.upload(make(tmp_path), root)
    hub.load("demo", hub=root)
    memory = fsspec.filesystem("memory")
    path = f"{root}/blobs/{hub.resolve('demo', hub=root).digest}.zip"
    data = memory.cat_file(path)
    memory.pipe_file(path, data[:-3])
    assert hub.load("demo", hub=root)["test"].num_rows == 1  # the digest of the copy is right
    (problem,) = hub.verify(hub=root)
    assert "is damaged" in str(problem)
    memory.rm(path)
    (problem,) = hub.verify(hub=root)
    assert "is missing" in str(problem)
    memory.pipe_file(path, data)
    assert hub.verify(hub=root) == []
    memory.rm(root, recursive=True)


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = f"memory://cache-{tmp_path.name}"
    hub.upload(make(tmp_path), root)
    with pytest.raises(HubError, match=r"\.zip: cannot be written: Not a directory"):
        hub.load("demo", hub=root)


def test_a_zip_that_is_an_older_version_names_the_newest(root, tmp_path):
    old = make(tmp_path, record("a", "1")).read_bytes()
    hub.upload(tmp_path / "demo.zip", root)
    hub.upload(make(tmp_path, record("a", "2")), root)
    (tmp_path / "demo.zip").write_bytes(old)
    with pytest.raises(
        HubError, match=r"this ZIP is version 1 already .*; version 2 is the newest\); nothing was changed"
    ):
        hub.upload(tmp_path / "demo.zip", root)
