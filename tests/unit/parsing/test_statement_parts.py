"""The parts that reading a statement is made of, one at a time (`helm_ext.parsing.statements`, `sentences`)."""

from __future__ import annotations

import pytest

from helm_ext.parsing import read_label, read_labels
from helm_ext.parsing.mentions import Mentions
from helm_ext.parsing.options import Options
from helm_ext.parsing.sentences import read_sentence
from helm_ext.parsing.spelling import get_label_set, simplify
from helm_ext.parsing.statements import (
    Rank,
    _introduces,
    _is_void,
    _may_name,
    _rank,
    _read_letters,
    _sentence_before,
    find_statements,
)

LABELS = {"A": "zormun", "B": "kolpus", "C": "wemtin", "D": "purkol"}
COLOURS = {"A": "red", "B": "dark red", "C": "5", "D": "-5"}
MODAL, PLAIN, STATED, CONCLUDED, CORRECTED = Rank.SUGGESTED, Rank.DECLARED, Rank.STATED, Rank.CONCLUDED, Rank.CORRECTED


def mentions(text, labels=LABELS):
    return Mentions(Options(get_label_set(tuple(labels)), labels), simplify(text))


def spans(text, labels=LABELS):
    """Where each statement begins and ends, its rank, and its labels ("-" before those of a denial)."""
    return [
        (s.place, s.end, s.rank, ("-" if s.is_denied else "") + "".join(sorted(s.named)))
        for s in find_statements(mentions(text, labels))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is B.", [(4, 16, STATED, "B")]),  # with its punctuation
        ("The answer is kolpus.", [(4, 20, STATED, "B")]),
        ("B is correct.", [(0, 12, PLAIN, "B")]),
        ("I think that B is correct.", [(13, 25, PLAIN, "B")]),  # from the beginning of its clause
        ("So B is correct.", [(0, 15, CONCLUDED, "B")]),
        ("The answer is not B.", [(4, 20, PLAIN, "-B")]),
        ("Not A, B.", [(0, 9, STATED, "B")]),
        ("Not A.", [(0, 6, STATED, "-A")]),
        ("Only B has legs.", [(0, 6, PLAIN, "B")]),
        ("Sorry, I meant to say B.", [(7, 24, CORRECTED, "B")]),
        ("It is B. A is wrong.", [(0, 8, PLAIN, "B"), (9, 19, PLAIN, "-A")]),
    ],
)
def test_where_statements_stand(text, expected):
    found = spans(text)
    assert all(one in found for one in expected)
    assert {one[3] for one in found} == {one[3] for one in expected}


# Apologies


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("A. I apologize. B.", "B"),
        ("Sorry for that; B it is", "B"),
        ("Sorry! My answer is B", "B"),
        ("Oops: kolpus", "B"),
        ("I apologize, B is meant.", None),  # a sentence about B
        ("I apologize, A is wrong.", None),
        ("Sorry, I confused A and B", None),
        ("Sorry, is it B?", None),
        ("Sorry, B?", None),
        ("抱歉,B", "B"),
        ("Sorry. It was late. There was much to do. B", "B"),
    ],
)
def test_what_follows_an_apology(text, label):
    assert read_label(text, LABELS) == label


def test_what_is_concluded_weighs_more_where_the_clause_begins_with_it():
    assert read_label("It is A. So B is correct.", LABELS) == "B"
    assert read_label("It is A. B is correct.", LABELS) is None


def test_an_apology_is_read_to_the_end_of_the_second_sentence():
    near = spans("The answer is A. Sorry, really. B")
    assert (17, 33, CORRECTED, "B") in near
    far = spans("The answer is A. Sorry, really. It is late now. B")
    assert not any(one[2] is CORRECTED for one in far)


# Letters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AC", "AC"),
        (" AC.", "AC"),
        (" **AC** it is", "AC"),
        ("ABCD", "ABCD"),
        ("CA", None),  # not in their order
        ("AA", None),
        ("AE", None),
        ("ac", None),
        ("ACx", None),
        ("AC5", None),
        ("A", None),
    ],
)
def test_labels_written_as_one_word(text, expected):
    read = _read_letters(mentions(text), 0)
    assert (None if read is None else "".join(sorted(read[0]))) == expected


def test_where_labels_written_as_one_word_stand():
    named, item = _read_letters(mentions("is AC."), 2)
    assert (named, item.label, item.start, item.stem, item.end, item.is_done) == (frozenset("AC"), "C", 3, 5, 5, True)
    assert read_labels("The answer is AC.", LABELS) == ("A", "C")


# What stands before


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("One. Two three", 9, "Two "),
        ("One? Two; three", 10, "three"[:0]),
        ("One two", 4, "One "),
        ('One. "Two three', 10, "Two "),
        ("x 3.5 three", 6, "x 3.5 "),
        ("", 0, ""),
        ("a" * 300, 300, "a" * 160),
    ],
)
def test_what_stands_before_in_the_sentence(text, start, expected):
    assert _sentence_before(text, start) == expected


@pytest.mark.parametrize(
    ("before", "is_void"),
    [
        ("It is not ", True),
        ('It is not "', True),  # what opens belongs to what follows
        ("It is not (", True),
        ("I doubt that ", True),
        ("If ", True),
        ("It is not so, but ", False),
        ("", False),
        ("So ", False),
        ("If it rains, ", True),
        ("If it rains, then so ", False),  # a conclusion
        ("If it rains, I doubt, but now ", False),
        ("Now if it rains ", True),  # what returns stands behind the condition
        ("If it rains, but if it snows, ", True),  # the last condition counts
        ("I doubt " + "very " * 30, False),  # too far away
        ("The other ", True),
        ("You might think ", True),
        ("Some people say that the ", True),
        ("There is no doubt that the ", False),
        ('It is not true that "the ', True),
        ("They said not that [the ", True),
    ],
)
def test_what_takes_the_meaning_of_a_statement_away(before, is_void):
    assert _is_void(before) is is_void


