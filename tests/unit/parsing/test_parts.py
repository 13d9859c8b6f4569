"""The parts that reading a completion is made of, one at a time. What they are for is in `helm_ext.parsing.labels`."""

from __future__ import annotations

import pytest

from helm_ext.parsing import read_label, read_labels
from helm_ext.parsing.options import Options, get_label_set

LABELS = {"A": "zormun", "B": "kolpus", "C": "wemtin", "D": "purkol"}
LOGIC = {"A": "entailment", "B": "neutral", "C": "contradiction"}


def make_options(labels):
    return Options(get_label_set(tuple(labels)), labels)


# Rules 1 and 2: nothing but a label or a text


@pytest.mark.parametrize("spelled", ["B", "B.", "(B)", "[B]", "(B).", " B\n"])
def test_a_label_goes_before_the_same_text(spelled):
    assert read_label(spelled, {"A": spelled.strip(), "B": "x"}) == ("B" if spelled.strip() != "A" else "A")


@pytest.mark.parametrize("spelled", ["B", "B.", "B..", "(B.)", "(B)", "**B.**", "B.\nIt fits best."])
def test_a_decorated_label_goes_before_another_options_text(spelled):
    assert read_label(spelled, {"A": "x", "B": "y", "C": "B"}) == "B"


def test_a_mismatched_pair_of_brackets_is_no_pair():
    assert read_label("(B]", {"A": "x", "B": "y", "C": "(B]"}) == "C"
    assert read_label("{B)", {"A": "x", "B": "y", "C": "{B)"}) == "C"


def test_the_same_text_twice_names_the_label_that_stands_before_it():
    options = {"A": "the Nile", "B": "the Nile", "C": "Rhine"}
    assert read_label("the Nile", options) == "A"
    assert read_label("B. the Nile", options) == "B"
    assert read_label("B. Nile", options) == "B"  # without the article
    assert read_label("The answer is B. Nile", options) == "B"


# Decoration


def test_options_read_alone():
    options = make_options({"A": "5", "B": "$5", "C": "3.5", "D": "Yes!"})
    assert [options.read_alone(text) for text in ("$5", "5", "(5)", "3.5", "yes", "yes!", "**d**", "4")] == [
        *("B", "A", "A", "C", "D", "D", "D", None)
    ]


# Where options are named


@pytest.mark.parametrize("text", ["B ✅ because it fits.", "So B ✅", "B ✅", "B  ✔ it is"])
def test_a_symbol_may_follow(text):
    assert read_label(text, LABELS) == "B"


@pytest.mark.parametrize("label", "ACI")
def test_a_letter_behind_a_label_makes_a_word_in_any_script_with_spaces(label):
    labels = dict.fromkeys("ABCDEFGHI", "")
    labels = {key: f"text {number}" for number, key in enumerate(labels)}
    assert read_label(f"The answer is {label}, for it is small.", labels) == label
    assert read_label(f"The answer is {label}nd so on", labels) is None
    assert read_label(f"答案是{label}因为", labels) == label
    assert read_label(f"正解は{label}です", labels) == label
    assert read_label(f"정답은 {label}입니다", labels) == label


def test_an_article_may_stand_before_a_text():
    assert read_label("This is an entailment\nA", LOGIC) == "A"
    assert read_label("This is an entailment\nB", LOGIC) is None  # two answers
    assert read_label("The answer is: the zormun", LABELS) == "A"
    assert read_label("Both the zormun and the wemtin", LABELS) is None
    assert read_labels("the zormun, the wemtin", LABELS) == ("A", "C")


@pytest.mark.parametrize("text", ["it's D?", "Answer: I think it is D?", "Label: purkol?", "The answer is D?"])
def test_what_is_asked_is_no_answer(text):
    assert read_label(text, LABELS) is None


@pytest.mark.parametrize("mark", [". ", ") ", ": ", ".", ")", " - "])
@pytest.mark.parametrize("first", LABELS)
def test_who_lists_options_answers_nothing(mark, first):
    other = "A" if first != "A" else "C"
    assert read_label(f"{first}, {LABELS[first]}; {other}{mark}{LABELS[other]}", LABELS) is None
    assert read_label(" ".join(f"{label}{mark}{text}" for label, text in LABELS.items()), LABELS) is None


@pytest.mark.parametrize("between", ["\n", "\n\n", "\n\n\n", "\nOption "])
def test_who_goes_on_with_another_option_on_a_later_line_answers_nothing(between):
    assert read_label(f"A, because it is nice{between}B. It is nice too", LABELS) is None
    assert read_label(f"A, because it is nice{between}A. It is nice", LABELS) == "A"


def test_the_mark_at_the_end_of_a_long_line_of_a_list():
    lines = ["A. zormun", "B. kolpus", "C. wemtin, which has six letters (correct)", "D. purkol"]
    assert read_label("\n".join(lines), LABELS) == "C"
    lines[2] = "C. wemtin" + ", which has six letters and not seven" * 3 + " (correct)"
    assert read_label("\n".join(lines), LABELS) == "C"


# Thinking, and patterns
