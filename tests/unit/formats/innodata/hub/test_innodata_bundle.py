"""Bundles: what is refused and with which words, and that packing is reproducible (docs/innodata.md, "Bundles")."""

import hashlib
import json
import os
import re
import stat
import struct
import subprocess
import sys
import warnings
import zipfile

import pytest

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSchemaError,
    DatasetSyntaxError,
    HelmExtError,
)
from helm_ext.formats.innodata.hub import open_bundle, pack
from helm_ext.formats.innodata.loading import check


def line(record_id, text="2+2?", expected="4", **extra):
    record = {"id": record_id, "messages": [{"role": "user", "content": text}], "expected": expected, **extra}
    return json.dumps(record).encode() + b"\n"


TEST = line("a") + line("b")
TRAIN = line("c")


def meta(**changes):
    value = {
        "name": "demo",
        "test_size": 2,
        "train_size": 1,
        "test_digest": hashlib.sha256(TEST).hexdigest(),
        "train_digest": hashlib.sha256(TRAIN).hexdigest(),
    }
    value.update(changes)
    return json.dumps({key: item for key, item in value.items() if item is not ...}).encode()


def members(**changes):
    found = {"test.jsonl": TEST, "train.jsonl": TRAIN, "meta.json": meta()}
    found.update({key.replace("_", "."): item for key, item in changes.items()})
    return [(name, data) for name, data in found.items() if data is not None]


def write_zip(path, content, **options):
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", **options) as archive:
        warnings.simplefilter("ignore")  # zipfile warns of duplicate names
        for name, data in content:
            archive.writestr(name, data)
    return path


CODES = {
    "missing": ("missing-key", DatasetSchemaError),
    "not a dataset name: .*": ("name", DatasetSchemaError),
    "expected a number of records, got .*": ("size-type", DatasetSchemaError),
    "expected a SHA-256 of .*": ("digest-type", DatasetSchemaError),
    "expected a JSON object, got .*": ("not-an-object", DatasetSchemaError),
    "the key .* is given twice in one object": ("duplicate-key", DatasetSchemaError),
    "not JSON: .*": ("not-json", DatasetSyntaxError),
    "starts with a byte order mark .*": ("bom", DatasetSyntaxError),
    r"\d+, but .* has \d+ records": ("size-mismatch", DatasetIntegrityError),
    r"\w{64}, but .* has SHA-256 \w{64}": ("digest-mismatch", DatasetIntegrityError),
    r"longer than \d+ bytes": ("meta-too-large", DatasetIntegrityError),
    "the test split is empty": ("empty-test", DatasetIntegrityError),
    ".* occurs already in .*": ("duplicate-id", DatasetIntegrityError),
    "member .*: missing": ("missing-member", DatasetIntegrityError),
    "member .*: unexpected": ("unexpected-member", DatasetIntegrityError),
    r"member .*: occurs \d+ times": ("duplicate-member", DatasetIntegrityError),
    "member .*: path traversal": ("path-traversal", DatasetIntegrityError),
    "member .*: absolute name": ("absolute-name", DatasetIntegrityError),
    "member .*: NUL in the name": ("nul-in-name", DatasetIntegrityError),
    "member .*: symbolic link": ("symlink", DatasetIntegrityError),
    "member .*: encrypted": ("encrypted", DatasetIntegrityError),
    "member .*: compression method .*": ("compression", DatasetIntegrityError),
    "member .*: decompresses to .*": ("ratio", DatasetIntegrityError),
    "too large: .*": ("too-large", DatasetSyntaxError),
    "truncated: .*": ("truncated", DatasetSyntaxError),
    "not a ZIP archive.*": ("not-a-zip", DatasetSyntaxError),
    ".* of trailing data after the archive": ("trailing-data", DatasetSyntaxError),
    "data before the first member": ("leading-data", DatasetSyntaxError),
    "the archive's directory has .*": ("too-many-members", DatasetSyntaxError),
    "cannot be decompressed: .*": ("damaged-member", DatasetSyntaxError),
    "no such file|cannot be read: .*|no regular file.*": ("unreadable", DatasetNotFoundError),
}
"""By what is said, the code that tools go by, and the exception. Those of records stand in test_innodata_records."""


