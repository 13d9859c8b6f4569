"""Keys that look as if they were meant, and hints for values of the wrong shape."""

import copy

import pytest
from tests.request_states_files import answered, errors, problems, reference, state, write

ROW = state("Capital?", "Paris", id="a", split="test")
RECORDED = answered(ROW, "Paris")
PATH = "request_states[0]."


def changed(row, place, key, value):
    """The row with one more key at a place."""
    row = copy.deepcopy(row)
    inner = row
    for part in place:
        inner = inner[part]
    inner[key] = value
    return row


def find(path, code):
    return [(p.location.field, p.message, p.hint) for p in problems(path) if p.code == code]


@pytest.mark.parametrize(("place", "key", "value", "field", "hint"), [
    ((), "completions", [{"text": "x"}], "completions", "completions is read in request.result"),
    ((), "split", "test", "split", "split is read in instance"),
    (("instance",), "Split", "train", "instance.Split", "did you mean 'split'?"),
    (("instance",), "result", {}, "instance.result", "result is read in request"),
    (("instance",), "difficulty", 3, "", ""),
    (("instance", "input"), "Text", "x", "instance.input.Text", "did you mean 'text'?"),
    (("instance", "references", 0), "tag", [], "instance.references.tag", "did you mean 'tags'?"),
    (("request",), "completions", [], "request.completions", "completions is read in request.result"),
    (("request", "result"), "completion", "x", "request.result.completion", "did you mean 'completions'?"),
    (("request",), "completion", "x", "", ""),
    (("instance", "references", 0, "output"), "Text", "x", "instance.references.output.Text", "did you mean 'text'?"),
    (("request", "result", "completions", 0), "Text", "x", "request.result.completions.Text", "did you mean 'text'?"),
    (("request", "result", "completions", 0), "output", "x", "", ""),
    (("request", "result"), "text", "x", "", ""), ((), "output", "x", "", ""),
])  # fmt: skip
@pytest.mark.parametrize("name", ["f.json", "f.jsonl"])
def test_stray_keys(tmp_path, name, place, key, value, field, hint):
    rows = [changed(RECORDED, place, key, value), RECORDED, changed(RECORDED, place, key, value)]
    found = find(write(tmp_path / name, rows), "stray-key")
    prefix = PATH if name == "f.json" else ""
    expected = [(prefix + field, "2 rows have this key, which means nothing here", hint)] if field else []
    assert found == expected


def test_results_that_no_row_has_under_their_name_are_lost(tmp_path):
    row = {**ROW, "request": {"results": RECORDED["request"]["result"]}}
    said = f"{PATH}request.results: 2 rows have this key, which means nothing here\n  hint: did you mean 'result'?"
    assert [one.partition(": ")[2] for one in errors(write(tmp_path / "f.json", [row, row]))] == [said]
    assert errors(write(tmp_path / "g.json", [row, RECORDED])) == []


def test_helms_own_states_are_not_looked_at(tmp_path):
    row = changed({**RECORDED, "train_trial_index": 0}, ("request",), "completions", [])
    assert find(write(tmp_path / "f.json", [row]), "stray-key") == []


def asked(*references, **more):
    return {"instance": {"input": {"text": "?"}, "references": list(references), **more}}


@pytest.mark.parametrize(("row", "field", "hint"), [
    (ROW["instance"], "instance", 'put input, references, split, id into "instance": {...}'),
    (asked({"text": "Paris", "tags": ["correct"]}), "instance.references[0].output", 'put text into "output": {...}'),
    (asked("Paris"), "instance.references[0]", 'write {"output": {"text": "Paris"}}'),
    ({**ROW, "request": {"result": {"completions": ["Paris"]}}}, "request.result.completions[0]", 'write {"text": "Paris"}'),
    (changed(ROW, ("instance",), "references", "Paris"), "instance.references", 'write [{"output": {"text": "Paris"}}]'),
    (changed(ROW, ("instance",), "split", 1), "instance.split", 'write "1" in quotes'),
    (changed(ROW, ("instance",), "split", "eval"), "instance.split", "did you mean 'valid'?"),
    (changed(ROW, ("instance",), "input", {"question": "?"}), "instance.input.text", "'question' is there: write 'text'"),
    (changed(ROW, ("instance",), "input", {"a": "?", "b": "?"}), "instance.input.text", ""),
])  # fmt: skip
def test_hints_for_the_shape_of_a_row(tmp_path, row, field, hint):
    [problem] = [p for p in problems(write(tmp_path / "f.json", [row])) if p.severity == "error"]
    assert (problem.location.field, problem.hint) == (PATH + field, hint)


CORRECTLY = 'write "references": [{"output": {"text": ...}, "tags": ["correct"]}]'
WRONG = [reference("a", tags=["b", "d"]), reference("b", tags=["wrong", "c"])]


@pytest.mark.parametrize(("row", "message"), [
    (asked(reference("Paris", tags=["Correct"])), 'no reference is tagged correct, but "Correct"'),
    (asked(*WRONG), 'no reference is tagged correct, but "b", "d", "wrong", ...'),
    (asked(reference("a"), reference("b")), "no reference is tagged correct"),
    (asked(), "empty, so there is nothing to compare an answer with"),
    ({"instance": {"input": {"text": "?"}, "reference": []}}, "missing, so there is nothing to compare an answer with"),
])  # fmt: skip
def test_rows_without_a_correct_reference(tmp_path, row, message):
    path = write(tmp_path / "f.json", [row, ROW])
    assert find(path, "no-correct-reference") == [(PATH + "instance.references", message, CORRECTLY)]


def test_a_row_of_the_wrong_shape_with_an_unknown_split(tmp_path):
    path = write(tmp_path / "f.jsonl", [{"instance": {"split": "testt", "input": "x", "references": ["a"]}}])
    assert [(p.location.field, p.hint) for p in problems(path) if p.severity == "error"] == [
        ("instance.input", 'write {"text": "x"}'),
        ("instance.references[0]", 'write {"output": {"text": "a"}}'),
        ("instance.split", "did you mean 'test'?"),
    ]
