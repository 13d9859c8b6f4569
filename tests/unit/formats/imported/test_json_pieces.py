"""A JSON document comes in pieces that are those that the standard library reads, however it is laid out."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_ext.errors import DatasetError
from helm_ext.formats import get_format
from helm_ext.formats.imported import json_log
from helm_ext.formats.imported.json_log import JsonPieces

LAYOUTS: dict[str, dict[str, Any]] = {
    "indented": {"indent": 2}, "compact": {"separators": (",", ":")}, "one line": {}, "tabs": {"indent": "\t"},
}  # fmt: skip
HEAD = {"status": "success", "eval": {"task": "t", "model": "m"}}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([", NaN ]", '"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def write(folder: Path, text: str) -> Path:
    path = folder / "log.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


@given(
    values=st.dictionaries(st.text(), json_values, max_size=3),
    elements=st.lists(json_values, max_size=4),
    layout=st.sampled_from(sorted(LAYOUTS)),
)
def test_pieces_are_the_documents_values(tmp_path_factory, values, elements, layout) -> None:
    """NaN and Infinity too, and whatever text looks like them."""
    given = {**values, "samples": elements}
    path = write(tmp_path_factory.mktemp("log"), json.dumps(given, **LAYOUTS[layout]))
    document = JsonPieces(path)
    places = document.members()
    read = {key: json.loads(document.get(place)[0]) for key, place in places.items()}
    assert str(read) == str(given)
    assert str([json.loads(data) for _, data in document.elements(*places["samples"])]) == str(elements)
    assert document.digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_samples_know_the_lines_they_begin_on(tmp_path: Path) -> None:
    long = "é東 }}]{[\\" * 200_000
    document = JsonPieces(write(tmp_path, json.dumps({"a": long, "samples": [{"b": [1] * 10**6}, {"c": 2}]}, indent=1)))
    place = document.members()["samples"]
    assert document.get(place)[1] == 3
    assert [line for line, _ in document.elements(*place)] == [4, 1_000_008]


TEXT = json.dumps({**HEAD, "samples": [{"id": 1}]}, indent=0)


@pytest.mark.parametrize(("text", "line", "said"), [
    (TEXT[:-1], 12, "the text ends too early"), (TEXT[:-4], 10, "ends too early"), ('{"a": "x', 1, "not JSON"),
    (TEXT.replace("1", "x"), 9, "a value is expected"), ('{\n"\udc80": 1}', 2, "UTF-8"),
    (f"{TEXT}\n{{}}", 13, "there is more after the end"), ('{"a" 1}', 1, "a colon is expected"),
    ("[1]", 1, "a log is a JSON object"), (TEXT.replace(",", ""), 3, "a comma is expected"),
    (TEXT.replace('"samples"', '"status"'), 7, "given twice"), ('{"a": 1, "b": 22, "a": 333, "a": NaN}', 1, "given twice"),
])  # fmt: skip
def test_what_is_no_document_is_refused_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(DatasetError, match=said) as error:
        get_format("inspect").load(path=str(write(tmp_path, text)))
    assert error.value.problems[0].location.line == line


def test_what_is_larger_than_documents_in_memory_is_mapped(tmp_path: Path, monkeypatch) -> None:
    path = write(tmp_path, json.dumps({"samples": [{"id": 1}, {"id": float("nan")}]}))
    monkeypatch.setattr(json_log, "MAX_DOCUMENT_BYTES", 1)
    document = JsonPieces(path)
    place = document.members()["samples"]
    assert [data for _, data in document.elements(*place)] == [b'{"id": 1}', b'{"id": NaN}']
    assert document.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DatasetError, match="a log is a JSON object"):
        JsonPieces(write(tmp_path, '{"a": 1,}')).members()
