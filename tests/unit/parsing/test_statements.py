"""What a completion states, how much each statement weighs, and what it denies (`Rank` says which weighs more)."""

from __future__ import annotations

import pytest

from helm_ext.parsing import phrases, read_label, read_labels
from helm_ext.parsing.mentions import Mentions
from helm_ext.parsing.options import Options, get_label_set, simplify
from helm_ext.parsing.statements import (
    Rank,
    find_statements,
    read_sentence,
)

LABELS = {"A": "zormun", "B": "kolpus", "C": "wemtin", "D": "purkol"}
MODAL, PLAIN, STATED, CONCLUDED, CORRECTED = Rank.SUGGESTED, Rank.DECLARED, Rank.STATED, Rank.CONCLUDED, Rank.CORRECTED


def mentions(text, labels=LABELS):
    return Mentions(Options(get_label_set(tuple(labels)), labels), simplify(text))


def states(text):
    """Rank and labels of each statement, "-" before the labels of one that denies."""
    return [(s.rank, ("-" if s.is_denied else "") + "".join(sorted(s.named))) for s in find_statements(mentions(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What introduces an answer
        ("The answer is B.", [(STATED, "B")]), ("the answer is kolpus", [(STATED, "B")]),
        ("Answer: B", [(STATED, "B")]), ("I choose B.", [(STATED, "B")]), ("Correct: B", [(STATED, "B")]),
        ('{"answer": "B"}', [(STATED, "B")]), ("答案是B", [(STATED, "B")]), ("Respuesta: B", [(STATED, "B")]),
        ("It is B.", [(PLAIN, "B")]), ("It's kolpus.", [(PLAIN, "B")]), ("So B.", [(CONCLUDED, "B")]),
        ("So the answer is B.", [(CONCLUDED, "B")]), ("Therefore, the answer is B.", [(CONCLUDED, "B")]),
        ("That leaves B.", [(CONCLUDED, "B")]), ("Final answer: B", [(CORRECTED, "B")]),
        ("\\boxed{B}", [(CORRECTED, "B")]), ("The answer would be B.", [(MODAL, "B")]),
        ("The answer is A and C.", [(STATED, "AC")]), ("The answer is A or C.", [(STATED, "")]),
        ("The answer is AC.", [(STATED, "AC")]),
        # What declares one
        ("B is correct.", [(PLAIN, "B")]), ("A and C are correct.", [(PLAIN, "AC")]),
        ("kolpus is the right answer.", [(PLAIN, "B")]), ("B would be correct.", [(MODAL, "B")]),
        ("Only B fits.", [(PLAIN, "B")]), ("Not A, B.", [(STATED, "-A")]),
        # What denies
        ("A is not correct.", [(PLAIN, "-A")]), ("A is wrong.", [(PLAIN, "-A")]),
        ("A and B are incorrect.", [(PLAIN, "-AB")]), ("The answer is not A.", [(PLAIN, "-A")]),
        ("It is not A but B.", [(STATED, "B")]), ("Not A.", [(STATED, "-A")]), ("Wait, not A.", [(STATED, "-A")]),
        ("Oh no, wait, not A or B", [(STATED, "-A")]), ("Sorry, not A, B.", [(STATED, "-A")]),
        # What states nothing
        ("They are not A.", []), ("Not A good question", []), ("Is it B?", []), ("The answer is B?", [(STATED, "-")]),
        ("If it rains, the answer is B.", [(STATED, "-")]), ("I do not think the answer is B.", [(STATED, "-")]),
        ("Banswer: B", []), ("The answers vary.", []), ("nothing", []), ("", []),
    ],
)  # fmt: skip
def test_statements(text, expected):
    assert states(text) == expected


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("The answer is A. Sorry, I meant B.", "B"), ("The answer is A. Wait, it is B.", "B"),
        ("The answer is A. No, the answer is B.", "B"), ("The answer is A. So the answer is B.", "B"),
        ("So the answer is A. The answer is B.", None),  # it weighs less, and says something else
        ("The answer is A. The answer is B.", None), ("It is A. The answer is B.", "B"),
        ("The answer is B. A would be right in June.", "B"), ("A would be right.", "A"),
        ("The answer is A. Final answer: B", "B"), ("The answer is A. A is wrong.", None),
        ("The answer is A. B is wrong.", "A"), ("A is wrong. The answer is A.", "A"),
        ("Sorry, I cannot tell A from B. The answer is C.", "C"), ("I apologize, I should not have said B.", None),
        ("I apologize for the earlier answer A. It is B.", "B"), ("I apologize, I should have said B.", "B"),
        ("The answer is A. Sorry, I should've written B, not A.", "B"), ("Perdón, debería haber dicho B.", "B"),
        ("I apologize, I said B.", None), ("I apologize for having said B.", None), ("Perdón por haber dicho B.", None),
        # An option that is denied behind a correction, alone or with the right one behind it
        ("The answer is B. Sorry, not B, C.", None), ("The answer is B. No, wait, not B, C.", None),
        ("The answer is B. Oh, my mistake, not B, C.", None), ("The answer is B. Sorry, not B but C.", "C"),
        ("It is B. Wait, not B. It is C.", "C"), ("The answer is B. Wait, not A. It is C.", "C"),
        ("It is B. Wait, not B.", None), ("It is B. Not B.", None), ("It is B. Wait, not B or C.", None),
        ("B. Wait, not B.", None), ("B\nWait, not B.", None), ("B. kolpus is not only nice, but old.", "B"),
        ("It is B. Wait, not A.", "B"), ("It is B. Not only B, I know, but it is.", "B"),
        ("It is B. Not just kolpus, since it is old.", "B"), ("It is B. Not A.", "B"), ("B. Wait, not A.", "B"),
        # What is doubted may stand in quotes or brackets
        ('It is not true that "the answer is B".', None), ('It is false that ("the answer is B").', None),
        ("I doubt that (the answer is B).", None), ("I don't believe that **the answer is B**.", None),
        ('It is true that "the answer is B".', "B"), ("I do not doubt that (the answer is B).", "B"),
        ("I don't doubt that the answer is B.", "B"),
    ],
)  # fmt: skip
def test_which_statement_wins(text, label):
    assert read_label(text, LABELS) == label