def texts(path, **options):
    """Return all problems of a bundle without its path; each has the code of what it says."""
    problems = check(path, **options)[0]
    for problem in problems:
        if problem.severity == "error" and ".jsonl:" not in str(problem.location):
            codes = [code for said, code in CODES.items() if re.fullmatch(said, problem.message)]
            assert codes == [(problem.code, problem.kind)], problem
    return [str(problem).replace(f"{path.parent}/", "") for problem in problems]


@pytest.fixture
def demo(tmp_path):
    return write_zip(tmp_path / "demo.zip", members())


def test_a_sound_bundle(demo):
    assert check(demo) == ([], {"test": 2, "train": 1, "rows": 3})
    with open_bundle(demo) as bundle:
        assert bundle.digest == hashlib.sha256(demo.read_bytes()).hexdigest()
        assert [record.id for record in bundle.records("test")] == ["a", "b"]
        assert [record.id for record in bundle.records("train")] == ["c"]
        assert bundle.meta.attributes == {}
    stated = meta(test_digest="sha256:" + hashlib.sha256(TEST).hexdigest().upper(), level=[1])
    with open_bundle(write_zip(demo, members(meta_json=stated))) as bundle:
        assert (bundle.meta.digests["test"], bundle.meta.attributes) == (
            hashlib.sha256(TEST).hexdigest(),
            {"level": [1]},
        )
    assert check(demo)[0] == []


@pytest.mark.parametrize(("stated", "problem"), [
    (meta(name=...), "demo.zip/meta.json: name: missing"),
    (meta(test_size=...), "demo.zip/meta.json: test_size: missing"),
    (meta(test_size=..., tset_size=2), 'demo.zip/meta.json: test_size: missing\n  hint: rename "tset_size" to "test_size"'),
    (meta(name="Demo"), 'demo.zip/meta.json: name: not a dataset name: "Demo"\n  hint: lower-case letters and digits, parts joined by single . _ or -, at most 128 characters'),
    (meta(name="a" * 129), "demo.zip/meta.json: name: not a dataset name: " + '"' + "a" * 78 + "…\n  hint: lower-case letters and digits, parts joined by single . _ or -, at most 128 characters"),
    (meta(name="a..b"), 'demo.zip/meta.json: name: not a dataset name: "a..b"\n  hint: lower-case letters and digits, parts joined by single . _ or -, at most 128 characters'),
    (meta(name=7), "demo.zip/meta.json: name: not a dataset name: 7\n  hint: lower-case letters and digits, parts joined by single . _ or -, at most 128 characters"),
    (meta(test_size="2"), 'demo.zip/meta.json: test_size: expected a number of records, got "2"'),
    (meta(train_size=True), "demo.zip/meta.json: train_size: expected a number of records, got true"),
    (meta(train_size=-1), "demo.zip/meta.json: train_size: expected a number of records, got -1"),
    (meta(train_size=1.0), "demo.zip/meta.json: train_size: expected a number of records, got 1.0"),
    (meta(test_digest="abc"), 'demo.zip/meta.json: test_digest: expected a SHA-256 of 64 hex digits, got "abc"'),
    (meta(train_digest="md5:" + "a" * 64), 'demo.zip/meta.json: train_digest: expected a SHA-256 of 64 hex digits, got "md5:' + "a" * 64 + '"'),
    (meta(test_size=3), "demo.zip/meta.json: test_size: 3, but test.jsonl has 2 records"),
    (meta(train_digest="0" * 64), f"demo.zip/meta.json: train_digest: {'0' * 64}, but train.jsonl has SHA-256 {hashlib.sha256(TRAIN).hexdigest()}\n  hint: pack the bundle again after every change: helm-ext hub pack"),
    (b"[]", "demo.zip/meta.json: expected a JSON object, got []"),
    (b"", "demo.zip/meta.json:1: not JSON: the text ends too early (column 1)"),
    (b"{'name': 1}", "demo.zip/meta.json:1: not JSON: a key in double quotes is expected here (column 2)\n  hint: keys and strings stand in double quotes"),
    (b"\xef\xbb\xbf" + meta(), "demo.zip/meta.json:1: starts with a byte order mark (BOM)\n  hint: save as UTF-8 without BOM"),
    (meta()[:-1] + b', "name": "demo"}', 'demo.zip/meta.json:1: the key "name" is given twice in one object\n  hint: remove one of the two'),
    (b" " * (1 << 20) + meta(), "demo.zip/meta.json: longer than 1048576 bytes"),
])  # fmt: skip
def test_meta(tmp_path, stated, problem):
    assert texts(write_zip(tmp_path / "demo.zip", members(meta_json=stated))) == [problem]


