"""Where options are named: the option, where it begins and ends, and whether what follows lets it be named there."""

from __future__ import annotations

import pytest

from helm_ext.parsing.mentions import Item, Mentions
from helm_ext.parsing.options import Options, get_label_set, simplify

LABELS = {"A": "zormun", "B": "kolpus", "C": "wemtin", "D": "purkol"}
NUMBERS = {"A": "3", "B": "-3", "C": "18", "D": "3.5"}


def mentions(text, labels=LABELS):
    return Mentions(Options(get_label_set(tuple(labels)), labels), simplify(text))


def label_at(text, place=0, labels=LABELS):
    """The label at a place: it, where it begins, where its stem and where all of it ends; None where there is none."""
    item = mentions(text, labels).find_label(place)
    return None if item is None else (item.label, item.start, item.stem, item.end)


def text_at(text, place=0, labels=LABELS):
    """The option whose text stands at a place, likewise."""
    item = mentions(text, labels).find_text(place)
    return None if item is None else (item.label, item.start, item.stem, item.end)


def items_at(text, place=0, labels=LABELS):
    """The labels of the options that are named at a place, in their order: "" where they are unclear."""
    read = mentions(text, labels).read_items(place)
    return None if read is None else "".join(sorted(read[0]))


# Labels


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", ("B", 0, 1, 1)),
        (" B", ("B", 1, 2, 2)),
        ("(B)", ("B", 1, 3, 3)),
        ("(B).", ("B", 1, 3, 4)),  # the stem is what stands before punctuation
        ("B. It fits", ("B", 0, 1, 2)),
        ("B) it fits", ("B", 0, 2, 2)),
        ("B because", ("B", 0, 1, 1)),
        ("Bです", ("B", 0, 3, 3)),  # what is written together with a label belongs to it
        ("B입니다", ("B", 0, 4, 4)),
        ("B선", None),
        ("B.그것은", ("B", 0, 1, 2)),  # a sentence may end without a space
        ("B.它是", ("B", 0, 1, 2)),
        ("B/C", ("B", 0, 1, 1)),
        ("B/x", None),
        ("B.5", None),
        ("B.C", None),
        ("Be", None),
        ("B's", None),
        ("B-flat", None),
        ("B (kolpus)", ("B", 0, 1, 1)),
        ("B(kolpus)", ("B", 0, 1, 1)),
        ("B(x)", ("B", 0, 1, 1)),  # a bracket may follow an answer
        ("E", None),
        ("", None),
    ],
)
def test_a_label(text, expected):
    assert label_at(text) == expected


def test_what_shows_that_a_label_is_named():
    assert mentions("B good").find_label(0) == Item("B", 0, 1, 1, is_done=False)
    assert mentions("B. good").find_label(0) == Item("B", 0, 1, 2, is_done=True)
    assert mentions("(B) good").find_label(0) == Item("B", 1, 3, 3, is_done=True)
    assert mentions('"B" good').find_label(0) == Item("B", 1, 3, 3, is_done=True)
    assert mentions("B? good").find_label(0) == Item("B", 0, 1, 2, is_done=True, is_asked=True)
    assert mentions("Bです").find_label(0) == Item("B", 0, 3, 3, is_done=True)


def test_a_label_that_ends_where_it_must():
    assert mentions("A股").find_label(0) is None
    assert mentions("A股").find_label(0, 1) == Item("A", 0, 1, 1, is_done=False)
    assert mentions("A.5").find_label(0, 2) == Item("A", 0, 1, 2, is_done=True)


# Texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kolpus", ("B", 0, 6, 6)),
        ("Kolpus.", ("B", 0, 6, 6)),
        (" the kolpus", ("B", 5, 11, 11)),
        ('"kolpus"', ("B", 1, 8, 8)),
        ("**kolpus** it is", ("B", 2, 10, 10)),
        ("kolpus (B)", ("B", 0, 10, 10)),  # with its label behind it
        ("kolpus, which is option B", ("B", 0, 25, 25)),
        ("kolpus, B", ("B", 0, 9, 9)),
        ("kolpus, A", ("B", 0, 6, 6)),  # a list
        ("kolpusses", None),
        ("kolpus trees", None),
        ("a nice kolpus", None),
        ("", None),
    ],
)
def test_a_text(text, expected):
    assert text_at(text) == expected


