"""Which options a completion of a multiple-choice row names: one, several, or those of a list."""

import pytest

from helm_ext.parsing import read_choice, read_labels

PLACES = {"A": "London", "B": "Paris", "C": "Rome; Italy", "D": "Berlin"}


def test_one_is_asked_for():
    assert read_choice("The answer is B.", PLACES) == ["B"]
    assert read_choice("Paris", PLACES) == ["B"]
    assert read_choice("A and B", PLACES) == [None]
    assert read_choice("no idea", PLACES) == [None]


def test_all_that_are_right_are_asked_for():
    assert read_choice("A and B", PLACES, multi_label=True) == ("A", "B")
    assert read_choice("no idea", PLACES, multi_label=True) == ()


def test_a_pattern_overrides_the_reading():
    assert read_choice("A. My choice: (D)", PLACES, r"\((\w)\)") == ["D"]
    assert read_choice("A. My choice: (D)", PLACES, r"\[(\w)\]") == [None]
    assert read_choice("My choices: (A, D)", PLACES, r"\((.*)\)", multi_label=True) == ("A", "D")
    assert read_choice("(A);A: (D);x", PLACES, r"\((\w)\)", is_list=True) == ["A", "D", None]


def test_a_list():
    assert read_choice("A; Berlin;x", PLACES, is_list=True) == ["A", "D", None]
    assert read_choice("A;B", PLACES) == [None]
    assert read_choice("A|B", PLACES, is_list=True, separator="|") == ["A", "B"]
    assert read_choice("A;B", PLACES, is_list=True, separator="|") == [None]
    assert read_choice("", PLACES, is_list=True) == []


def test_the_text_of_an_option_may_hold_the_separator():
    assert read_choice(" Rome; Italy\n", PLACES, is_list=True) == ["C"]
    assert read_choice("Rome; Italy", {"A": "London", "B": " Rome; Italy "}, is_list=True) == ["B"]
    assert read_choice("Rome; Italy", {"A": "London", "B": "Rome"}, is_list=True) == ["B", None]


def test_a_list_of_which_all_that_are_right_are_asked_for():
    assert read_choice("A, D", PLACES, is_list=True, multi_label=True) == ("A", "D")
    assert read_choice("A; D", PLACES, is_list=True, multi_label=True) == ["A", "D"]
    assert read_choice("A, D", PLACES, is_list=True) == [None]


@pytest.mark.parametrize("several", [True, False])
def test_helms_own_rule(several):
    options = {"A": "London", "B": "Paris"}
    assert read_choice(" B\n", options, is_exact=True, multi_label=several) == ["B"]
    assert read_choice("B.", options, is_exact=True, multi_label=several) == []
    assert read_choice("Paris", options, is_exact=True, is_list=True) == []
    assert read_choice(" x: B\n", options, r"^x: (\w)$", is_exact=True) == ["B"]
    assert read_choice("B", options, r"x: (\w)", is_exact=True) == []


def test_only_the_end_of_an_answer_is_cut_off_and_no_pattern_finds_half_of_one():
    said = "The question asks for a city. The oldest of them is Paris"
    assert read_choice(said, PLACES) == ["B"]
    assert read_choice(said, PLACES, is_cut_off=True) == [None]
    assert read_choice(f"{said}; {said}", PLACES, is_list=True, is_cut_off=True) == ["B", None]
    assert read_choice(said, PLACES, "(.*)", is_cut_off=True) == ["B"]


def test_a_pattern_that_is_none():
    with pytest.raises(ValueError, match="not a regular expression"):
        read_choice("B", PLACES, "(")


# All of the right ones are asked for


CITIES = {"A": "London", "B": "Paris", "C": "Rome", "D": "Berlin"}