def test_the_file_name(tmp_path):
    path = write_zip(tmp_path / "other.zip", members())
    message = 'other.zip/meta.json: name: "demo", but the file is named "other.zip"'
    assert texts(path) == [f"{message}\n  hint: the hub takes it only as demo.zip"]
    assert [problem.severity for problem in check(path)[0]] == ["warning"]
    for name, hint in (("other", ", or pack it again as other"), ("My Data", "")):
        with pytest.raises(DatasetError) as caught, open_bundle(path, expected_name=name):
            pass
        assert [each.hint for each in caught.value.problems] == [f"rename the file to demo.zip{hint}"]


@pytest.mark.parametrize(("content", "problem"), [
    (members(train_jsonl=None), 'member "train.jsonl": missing\n  hint: a bundle has exactly test.jsonl, train.jsonl, meta.json'),
    ([*members(), ("README.md", b"")], 'member "README.md": unexpected\n  hint: a bundle has exactly test.jsonl, train.jsonl, meta.json'),
    ([*members(), ("x__MACOSX/x", b"")], 'member "x__MACOSX/x": unexpected\n  hint: a bundle has exactly test.jsonl, train.jsonl, meta.json'),
    ([*members(), ("demo/", b"")], 'member "demo/": unexpected\n  hint: put the files at the top of the archive, in no folder'),
    ([*members(), ("test.jsonl", TEST)], 'member "test.jsonl": occurs 2 times'),
    ([*members(), ("__MACOSX/../../etc/passwd", b"")], 'member "__MACOSX/../../etc/passwd": path traversal'),
    ([*members(), ("__MACOSX/..\\x", b"")], 'member "__MACOSX/..\\\\x": path traversal'),
    ([*members(), ("__MACOSX/C:", b""), ("/etc/.DS_Store", b"")], 'member "/etc/.DS_Store": absolute name'),
    ([*members(), ("C:/.DS_Store", b"")], 'member "C:/.DS_Store": absolute name'),
])  # fmt: skip
def test_members(tmp_path, content, problem):
    assert texts(write_zip(tmp_path / "demo.zip", content)) == [f"demo.zip: {problem}"]


def test_symlinks(tmp_path):
    link = zipfile.ZipInfo("train.jsonl")
    link.create_system = 3
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = write_zip(tmp_path / "demo.zip", [("test.jsonl", TEST), (link, b"/etc/passwd"), ("meta.json", meta())])
    assert texts(path) == ['demo.zip: member "train.jsonl": symbolic link']


ONLY = "\n  hint: make the archive anew, with nothing before or behind it"
AGAIN = "\n  hint: copy or download the file again"
DEFLATE = "\n  hint: use deflate, the default of every tool, or no compression"


def in_directory(offset, value):
    """Change a field of the first member in the archive's directory."""

    def change(data):
        data = bytearray(data)
        struct.pack_into("<H", data, data.index(b"PK\x01\x02") + offset, value)
        return bytes(data)

    return change


