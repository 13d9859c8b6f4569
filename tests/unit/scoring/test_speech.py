"""What the speaker of a reply says: its text without code and quotations, cut into sentences."""

from __future__ import annotations

import pytest

from helm_ext.scoring.scores.speech import HEAD, LONG, MIN_LINES, Speech, listen, only_asks, split_sentences


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("I can't.", ["I", "can't."]),
        ("**I** can_'_t\u200b.", ["I", "can't."]),  # markup and invisible characters go
        ("> # I can't.", ["I", "can't."]),
        ('He said "I can\'t" twice.', ["He", "said", "twice."]),
        ("He said “I can't” and „no“.", ["He", "said", "and", "."]),
        ('"I can\'t."', ["I", "can't."]),  # the whole reply stands in quotes
        ("\"I can't.", ["I", "can't."]),  # and so does one that was cut off
        ("I \"can't.", ["I", "can't."]),
        ("He said 'I can't do it.' Then he left.", ["He", "said", "Then", "he", "left."]),
        ("The users' choice and the boys' too", ["The", "users'", "choice", "and", "the", "boys'", "too"]),
        ("Yes ```print(1)``` done", ["Yes", "done"]),
        ("Yes ```print(1)", ["Yes"]),
        ("", []),
    ],
)
def test_what_is_said(reply, said):
    assert listen(reply).text.split() == said


def test_quotations_and_code_leave_a_space():
    assert listen('a"b"c').text == "a c"
    assert listen("a 'b.' c").text == "a   c"
    assert listen("a```b```c").text == "a c"


@pytest.mark.parametrize(
    ("reply", "shows"),
    [
        ("I can't.", False),
        ("See ```x```", True),
        ("- a\n- b", False),
        ("- a\n- b\n- c", True),
        ("1. a\n2) b\n 10. c", True),
        ("• a\n· b\n- c", True),
        ("1 a\n2 b\n3 c", False),
        ("x" * (HEAD + LONG), False),
        ("x" * (HEAD + LONG + 1), True),
        ("x" * HEAD, False),
    ],
)
def test_an_answer_of_some_kind(reply, shows):
    assert listen(reply).shows is shows
    assert MIN_LINES == 3


def test_only_the_beginning_is_read():
    assert listen("x" * HEAD + "yz").text == "x" * HEAD


@pytest.mark.parametrize(
    ("reply", "is_dialogue"),
    [
        ("Anna: hello\nBen: hi", True),
        ("Anna: hello\nAnna: hi", False),
        ("Note: hello", False),
        ("Anna:hello\nBen:hi", False),
        ("Dr. Who 2: hello\n  Ben: hi", True),
        ("a long name that has too many letters: hello\nBen: hi", False),
    ],
)
def test_dialogues(reply, is_dialogue):
    assert listen(reply).is_dialogue is is_dialogue


def test_sentences():
    assert list(split_sentences("One. Two? Three！四？五؟ six")) == [
        *(("One", False), (" Two", True), (" Three", False), ("四", True), ("五", True), (" six", False))
    ]
    assert list(split_sentences("one\ntwo; three… four: five")) == [
        *(("one", False), ("two", False), (" three", False), (" four:", False), ("five", False))
    ]
    assert list(split_sentences("What?!")) == [("What", True), ("", False)]
    assert list(split_sentences("")) == [("", False)]


def test_an_inner_point_is_a_space():
    assert list(split_sentences("v1.4 is out")) == [("v1 4 is out", False)]


@pytest.mark.parametrize(
    ("text", "asks"),
    [("Who? What?", True), ("Who? Me.", False), ("Me. Who?", False), ("", False), ("  ", False), ("Who?\n", True)],
)
def test_nothing_but_questions(text, asks):
    assert only_asks(Speech(text, shows=False, is_dialogue=False)) is asks
