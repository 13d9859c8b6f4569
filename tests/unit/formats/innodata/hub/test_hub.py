"""The hub: versions, freezing, damage, refusals (docs/innodata.md, "The hub")."""

import errno
import hashlib
import json
import os
import subprocess
import sys

import bundles
import fsspec
import pytest
from bundles import record

from helm_ext import hub
from helm_ext.errors import DatasetError, DatasetIntegrityError, HubError
from helm_ext.formats.innodata.hub import packing, versioning
from helm_ext.formats.innodata.hub.bundle import get_attributes


@pytest.fixture
def make(tmp_path):
    """Return a function that packs a bundle of `demo` with the records given."""

    def make(*records, name="demo", train=(), **attributes):
        return bundles.make(tmp_path, records, train, name=name, **attributes)

    return make


@pytest.fixture(params=["local", "memory"])
def root(request, tmp_path, monkeypatch):
    """A hub in a folder, and one in fsspec's memory file system."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if request.param == "local":
        yield str(tmp_path / "hub")
    else:
        folder = f"memory://{tmp_path.name}-{os.getpid()}"
        yield folder
        memory = fsspec.filesystem("memory")
        if memory.exists(folder):
            memory.rm(folder, recursive=True)


@pytest.fixture
def local(tmp_path):
    return tmp_path / "hub"


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_versions_are_numbered(root, make):
    first = hub.upload(make(severity="high"), root)
    assert (first.version.name, first.version.number, first.version.test_size) == ("demo", 1, 1)
    assert first.warnings == ()
    second = hub.upload(make(record("a", "5")), root).version
    assert second.number == 2
    assert [version.digest for version in hub.versions("demo", root)] == [first.version.digest, second.digest]
    assert hub.versions("demo", root)[0].attributes == {"severity": "high"}
    hub.upload(make(name="other"), root)
    assert hub.names(root) == ["demo", "other"]
    assert hub.verify(hub=root) == []


def test_resolve(root, make):
    digests = [hub.upload(make(record("a", str(i))), root).version.digest for i in range(3)]
    assert hub.resolve("demo", hub=root) == hub.Resolved("demo", 3, digests[2], 3)
    assert hub.resolve("demo", hub=root).notice == ""
    for version in (1, "1", "v1"):
        assert hub.resolve("demo", version, root) == hub.Resolved("demo", 1, digests[0], 3)
    assert hub.resolve("demo", 1, root).notice == "demo is frozen to version 1; version 3 is the newest"
    for version in (4, 0, "newest", digests[0], "-1", 1.5, True):
        with pytest.raises(HubError) as caught:
            hub.resolve("demo", version, root)
        assert str(caught.value) == f"demo: no version {json.dumps(version)}\n  hint: versions 1 to 3 exist"


def test_load(root, make, monkeypatch):
    monkeypatch.setattr("helm_ext.formats.innodata.hub.bundle._BATCH", 1)
    row = record("a", "é\u2028", topic="x", n=1)
    hub.upload(make(row, record("b"), train=[record("c")], severity="high", level=2), root)
    found = hub.load("demo", hub=root)
    assert list(found) == ["train", "test"]
    assert found["test"][0] == {
        "id": "a",
        "messages": [{"role": "user", "content": "2+2?"}],
        "expected": "é\u2028",
        "extra": '{"topic": "x", "n": 1}',
    }
    assert found["test"]["extra"][1] == "{}"
    assert found["train"]["id"] == ["c"]
    version = hub.versions("demo", root)[0]
    assert json.loads(found["test"].info.description) == {
        "name": "demo", "version": 1, "digest": version.digest, "attributes": {"severity": "high", "level": 2},
    }  # fmt: skip
    kept = found.filter(lambda row: row["id"] == "a")
    assert get_attributes(kept) == get_attributes(kept["test"]) == {"severity": "high", "level": 2}
    for split, dataset in found.items():
        assert (dataset.info.dataset_name, str(dataset.info.version), str(dataset.split)) == ("demo", "1.0.0", split)
        assert list(dataset.features) == ["id", "messages", "expected", "extra"]
        assert dataset._fingerprint == f"{version.digest[:48]}-{split}"


def test_load_of_an_empty_train_split_and_of_a_frozen_version(root, make):
    hub.upload(make(), root)
    hub.upload(make(record("a", "5")), root)
    with pytest.warns(UserWarning, match="demo is frozen to version 1; version 2 is the newest"):
        found = hub.load("demo", 1, root)
    assert found["train"].num_rows == 0
    assert found["train"].features == found["test"].features
    assert found["test"]["expected"] == ["4"]
    assert hub.load("demo", hub=root)["test"]["expected"] == ["5"]


def test_importing_the_hub_is_cheap():
    code = "import sys, helm_ext.formats.innodata.hub; print(sorted({'datasets', 'numpy', 'fsspec', 'pyarrow', 'helm.benchmark', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_download(root, make, tmp_path):
    path = make()
    data = path.read_bytes()
    hub.upload(path, root)
    hub.upload(make(record("a", "5")), root)
    (tmp_path / "out").mkdir()
    target, resolved = hub.download("demo", 1, root, tmp_path / "out")
    assert (target, resolved.version) == (tmp_path / "out" / "demo.zip", 1)
    assert target.read_bytes() == data
    assert hub.download("demo", 1, root, tmp_path / "out")[0] == target
    with pytest.raises(HubError, match="exists, with other content"):
        hub.download("demo", None, root, tmp_path / "out")
    hub.download("demo", None, root, tmp_path / "out", replace=True)
    assert target.read_bytes() == path.read_bytes()
    with pytest.raises(HubError, match="no such folder"):
        hub.download("demo", None, root, tmp_path / "none")
    target.unlink()
    target.mkdir()
    with pytest.raises(HubError, match=r"out/demo\.zip: cannot be written: Is a directory"):
        hub.download("demo", None, root, tmp_path / "out", replace=True)


# What is refused


def test_a_broken_bundle_is_refused_and_changes_nothing(local, make, tmp_path):
    path = make()
    other = path.rename(tmp_path / "other.zip")
    with pytest.raises(DatasetIntegrityError, match='name: "demo", but the file is named "other.zip"'):
        hub.upload(other, local)
    other.write_bytes(other.read_bytes()[:-1])
    with pytest.raises(DatasetError, match="truncated"):
        hub.upload(other, local)
    assert not local.exists()


def test_two_ids_are_refused_on_upload(local, make, monkeypatch):
    with monkeypatch.context() as patch:  # as other tools pack
        patch.setattr(packing.UniqueIds, "see", lambda *_: None)
        path = make(record("a"), train=[record("a")])
    with pytest.raises(DatasetError, match=r'demo.zip/train.jsonl:1: id: "a" occurs already in test.jsonl:1'):
        hub.upload(path, local)
    assert not local.exists()


@pytest.mark.parametrize("call", ["link", "fsync", "open"])
@pytest.mark.parametrize(("number", "text"), [
    (errno.ENOSPC, "No space left on device"), (errno.EROFS, "Read-only file system"),
    (errno.EIO, "Input/output error"),
])  # fmt: skip
def test_a_disk_that_fails_leaves_the_old_state(local, make, monkeypatch, call, number, text):
    hub.upload(make(), local)
    before = files(local)
    path = make(record("a", "5"))

    def fail(*_, **__):
        raise OSError(number, text)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(HubError, match=rf"{text}; nothing was changed$"):
            hub.upload(path, local)
    after = files(local)
    assert {name: data for name, data in after.items() if "blobs" not in name} == {
        name: data for name, data in before.items() if "blobs" not in name
    }
    assert before.items() <= after.items()
    assert not [name for name in after if name.endswith(".part")]
    assert hub.verify(hub=local) == []
    assert hub.upload(path, local).version.number == 2


def test_a_file_system_without_hard_links(local, make, monkeypatch):
    def fail(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    path = make()
    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(HubError, match="this file system has no hard links"):
        hub.upload(path, local)
    assert hub.names(local) == []


# What others do at the same time, and what crashes leave behind


def test_a_version_claimed_by_somebody_else_meanwhile(root, make, monkeypatch):
    mine, theirs, same = make(record("a", "mine")), None, None
    data = mine.read_bytes()
    theirs = make(record("a", "theirs")).read_bytes()
    original = versioning.claim
    others = [theirs]

    def race(storage, *arguments):
        while others:
            mine.write_bytes(others.pop())
            hub.upload(mine, root)
            mine.write_bytes(data)
        return original(storage, *arguments)

    mine.write_bytes(data)
    monkeypatch.setattr(versioning, "claim", race)
    assert hub.upload(mine, root).version.number == 2
    with pytest.raises(HubError, match="version 2 already"):
        hub.upload(mine, root)
    same = make(record("a", "again"))
    data = same.read_bytes()
    others.append(data)
    with pytest.raises(HubError, match="this ZIP is version 3 already"):
        hub.upload(same, root)
    assert len(hub.versions("demo", root)) == 3


def test_the_bytes_of_an_entry(local, make, monkeypatch):
    """Entries are for ever: other versions of helm-ext, and people, read them."""
    monkeypatch.setattr(versioning.secrets, "token_hex", lambda _: "0" * 32)
    path = make(record("a"), record("b"), train=[record("t")], author="é")
    version = hub.upload(path, local).version
    assert version.uploaded.endswith("+00:00")
    assert (local / "datasets/demo/versions/00000001.json").read_text(encoding="utf-8") == (
        "{\n"
        '  "format": 1,\n'
        '  "name": "demo",\n'
        '  "number": 1,\n'
        f'  "digest": "{hashlib.sha256(path.read_bytes()).hexdigest()}",\n'
        f'  "size": {path.stat().st_size},\n'
        '  "test_size": 2,\n'
        '  "train_size": 1,\n'
        f'  "test_digest": "{version.test_digest}",\n'
        f'  "train_digest": "{version.train_digest}",\n'
        f'  "uploaded": "{version.uploaded}",\n'
        '  "attributes": {\n'
        '    "author": "é"\n'
        "  },\n"
        '  "claim": "00000000000000000000000000000000"\n'
        "}\n"
    )


# Damage


def damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_remote_bundle_that_is_damaged(tmp_path, make, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = f"memory://damaged-{tmp_path.name}"
    hub.upload(make(), root)
    hub.load("demo", hub=root)
    cached = tmp_path / f"cache/helm-ext/bundles/{hub.resolve('demo', hub=root).digest}.zip"
    damage(cached)  # is fetched again
    assert hub.load("demo", hub=root)["test"].num_rows == 1
    memory = fsspec.filesystem("memory")
    path = f"{root}/blobs/{hub.resolve('demo', hub=root).digest}.zip"
    memory.pipe_file(path, memory.cat_file(path)[:-3])
    cached.unlink()
    with pytest.raises(HubError, match="is damaged"):
        hub.load("demo", hub=root)
    assert "damaged or missing; it was restored" in str(hub.upload(make(), root).warnings[0])
    with pytest.raises(HubError, match="nothing was changed"):
        hub.upload(make(), root)
    assert hub.verify(hub=root) == []
    memory.rm(path)
    cached.unlink(missing_ok=True)
    with pytest.raises(HubError, match="is missing"):
        hub.load("demo", hub=root)
    memory.rm(root, recursive=True)


def change_entry(local, **changes):
    path = local / "datasets/demo/versions/00000001.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_bundle_that_does_not_keep_the_rules(local, make):
    """A hub somebody filled by other means: the digest is right, the content is not."""
    path = make()
    hub.upload(path, local)
    data = path.read_bytes().replace(b'"expected"', b'"expectex"')
    digest = hashlib.sha256(data).hexdigest()
    (local / f"blobs/{digest}.zip").write_bytes(data)
    change_entry(local, digest=digest, size=len(data))
    problems = hub.verify(hub=local)
    assert problems
    assert str(problems[0]).startswith("demo@1/test.jsonl: cannot be decompressed: Bad CRC-32")
    (local / f"blobs/{digest}.zip").write_bytes(b"no zip")
    change_entry(local, digest=hashlib.sha256(b"no zip").hexdigest())
    (local / f"blobs/{hashlib.sha256(b'no zip').hexdigest()}.zip").write_bytes(b"no zip")
    assert [str(problem) for problem in hub.verify(hub=local)] == ["demo@1: not a ZIP archive"]


def test_what_a_store_says_is_passed_on(make, monkeypatch, tmp_path):
    memory = fsspec.filesystem("memory")
    root = f"memory://fails-{tmp_path.name}"

    def fail(*_, **__):
        raise RuntimeError("token expired")

    monkeypatch.setattr(type(memory), "put_file", fail, raising=False)
    with pytest.raises(HubError, match=r"/blobs/.*\.zip: cannot be written: RuntimeError: token expired"):
        hub.upload(make(), root)


def test_a_store_that_stores_half(make, monkeypatch, tmp_path):
    memory = fsspec.filesystem("memory")
    root = f"memory://half-{tmp_path.name}"
    monkeypatch.setattr(type(memory), "put_file", lambda self, source, target: self.pipe_file(target, b"half"))
    with pytest.raises(HubError, match="only 4 bytes were stored$"):
        hub.upload(make(), root)
    assert hub.names(root) == []