@pytest.mark.parametrize(("change", "problem"), [
    *((in_directory(8, flag), 'member "test.jsonl": encrypted\n  hint: make the archive without a password') for flag in (0x1, 0x40)),
    *(
        (in_directory(10, method), f'member "test.jsonl": compression method {method} ({name}){DEFLATE}')
        for method, name in ((12, "bzip2"), (14, "LZMA"), (93, "Zstandard"), (77, "unknown"))
    ),
    (lambda data: data.replace(b"train.jsonl", b"train.js\0nl"), 'member "train.js\\u0000nl": NUL in the name'),
    (lambda data: data[:-30], f"truncated: the end of the ZIP archive is missing{AGAIN}"),
    (lambda data: data[:-2] + b"\x05\x00ab", f"truncated: the comment of the ZIP archive is cut off{AGAIN}"),
    (lambda data: b"", "not a ZIP archive"), (lambda data: b'{"adapter_spec": {}}', "not a ZIP archive"),
    (lambda data: data + b"hidden", f"6 bytes of trailing data after the archive{ONLY}"),
    (lambda data: data + b"\n", f"1 byte of trailing data after the archive{ONLY}"),
    (lambda data: b"#!/bin/sh\n" + data, f"data before the first member{ONLY}"),
    (lambda data: data.replace(b"PK\x01\x02", b"\0K\x01\x02", 1), "not a ZIP archive, or damaged: "),
    (lambda data: data.replace(b"2+2?", b"2+3?", 1), f"/test.jsonl: cannot be decompressed: Bad CRC-32 for file 'test.jsonl'{AGAIN}"),
    (lambda data: data.replace(b"train.jsonl", b"other.jsonl", 1), "/train.jsonl: cannot be decompressed: File name in directory"),
    (lambda data: data[-22:-14] + b"\0" * 12 + b"\0\0", 'member "test.jsonl": missing'),
])  # fmt: skip
def test_archives_that_are_odd(demo, change, problem):
    demo.write_bytes(change(demo.read_bytes()))
    assert any(text.removeprefix("demo.zip").removeprefix(": ").startswith(problem) for text in texts(demo)), texts(
        demo
    )


def test_damaged_meta_and_deflate_streams(tmp_path):
    path = write_zip(tmp_path / "demo.zip", members(), compression=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("meta.json")
    data = bytearray(path.read_bytes())
    data[info.header_offset + 30 + len("meta.json")] ^= 0xFF
    path.write_bytes(data)
    (found,) = texts(path)
    assert found.startswith("demo.zip/meta.json: cannot be decompressed: ")


def test_limits(tmp_path, monkeypatch):
    big = line("a", "x" * 3_000_000)
    path = write_zip(tmp_path / "demo.zip", members(test_jsonl=big), compression=zipfile.ZIP_DEFLATED)
    assert texts(path)[0].startswith('demo.zip: member "test.jsonl": decompresses to ')
    assert texts(path)[0].endswith(
        "times its size, the limit is 200\n  hint: HELM_EXT_MAX_BUNDLE_RATIO changes the limit"
    )
    monkeypatch.setenv("HELM_EXT_MAX_BUNDLE_RATIO", "2000")
    assert not any("decompresses to" in text for text in texts(path))
    monkeypatch.setenv("HELM_EXT_MAX_BUNDLE_BYTES", "1000")
    total = len(big) + len(TRAIN) + len(meta())
    assert texts(path) == [
        (
            f"demo.zip: too large: {total} bytes when decompressed, the limit is 1000\n"
            "  hint: HELM_EXT_MAX_BUNDLE_BYTES changes the limit"
        )
    ]
    monkeypatch.setenv("HELM_EXT_MAX_BUNDLE_BYTES", "1G")
    with pytest.raises(HelmExtError, match='HELM_EXT_MAX_BUNDLE_BYTES="1G": expected a whole number from 1'):
        check(path)


def test_far_too_many_members(tmp_path):
    path = write_zip(tmp_path / "demo.zip", [(f"{'n' * 200}{i}", b"") for i in range(5000)])
    (found,) = texts(path)
    assert found.startswith("demo.zip: the archive's directory has ")
    assert found.endswith(" bytes: far too many members")


def test_zip64_end_records_are_understood(demo):
    data = demo.read_bytes()
    end = data.rindex(b"PK\x05\x06")
    size, start = struct.unpack_from("<2L", data, end + 12)
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 3, 3, size, start)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 3, 3, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    demo.write_bytes(data[:end] + record + locator + tail)
    assert check(demo)[0] == []
    huge = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 3, 3, 1 << 40, start)
    demo.write_bytes(data[:end] + huge + locator + tail)
    assert texts(demo) == [f"demo.zip: the archive's directory has {1 << 40} bytes: far too many members"]
    demo.write_bytes(data[:end] + tail)
    assert len(texts(demo)) == 1