@pytest.mark.parametrize(
    ("kind", "before", "introduces"),
    [
        ("mark", "They say ", True),
        ("key", "They say ", True),
        ("noun", "They say ", True),
        ("ellipsis", "", True),
        ("ellipsis", "It rains, ", True),
        ("ellipsis", "They were ", False),
        ("correcting", "They were ", False),
        ("pronoun", "They were ", False),
        ("labelled", "They were ", False),
        ("labelled", "**", True),
        ("contrast", "They were ", False),
        ("contrast", "It is not A ", True),
        ("contrast", "They take anything ", False),
    ],
)
def test_where_an_introduction_may_stand(kind, before, introduces):
    text = f"{before}words"
    assert bool(_introduces(kind, "words", before, text, len(before))) is introduces


def test_an_introduction_is_no_part_of_a_longer_word():
    assert not _introduces("noun", "answer is", "", "Banswer is", 1)
    assert not _introduces("mark", "answer is", "", "7answer is", 1)
    assert _introduces("noun", "answer is", "", "_answer is", 1)
    assert _introduces("noun", "答案", "", "的答案", 1)


@pytest.mark.parametrize(
    ("kind", "before", "expected"),
    [
        ("mark", "", CORRECTED),
        ("correcting", "", CORRECTED),
        ("noun", "My final ", CORRECTED),
        ("noun", "Finally, the ", CONCLUDED),
        ("noun", "", STATED),
        ("verb", "I ", STATED),
        ("verb", "So I ", CONCLUDED),
        ("ellipsis", "", CONCLUDED),
        ("left", "", CONCLUDED),
        ("pronoun", "", PLAIN),
        ("pronoun", "So ", CONCLUDED),
    ],
)
def test_how_much_it_weighs(kind, before, expected):
    assert _rank(kind, before) is expected


@pytest.mark.parametrize(
    ("verb", "before", "introduces"),
    [
        ("choose", "", True),  # an order
        ("choose", "I ", True),
        ("choose", "Let's ", True),
        ("choose", "They ", False),  # somebody else
        ("guess", "I ", True),
        ("guess", "we would ", True),
        ("guess", "Let's ", False),
        ("guess", "", False),
        ("guess", "They ", False),
    ],
)
def test_who_chooses(verb, before, introduces):
    assert _introduces("verb", verb, before, before + verb, len(before)) is introduces


# What declares an option


@pytest.mark.parametrize(
    ("text", "may"), [("B", True), ("It is B", True), ("kolpus)", True), ("B. ", True), ("it", False), ("对", True)]
)
def test_whether_an_option_may_end_there(text, may):
    assert _may_name(mentions(text), len(text)) is may


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I think B is correct.", [(PLAIN, "B")]),
        ("Therefore B is correct.", [(CONCLUDED, "B")]),
        ("We see that it rains, therefore B is correct.", [(CONCLUDED, "B")]),
        ("Option B is correct.", [(PLAIN, "B")]),
        ("Both A and C are correct.", [(PLAIN, "AC")]),
        ("B could be right.", []),
        ("B would be right.", [(MODAL, "B")]),
        ("If it rains, B is correct.", []),
        ("If it rains, B is wrong.", [(PLAIN, "-B")]),
        ("In the last exam, B was correct.", [(MODAL, "B")]),
        ("Something is correct.", []),
        ("kolpus and so on is correct.", []),
    ],
)
def test_what_is_declared(text, expected):
    found = {(s.rank, ("-" if s.is_denied else "") + "".join(sorted(s.named))) for s in find_statements(mentions(text))}
    assert found == set(expected)


def test_only_b_is_not_denied():
    assert spans("Only B is nice.") == [(0, 6, PLAIN, "B")]
    assert spans("If it rains, only B is nice.") == []
    assert [one[3] for one in spans("Only B is not nice.")] == ["-B"]
    assert spans("Only B nice.") == []


def test_what_is_left_to_decide_between_weighs_little():
    assert (PLAIN, "AC") in [one[2:] for one in spans("That leaves A and C.")]
    assert (CONCLUDED, "C") in [one[2:] for one in spans("That leaves C.")]


# The sentence


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The wall is dark red", "B"),  # and not "red"
        ("The wall is red", "A"),
        ("The wall is made of red", "A"),
        ("The wall is reddish", None),
        ("B red", None),  # the label of another one
        ("The wall is not red", None),
        ("The wall is red?", None),
        ("It is unclear whether dark red", None),
        ("Dark red lies behind it.", "B"),
        ("I was in dark red last.", None),
        ("Dark red Hilton is a name.", None),
        ("The wall was red. Thus it must be dark red.", "B"),  # what is concluded counts
        ("The wall was red. Thus it is red or dark red.", None),
        ("No red idea.", None),  # so short a text ends its sentence
        ("It is late. Dark red, then.", "B"),
        ("2 + 3 = 5", "C"),
        ("0 - 5 = -5, 10 - 5 = 5. Thus, the value is 5.", "C"),  # what is concluded, not a step
        ("2 + 3 gives 5.", "C"),
        ("2 + 3 gives 5 or so", None),
        ("2 + 3 is not = 5", None),
        ("-5 is the sum.", "D"),
        ("-5 is not the sum.", None),
        ("It is cold. It is not dark red.", None),
        ("It was red. I know. It is dark red.", None),
    ],
)
def test_a_sentence_of_numbers_and_colours(text, expected):
    found = read_sentence(mentions(text, COLOURS))
    assert (None if found is None else "".join(sorted(found))) == expected
