"""What a judgement is, what is wrong with one, and when it is stale."""

import hashlib
import json

import pytest

from helm_ext.judging.judgement import (
    Judgement,
    bind,
    judge_values,
    judged_digest,
    read_judgements,
    take_judgements,
)
from helm_ext.scoring.corrected_scores import see

QUESTION, ANSWERS = "What is the capital of France?", ["Paris", "Rome"]
WHOLE = {
    "by": "openai/gpt-4o", "kind": "model", "criterion": "correct", "value": 1.0, "scale": {"min": 0, "max": 5},
    "status": "ok", "order": "swapped", "completion": 1, "other": "Milan", "reply": "GRADE: C", "thinking": "hm",
    "prompt_sha256": "ab", "rubric_sha256": "cd", "params": {"temperature": 0.0}, "model_version": "gpt-4o-2024-08-06",
    "tokens": {"in": 210, "out": 4}, "cost": 0.001, "at": "2026-11-01T10:00:00+00:00",
    "drawn": {"design": "by_verdict", "stratum": "0", "p": 0.25},
}  # fmt: skip
DRAWN = 'expected an object, as {"design": "random", "stratum": "", "p": 0.1}; p is above 0 and at most 1'


def read(given: object) -> tuple[list[Judgement], list[tuple[object, ...]]]:
    found: list[tuple[object, ...]] = []
    return read_judgements(given, lambda where, message, hint: found.append((where, message, hint))), found


def test_all_of_a_judgement_comes_back() -> None:
    [judgement], problems = read([WHOLE])
    assert problems == []
    written = judgement.to_json()
    assert {key: value for key, value in WHOLE.items() if written.get(key) != value} == {"status": "ok"}  # the default


@pytest.mark.parametrize(("change", "place", "message", "hint"), [
    ({"criterium": "x"}, "criterium", "unknown key", "did you mean 'criterion'?"),
    ({"value": "yes"}, "value", 'expected a number, got "yes"', ""),
    ({"by": 7}, "by", "expected a name, got 7", ""), ({"by": " "}, "by", 'expected a name, got " "', ""),
    ({"kind": "robot"}, "kind", 'expected "model" or "human", got "robot"', ""),
    ({"status": "unparsd", "value": None}, "status", 'unknown status "unparsd"', "did you mean 'unparsed'?"),
    ({"status": "stale", "value": None}, "status", 'unknown status "stale"', ""),
    ({"status": "unparsed"}, "value", "1.0 with status unparsed", "only ok has a value"),
    ({"value": None}, "value", "null with status ok", ""),
    ({"value": 0.5, "scale": [0, 1]}, "value", "0.5 is not on the scale [0.0, 1.0]", ""),
    ({"value": 6}, "value", '6 is not on the scale {"min": 0.0, "max": 5.0}', ""),
    ({"scale": [1]}, "scale", "expected at least two values, the lowest first, got [1]", ""),
    ({"order": "AB"}, "order", 'expected given or swapped, got "AB"', ""),
    ({"completion": -1}, "completion", "expected the number of the completion, counted from 0, got -1", ""),
    ({"drawn": {"design": "random", "p": 0}}, "drawn", DRAWN + """, got {"design": "random", "p": 0}""", ""),
])  # fmt: skip
def test_what_is_wrong_is_said_with_place_value_and_hint(
    change: dict[str, object], place: str, message: str, hint: str
) -> None:
    found, problems = read([WHOLE, {**WHOLE, **change}])
    assert len(found) == 1
    [(where, said, told)] = problems
    assert isinstance(where, tuple)
    assert (where[0], where[-1], said) == (1, place, message)
    assert hint in str(told)


def test_no_list_and_what_is_missing_are_said() -> None:
    assert read({"by": "x"})[1][0][1] == 'expected a list, got {"by": "x"}'
    assert [(where, message) for where, message, _ in read([{"value": 1}])[1]] == [
        ((0, "by"), "missing"), ((0, "kind"), "missing"), ((0, "criterion"), "missing"),
    ]  # fmt: skip


def test_the_digest_is_that_of_the_canonical_list() -> None:
    told = json.dumps(["Q", "A", "r", None, "GRADE: C"], separators=(",", ":"))
    assert judged_digest("Q", "A", "r", reply="GRADE: C") == hashlib.sha256(told.encode()).hexdigest()
    assert judged_digest("Q", "<think>hm</think>\nA", "r") == judged_digest("Q", "A", "r")
    assert judged_digest("Q", "A", "r") != judged_digest("Q", "A ", "r")
    assert len(judged_digest("\ud800", "A", "r")) == 64  # half a surrogate, as JSON can have it


def bound(**change: object) -> dict[str, object]:
    plain: dict[str, object] = {
        "by": "j", "kind": "model", "criterion": "correct", "value": 1.0, "rubric_sha256": "r", "reply": "C",
    }  # fmt: skip
    [judgement] = read([{**plain, **change}])[0]
    return bind(judgement, QUESTION, ANSWERS).to_json()


@pytest.mark.parametrize(("change", "question", "answers"), [
    ({}, QUESTION + " ", ANSWERS), ({}, QUESTION, ["Paris.", "Rome"]), ({}, QUESTION, []),
    ({"reply": "I"}, QUESTION, ANSWERS), ({"rubric_sha256": "r2"}, QUESTION, ANSWERS),
], ids=["question", "answer", "no-answer", "reply", "rubric"])  # fmt: skip
def test_exactly_what_was_changed_is_stale(change: dict[str, object], question: str, answers: list[str]) -> None:
    rows = [bound(), bound(by="k", completion=1, criterion="other")]
    assert [one.status for one in take_judgements(rows, QUESTION, ANSWERS)] == ["ok", "ok"]
    first, second = take_judgements([{**rows[0], **change}, rows[1]], question, answers)
    assert (first.status, first.value) == ("stale", None)
    is_of_both = question != QUESTION or not answers
    assert second.status == ("stale" if is_of_both else "ok")


def test_a_later_judgement_of_the_same_judge_replaces_the_earlier_one() -> None:
    rows = [bound(), bound(value=0.0, reply="I"), bound(by="k"), bound(order="swapped")]
    assert [one.status for one in take_judgements(rows, QUESTION, ANSWERS)] == ["replaced", "ok", "ok", "ok"]


def test_a_judge_that_was_asked_twice_in_one_order_says_what_it_said_last() -> None:
    """The mean of 0 (given, the later one) and 1 (swapped), not of all three; and the later one keeps its place."""
    rows = [bound(order="given"), bound(order="swapped"), bound(order="given", value=0.0, reply="I")]
    taken = take_judgements(rows, QUESTION, ANSWERS)
    assert [one.status for one in taken] == ["replaced", "ok", "ok"]
    assert judge_values(taken) == {"j": 0.5}
    assert see(taken).verdict == 0.5


def test_another_value_read_in_the_same_reply_is_not_stale() -> None:
    """Replies may be read again with another parser."""
    assert take_judgements([{**bound(), "value": 0.0}], QUESTION, ANSWERS)[0].value == 0.0