BOMB = """
import resource, sys, time
from helm_ext.formats.innodata.loading import check
check("none.zip")  # imports what is needed
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.process_time()
problems, _ = check(sys.argv[1])
print(time.process_time() - started, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
print(problems[0])
"""


@pytest.mark.long
def test_a_bomb_costs_nothing(tmp_path):
    path = tmp_path / "demo.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("test.jsonl", "w") as out:
            for _ in range(200):
                out.write(b"\n" * (1 << 20))
        archive.writestr("train.jsonl", b"")
        archive.writestr("meta.json", meta())
    assert path.stat().st_size < 1 << 20
    done = subprocess.run([sys.executable, "-c", BOMB, path], capture_output=True, text=True, check=True)
    numbers, message = done.stdout.split("\n", 1)
    seconds, megabytes = map(float, numbers.split())
    assert 'member "test.jsonl": decompresses to 10' in message
    assert seconds < 1
    assert megabytes < 50


def test_no_such_file(tmp_path):
    assert texts(tmp_path / "none.zip") == ["none.zip: no such file"]
    (tmp_path / "demo.zip").touch()
    assert texts(tmp_path / "demos.zip") == ["demos.zip: no such file\n  hint: did you mean 'demo.zip'?"]
    with pytest.raises(DatasetNotFoundError):
        open_bundle(tmp_path / "none.zip").__enter__()
    (found,) = texts(tmp_path)
    assert "cannot be read" in found


def test_ids_that_occur_twice(tmp_path):
    test, train = TEST + line("b"), TRAIN + line("a")
    sizes = {"test_size": 3, "train_size": 2}
    digests = {"test_digest": hashlib.sha256(test).hexdigest(), "train_digest": hashlib.sha256(train).hexdigest()}
    content = members(test_jsonl=test, train_jsonl=train, meta_json=meta(**sizes, **digests))
    assert texts(write_zip(tmp_path / "demo.zip", content)) == [
        'demo.zip/test.jsonl:3: id: "b" occurs already in test.jsonl:2\n  hint: ids must be unique across both splits',
        'demo.zip/train.jsonl:2: id: "a" occurs already in test.jsonl:1\n  hint: ids must be unique across both splits',
    ]


def test_an_empty_test_split(tmp_path):
    stated = meta(test_size=0, test_digest=hashlib.sha256(b"").hexdigest())
    assert texts(write_zip(tmp_path / "demo.zip", members(test_jsonl=b"", meta_json=stated))) == [
        "demo.zip/test.jsonl: the test split is empty\n  hint: at least one record is needed to evaluate"
    ]


def test_records_of_a_bundle_that_is_not_sound(tmp_path):
    path = write_zip(tmp_path / "demo.zip", members(test_jsonl=line("a") + b"{}\n"))
    with open_bundle(path) as bundle, pytest.raises(DatasetError, match="test.jsonl:2: id: missing"):
        list(bundle.records("test"))


# Packing


