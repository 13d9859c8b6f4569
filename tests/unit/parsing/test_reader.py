"""What the whole of a completion, its lines and its beginning say."""

from __future__ import annotations

import pytest

from helm_ext.parsing import read_label, read_labels

LABELS = {"A": "zormun", "B": "kolpus", "C": "wemtin", "D": "purkol"}


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        # Nothing but options
        ("A\nC D", "ACD"), ("B B", "B"), ("B x B", ""), ("AA", ""), ("A E", ""), ("A 1", ""), ("A C" + " C" * 14, ""),
        (" ".join("B" * 17), ""), ("- B", "B"), ("B. kolpus", "B"), ("both A and C!", "AC"),
        # The first line and the last
        ("B\nIt is a nice one.", "B"), ("It is a nice one.\nOption B", "B"), ("B\nIt is a nice one.\nB", "B"),
        ("B\nB\nIt is.", "B"), ("B\n- Option C", ""), ("It is.\n- B", "B"), ("AC\nThey are.", "AC"),
        # The beginning
        ("1. B, because", "B"), ("B and C, because", "BC"), ("(B) is wrong", ""), ("B? It is", ""),
        ("B. kolpus C. wemtin", ""), ("B. It is nice\nC. It is, too", ""),
        ("B. kolpus. It is nice, B. kolpus", "B"), ("kolpus. Actually, on second thought, it is wemtin", "C"),
        ("kolpus. Actually, it is all one", "B"),
    ],
)  # fmt: skip
def test_lines_and_beginnings(text, labels):
    assert read_labels(text, LABELS) == tuple(labels)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("A is wrong. The capital is kolpus.", "B"),  # what is denied is another one
        ("B is wrong. The capital is kolpus.", None), ("Not A. B would be nice. The capital is wemtin.", "C"),
        ("B would be correct, wemtin as well.", "B"),
        ("C. B would be correct in June.", "C"),  # what would be counts only where nothing else is said
    ],
)  # fmt: skip
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
        ("minus 5", "A"), ("The answer is negative 5.", "A"),
        (r"\frac{1}{5}", "C"),  # no 5
        (r"The answer is $-\frac15$.", "D"), ("5 - 10 = -5", "A"), ("5 - 10 = -5, so it is 5 minus 10", None),
    ],
)  # fmt: skip
def test_a_number_is_read_with_its_sign_and_fraction_and_no_operand_is_an_answer(text, expected):
    assert read_label(text, NUMBERS) == expected
