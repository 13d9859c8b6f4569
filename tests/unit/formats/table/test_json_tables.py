"""Tables in JSON: lines, lists, and objects that hold rows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_ext.errors import DatasetError
from helm_ext.formats.imported.tables import JsonTable

ROWS = [{"q": "x\n{[,]}", "a": 1}, {"q": "é\u2028", "b": [1, {"c": None}]}]


def read(tmp_path, text, name="x.json"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    table = JsonTable(str(path))
    return table, [(line, cells) for line, cells, _ in table.read()]


def problem(tmp_path, text, name="x.json"):
    with pytest.raises(DatasetError) as caught:
        read(tmp_path, text, name)
    return caught.value.problems[0]


def lines_of(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


class TestKinds:
    def test_are_told_apart_by_what_they_begin_with(self, tmp_path):
        for text, names, lines in [
            (lines_of(ROWS), ("x.json", "x.jsonl"), [1, 2]),
            (lines_of(ROWS[:1]), ("x.jsonl",), [1]),
            (json.dumps(ROWS), ("x.json", "x.jsonl"), [1, 1]),
            (json.dumps(ROWS, indent=2), ("x.json", "x.jsonl"), [2, 6]),
            (json.dumps({"data": ROWS}), ("x.json",), [1, 2]),
            (json.dumps({"version": "2", "data": ROWS}, indent=2), ("x.json", "x.jsonl"), [1, 2]),
            (json.dumps({"testCases": ROWS}), ("x.json",), [1, 2]),
        ]:
            for name in names:
                _, rows = read(tmp_path, text, name)
                assert rows == list(zip(lines, ROWS, strict=False))

    def test_rows_may_have_keys_of_their_own(self, tmp_path):
        table, rows = read(tmp_path, lines_of(ROWS))
        assert table.columns == ["q", "a", "b"]
        assert rows == [(1, ROWS[0]), (2, ROWS[1])]

    def test_a_list_knows_the_lines_of_its_items(self, tmp_path):
        _, rows = read(tmp_path, '\ufeff[\n\n  {"q":\n 1},\n{"q": 2}\n ,{"q": 3}]\n')
        assert rows == [(3, {"q": 1}), (5, {"q": 2}), (6, {"q": 3})]

    def test_predictions_of_opencompass_are_numbered_objects(self, tmp_path):
        rows = {"0": {"origin_prompt": "1+1", "prediction": "2", "gold": "2"}}
        _, read_rows = read(tmp_path, json.dumps(rows))
        assert read_rows == [(1, {"idx": "0", **rows["0"]})]


class TestRefused:
    @pytest.mark.parametrize(("text", "code", "line"), [
        ('{"q": 1}\n[1]\n', "not-an-object", 2), ('{"q": 1}\n{"q": \n', "not-json", 2),
        ('[{"q": 1},\n {"q": 2, "q": 3}]', "duplicate-key", 2), ('[{"q": 1},\n 7]', "not-an-object", 2),
        ('[{"q": 1},\n {"q": NaN}]', "not-json", 2), ('[{"q": 1}\n {"q": 2}]', "not-json", 2),
        ('[{"q": 1},\n {"q": 2}', "not-json", 2), ('[{"q": 1}] []', "not-json", 1),
        ('[{"q": "\\ud800"}]', "lone-surrogate", 1), (b'[{"q": "\xff"}]', "not-utf-8", 1),
        ('{"q": {"0": "x"}, "a": {"0": "y"}}', "no-rows", None), ('{"q": ["x"], "a": ["y"]}', "no-rows", None),
        ('{\n"q": "x", "a": "y"\n}', "no-rows", None),
    ])  # fmt: skip
    def test_with_its_line(self, tmp_path, text, code, line):
        found = problem(tmp_path, text)
        assert (found.code, found.location.line) == (code, line)

    def test_one_object_is_no_table(self, tmp_path):
        found = problem(tmp_path, '{"q": {"0": "x"}, "a": {"0": "y"}}')
        assert ('got one object with the keys ["q", "a"]' in found.message, "to_json(FILE" in found.hint) == (
            True,
            True,
        )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@pytest.mark.long
@given(st.lists(st.dictionaries(st.text("qa", max_size=2), VALUES), min_size=1, max_size=6), st.sampled_from([None, 2]))
def test_lists_and_lines_hold_what_was_written(tmp_path_factory, rows, indent):
    folder = tmp_path_factory.mktemp("json")
    _, listed = read(folder, json.dumps(rows, indent=indent, ensure_ascii=indent is None))
    _, lines = read(folder, lines_of(rows), "x.jsonl")
    assert [cells for _, cells in listed] == [cells for _, cells in lines] == rows


def test_an_item_may_be_longer_than_what_is_read_at_a_time(tmp_path):
    rows = [{"q": "é" * 300_000}, {"q": "end"}]
    _, found = read(tmp_path, json.dumps(rows, ensure_ascii=False))
    assert [cells for _, cells in found] == rows
