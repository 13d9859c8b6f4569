"""What the whole of a completion, its lines and its beginning say."""

from __future__ import annotations

import pytest

from helm_ext.parsing import read_label, read_labels
from helm_ext.parsing.mentions import Mentions
from helm_ext.parsing.options import Options
from helm_ext.parsing.reader import _lists_options, _read_end_lines, _read_lead, _read_letters, _read_whole
from helm_ext.parsing.spelling import find_lines, get_label_set, simplify
from helm_ext.parsing.statements import Rank

LABELS = {"A": "zormun", "B": "kolpus", "C": "wemtin", "D": "purkol"}


def mentions(text, labels=LABELS):
    return Mentions(Options(get_label_set(tuple(labels)), labels), simplify(text))


def shown(named):
    return None if named is None else "".join(sorted(named))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AC", "AC"),
        ("A C", "AC"),
        ("A\nC", "AC"),
        ("A\nC D", "ACD"),
        ("B B", "B"),
        ("B x B", None),
        ("BB", None),
        ("AA", None),
        ("A", None),
        ("AE", None),
        ("A E", None),
        ("A, C", None),
        ("A 1", None),
        ("", None),
        ("A C" + " C" * 14, None),  # again and again, and not alone
        (" ".join("B" * 16), "B"),  # 31 characters
        (" ".join("B" * 17), None),  # 33: too long
    ],
)
def test_letters(text, expected):
    assert shown(_read_letters(mentions("").options, text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t\n", []),
        ("B", [(0, 1)]),
        ("\nB\n\n  C", [(1, 2), (4, 7)]),
        ("one\ntwo\n", [(0, 3), (4, 7)]),
    ],
)
def test_lines_that_hold_something(text, expected):
    assert find_lines(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", "B"),
        ("**B**", "B"),
        ("- B", "B"),
        ("B. kolpus", "B"),
        ("B, C", "BC"),
        ("A C", "AC"),
        ("Both A and C", "AC"),
        ("both A and C!", "AC"),
        ("So B", None),
        ("B it is", None),
        ("Option B", None),
    ],
)
def test_a_completion_that_is_nothing_but_options(text, expected):
    assert shown(_read_whole(mentions(text), simplify(text))) == expected


def end_lines(text):
    """What the first and the last line state: rank and labels."""
    found = mentions(text)
    first, last = _read_end_lines(found, find_lines(found.text))
    return tuple([(one.rank, shown(one.named)) for one in several] for several in (first, last))


FIRST, LAST = Rank.CONCLUDED, Rank.STATED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", ([], [])),
        ("B\nIt is a nice one.", ([(FIRST, "B")], [])),
        ("It is a nice one.\nB", ([], [(LAST, "B")])),
        ("It is a nice one.\nOption B", ([], [(LAST, "B")])),
        ("B\nIt is a nice one.\nB", ([(FIRST, "B")], [(LAST, "B")])),
        ("B\nIt is a nice one.\nC", ([(FIRST, "B")], [(LAST, "C")])),
        ("B\nB\nIt is.", ([(FIRST, "B")], [])),
        ("B\nC\nIt is.", ([], [])),  # a list
        ("B\nOption C\nIt is.", ([], [])),
        ("It is.\nB\nC", ([], [])),
        ("It is.\nOption B\nC", ([], [])),
        ("It is.\nB\nB", ([], [(LAST, "B")])),
        ("Options\nOption B", ([], [(LAST, "B")])),
        ("B\n- Option C", ([(FIRST, "")], [])),  # two answers
        ("It is.\nIt was.", ([], [])),
        ("It is.\n- B", ([], [(LAST, "B")])),
        ("AC\nThey are.", ([(FIRST, "AC")], [])),
    ],
)
def test_what_the_first_and_the_last_line_state(text, expected):
    assert end_lines(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B. It is a nice one.", "B"),
        ("B because it is nice", "B"),
        ("Option B, because", "B"),
        ("1. B, because", "B"),
        ("kolpus, because", "B"),
        ("B and C, because", "BC"),
        ("(B) is wrong", None),
        ("B? It is", None),
        ("B. kolpus C. wemtin", None),
        ("B. It is nice\nC. It is, too", None),
        ("kolpus. Actually, on second thought, it is wemtin", ""),
        ("kolpus. Actually, it is all one", "B"),
        ("Nothing of it", None),
    ],
)
def test_options_that_a_completion_begins_with(text, expected):
    assert shown(_read_lead(mentions(text))) == expected


@pytest.mark.parametrize(
    ("text", "lists"),
    [
        ("B. kolpus", False),
        ("B. kolpus C. wemtin", True),
        ("B. kolpus  C.  wemtin", True),
        ("B. kolpus C wemtin", False),
        ("B. kolpus. It is nice, B. kolpus", False),
        ("B. It is\nC. nice", True),
        ("B. It is\n\nC. nice", True),
        ("B. It is\nnice\nC. too", True),
        ("B. It is\nOption C. nice", True),
        ("B. It is\nC nice", False),
        ("B. It is\nB. nice", False),
    ],
)
def test_another_option_that_is_listed_behind_the_first(text, lists):
    assert _lists_options(mentions(text), 2, frozenset("B")) is lists


def test_an_empty_option_is_not_looked_for_behind_another():
    assert not _lists_options(mentions("B. kolpus C. x", {"B": "kolpus", "C": ""}), 2, frozenset("B"))


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("A is wrong. The capital is kolpus.", "B"),  # what is denied is another one
        ("B is wrong. The capital is kolpus.", None),
        ("Not A. B would be nice. The capital is wemtin.", "C"),
        ("B would be correct, wemtin as well.", "B"),
        ("C. B would be correct in June.", "C"),  # what would be counts only where nothing else is said
    ],
)
def test_a_sentence_counts_where_others_are_denied(text, label):
    assert read_label(text, LABELS) == label


@pytest.mark.parametrize("text", ["A E", "B x", "B x B", "B or C", "A I"])
def test_an_option_and_something_else_is_no_answer(text):
    assert read_label(text, LABELS) is None
    assert read_labels(text, LABELS) == ()


def test_alternatives_are_no_two_answers():
    assert read_labels("La respuesta es B o C.", LABELS) == ()
    assert read_labels("La respuesta es B y C.", LABELS) == ("B", "C")
    assert read_labels("La risposta è B o C", LABELS) == ()


NUMBERS = {"A": "-5", "B": "5", "C": "1/5", "D": "-1/5"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("minus 5", "A"),
        ("The answer is negative 5.", "A"),
        (r"\frac{1}{5}", "C"),  # no 5
        (r"The answer is $-\frac15$.", "D"),
        ("5 - 10 = -5", "A"),
        ("5 - 10 = -5, so it is 5 minus 10", None),
    ],
)
def test_a_number_is_read_with_its_sign_and_fraction_and_no_operand_is_an_answer(text, expected):
    assert read_label(text, NUMBERS) == expected
