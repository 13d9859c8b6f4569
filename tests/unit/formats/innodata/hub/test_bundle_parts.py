"""The parts of a bundle by themselves: what is read of them in which order, and the edges of limits and names."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import pytest

from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, DatasetSchemaError, Location, Problems
from helm_ext.files.archive import Limits, open_archive
from helm_ext.formats.innodata.hub.bundle import SplitCheck, check_split, iter_checked, open_bundle
from helm_ext.formats.innodata.hub.packing import pack
from helm_ext.formats.innodata.hub.records import NAME_RULE, Meta, parse_meta, parse_record, read_rows

USER = {"role": "user", "content": "Hi"}
META = {"name": "demo", "test_size": 2, "train_size": 0, "test_digest": "A" * 64, "train_digest": "sha256:" + "b" * 64}


def line(record_id, **more):
    return json.dumps({"id": record_id, "messages": [{**USER, **more}], "expected": "Hello"}).encode() + b"\n"


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("contents", "did you mean 'content'?"),
        ("rolle", "did you mean 'role'?"),
        ("x", "a message has exactly role and content"),
    ],
)
def test_a_key_of_a_message_that_is_like_one(key, hint):
    problems = Problems()
    parse_record(line("1", **{key: "x"}), Location("t.jsonl", 3), problems)
    assert [problem.hint for problem in problems.finish()] == [hint]


def test_rows_are_hashed_and_blank_ones_told():
    problems, hashes = Problems(), hashlib.sha256()
    data = b"a\n\nb\r\n\n\n"
    assert list(read_rows(io.BytesIO(data), "t.jsonl", problems, hashes)) == [(1, b"a"), (3, b"b")]
    assert hashes.hexdigest() == hashlib.sha256(data).hexdigest()
    assert [(p.location, p.code) for p in problems.finish()] == [(Location("t.jsonl", 2), "blank-line")]


def test_a_sound_meta_whatever_was_wrong_before():
    problems = Problems()
    problems.add(Location("x"), "wrong", code="x")
    assert parse_meta(json.dumps({"task": "qa", **META, "level": [1]}).encode(), "meta.json", problems) == Meta(
        name="demo",
        sizes={"test": 2, "train": 0},
        digests={"test": "a" * 64, "train": "b" * 64},
        attributes={"task": "qa", "level": [1]},
    )
    assert problems.errors == 1


# Archives


def make_zip(members, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return file


def open_it(file, limits=None):
    problems = Problems()
    opened = open_archive(file, "x.zip", ("a.txt", "b.txt"), limits or Limits(), problems)
    return opened, [str(problem.code) for problem in problems.finish()]


SOUND = [("a.txt", b"1"), ("b.txt", b"2")]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_sound_archive_with_what_systems_add_and_a_comment(method):
    data = make_zip([*SOUND, ("__MACOSX/x", b""), ("d/.DS_Store", b"")], method).getvalue()
    (archive, members), problems = open_it(io.BytesIO(data[:-2] + b"\x03\x00abc"))
    assert (problems, list(members), archive.read(members["b.txt"])) == ([], ["a.txt", "b.txt"], b"2")


# Bundles


def check_it(tmp_path, test, train, keep, limit):
    meta = {"name": "demo", "test_size": test.count(b"\n"), "train_size": train.count(b"\n")}
    meta |= {"test_digest": hashlib.sha256(test).hexdigest(), "train_digest": hashlib.sha256(train).hexdigest()}
    members = [("test.jsonl", test), ("train.jsonl", train), ("meta.json", json.dumps(meta).encode())]
    (tmp_path / "demo.zip").write_bytes(make_zip(members).getvalue())
    problems, counts = Problems(), {}
    with open_bundle(tmp_path / "demo.zip") as bundle:
        kept = [record.id for record in iter_checked(bundle, problems, counts, keep, limit)]
    return kept, counts, {str(problem.code) for problem in problems.finish()}


@pytest.mark.parametrize(
    ("keep", "limit", "kept"),
    [
        (None, None, []),
        ("test", None, ["a", "b"]),
        ("train", None, ["c"]),
        ("test", 1, ["a"]),
        ("train", 5, ["c"]),
        ("test", 0, []),
    ],
)
def test_records_that_are_kept(tmp_path, keep, limit, kept):
    found = check_it(tmp_path, line("a") + line("b"), line("c"), keep, limit)
    assert found == (kept, {"test": 2, "train": 1, "rows": 3}, set())


def test_with_a_limit_later_records_are_not_checked(tmp_path):
    test = line("a") + line("a") + b"{}\n"
    assert check_it(tmp_path, test, line("a"), "test", 1) == (["a"], {"test": 3, "train": 1, "rows": 4}, set())
    assert check_it(tmp_path, test, line("a"), "test", 2)[2] == {"duplicate-id"}
    counted, problems = SplitCheck(), Problems()
    assert [record.id for record in check_split(io.BytesIO(test), "t.jsonl", problems, counted, 1)] == ["a"]
    assert (counted, problems.finish()) == (SplitCheck(3, hashlib.sha256(test).hexdigest()), [])


# Packing


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"name": "Demo"}, f'not a dataset name: "Demo"\n  hint: {NAME_RULE}'),
        ({"attributes": {"name": "x"}}, 'attribute "name": this key is computed, it cannot be an attribute'),
        ({"attributes": {"x": float("nan")}}, 'attribute "x": no JSON value: NaN'),
        ({"attributes": {"x": {1}}}, 'attribute "x": no JSON value: {1}'),
        ({"attributes": {"x": "\ud800"}}, 'attribute "x": no JSON value: "\\ud800"'),
        ({"attributes": {"\udc80": "x"}}, 'attribute "\\udc80": no JSON value: "x"'),
    ],
)  # fmt: skip
def test_arguments_of_packing(tmp_path, named, message):
    (tmp_path / "t.jsonl").write_bytes(line("a"))
    with pytest.raises(DatasetSchemaError) as error:
        pack(**{"name": "demo", "test": tmp_path / "t.jsonl", "target": tmp_path, **named})
    assert str(error.value) == message


def test_an_existing_bundle_is_overwritten_only_where_that_is_asked_for(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(line("a"))
    made = pack(name="demo", test=tmp_path / "t.jsonl", attributes={"é": [1], "a": None}, target=tmp_path)
    assert pack(name="demo", test=tmp_path / "t.jsonl", attributes={"é": [1], "a": None}, target=tmp_path) == made
    with pytest.raises(DatasetIntegrityError) as error:
        pack(name="demo", test=tmp_path / "t.jsonl", target=tmp_path)
    hint = "--replace overwrites it, --out writes elsewhere"
    assert str(error.value) == f"{made.path}: exists, with other content\n  hint: {hint}"
    assert pack(name="demo", test=tmp_path / "t.jsonl", target=tmp_path, replace=True).digest != made.digest


def test_sources_that_cannot_be_packed(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(line("a"))
    (tmp_path / "empty.jsonl").write_bytes(b"")
    with pytest.raises(DatasetIntegrityError, match="empty.jsonl: the test split is empty"):
        pack(name="demo", test=tmp_path / "empty.jsonl", target=tmp_path)
    with pytest.raises(DatasetNotFoundError, match="none.jsonl: cannot be read: No such file or directory"):
        pack(name="demo", test=tmp_path / "none.jsonl", target=tmp_path)
    with pytest.raises(DatasetNotFoundError) as error:
        pack(name="demo", test=tmp_path / "t.jsonl", target=tmp_path / "a b")
    assert str(error.value) == f"{tmp_path}/a b: no such folder\n  hint: mkdir -p '{tmp_path}/a b'"
