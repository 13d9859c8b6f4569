"""Archives with what systems add to them, and what packing refuses."""

import io
import zipfile

import pytest

from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, DatasetSchemaError, Problems
from helm_ext.files.archive import Limits, open_archive
from helm_ext.formats.innodata.hub.packing import pack
from helm_ext.formats.innodata.hub.records import NAME_RULE

LINE = b'{"id": "a", "messages": [{"role": "user", "content": "Hi"}], "expected": "Hello"}\n'


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


# Packing


@pytest.mark.parametrize(("named", "message"), [
    ({"name": "Demo"}, f'not a dataset name: "Demo"\n  hint: {NAME_RULE}'),
    ({"attributes": {"name": "x"}}, 'attribute "name": this key is computed, it cannot be an attribute'),
    ({"attributes": {"x": float("nan")}}, 'attribute "x": no JSON value: NaN'),
    ({"attributes": {"x": {1}}}, 'attribute "x": no JSON value: {1}'),
    ({"attributes": {"x": "\ud800"}}, 'attribute "x": no JSON value: "\\ud800"'),
    ({"attributes": {"\udc80": "x"}}, 'attribute "\\udc80": no JSON value: "x"'),
])  # fmt: skip
def test_arguments_of_packing(tmp_path, named, message):
    (tmp_path / "t.jsonl").write_bytes(LINE)
    with pytest.raises(DatasetSchemaError) as error:
        pack(**{"name": "demo", "test": tmp_path / "t.jsonl", "target": tmp_path, **named})
    assert str(error.value) == message


def test_an_existing_bundle_is_overwritten_only_where_that_is_asked_for(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(LINE)
    made = pack(name="demo", test=tmp_path / "t.jsonl", attributes={"é": [1], "a": None}, target=tmp_path)
    assert pack(name="demo", test=tmp_path / "t.jsonl", attributes={"é": [1], "a": None}, target=tmp_path) == made
    with pytest.raises(DatasetIntegrityError) as error:
        pack(name="demo", test=tmp_path / "t.jsonl", target=tmp_path)
    hint = "--replace overwrites it, --out writes elsewhere"
    assert str(error.value) == f"{made.path}: exists, with other content\n  hint: {hint}"
    assert pack(name="demo", test=tmp_path / "t.jsonl", target=tmp_path, replace=True).digest != made.digest


def test_sources_that_cannot_be_packed(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(LINE)
    (tmp_path / "empty.jsonl").write_bytes(b"")
    with pytest.raises(DatasetIntegrityError, match="empty.jsonl: the test split is empty"):
        pack(name="demo", test=tmp_path / "empty.jsonl", target=tmp_path)
    with pytest.raises(DatasetNotFoundError, match="none.jsonl: no such file"):
        pack(name="demo", test=tmp_path / "none.jsonl", target=tmp_path)
    with pytest.raises(DatasetNotFoundError) as error:
        pack(name="demo", test=tmp_path / "t.jsonl", target=tmp_path / "a b")
    assert str(error.value) == f"{tmp_path}/a b: no such folder\n  hint: mkdir -p '{tmp_path}/a b'"
