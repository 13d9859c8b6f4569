"""The same question twice: which row is reported, and as what."""

import json

import pytest
from lint_rows import find, row, write

from helm_ext import formats
from helm_ext.analysis.lint import lint


def test_a_question_that_stands_there_twice(tmp_path):
    rows = [row("Who wrote Emma?", "Jane Austen"), row("What is 2 + 2?", "4"), row("Who wrote Emma?", "Jane Austen")]
    assert find(tmp_path, rows) == [("duplicate", 4)]


def test_each_further_copy_is_reported_beside_the_first(tmp_path):
    path = write(tmp_path / "rows.jsonl", [row("Who wrote Emma?", "Jane Austen")] * 3)
    first, second = lint(formats.load(path), str(path))
    assert str(first) == (
        f'{path}:3: id "q3": the question of line 2 (id "q2"), with the same gold\n  hint: it counts twice in every score'
    )
    assert "line 2" in second.message
    assert second.location.line == 4


@pytest.mark.parametrize("text", ["who wrote  emma?", "Who wrote Emma", "Who wrote “Emma”?", "Who\nwrote Emma ?"])
def test_case_white_space_and_punctuation_make_no_other_question(tmp_path, text):
    assert find(tmp_path, [row("Who wrote Emma?", "Jane Austen"), row(text, "Jane Austen")]) == [("duplicate", 3)]


@pytest.mark.parametrize(
    ("one", "two"),
    [("(1+2)*3?", "1+(2*3)?"), ("12 - 5?", "12 + 5?"), ("10² ?", "102 ?"), ("f.x or f?", "fx or f?"), ("1.5?", "15?")],
)
def test_signs_brackets_and_points_in_numbers_do(tmp_path, one, two):
    assert find(tmp_path, [row(one, "9"), row(two, "7")]) == []


def test_another_gold_is_a_contradiction(tmp_path):
    rows = [row("Largest moon?", "Ganymede"), row("Largest moon?", "Titan")]
    path = write(tmp_path / "rows.jsonl", rows)
    (problem,) = lint(formats.load(path), str(path))
    assert (problem.code, problem.severity, problem.location.line) == ("different-golds", "warning", 3)
    assert (
        problem.message == 'id "q3": the question of line 2 (id "q2") with another gold: "Titan", and there "Ganymede"'
    )


def test_accepted_answers_contradict_one_another_only_if_none_is_common(tmp_path):
    rows = [row("Capital of the US?", "Washington", "Washington, D.C."), row("Capital of the US?", "washington")]
    assert find(tmp_path, rows) == [("duplicate", 3)]


def test_options_are_right_or_wrong_all_of_them(tmp_path):
    options = ("2", "3", "4")
    rows = [row("Which are even?", "2", "4", options=options), row("Which are even?", "2", options=options)]
    assert find(tmp_path, rows, method="multiple_choice_joint") == [("different-golds", 3)]


def test_options_in_another_order_are_the_same_options(tmp_path):
    rows = [row("Even?", "2", options=("2", "3")), row("Even?", "2", options=("3", "2"))]
    assert find(tmp_path, rows, method="multiple_choice_joint") == [("duplicate", 3)]


def test_other_options_make_another_question(tmp_path):
    rows = [
        row("Which is a fruit?", "fig", options=("fig", "oak")),
        row("Which is a fruit?", "plum", options=("plum", "elm")),
    ]
    assert find(tmp_path, rows, method="multiple_choice_joint") == []


def test_a_train_row_that_is_evaluated_too_is_a_leak_at_the_evaluated_row(tmp_path):
    for splits in (("train", "test"), ("test", "train")):
        rows = [row("Who wrote Emma?", "Jane Austen", split=split) for split in splits]
        assert find(tmp_path, rows) == [("leak", 2 + splits.index("test"))]


def test_copies_within_the_train_split_are_duplicates(tmp_path):
    rows = [row("Who wrote Emma?", "Jane Austen", split="train")] * 2 + [row("What is 2 + 2?", "4")]
    assert find(tmp_path, rows) == [("duplicate", 3)]


def test_copies_in_two_evaluated_splits_name_the_split(tmp_path):
    rows = [row("Who wrote Emma?", "Jane Austen", split="valid"), row("Who wrote Emma?", "Jane Austen")]
    path = write(tmp_path / "rows.jsonl", rows)
    (problem,) = lint(formats.load(path), str(path))
    assert 'line 2 (id "q2"), a row of the valid split, with the same gold' in problem.message


def test_conversations_are_compared_turn_by_turn(tmp_path):
    ask = [{"role": "user", "content": "Hi there!"}]
    go_on = [*ask, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Hi there!"}]
    rows = [row("", "x", messages=ask), row("", "x", messages=go_on), row("", "x", messages=ask)]
    assert find(tmp_path, rows, method="chat") == [("duplicate", 4)]


def test_rows_of_a_document_are_named_by_their_place_and_their_line(tmp_path):
    instances = [{"id": name, **row("Who wrote Emma?", "Jane Austen")} for name in "ab"]
    path = tmp_path / "rows.json"
    document = {"adapter_spec": {"max_train_instances": 0}, "request_states": [{"instance": one} for one in instances]}
    path.write_text(json.dumps(document, indent=1))
    lines = path.read_text().splitlines()
    first, second = (number for number, line in enumerate(lines, 1) if '"instance"' in line)
    (problem,) = lint(formats.load(path), str(path))
    assert (problem.location.line, problem.location.field) == (second, "request_states[1].instance")
    assert f'request_states[0].instance (id "a"), with the same gold (line {first})' in problem.message
