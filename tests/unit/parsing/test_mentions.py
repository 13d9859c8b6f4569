"""Where options are named: the option, where it begins and ends, and whether what follows lets it be named there."""

from __future__ import annotations

import pytest

from helm_ext.parsing.mentions import Mentions
from helm_ext.parsing.options import Options, get_label_set, simplify

LABELS = {"A": "zormun", "B": "kolpus", "C": "wemtin", "D": "purkol"}


def mentions(text, labels=LABELS):
    return Mentions(Options(get_label_set(tuple(labels)), labels), simplify(text))


def items_at(text, place=0, labels=LABELS):
    """The labels of the options that are named at a place, in their order: "" where they are unclear."""
    read = mentions(text, labels).read_items(place)
    return None if read is None else "".join(sorted(read[0]))


# Labels


# Texts


# Options that are named together


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", "B"), ("B and C", "BC"), ("B, C", "BC"), ("B, C and D", "BCD"), ("B., C.", "BC"), ("B & C", "BC"),
        ("B/C", "BC"), ("B + C", "BC"), ("(B) and (C)", "BC"), ("both kolpus", None), ("kolpus and wemtin", "BC"),
        ("kolpus, wemtin", "BC"), ("B and also C", "BC"), ("B, and maybe C", ""), ("B or C", ""),
        ("B or kolpus", "B"),  # the same one
        ("B 或 C", ""), ("B、C", "BC"), ("B、E", None), ("B、C good", ""),
        ("B and E", ""),  # a label of no option
        ("B and everything", None), ("B\nC", "BC"), ("B\n- C", "BC"), ("B\nC is nice", "B"), ("A good question", None),
        ("A, for one, like it", None), ("kolpus kolpus", None),
    ],
)  # fmt: skip
def test_options_named_together(text, expected):
    assert items_at(text) == expected


def test_words_of_one_letter_between_options_are_labels_where_there_are_such():
    assert items_at("B y C") == "BC"
    assert items_at("B o C") == items_at("B, o C") == ""
    assert items_at("B o kolpus") == "B"
    assert items_at("B y C", labels={**LABELS, "Y": "x"}) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B. kolpus", "B"), ("B. wemtin", ""), ("B - wemtin", ""), ("B. wemtin. It lies north.", ""), ("B. C", ""),
        ("B. B", "B"), ("B. wemtin is north of it", "B"), ("B: it is not wemtin", "B"),
        ("B\nwemtin is north of it", "B"),
    ],
)  # fmt: skip
def test_a_label_with_another_options_text(text, expected):
    assert items_at(text) == expected


def test_the_same_text_of_another_label_contradicts_nothing():
    twice = {"A": "kolpus", "B": "kolpus", "C": "wemtin"}
    assert items_at("B. kolpus", labels=twice) == "B"
    assert items_at("A. B", labels=twice) == "A"
    assert items_at("A. C", labels=twice) == ""


def test_a_label_with_another_options_long_text():
    long = {"A": " ".join(["red"] * 40), "B": " ".join(["blue"] * 40)}
    assert items_at(f"B. {long['A']}", labels=long) == ""
    assert items_at(f"B. {long['B']}", labels=long) == "B"


@pytest.mark.parametrize(
    ("text", "place"),
    [("- B", 2), ("1. B", 3), ("(2) B", 4), ("** B", 0), ("-B", 0), ("B. C", 0), ("x", 0), ("• B", 2)],
)
def test_the_mark_of_a_list(text, place):
    assert mentions(text).skip_list_mark(0) == place


def test_the_number_of_a_list_may_be_a_label():
    assert mentions("1. B", {"1": "zormun", "2": "kolpus"}).skip_list_mark(0) == 0
