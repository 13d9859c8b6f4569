"""Which options a completion of a multiple-choice row names: one, several, or those of a list."""

from __future__ import annotations

import pytest

from helm_ext.parsing import read_choice

CITIES = {"A": "London", "B": "Paris", "C": "Rome; Italy", "D": "Berlin"}


def test_one_is_asked_for():
    assert read_choice("The answer is B.", CITIES) == ["B"]
    assert read_choice("Paris", CITIES) == ["B"]
    assert read_choice("A and B", CITIES) == [None]
    assert read_choice("no idea", CITIES) == [None]


def test_all_that_are_right_are_asked_for():
    assert read_choice("A and B", CITIES, multi_label=True) == ("A", "B")
    assert read_choice("no idea", CITIES, multi_label=True) == ()


def test_a_pattern_overrides_the_reading():
    assert read_choice("A. My choice: (D)", CITIES, r"\((\w)\)") == ["D"]
    assert read_choice("A. My choice: (D)", CITIES, r"\[(\w)\]") == [None]
    assert read_choice("My choices: (A, D)", CITIES, r"\((.*)\)", multi_label=True) == ("A", "D")
    assert read_choice("(A);A: (D);x", CITIES, r"\((\w)\)", is_list=True) == ["A", "D", None]


def test_a_list():
    assert read_choice("A; Berlin;x", CITIES, is_list=True) == ["A", "D", None]
    assert read_choice("A;B", CITIES) == [None]
    assert read_choice("A|B", CITIES, is_list=True, separator="|") == ["A", "B"]
    assert read_choice("A;B", CITIES, is_list=True, separator="|") == [None]
    assert read_choice("", CITIES, is_list=True) == []


def test_the_text_of_an_option_may_hold_the_separator():
    assert read_choice(" Rome; Italy\n", CITIES, is_list=True) == ["C"]
    assert read_choice("Rome; Italy", {"A": "London", "B": " Rome; Italy "}, is_list=True) == ["B"]
    assert read_choice("Rome; Italy", {"A": "London", "B": "Rome"}, is_list=True) == ["B", None]


def test_a_list_of_which_all_that_are_right_are_asked_for():
    assert read_choice("A, D", CITIES, is_list=True, multi_label=True) == ("A", "D")
    assert read_choice("A; D", CITIES, is_list=True, multi_label=True) == ["A", "D"]
    assert read_choice("A, D", CITIES, is_list=True) == [None]


@pytest.mark.parametrize("several", [True, False])
def test_helms_own_rule(several):
    options = {"A": "London", "B": "Paris"}
    assert read_choice(" B\n", options, is_exact=True, multi_label=several) == ["B"]
    assert read_choice("B.", options, is_exact=True, multi_label=several) == []
    assert read_choice("Paris", options, is_exact=True, is_list=True) == []
    assert read_choice(" x: B\n", options, r"^x: (\w)$", is_exact=True) == ["B"]
    assert read_choice("B", options, r"x: (\w)", is_exact=True) == []


def test_a_pattern_that_is_none():
    with pytest.raises(ValueError, match="not a regular expression"):
        read_choice("B", CITIES, "(")
