"""A completion that goes through the options and marks each as right or wrong."""

from __future__ import annotations

import time

import pytest

from helm_ext.parsing import read_label, read_labels

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
        "A ❌ B ❌ C ❌ D ❌",
        "A ✅ B ✅ C ✅ D ✅",
        "A: correct\nA: incorrect\nB: correct\nB: incorrect",  # each option twice
        "A. zormun\nB. kolpus\nC. wemtin\nD. purkol",
    ],
)
def test_a_list_that_does_not_mark_one_means_none(text):
    assert read_label(text, LABELS) is None


def test_what_is_said_outside_of_the_list_counts_too():
    marked = _go_through("{}. {} {}", "✅", "❌", "B")
    assert read_label(f"{marked}\n\nSorry, I meant C.", LABELS) == "C"
    assert read_label(f"The answer is B.\n\n{marked}", LABELS) == "B"
    assert read_label(f"The answer is D.\n\n{marked}", LABELS) is None


def test_options_that_are_themselves_such_words_are_no_marks():
    assert read_label("A - No\nB - Yes", {"A": "Yes", "B": "No"}) is None


@pytest.mark.parametrize("text", ["A ❌ " * 20_000, "A. ✅\n" * 20_000, "✅" * 50_000, "[" * 50_000, "A (" * 30_000])
def test_hostile_lists_are_read_in_time(text):
    begin = time.process_time()
    read_label(text, LABELS)
    assert time.process_time() - begin < 2
