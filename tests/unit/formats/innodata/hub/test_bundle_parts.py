"""The parts of a bundle by themselves: records, `meta.json`, the archive, and what is read of them in which order."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import pytest

from helm_ext.errors import (
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSchemaError,
    DatasetSyntaxError,
    HelmExtError,
    Location,
    Problem,
    Problems,
)
from helm_ext.files.archive import Limits, open_archive
from helm_ext.formats.innodata.hub.bundle import (
    Bundle,
    SplitCheck,
    check_split,
    iter_checked,
    open_bundle,
)
from helm_ext.formats.innodata.hub.packing import pack
from helm_ext.formats.innodata.hub.records import (
    NAME_RULE,
    Meta,
    is_valid_name,
    parse_meta,
    parse_object,
    parse_record,
    read_rows,
    suggest_rename,
)

USER, BOT = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
SYSTEM = {"role": "system", "content": "Be brief."}
RECORD = {"id": "1", "messages": [USER], "expected": "Hello"}


def chat(*messages):
    return {**RECORD, "messages": list(messages)}


def told(problems):
    """Severity, field, code and kind of each."""
    return [(p.severity, p.location.field, str(p.code), p.kind) for p in problems.finish()]


# Records


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
    parse_record(json.dumps(chat({**USER, key: "x"})).encode(), Location("t.jsonl", 3), problems)
    assert [problem.hint for problem in problems.finish()] == [hint]


def test_a_broken_record_beside_others():
    problems = Problems()
    parse_record(b"[]", Location("t.jsonl", 1), problems)
    found = parse_record(json.dumps({**RECORD, "x": 1}).encode(), Location("t.jsonl"), problems)
    assert (found.id, found.messages, found.expected, found.extra, found.line) == ("1", [USER], "Hello", {"x": 1}, 0)


def test_an_object_without_a_line():
    problems = Problems()
    assert parse_object(b"{", Location("meta.json"), problems) is None
    assert parse_object(b"1", Location("meta.json"), problems) is None
    assert [(p.location, p.code) for p in problems.finish()] == [
        (Location("meta.json"), "not-an-object"),
        (Location("meta.json", 1), "not-json"),
    ]
    assert parse_object(b'{"a": 1}', Location("meta.json"), problems) == {"a": 1}


def test_hints_to_other_keys():
    assert suggest_rename("expected", {"id": 1, "expcted": 2}) == 'rename "expcted" to "expected"'
    assert suggest_rename("expected", {"messages": 1}) == ""
    assert suggest_rename("id", {"idd": 1}, known=("idd",)) == ""


def test_rows_are_hashed_and_blank_ones_told():
    problems, hashes = Problems(), hashlib.sha256()
    data = b"a\n\nb\r\n\n\n"
    assert list(read_rows(io.BytesIO(data), "t.jsonl", problems, hashes)) == [(1, b"a"), (3, b"b")]
    assert hashes.hexdigest() == hashlib.sha256(data).hexdigest()
    assert [(p.location, p.code) for p in problems.finish()] == [(Location("t.jsonl", 2), "blank-line")]


# meta.json

META = {"name": "demo", "test_size": 2, "train_size": 0, "test_digest": "A" * 64, "train_digest": "sha256:" + "b" * 64}


def test_a_sound_meta():
    problems = Problems()
    stated = json.dumps({"task": "qa", **META, "level": [1]}).encode()
    assert parse_meta(stated, "meta.json", problems) == Meta(
        name="demo",
        sizes={"test": 2, "train": 0},
        digests={"test": "a" * 64, "train": "b" * 64},
        attributes={"task": "qa", "level": [1]},
    )
    assert problems.finish() == []


def test_a_meta_is_told_sound_whatever_was_wrong_before():
    problems = Problems()
    problems.add(Location("x"), "wrong", code="x")
    assert parse_meta(json.dumps(META).encode(), "meta.json", problems) is not None
    assert parse_meta(b"[]", "meta.json", problems) is None


@pytest.mark.parametrize(
    ("name", "valid"),
    [("a", True), ("a.b_c-1", True), ("a" * 128, True), ("a" * 129, False), ("", False), ("A", False), ("a..b", False),
     ("-a", False), ("a-", False), ("a b", False), ("a\n", False)],
)  # fmt: skip
def test_names(name, valid):
    assert is_valid_name(name) is valid


# Archives

NAMES = ("a.txt", "b.txt")


def make_zip(members, method=zipfile.ZIP_STORED, **options):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            for key, value in options.items():
                setattr(info, key, value)
            archive.writestr(info, data)
    return file


def open_it(file, limits=None):
    problems = Problems()
    opened = open_archive(file, "x.zip", NAMES, limits or Limits(), problems)
    found = problems.finish()
    assert {p.location for p in found} <= {Location("x.zip")}
    return opened, [(str(p.code), p.kind) for p in found]


SOUND = [("a.txt", b"1"), ("b.txt", b"2")]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_sound_archive(method):
    opened, problems = open_it(make_zip([*SOUND, ("__MACOSX/x", b""), ("d/.DS_Store", b"")], method))
    assert problems == []
    archive, members = opened
    assert list(members) == ["a.txt", "b.txt"]
    assert archive.read(members["b.txt"]) == b"2"


def test_limits():
    large = [("a.txt", b"0" * (3 << 20)), ("b.txt", b"2")]
    packed = make_zip(large, zipfile.ZIP_DEFLATED)
    assert open_it(packed) == (None, [("ratio", DatasetIntegrityError)])
    assert open_it(packed, Limits(max_ratio=5_000))[1] == []
    assert open_it(make_zip([("a.txt", b"0" * (1 << 20)), SOUND[1]], zipfile.ZIP_DEFLATED))[1] == []
    assert open_it(make_zip(large), Limits(max_bytes=(3 << 20) + 1))[1] == []
    assert open_it(make_zip(large), Limits(max_bytes=3 << 20)) == (None, [("too-large", DatasetSyntaxError)])


def test_limits_of_the_process(monkeypatch):
    assert Limits.from_environ() == Limits() == Limits(8 << 30, 200)
    monkeypatch.setenv("HELM_EXT_MAX_BUNDLE_BYTES", "7")
    monkeypatch.setenv("HELM_EXT_MAX_BUNDLE_RATIO", "1")
    assert Limits.from_environ() == Limits(7, 1)
    for value in ("0", "-1", "1.5", "many"):
        monkeypatch.setenv("HELM_EXT_MAX_BUNDLE_RATIO", value)
        with pytest.raises(HelmExtError) as error:
            Limits.from_environ()
        assert str(error.value) == f'HELM_EXT_MAX_BUNDLE_RATIO: expected a positive whole number, got "{value}"'


WHOLE = make_zip(SOUND).getvalue()


def test_a_comment_is_no_trailing_data():
    assert open_it(io.BytesIO(WHOLE[:-2] + b"\x03\x00abc"))[1] == []


# Bundles


def bundle_of(test, train=b"", **changes):
    digests = {
        f"{split}_digest": hashlib.sha256(data).hexdigest() for split, data in (("test", test), ("train", train))
    }
    sizes = {"test_size": test.count(b"\n"), "train_size": train.count(b"\n")}
    meta = {"name": "demo", **sizes, **digests, **changes}
    return make_zip([("test.jsonl", test), ("train.jsonl", train), ("meta.json", json.dumps(meta).encode())])


def line(record_id):
    return json.dumps({**RECORD, "id": record_id}).encode() + b"\n"


def check_it(tmp_path, file, keep=None, limit=None):
    path = tmp_path / "demo.zip"
    path.write_bytes(file.getvalue())
    problems, counts = Problems(), {}
    with open_bundle(path) as bundle:
        kept = [record.id for record in iter_checked(bundle, problems, counts, keep, limit)]
    found = [
        (p.location.path.removeprefix(f"{path}/"), p.location.line, p.location.field, str(p.code), p.kind)
        for p in problems.finish()
    ]
    return kept, counts, found


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
    file = bundle_of(line("a") + line("b"), line("c"))
    assert check_it(tmp_path, file, keep, limit) == (kept, {"test": 2, "train": 1, "rows": 3}, [])


def test_with_a_limit_later_records_are_not_checked(tmp_path):
    file = bundle_of(line("a") + line("a") + b"{}\n", line("a"))
    assert check_it(tmp_path, file, "test", 1) == (["a"], {"test": 3, "train": 1, "rows": 4}, [])
    assert {found[3] for found in check_it(tmp_path, file, "test", 2)[2]} == {"duplicate-id"}


def test_lines_beyond_the_limit_are_counted_and_hashed():
    data = b"".join(map(line, "abc")) + b"{}\n"
    counted, problems = SplitCheck(), Problems()
    found = [record.id for record in check_split(io.BytesIO(data), "t.jsonl", problems, counted, 2)]
    assert (found, problems.finish()) == (["a", "b"], [])
    assert counted == SplitCheck(4, hashlib.sha256(data).hexdigest())


def test_names_of_the_file_and_of_the_dataset(tmp_path):
    path = tmp_path / "other.zip"
    path.write_bytes(bundle_of(line("a")).getvalue())
    place = Location(f"{path}/meta.json", None, "name")
    with open_bundle(path) as bundle:
        assert bundle.warnings == (
            Problem('"demo", but the file is named "other.zip"', place, "the hub takes it only as demo.zip", "warning",
                    "name-mismatch"),
        )  # fmt: skip
        assert (bundle.path, type(bundle)) == (str(path), Bundle)
    with pytest.raises(DatasetIntegrityError) as error, open_bundle(path, expected_name="other", shown_path="x"):
        pass
    assert error.value.problems == (
        Problem('"demo", but the file is named "other.zip"', Location("x/meta.json", None, "name"),
                "rename the file to demo.zip, or pack it again as other", "error", "name-mismatch"),
    )  # fmt: skip


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


def test_what_is_packed(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(line("a") + line("b"))
    (tmp_path / "r.jsonl").write_bytes(line("c"))
    sources = {"test": tmp_path / "t.jsonl", "train": tmp_path / "r.jsonl"}
    made = pack(name="demo", **sources, attributes={"é": [1], "a": None}, target=tmp_path)
    assert made.path == tmp_path / "demo.zip"
    assert made.digest == hashlib.sha256(made.path.read_bytes()).hexdigest()
    assert made.sizes == {"test": 2, "train": 1}
    with zipfile.ZipFile(made.path) as archive:
        assert archive.namelist() == ["test.jsonl", "train.jsonl", "meta.json"]
        for info in archive.infolist():
            assert (info.date_time, info.create_system, info.external_attr) == (
                (1980, 1, 1, 0, 0, 0),
                3,
                0o100644 << 16,
            )
            assert info.compress_type == zipfile.ZIP_STORED
        stated = {
            "name": "demo", "test_size": 2, "train_size": 1,
            "test_digest": hashlib.sha256(line("a") + line("b")).hexdigest(),
            "train_digest": hashlib.sha256(line("c")).hexdigest(), "a": None, "é": [1],
        }  # fmt: skip
        assert archive.read("meta.json").decode() == json.dumps(stated, ensure_ascii=False, indent=2) + "\n"
        assert archive.read("test.jsonl") == line("a") + line("b")
    assert pack(name="demo", **sources, attributes={"é": [1], "a": None}, target=tmp_path) == made
    with pytest.raises(DatasetIntegrityError) as error:
        pack(name="demo", **sources, target=tmp_path)
    hint = "--replace overwrites it, --out writes elsewhere"
    assert str(error.value) == f"{made.path}: exists, with other content\n  hint: {hint}"
    small = pack(name="demo", **sources, target=tmp_path, compress=True, replace=True)
    with zipfile.ZipFile(small.path) as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_DEFLATED}


def test_sources_that_cannot_be_packed(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(line("a"))
    (tmp_path / "empty.jsonl").write_bytes(b"")
    with pytest.raises(DatasetIntegrityError) as error:
        pack(name="demo", test=tmp_path / "empty.jsonl", target=tmp_path)
    assert error.value.problems == (
        Problem("the test split is empty", Location(str(tmp_path / "empty.jsonl")),
                "at least one record is needed to evaluate", "error", "empty-test"),
    )  # fmt: skip
    with pytest.raises(DatasetNotFoundError) as error:
        pack(name="demo", test=tmp_path / "none.jsonl", target=tmp_path)
    assert error.value.problems == (
        Problem("cannot be read: No such file or directory", Location(str(tmp_path / "none.jsonl")), "", "error",
                "unreadable"),
    )  # fmt: skip
    with pytest.raises(DatasetIntegrityError) as error:
        pack(name="demo", test=tmp_path / "t.jsonl", train=tmp_path / "t.jsonl", target=tmp_path)
    assert [(p.code, p.location.line) for p in error.value.problems] == [("duplicate-id", 1)]
    with pytest.raises(DatasetNotFoundError) as error:
        pack(name="demo", test=tmp_path / "t.jsonl", target=tmp_path / "a b")
    assert str(error.value) == f"{tmp_path}/a b: no such folder\n  hint: mkdir -p '{tmp_path}/a b'"
