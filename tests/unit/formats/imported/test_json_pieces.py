"""A JSON document comes in pieces that are those that the standard library reads, however it is laid out."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_ext.errors import DatasetError
from helm_ext.formats.imported.json_log import JsonPieces

LAYOUTS: dict[str, dict[str, Any]] = {
    "indented": {"indent": 2},
    "compact": {"separators": (",", ":")},
    "one line": {},
    "tabs": {"indent": "\t"},
    "not indented": {"indent": 0},
}


def read(path: Path) -> tuple[dict[str, Any], list[Any], list[int]]:
    values, elements, lines = {}, [], []
    with JsonPieces(path, "samples") as document:
        for key, data, line in document:
            if key == "samples":
                elements.append(json.loads(data))
                lines.append(line)
            else:
                values[key] = json.loads(data)
        assert document.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    return values, elements, lines


def write(folder: Path, text: str) -> Path:
    path = folder / "log.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(
    before=st.dictionaries(st.text().filter(lambda key: key != "samples"), json_values, max_size=3),
    elements=st.lists(json_values, max_size=4),
    layout=st.sampled_from(sorted(LAYOUTS)),
)
def test_pieces_are_the_documents_values(tmp_path_factory, before, elements, layout) -> None:
    path = write(tmp_path_factory.mktemp("log"), json.dumps({**before, "samples": elements}, **LAYOUTS[layout]))
    values, found, _ = read(path)
    assert (values, found) == (before, elements)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_samples_may_be_larger_than_what_is_read_at_a_time(tmp_path: Path, layout: str) -> None:
    elements = [{"id": n, "text": f'{n} é東 }}]{{["\\\n' * 60_000, "after": [n]} for n in range(6)]
    path = write(tmp_path, json.dumps({"status": "x", "samples": elements, "end": {"a": 1}}, **LAYOUTS[layout]))
    values, found, _ = read(path)
    assert found == elements
    assert values == {"status": "x", "end": {"a": 1}}


def test_samples_know_the_lines_they_begin_on(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps({"a": 1, "samples": [{"b": 1}, {"b": 2}]}, indent=2))
    assert read(path)[2] == [4, 7]


@pytest.mark.parametrize(("text", "line", "said"), [
    ('{"a": 1', 1, "the text ends too early"), ('{"a": "x', 1, "not JSON"), ('{\n"a": [1,\n x]}', 3, "not JSON"),
    ('{\n"\udc80": 1}', 2, "UTF-8"), ('{\n"samples": [{"a": 1}', 2, "the text ends too early"),
    ('{\n"samples": [{"a": 1', 2, "not JSON"), ('{"a": 1}\n{"a": 2}', 2, "there is more after the end"),
    ('{"a" 1}', 1, "a colon is expected"), ('{"a": 1,}', 1, "a key in double quotes"),
    ("[1]", 1, "a log is a JSON object"), ('{"a": [1] "b": 2}', 1, "a comma is expected"),
])  # fmt: skip
def test_what_is_no_document_is_refused_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(DatasetError, match=said) as error:
        read(write(tmp_path, text))
    assert error.value.problems[0].location.line == line