def test_a_text_with_another_options_label_behind_it_is_unclear():
    assert mentions("kolpus (A)").find_text(0) == Item("B", 0, 10, 10, is_done=True, is_clear=False)
    assert mentions("kolpus (B)").find_text(0) == Item("B", 0, 10, 10, is_done=True)
    assert mentions("kolpus?").find_text(0) == Item("B", 0, 6, 6, is_done=True, is_asked=True, is_text=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", ("A", 0, 1, 1)),
        ("-3", ("B", 0, 2, 2)),
        ("3.5", ("D", 0, 3, 3)),
        ("3.7", None),
        ("18 apples", ("C", 0, 2, 2)),  # a unit
        ("18 hundred", None),
        ("183", None),
        (": 18", ("C", 2, 4, 4)),
    ],
)
def test_a_number(text, expected):
    assert text_at(text, labels=NUMBERS) == expected


# Options that are named together


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", "B"),
        ("B and C", "BC"),
        ("B, C", "BC"),
        ("B, C and D", "BCD"),
        ("B., C.", "BC"),
        ("B & C", "BC"),
        ("B/C", "BC"),
        ("B + C", "BC"),
        ("(B) and (C)", "BC"),
        ("both kolpus", None),
        ("kolpus and wemtin", "BC"),
        ("kolpus, wemtin", "BC"),
        ("B and also C", "BC"),
        ("B, and maybe C", ""),
        ("B or C", ""),
        ("B or kolpus", "B"),  # the same one
        ("B 或 C", ""),
        ("B、C", "BC"),
        ("B、E", None),
        ("B、C good", ""),
        ("B and E", ""),  # a label of no option
        ("B and everything", None),
        ("B\nC", "BC"),
        ("B\n- C", "BC"),
        ("B\nC is nice", "B"),
        ("A good question", None),
        ("A, for one, like it", None),
        ("kolpus kolpus", None),
    ],
)
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
        ("B. kolpus", "B"),
        ("B. wemtin", ""),
        ("B - wemtin", ""),
        ("B. wemtin. It lies north.", ""),
        ("B. C", ""),
        ("B. B", "B"),
        ("B. wemtin is north of it", "B"),
        ("B: it is not wemtin", "B"),
        ("B\nwemtin is north of it", "B"),
    ],
)
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


def test_a_label_is_no_part_of_a_word_that_goes_on_as_its_text_does():
    assert label_at("BXenon", labels={"A": "Neon", "B": "Xenon"}) is None
    assert label_at("B-Xenon", labels={"A": "Neon", "B": "Xenon"}) == ("B", 0, 1, 1)


@pytest.mark.parametrize(
    ("text", "may_end"),
    [
        ("B", True),
        ("B  ", True),
        ("B\nmore", True),
        ("B ✅ more", True),  # a symbol
        ("B \uf00c more", True),  # a private-use character, as icons are
        ("B because", True),
        ("B + more", False),  # a sign of arithmetic
        ("B more", False),
    ],
)
def test_what_may_stand_behind_an_option(text, may_end):
    assert mentions(text)._may_end(1) is may_end


@pytest.mark.parametrize(
    ("text", "named"),
    [("red", True), ("not red", False), ("nor red", False), ("xred", False), ("redx", False), ("knot red", False)],
)
def test_a_text_as_words_of_its_own(text, named):
    assert mentions(text, {"A": "red", "B": "blue"}).names_text("red", ["red hot"], [(0, len(text))]) is named


@pytest.mark.parametrize(
    ("text", "place"),
    [("- B", 2), ("1. B", 3), ("(2) B", 4), ("** B", 0), ("-B", 0), ("B. C", 0), ("x", 0), ("• B", 2)],
)
def test_the_mark_of_a_list(text, place):
    assert mentions(text).skip_list_mark(0) == place


def test_the_number_of_a_list_may_be_a_label():
    assert mentions("1. B", {"1": "zormun", "2": "kolpus"}).skip_list_mark(0) == 0
