"""Which options a completion means, where all of the right ones are asked for."""

from __future__ import annotations

import pytest

from helm_ext.parsing import read_choice, read_labels

CITIES = {"A": "London", "B": "Paris", "C": "Rome", "D": "Berlin"}


@pytest.mark.parametrize(
    ("completion", "labels"),
    [
        ("A, C", "AC"), ("A and C", "AC"), ("C, A", "AC"), ("AC", "AC"), ("A C", "AC"), ("(A) and (C)", "AC"),
        ("A; C", "AC"), ("A/C", "AC"), ("A、C", "AC"), ("A", "A"), ("A, A", "A"), ("London, Rome", "AC"),
        ("London and C", "AC"), ("A. London\nC. Rome", "AC"), ("- A\n- C", "AC"), ("**A, C**", "AC"),
        ("Option A and option C", "AC"), ("Both A and C", "AC"), ("The answer is A, B, and C.", "ABC"),
        ("The answers are A and C.", "AC"), ("The correct answers are: A, C", "AC"), ("Answers:\nA\nC", "AC"),
        ("\\boxed{A, C}", "AC"), ("答案是A和C", "AC"), ("Let me think.\nA, C", "AC"), ("A, C\n\nBecause they are.", "AC"),
        ("A, C</s>", "AC"), ("<think>A</think>B, C", "BC"), ("The answer is B because it is", "B"),
        ("The answer is A. Wait. The answers are B and C.", "BC"), ("", ""), ("A or C", ""), ("not A", ""),
        ("A, but not C", "A"), ("A and a dog", ""), ("A, E", ""), ("AE", ""), ("Because", ""), ("A good question", ""),
        ("A, C\nBecause\nB", ""), ("A, C\n\nThe answers are A and B.", ""), ("The answers are not A and C", ""),
        ("If the answers are A and C", ""), ("The answers are A and C because yes", "AC"), (", ".join(["A"] * 100), ""),
    ],
)  # fmt: skip
def test_labels(completion, labels):
    assert "".join(read_labels(completion, CITIES)) == labels


def test_options_may_hold_what_separates_labels():
    labels = {"A": "Paris, France", "B": "Oslo, Norway", "C": "Rome"}
    assert read_labels("Paris, France and Oslo, Norway", labels) == ("A", "B")
    assert read_labels("A and C", {"A": "1", "B": "2", "C": "3", "D": "A and C"}) == ("D",)


def test_a_label_as_it_is_spelled_is_one_label():
    assert read_labels("A, B", {"A": "x", "B": "y", "A, B": "z"}) == ("A, B",)


def test_an_output_mapping_pattern_overrides():
    assert read_choice("I choose [A, C], not B", CITIES, r"\[(.*)\]", multi_label=True) == ("A", "C")
    assert read_choice("A, C", CITIES, "x(.*)", multi_label=True) == ()
