"""Keys that look as if they were meant, and hints for values of the wrong shape."""

from __future__ import annotations

import copy

import pytest
from tests.request_states_files import answered, problems, state, write

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


@pytest.mark.parametrize(
    ("place", "key", "value", "field", "hint"),
    [
        ((), "completions", [{"text": "x"}], "completions", "completions is read in request.result"),
        ((), "split", "test", "split", "split is read in instance"),
        ((), "request_state", {}, "", ""),
        (("instance",), "Split", "train", "instance.Split", "did you mean 'split'?"),
        (("instance",), "reference", [], "instance.reference", "did you mean 'references'?"),
        (("instance",), "result", {}, "instance.result", "result is read in request"),
        (("instance",), "difficulty", 3, "", ""),
        (("instance", "input"), "Text", "x", "instance.input.Text", "did you mean 'text'?"),
        (("instance", "references", 0), "tag", [], "instance.references.tag", "did you mean 'tags'?"),
        (("instance", "references", 0), "correct", True, "instance.references.correct", 'write "tags": ["correct"]'),
        (("instance", "references", 0, "output"), "anything", 1, "", ""),
        (("request",), "completions", [], "request.completions", "completions is read in request.result"),
        (("request",), "temperature", 0.5, "", ""),
        (
            ("request", "result"),
            "completion",
            "x",
            "request.result.completion",
            "completion is read in request.result.completions",
        ),
        (("request", "result"), "embedding", [], "", ""),
    ],
)
@pytest.mark.parametrize("name", ["f.json", "f.jsonl"])
def test_stray_keys(tmp_path, name, place, key, value, field, hint):
    rows = [changed(RECORDED, place, key, value), RECORDED, changed(RECORDED, place, key, value)]
    found = find(write(tmp_path / name, rows), "stray-key")
    prefix = PATH if name == "f.json" else ""
    expected = [(prefix + field, "2 rows have this key, which means nothing here", hint)] if field else []
    assert found == expected


def test_helms_own_states_are_not_looked_at(tmp_path):
    row = changed({**RECORDED, "train_trial_index": 0}, ("request",), "completions", [])
    assert find(write(tmp_path / "f.json", [row]), "stray-key") == []


@pytest.mark.parametrize(
    ("row", "field", "hint"),
    [
        (ROW["instance"], "instance", 'put the row\'s keys into "instance": {...}'),
        ({"Instance": ROW["instance"]}, "instance", "'Instance' is there: write 'instance'"),
        (
            {"instance": {"input": {"text": "?"}, "references": [{"text": "Paris", "tags": ["correct"]}]}},
            "instance.references[0].output",
            'write "output": {"text": "Paris"}',
        ),
        (
            {"instance": {"input": {"text": "?"}, "references": ["Paris"]}},
            "instance.references[0]",
            'write {"output": {"text": "Paris"}}',
        ),
        (
            {**ROW, "request": {"result": {"completions": ["Paris"]}}},
            "request.result.completions[0]",
            'write {"text": "Paris"}',
        ),
    ],
)
def test_hints_for_the_shape_of_a_row(tmp_path, row, field, hint):
    [problem] = [p for p in problems(write(tmp_path / "f.json", [row])) if p.severity == "error"]
    assert (problem.location.field, problem.hint) == (PATH + field, hint)
