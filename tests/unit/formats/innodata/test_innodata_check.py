"""`innodata.check`: a bundle, and the arguments of its run entry."""

from __future__ import annotations

import dataclasses
import json

import pytest

from helm_ext.formats.innodata.format import FORMAT
from helm_ext.formats.innodata.hub import pack
from helm_ext.formats.innodata.loading import Options, check


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def bundle(tmp_path):
    rows = [{"id": key, "messages": [{"role": "user", "content": "2+2?"}], "expected": "4"} for key in "abc"]
    return pack(name="sums", test=write_lines(tmp_path / "t.jsonl", rows), target=tmp_path).path


def test_every_argument_of_the_run_entry_is_taken():
    assert set(FORMAT.argument_names()) == {field.name for field in dataclasses.fields(Options)} - {
        "temperature",
        "stop",
    }


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"metrics": ["exact_macht"]}, 'unknown metric "exact_macht"', "did you mean 'exact_match'"),
        ({"main_metric": "expected_f"}, 'unknown metric "expected_f"', "did you mean"),
        ({"extract": "("}, "extract=(: ", ""),
        ({"split": "train"}, "the train split is empty", "split=test"),
        ({"version": 2}, "version=2: a file has no versions", "dataset=NAME,version=2"),
        ({"hub": "there"}, "hub=there: a file is in no hub", "dataset=NAME,hub=there"),
        ({"limit": 0}, "limit=0: expected a positive whole number", ""),
        ({"max_tokens": -1}, "max_tokens=-1: expected a positive whole number", ""),
    ],
)
def test_wrong_arguments(bundle, arguments, message, hint):
    (problem,), counts = check(bundle, **arguments)
    assert problem.message.startswith(message)
    assert problem.hint.startswith(hint)
    assert counts == {"test": 3, "train": 0, "rows": 3}


def test_replies(tmp_path, bundle):
    lines = [{"id": "a", "reply": "4"}, {"id": "b", "reply": None}, {"id": "c", "reply": "4"}]
    replies = write_lines(tmp_path / "replies.jsonl", lines)
    (warning,), counts = check(bundle, replies=replies)
    assert (warning.severity, warning.code) == ("warning", "not-run")
    assert warning.message == "1 of 3 records of the test split of sums have no reply; a run refuses the file"
    assert counts == {"test": 3, "train": 0, "rows": 3, "recorded": 2, "not_run": 1}
    assert check(bundle, replies=replies, limit=1) == ([], {**counts, "recorded": 1, "not_run": 0})
    assert [problem.message for problem in check(bundle, replies=tmp_path / "none.jsonl")[0]] == [
        "replies cannot be read: No such file or directory",
    ]


def test_the_problems_of_bundle_arguments_and_replies_at_once(tmp_path, bundle):
    replies = write_lines(tmp_path / "replies.jsonl", [{"id": "z", "reply": "4"}, {"id": "a", "reply": 4}])
    found, _ = check(bundle, replies=replies, metrics=["nothing"], limit=0)
    assert [(problem.location.path, problem.location.line, problem.code) for problem in found] == [
        (str(bundle), None, "argument"),
        (str(bundle), None, "argument"),
        (str(replies), 1, "unknown-id"),
        (str(replies), 2, "reply-type"),
    ]


def test_ids_are_not_compared_with_those_of_a_damaged_bundle(tmp_path):
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(b"PK")
    replies = write_lines(tmp_path / "replies.jsonl", [{"id": "z", "reply": "4"}, {"id": "a", "reply": 4}])
    found, _ = check(damaged, replies=replies)
    assert [problem.location.path for problem in found] == [str(damaged), str(replies)]
    assert found[1].code == "reply-type"


def test_replies_in_an_array_are_one_problem(tmp_path, bundle):
    replies = tmp_path / "replies.jsonl"
    replies.write_text(json.dumps([{"id": "a", "reply": "4"}] * 5, indent=1))
    (problem,), _ = check(bundle, replies=replies)
    assert str(problem) == (
        f"{replies}:1: a JSON array, expected one object a line\n  hint: jq -c '.[]' FILE writes an array so"
    )
