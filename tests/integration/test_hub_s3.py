"""The hub on a real S3 protocol: exclusive create, listings, damage. The server is moto's, started here."""

import secrets

import bundles
import pytest
import s3fs
from moto import server as moto_server

from helm_ext import hub
from helm_ext.errors import HubError
from helm_ext.formats.innodata.hub.storage import open_storage

pytestmark = [pytest.mark.slow, pytest.mark.nightly("src/helm_ext/formats/innodata/hub")]


@pytest.fixture
def root(monkeypatch, tmp_path):
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    s3fs.S3FileSystem.clear_instance_cache()
    bucket = f"bucket-{secrets.token_hex(4)}"  # moto keeps buckets for the whole process
    s3fs.S3FileSystem().mkdir(bucket)
    yield f"s3://{bucket}/hub"
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def make(folder, answer):
    return bundles.make(folder, [bundles.record("a", answer)])


def test_exclusive_create(root):
    storage = open_storage(root)
    storage.create("x/1.json", b"first")
    with pytest.raises(FileExistsError):
        storage.create("x/1.json", b"second")
    assert storage.read("x/1.json") == b"first"
    with pytest.raises(FileNotFoundError):
        storage.read("x/2.json")
    assert storage.list_names("x") == ["1.json"]
    assert storage.list_names("none") == []


def test_upload_load_damage(root, tmp_path):
    assert hub.upload(make(tmp_path / "a", "4"), root).version.number == 1
    with pytest.raises(HubError, match="this ZIP is version 1 already"):
        hub.upload(tmp_path / "a" / "demo.zip", root)
    assert hub.upload(make(tmp_path / "b", "5"), root).version.number == 2
    assert hub.names(root) == ["demo"]
    assert hub.verify(hub=root) == []
    resolved = hub.resolve("demo", hub=root)
    with hub.open_version(resolved, root) as bundle:
        assert [record.expected for record in bundle.records("test")] == ["5"]
    target, _ = hub.download("demo", 1, root, tmp_path)
    assert target.read_bytes() == (tmp_path / "a" / "demo.zip").read_bytes()
    s3fs.S3FileSystem().pipe_file(f"{root}/blobs/{resolved.digest}.zip", b"half")
    (tmp_path / f"cache/helm-ext/bundles/{resolved.digest}.zip").unlink()
    assert [problem.code for problem in hub.verify(hub=root)] == ["damaged-bundle"]
    with pytest.raises(HubError, match="is damaged: its SHA-256 is not"):
        hub.download("demo", hub=root, target=tmp_path / "cache")


def test_no_such_bucket(root, tmp_path):
    with pytest.raises(HubError, match="cannot be written: no such bucket or folder; nothing was changed"):
        hub.upload(make(tmp_path / "a", "4"), "s3://other-bucket/hub")
