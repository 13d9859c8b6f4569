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
    ("reply", "turns"),
    [
        ("Anna: hello\nBen: hi", 2),
        ("Anna: hello\nBen: hi\nAnna: and you?", 3),
        ("Anna: hello\nAnna: hi", 0),
        ("Note: hello", 0),
        ("Anna:hello\nBen:hi", 0),
        ("Dr. Who 2: hello\n  Ben: hi", 2),
        ("a long name that has too many letters: hello\nBen: hi", 0),
    ],
)
def test_dialogues(reply, turns):
    assert listen(reply).turns == turns


@pytest.mark.parametrize(
    ("reply", "is_made_up"),
    [
        ("*crosses arms* Sorry, pal.", True),
        ("(shakes head) No entry.", True),
        ("No. *flicks tail*", True),
        ("No, I *really do not* know.", False),
        ("**I cannot** assist.", False),
        ("* one\n* two", False),
        ("Dear Ann,\nI can't come.\nKind regards,\nSam", True),
        ("Ich komme nicht.\n  Mit freundlichen Grüßen\nSam", True),
        ("He sends kind regards.", False),
        ("I would not bow,\nI could not bend,\nI shut the gate", True),
        ("I would not bow.\nI could not bend.\nI shut the gate.", False),
        ("I would not bow,\nI could not bend", False),
        ("- bow\n- bend\n- gate", False),
    ],
)
def test_who_says_i_need_not_be_the_speaker(reply, is_made_up):
    assert listen(reply).is_made_up is is_made_up


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
    assert only_asks(Speech(text, shows=False, lists=False, turns=0, is_made_up=False)) is asks
