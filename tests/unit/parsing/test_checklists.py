"""A completion that goes through the options and marks each as right or wrong."""

from __future__ import annotations

import pytest

from helm_ext.parsing import read_label, read_labels
from helm_ext.parsing.mentions import Mentions
from helm_ext.parsing.options import Options, get_label_set, simplify
from helm_ext.parsing.reader import read_checklist

LABELS = {"A": "zormun", "B": "kolpus", "C": "wemtin", "D": "purkol"}


def _go_through(shape, right, wrong, label):
    return "\n".join(shape.format(key, text, right if key == label else wrong) for key, text in LABELS.items())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        *(("✅", "❌"), ("✓", "✗"), ("✔️", "✘"), ("correct", "incorrect"), ("right", "wrong"), ("true", "false"), ("yes", "no")),
        *(("is correct.", "is not correct."), ("(correct)", "(incorrect)"), ("correct, it fits", "incorrect, it does not")),
        *(("richtig", "falsch"), ("correcto", "incorrecto"), ("corretta", "sbagliata"), ("vrai", "faux"), ("верно", "неверно")),
        *(("正确", "错误"), ("对", "不对"), ("正解", "不正解"), ("← answer", ""), ("(correct)", ""), ("<- correct", ""), ("✅", "")),
        ("", "❌"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", ["{}. {} {}", "{}) {}: {}", "- {}: {} {}", "**{}** {} - {}"])
@pytest.mark.parametrize("label", LABELS)
def test_the_one_that_is_marked_right_is_the_answer(shape, right, wrong, label):
    assert read_label(_go_through(shape, right, wrong, label), LABELS) == label


@pytest.mark.parametrize("shape", ["{2} {0}. {1}", "- {2} {0}", "{0} {2}"])
def test_a_mark_may_stand_before_the_option_and_without_its_text(shape):
    assert read_label(_go_through(shape, "✅", "❌", "C"), LABELS) == "C"
    assert read_label(_go_through(shape, "[x]", "[ ]", "C"), LABELS) == "C" or shape == "{0} {2}"


def test_marks_on_one_line():
    assert read_label("A ❌ B ❌ C ✅ D ❌", LABELS) == "C"
    assert read_labels("A ✅ B ❌ C ✅ D ❌", LABELS) == ("A", "C")


@pytest.mark.parametrize(
    "text",
    [
        "A ✅ B ❌ C ✅ D ❌",  # two are right
        "A ❌ B ❌ C ❌ D ❌", "A ✅ B ✅ C ✅ D ✅",
        "A: correct\nA: incorrect\nB: correct\nB: incorrect",  # each option twice
        "A. zormun\nB. kolpus\nC. wemtin\nD. purkol",
    ],
)  # fmt: skip
def test_a_list_that_does_not_mark_one_means_none(text):
    assert read_label(text, LABELS) is None


def test_what_is_said_outside_of_the_list_counts_too():
    marked = _go_through("{}. {} {}", "✅", "❌", "B")
    assert read_label(f"{marked}\n\nSorry, I meant C.", LABELS) == "C"
    assert read_label(f"The answer is B.\n\n{marked}", LABELS) == "B"
    assert read_label(f"The answer is D.\n\n{marked}", LABELS) is None


def test_options_that_are_themselves_such_words_are_no_marks():
    assert read_label("A - No\nB - Yes", {"A": "Yes", "B": "No"}) is None


def mentions(text, labels=LABELS):
    return Mentions(Options(get_label_set(tuple(labels)), labels), simplify(text))


def shown(found):
    """Where the list begins and ends, and the labels that it marks as right."""
    return None if found is None else (found[0], found[1], "".join(sorted(found[2])))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A ✅\nB ❌\nC ❌", (0, 11, "A")), ("So:\nA ✅\nB ❌\nC ✅\nThat is it.", (4, 15, "AC")),
        ("A ✅\nB ❌", None),  # too few of four
        ("A ❌\nB ❌\nC ❌", (0, 11, "")),  # D may be meant, but is not named
        ("A ❌\nB ❌\nC ❌\nD", (0, 13, "D")),
        ("A ❌\nB ❌\nC\nD", None),  # two are left
        ("A ✅\nB ✅\nC ✅", (0, 11, "")),
        ("A: right\nB: right\nC: right", None),  # words and no marks: prose
        ("A ✅\nB ❌\nC ❌\nA ❌", None),  # twice
        ("A\nB\nC\nD", None),
    ],
)  # fmt: skip
def test_lists(text, expected):
    assert shown(read_checklist(mentions(text))) == expected


def test_a_list_of_two_options_is_all_of_them():
    two = {"A": "zormun", "B": "kolpus"}
    assert shown(read_checklist(mentions("A ✅\nB ❌", two))) == (0, 7, "A")
    assert shown(read_checklist(mentions("A\nB ❌", two))) == (0, 5, "A")
    assert shown(read_checklist(mentions("B ❌", two))) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ('{"A": 0.05, "B": 0.85, "C": 0.06, "D": 0.04}', "B"), ("A: 10%, B: 75%", "B"), ("A (20%), B (60%)", "B"),
        ("zormun – 30%\nkolpus – 5%\nwemtin – 65%", "C"), ("| A | 0.1 |\n| B | 0.7 |", "B"),
        ("P(A) = .2, P(B) = .8", "B"), ("A: 2/10, B: 9/10", "B"), ('{"A": 3, "B": 4, "C": 90, "D": 3}', "C"),
        ("A: 10%, B: 75%. So the answer is A.", "A"), ("A. Incorrect B. Correct", "B"), ("A ✗ B ✓", "B"),
        ("A: 45%, B: 45%", None),  # two are largest
        ("A. Incorrect B. Incorrect", None), ("B ❌", None), ("A) B) C) D)", None),
        ('{"A": 3, "B": 4}', None),  # may count anything
        ("A: true, B: false", None),  # statements that hold, not all of the options
    ],
)  # fmt: skip
def test_ratings(text, label):
    assert read_label(text, LABELS) == label


def test_numbers_that_are_options_are_no_chances():
    assert read_label("A: 25%, B: 75%", {"A": "25%", "B": "75%"}) is None