def sources(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(TEST)
    (tmp_path / "r.jsonl").write_bytes(TRAIN)
    return {"test": tmp_path / "t.jsonl", "train": tmp_path / "r.jsonl", "name": "demo", "target": tmp_path}


def test_packing_is_reproducible(tmp_path):
    options = sources(tmp_path)
    packed = pack(**options, attributes={"severity": "high", "task": "maths"})
    # The bytes themselves, so that another machine, another day or another Python would be noticed.
    assert packed.digest == "87158c69b7b91923e02e260b0d6f96237cec2548c3d32a5cb2985d3c60cb3cc8"
    assert packed.digest == hashlib.sha256(packed.path.read_bytes()).hexdigest()
    os.utime(options["test"], (1, 1))
    again = pack(**options, attributes={"task": "maths", "severity": "high"})
    assert again.digest == packed.digest
    assert check(packed.path) == ([], {"test": 2, "train": 1, "rows": 3})
    with zipfile.ZipFile(packed.path) as archive:
        assert archive.namelist() == ["test.jsonl", "train.jsonl", "meta.json"]
        assert archive.read("test.jsonl") == TEST
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert json.loads(archive.read("meta.json")) == json.loads(meta(severity="high", task="maths"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.zip", "r.jsonl", "t.jsonl"]


def test_ids_in_both_sources_however_these_are_called(tmp_path):
    options = sources(tmp_path)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data.jsonl").write_bytes(TEST)
    hint = "ids must be unique across both splits"
    first, second = tmp_path / "a" / "data.jsonl", tmp_path / "b" / "data.jsonl"
    with pytest.raises(DatasetIntegrityError) as caught:
        pack(**{**options, "test": first, "train": second})
    said = [
        f'{second}:{number}: id: "{name}" occurs already in {first}:{number}' for number, name in enumerate("ab", 1)
    ]
    assert str(caught.value).splitlines() == [*said, f"  hint: {hint}"]
    with pytest.raises(DatasetIntegrityError, match=r't.jsonl:1: id: "a" occurs already in t.jsonl:1'):
        pack(**{**options, "train": options["test"]})
    assert not (tmp_path / "demo.zip").exists()


def test_what_could_not_be_read_is_not_packed(tmp_path, monkeypatch):
    options = sources(tmp_path)
    with pytest.raises(DatasetIntegrityError, match="demo.zip/meta.json: longer than 1048576 bytes"):
        pack(**options, attributes={"x": "y" * (1 << 20)})
    (tmp_path / "t.jsonl").write_bytes(b"".join(line(str(i), expected="x" * 9000) for i in range(200)))
    monkeypatch.setenv("HELM_EXT_MAX_BUNDLE_BYTES", "100000")
    with pytest.raises(DatasetSyntaxError, match="too large: .* the limit is 100000"):
        pack(**options)
    assert not (tmp_path / "demo.zip").exists()
    monkeypatch.delenv("HELM_EXT_MAX_BUNDLE_BYTES")
    assert check(pack(**options).path)[0] == []


def test_a_source_that_changes_while_it_is_packed(tmp_path, monkeypatch):
    from helm_ext.formats.innodata.hub import pack as pack_function

    options = sources(tmp_path)

    packing = sys.modules["helm_ext.formats.innodata.hub.packing"]
    check_sources = packing._check_sources

    def change(given):
        counted = check_sources(given)
        options["test"].write_bytes(TEST + line("new"))
        return counted

    monkeypatch.setattr(packing, "_check_sources", change)
    with pytest.raises(DatasetIntegrityError, match="changed while it was packed"):
        pack_function(**options)
    assert not (tmp_path / "demo.zip").exists()


def test_a_folder_where_the_bundle_should_be(tmp_path):
    options = sources(tmp_path)
    (tmp_path / "demo.zip").mkdir()
    for replace in (False, True):
        with pytest.raises(HelmExtError, match=r"demo\.zip: cannot be written: Is a directory"):
            pack(**options, replace=replace)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.zip", "r.jsonl", "t.jsonl"]


def test_pipes_are_no_files(tmp_path):
    options = sources(tmp_path)
    reading, writing = os.pipe()
    try:
        with pytest.raises(DatasetNotFoundError, match="no regular file\n  hint: it is read more than once"):
            pack(**{**options, "test": f"/dev/fd/{reading}"})
        with pytest.raises(
            DatasetNotFoundError, match="no regular file\n  hint: it is read more than once: save it as a file first"
        ):
            open_bundle(f"/dev/fd/{reading}").__enter__()
    finally:
        os.close(reading)
        os.close(writing)


def test_a_failed_write_leaves_the_old_bundle(tmp_path, monkeypatch):
    options = sources(tmp_path)
    old = pack(**options).path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(HelmExtError, match=r"demo\.zip: cannot be written: No space left on device"):
        pack(**options, attributes={"a": "b"}, replace=True)
    assert (tmp_path / "demo.zip").read_bytes() == old
    assert len(list(tmp_path.iterdir())) == 3