def test_an_option_may_begin_with_a_denial():
    labels = {"A": "entailment", "B": "not entailment"}
    assert read_label("It is entailment. Wait, not entailment.", labels) == "B"
    assert read_label("Not entailment, since it is older.", labels) == "B"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The capital of France is kolpus.", "B"), ("It lies north. The capital is kolpus.", "B"),
        ("The capital is kolpus. It lies north.", "B"), ("The capital is not kolpus.", None),
        ("Is the capital kolpus?", None), ("The capital is kolpus, and wemtin is a town.", None),
        ("zormun is the capital.", "A"), ("zormun is not the capital.", None), ("He was born in kolpus.", "B"),
        ("Nothing of it.", None), ("The capital is zormun. I like zormun a lot. It is big.", "A"),
        ("This is a story about zormun.", None),
        ("There are people in zormun.", "A"),  # the only one that is named
    ],
)  # fmt: skip
def test_a_sentence_about_an_option(text, expected):
    found = read_sentence(mentions(text))
    assert ("".join(sorted(found)) if found else None) == expected


def test_where_several_may_be_right_they_add_up():
    assert read_labels("A is correct. C is correct. D is correct.", LABELS) == ("A", "C", "D")
    assert read_label("A is correct. C is correct.", LABELS) is None
    assert read_labels("The answer is A. The answer is C.", LABELS) == ()
    assert read_labels("The answer is A. C is correct.", LABELS) == ()
    assert read_label("So\nB", LABELS) == "B"
    assert read_label("Option\nOption B", LABELS) == "B"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("A. I apologize. B.", "B"), ("Sorry for that; B it is", "B"), ("Sorry! My answer is B", "B"),
        ("Oops: kolpus", "B"),
        ("I apologize, B is meant.", None),  # a sentence about B
        ("I apologize, A is wrong.", None), ("Sorry, I confused A and B", None), ("Sorry, is it B?", None),
        ("Sorry, B?", None), ("抱歉,B", "B"), ("Sorry. It was late. There was much to do. B", "B"),
    ],
)  # fmt: skip
def test_what_follows_an_apology(text, label):
    assert read_label(text, LABELS) == label


def test_what_is_concluded_weighs_more_where_the_clause_begins_with_it():
    assert read_label("It is A. So B is correct.", LABELS) == "B"
    assert read_label("It is A. B is correct.", LABELS) is None


@pytest.mark.parametrize("find", [phrases.find_verdicts, phrases.find_rejections])
@pytest.mark.parametrize(
    "text",
    [
        "b is correct, a and c are not right. d fits best; b seems to be the best answer.",
        "также b является верным ответом, c неверно. also ist b richtig — a est faux, c no es correcta.",
        "b n'est pas, c is ruled out … only d remains\nand a doesn't fit",
    ],
)
def test_what_is_declared_is_found_alike_where_no_script_without_spaces_is_looked_for(find, text):
    expected = [found.span() for found in find(f"{text}\n山")]
    assert expected
    assert [found.span() for found in find(text)] == expected