@pytest.mark.parametrize(("completion", "labels"), [
    ("A, C", "AC"), ("A and C", "AC"), ("C, A", "AC"), ("AC", "AC"), ("A C", "AC"), ("(A) and (C)", "AC"),
    ("A; C", "AC"), ("A/C", "AC"), ("A、C", "AC"), ("A", "A"), ("A, A", "A"), ("London, Rome", "AC"),
    ("London and C", "AC"), ("A. London\nC. Rome", "AC"), ("- A\n- C", "AC"), ("**A, C**", "AC"),
    ("Option A and option C", "AC"), ("Both A and C", "AC"), ("The answer is A, B, and C.", "ABC"),
    ("The answers are A and C.", "AC"), ("The correct answers are: A, C", "AC"), ("Answers:\nA\nC", "AC"),
    ("\\boxed{A, C}", "AC"), ("答案是A和C", "AC"), ("Let me think.\nA, C", "AC"), ("A, C\n\nBecause they are.", "AC"),
    ("A, C</s>", "AC"), ("<think>A</think>B, C", "BC"), ("The answer is B because it is", "B"),
    ("The answer is A. Wait. The answers are B and C.", "BC"), ("", ""), ("A or C", ""), ("not A", ""),
    ("A, but not C", "A"), ("A and a dog", ""), ("A, E", ""), ("A ✅\nC ✅", "AC"), ("AE", ""), ("Because", ""), ("A good question", ""),
    ("A, C\nBecause\nB", ""), ("A, C\n\nThe answers are A and B.", ""), ("The answers are not A and C", ""),
    ("If the answers are A and C", ""), ("The answers are A and C because yes", "AC"), (", ".join(["A"] * 100), "A"),
])  # fmt: skip
def test_labels(completion, labels):
    assert "".join(read_labels(completion, CITIES)) == labels


def test_one_of_several_texts_is_no_answer():
    for completion in (
        "London, Paris are correct.",
        "London/Paris are correct.",
        "Options London & Paris are correct.",
    ):
        assert read_choice(completion, CITIES) == [None], completion
        assert read_labels(completion, CITIES) == ("A", "B"), completion


NUMBERED = {
    str(number): text for number, text in enumerate("red green blue grey pink teal gold navy lime plum".split(), 1)
}


@pytest.mark.parametrize(("completion", "labels"), [
    ("1,3", "1 3"), ("1, 3", "1 3"), ("(1,3)", "1 3"), ("[1,3]", "1 3"), ("1,2,10", "1 2 10"), ("1 3", "1 3"), ("13", "1 3"),
    ("The answer is 1,3.", "1 3"), ("The correct answers are 1,3 and 4.", "1 3 4"), ("\\boxed{1,3}", "1 3"), ("10", "10"),
    ("Options 6,9 are correct.", "6 9"), ("1,3,6 are correct.", "1 3 6"), ("I choose 1,2.", "1 2"), ("正解は2,3です。", "2 3"),
    ("red/grey are correct.", "1 4"), ("red, green, grey are correct.", "1 2 4"), ("After some thought: 1; 3", "1 3"),
    ("1,300", ""), ("1,30", ""), ("$1,3 million", ""),
])  # fmt: skip
def test_labels_that_are_numbers(completion, labels):
    assert " ".join(read_labels(completion, NUMBERED)) == labels


@pytest.mark.parametrize("completion", ["Paris or Rome? Rome.", "A or C?\n\nC", "London or Rome?\nRome"])
def test_a_question_that_is_answered_names_no_options(completion):
    assert read_labels(completion, CITIES) == ("C",)


def test_options_may_hold_what_separates_labels():
    labels = {"A": "Paris, France", "B": "Oslo, Norway", "C": "Rome"}
    assert read_labels("Paris, France and Oslo, Norway", labels) == ("A", "B")
    assert read_labels("A and C", {"A": "1", "B": "2", "C": "3", "D": "A and C"}) == ("D",)


def test_a_label_as_it_is_spelled_is_one_label():
    assert read_labels("A, B", {"A": "x", "B": "y", "A, B": "z"}) == ("A, B",)


def test_an_output_mapping_pattern_overrides():
    assert read_choice("I choose [A, C], not B", CITIES, r"\[(.*)\]", multi_label=True) == ("A", "C")
    assert read_choice("A, C", CITIES, "x(.*)", multi_label=True) == ()
