"""A `.eval` is opened as a bundle of the hub is: nothing of a stranger's ZIP is trusted."""

import hashlib
import zipfile
from contextlib import nullcontext as nothing
from pathlib import Path

import pytest
from tests.inspect_files import write_zstandard

from helm_ext.errors import DatasetError
from helm_ext.formats.inspect_logs.log import EvalLog

TEXT = b'{"a": "river"}' * 5_000


def read_all(path: Path) -> dict[str, bytes]:
    with EvalLog(path) as archive:
        return {name: archive.read(name) for name in archive.members}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_are_read_as_zipfile_reads_them(tmp_path: Path, method: int) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("header.json", TEXT)
        archive.writestr("samples/a/b_epoch_1.json", b"")
    assert read_all(path) == {"header.json": TEXT, "samples/a/b_epoch_1.json": b""}
    with EvalLog(path) as archive:
        assert archive.digest() == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("frames", [1, 3])
def test_zstandard_members_may_have_several_frames(tmp_path: Path, frames: int) -> None:
    path = write_zstandard(tmp_path / "log.eval", {"header.json": TEXT}, frames)
    assert read_all(path) == {"header.json": TEXT}


def test_of_members_of_one_name_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    for text in (b"first", b"second"):
        with (
            zipfile.ZipFile(path, "a") as archive,
            pytest.warns(UserWarning, match="Duplicate name") if text == b"second" else nothing(),
        ):
            archive.writestr("samples/1_epoch_1.json", text)
    assert read_all(path) == {"samples/1_epoch_1.json": b"second"}
    with EvalLog(path) as archive:
        assert archive.repeated == 1


def test_the_first_member_may_have_been_taken_off_the_list(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gone", b"x")
        archive.writestr("kept", b"y")
        archive.filelist.pop(0)
    assert read_all(path) == {"kept": b"y"}
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())
    refuse(path, "data before the first member")


def replaced(old: bytes, new: bytes, at: int = 0):
    """Write a log, and put other bytes where the last of these are, so many behind them."""

    def make(path: Path) -> Path:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.json", b'{"a": "river"}')
        data = path.read_bytes()
        begin = data.rindex(old) + at
        path.write_bytes(data[:begin] + new + data[begin + len(new) :])
        return path

    return make


def zstandard(name: str, data: bytes):
    return lambda path: write_zstandard(path, {name: data})


@pytest.mark.parametrize(("make", "said"), [
    (replaced(b"river", b"RIVER"), "Bad CRC"), (replaced(b"PK\x03\x04", b"PK\0\0"), "Bad magic number"),
    (replaced(b"PK\x01\x02", (10_000_000).to_bytes(4, "little"), 24), "Bad CRC|ends too early|decompresses to"),
    (zstandard("../header.json", b"{}"), "path traversal"),
    (zstandard("samples/1_epoch_1.json", bytes(50_000_000)), "decompresses to [0-9]+ times its size"),
])  # fmt: skip
def test_what_is_damaged_or_no_bundle_may_hold_is_refused(tmp_path: Path, make, said: str) -> None:
    refuse(make(tmp_path / "log.eval"), said)


def refuse(path: Path, said: str) -> None:
    with pytest.raises(DatasetError, match=said) as error:
        read_all(path)
    assert str(path) in str(error.value)
