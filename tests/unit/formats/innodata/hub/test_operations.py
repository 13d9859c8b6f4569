"""What one does with a hub in a folder: what comes back, and the exact words where it is refused."""

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import ClassVar

import bundles
import pytest
import refusals
from bundles import record
from fsspec.implementations.memory import MemoryFileSystem

from helm_ext import hub
from helm_ext.errors import HubError
from helm_ext.formats.innodata.hub.storage import LocalStorage, RemoteStorage, open_storage
from helm_ext.formats.innodata.hub.versioning import blob_path, entry_path, get_root, open_version, require_hub


@pytest.fixture
def make(tmp_path):
    def make(test="4", train="", name="demo", **attributes):
        rows = [[record(f"{split}{place}", answer) for place, answer in enumerate(answers)]
                for split, answers in (("test", test), ("train", train))]  # fmt: skip
        return bundles.make(tmp_path, *rows, name=name, **attributes)

    return make


@pytest.fixture
def root(tmp_path):
    return tmp_path / "hub"


refused = partial(refusals.refused, HubError)


def sha(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_a_version_that_cannot_be_opened(make, root):
    version = hub.upload(make(), root).version
    resolved = hub.resolve("demo", 1, root)
    blob = root / blob_path(version.digest)
    hint = "upload the same ZIP again, which restores it, or restore the file from a backup"
    whole = blob.read_bytes()
    with open_version(resolved, root) as bundle:
        assert (bundle.path, bundle.digest) == ("demo@1", version.digest)
    blob.write_bytes(whole + b"x")
    assert refused(lambda: open_version(resolved, root).__enter__()) == (
        f"demo@1: the bundle {root}/{blob_path(version.digest)} is damaged: its SHA-256 is not "
        f"{version.digest[:12]}…\n  hint: {hint}"
    )
    blob.unlink()
    assert refused(lambda: open_version(resolved, root).__enter__()) == (
        f"demo@1: the bundle {root}/{blob_path(version.digest)} is missing\n  hint: {hint}"
    )
    blob.mkdir()
    assert refused(lambda: open_version(resolved, root).__enter__()) == f"{blob}: this is no regular file"


def test_where_the_hub_is(monkeypatch, tmp_path):
    monkeypatch.delenv("HELM_EXT_HUB", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert get_root() == str(tmp_path / "helm-ext/hub")
    monkeypatch.setenv("HELM_EXT_HUB", "")
    assert get_root() == str(tmp_path / "helm-ext/hub")
    monkeypatch.setenv("HELM_EXT_HUB", "s3://x/y")
    assert get_root() == "s3://x/y"
    assert get_root(tmp_path / "a") == str(tmp_path / "a")
    hint = "a folder or an fsspec URL; without any, HELM_EXT_HUB is taken"
    assert refused(get_root, "") == f"the hub's place is empty\n  hint: {hint}"


def test_no_hub(root):
    hint = "the first upload makes it; --hub and HELM_EXT_HUB name others"
    assert refused(require_hub, root) == f"no hub at {root}\n  hint: {hint}"
    assert hub.names(root) == []
    root.mkdir()
    require_hub(root)


# Verifying


def test_what_verifying_finds(make, root):
    versions = [hub.upload(make(answer), root).version for answer in "1234"]
    (root / entry_path("demo", 1)).unlink()
    (root / blob_path(versions[1].digest)).unlink()
    path = root / entry_path("demo", 3)
    path.write_text(json.dumps({**json.loads(path.read_text()), "train_size": 7}))
    (root / blob_path(versions[3].digest)).write_bytes(b"x")
    hub.upload(make(name="other"), root)
    (root / entry_path("other", 1)).write_text("{}")
    found = hub.verify(hub=root)
    assert [(str(p.location), str(p.code)) for p in found] == [
        ("demo@1", "damaged-entry"),
        ("demo@2", "damaged-bundle"),
        ("demo@3", "damaged-entry"),
        ("demo@4", "damaged-bundle"),
        ("other@1", "damaged-entry"),
    ]
    assert [p.message.partition("\n")[0] for p in found] == [
        f"{root}/{entry_path('demo', 1)}: missing",
        f"the bundle {root}/{blob_path(versions[1].digest)} is missing",
        f"{entry_path('demo', 3)} and the bundle's meta.json differ",
        f"the bundle {root}/{blob_path(versions[3].digest)} is damaged: its SHA-256 is not {versions[3].digest[:12]}…",
        f"{root}/{entry_path('other', 1)}: damaged entry; restore it from a backup",
    ]


# Storage


def test_a_folder(tmp_path):
    storage = LocalStorage(tmp_path / "hub")
    assert (storage.root, storage.path) == (str(tmp_path / "hub"), tmp_path / "hub")
    assert not storage.exists()
    assert storage.list_names("a") == []
    storage.create("a/b/x.json", b"1")
    storage.create("a/b/y.json", b"2")
    assert storage.exists()
    assert storage.list_names("a/b") == ["x.json", "y.json"]
    assert storage.read("a/b/x.json") == b"1"
    with pytest.raises(FileExistsError):
        storage.create("a/b/x.json", b"3")
    assert storage.read("a/b/x.json") == b"1"
    with pytest.raises(FileNotFoundError):
        storage.read("a/b/z.json")
    (tmp_path / "hub/a/b/z.part").write_bytes(b"")
    assert storage.list_names("a/b") == ["x.json", "y.json"]
    assert refused(storage.read, "a/b") == f"{tmp_path}/hub/a/b: cannot be read: Is a directory"
    assert refused(storage.create, "a/b/x.json/y", b"") == (
        f"{tmp_path}/hub/a/b/x.json/y: cannot be written: not a folder; nothing was changed"
    )
    assert refused(LocalStorage(tmp_path / "hub/a/b/x.json").exists) == (
        f"{tmp_path}/hub/a/b/x.json: this is no folder, so no hub"
    )


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_blobs(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = tmp_path / "hub" if kind == "local" else f"memory://{tmp_path.name}"
    storage = open_storage(place)
    source = tmp_path / "source"
    source.write_bytes(b"whole")
    digest = sha(source)
    assert storage.put("blobs/x", source, digest) is True
    assert storage.put("blobs/x", source, digest) is False
    assert storage.fetch("blobs/x", digest, cached=True).read_bytes() == b"whole"
    assert storage.fetch("blobs/x", digest, cached=False).read_bytes() == b"whole"
    with pytest.raises(FileNotFoundError):
        storage.fetch("blobs/y", "0" * 64, cached=True)
    assert refused(storage.put, "blobs/z", source, "0" * 64) == (
        f"{source}: changed while it was uploaded; nothing was changed"
    )
    assert storage.list_names("blobs") == ["x"]


class LikeS3(MemoryFileSystem):
    """A memory file system under the name of a store whose server refuses to overwrite."""

    protocol = ("s3", "s3a")
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]


def test_a_store_whose_server_keeps_the_promise():
    storage = RemoteStorage("s3://bucket/hub/", LikeS3(), "/bucket/hub/")
    assert (storage.path, storage.protocols) == ("/bucket/hub", {"s3", "s3a"})
    storage.create("x", b"1")
    with pytest.raises(FileExistsError):
        storage.create("x", b"2")
    assert storage.read("x") == b"1"
    assert RemoteStorage("m", MemoryFileSystem(), "").protocols == {"memory"}


def test_a_hub_that_is_a_file_cannot_be_listed(tmp_path):
    (tmp_path / "hub").write_bytes(b"")
    found = refused(LocalStorage(tmp_path / "hub").list_names, "datasets")
    assert found == f"{tmp_path}/hub/datasets: cannot be listed: Not a directory"


def test_a_store_without_the_promise(tmp_path):
    storage = open_storage("https://example.invalid/hub")
    assert refused(storage.create, "x", b"") == (
        "https://example.invalid/hub: uploads need a store that can create an object only if there is none, and "
        "https is not known to; nothing was changed\n  hint: use a local folder, or one of gcs, gs, memory, s3, s3a"
    )


def test_places(tmp_path):
    assert open_storage(f"file://{tmp_path}/hub").root == f"{tmp_path}/hub"
    assert open_storage(tmp_path / "hub").root == f"{tmp_path}/hub"
    assert open_storage("~/hub").root == str(Path.home() / "hub")
    assert refused(open_storage, "a\0b") == '"a\\u0000b": a null character is in no path'
    found = refused(open_storage, "~nobody-here/hub")
    assert found.startswith("~nobody-here/hub: ")
    assert found.endswith("\n  hint: ./~nobody-here/hub is a folder of that name")
    assert refused(open_storage, "nothing://x").startswith("nothing://x: cannot be opened: ")
