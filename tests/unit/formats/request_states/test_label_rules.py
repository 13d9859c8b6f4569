"""Labels of options: which there are, which option each names, and how HELM's joint adapter is made to render them."""

from __future__ import annotations

import pytest

from helm_ext.formats.request_states.labels import (
    LabelError,
    default_labels,
    encode_prefix,
    find_label,
    resolve_mapping,
    shared_sequence,
)


def refused(function, *arguments, **named):
    with pytest.raises(LabelError) as error:
        function(*arguments, **named)
    raised = error.value
    assert raised.args == (raised.message, raised.hint, raised.code)
    return (*raised.args, raised.labels)


@pytest.mark.parametrize(
    ("prefix", "label", "place"),
    [
        ("A. ", None, (0, 1)),
        ("(A) ", None, (1, 2)),
        ("Answer A. ", None, (7, 8)),
        ("A. B. ", None, (0, 1)),  # the one that begins it
        ("- A. B. ", None, (2, 3)),
        ("the A or B ", None, None),
        ("Answer: ", None, None),
        ("", None, None),
        ("Answer A. ", "A", (7, 8)),
        ("Option 10) ", "10", (7, 9)),
        ("A10) ", "10", None),
        ("10A) ", "10", None),
        ("x A. A. ", "A", (0, 1)),
        ("[x] ", "[x]", (0, 3)),
        ("a[x]b ", "[x]", (1, 4)),
        ("B. ", "A", (0, 1)),
        ("A", "A", (0, 1)),
    ],
)
def test_where_the_label_stands(prefix, label, place):
    assert find_label(prefix, label) == place


@pytest.mark.parametrize(
    ("prefix", "count", "labels"),
    [
        ("A. ", 3, "A B C"),
        ("Y. ", 4, "Y Z AA AB"),
        ("c) ", 3, "c d e"),
        ("z. ", 3, "z aa ab"),
        ("9. ", 3, "9 10 11"),
        ("0. ", 2, "0 1"),
        ("甲. ", 3, "甲 乙 丙"),
        ("а. ", 7, "а б в г д е ж"),
        ("б. ", 2, "б в"),
        ("ア. ", 3, "ア イ ウ"),
        ("① ", 3, "① ② ③"),
    ],
)
def test_labels_that_a_prefix_begins(prefix, count, labels):
    assert default_labels(prefix, count) == labels.split()


def test_no_series_of_labels():
    hint = 'set adapter_spec.reference_prefix (for example "A. "), or give an answer_mapping'
    assert refused(default_labels, "Answer: ", 2) == (
        'reference_prefix "Answer: " holds no label (a letter or digit that stands alone)', hint, "no-labels", ()
    )  # fmt: skip
    assert LabelError("x").args == ("x", "", "labels")
    # No character follows the last Armenian capital.
    assert refused(default_labels, "Ֆ. ", 2)[0] == 'there is no series of 2 labels that begins with "Ֆ"'
    assert refused(default_labels, "ⅿ. ", 2) == (
        'there is no series of 2 labels that begins with "ⅿ"',
        "set adapter_spec.reference_prefix_characters to the labels, or give an answer_mapping", "no-labels", (),
    )  # fmt: skip


def test_a_mapping_names_texts_or_positions():
    options = ["red", " blue ", "green"]
    assert resolve_mapping({"A": "green", "B": 0, "C": "blue"}, options, shared=False) == {"A": 2, "B": 0, "C": 1}
    assert resolve_mapping({"A": 0, "B": 5}, options, shared=True) == {"A": 0}  # rows may have fewer options
    assert resolve_mapping({"A": 2}, options, shared=False) == {"A": 2}
    assert resolve_mapping({}, options, shared=False) == {}


@pytest.mark.parametrize(
    ("mapping", "shared", "problem"),
    [
        ({" ": 0}, False, ("an answer mapping has an empty label", "", "empty-label", ())),
        ({"A": 2}, False, ('"A" maps to option number 2, but there are 2 options', "positions count from 0",
                           "mapping-without-option", ())),
        ({"A": -1}, True, ('"A" maps to option number -1, but there are 2 options', "positions count from 0",
                           "mapping-without-option", ())),
        ({"A": "rod"}, False, ('"A" maps to "rod", which is none of the references', "did you mean 'red'?",
                               "mapping-without-option", ())),
        ({"A": "zebra"}, False, ('"A" maps to "zebra", which is none of the references',
                                 "every option must be one of the references; a position has no quotes",
                                 "mapping-without-option", ())),
    ],
)  # fmt: skip
def test_a_mapping_that_names_no_option(mapping, shared, problem):
    assert refused(resolve_mapping, mapping, ["red", "blue"], shared=shared) == problem


def test_one_sequence_for_all_rows():
    assert shared_sequence([("A", "B"), ("A", "B", "C")]) == ("A", "B", "C")
    assert shared_sequence([("B", "A"), ("A", "B", "C")]) == ("A", "B", "C")
    assert shared_sequence([("C", "A", "B"), ("A", "B")]) == ("A", "B", "C")  # in the order of the labels
    assert shared_sequence([("2", "10", "1"), ("1",)]) == ("1", "2", "10")
    assert shared_sequence([("b", "a"), ("b",)]) == ("b", "a")
    assert shared_sequence([]) == ()


def test_rows_whose_labels_differ():
    hint = (
        'multiple_choice_joint needs one label sequence for all rows; use "method": "generation" and write the options '
        "into input.text"
    )
    assert refused(shared_sequence, [("A", "B", "C"), ("1", "2")]) == (
        'the rows\' labels differ: ["A", "B", "C"] and ["1", "2"]', hint, "labels-differ", ("1", "2")
    )  # fmt: skip


@pytest.mark.parametrize(
    ("prefix", "labels", "encoded"),
    [
        ("A. ", "A B", "A. "),
        ("(A) ", "A B", "(A) "),
        ("\nA. Answer A", "A B", None),
        ("A. an Apple ", "A B", "X. an Apple "),  # HELM would replace both
        ("A. AX ", "A B", "Q. AX "),
        ("10) ", "10 11", "A) "),
        ("10) A", "10 11", "X) A"),
        ("① ", "① ②", "① "),
        ("[x] ", "[x] [y]", "A "),
        ("B. ", "A B", "A. "),
    ],
)
def test_prefixes_that_helm_renders_as_meant(prefix, labels, encoded):
    found = encode_prefix(prefix, labels.split())
    if encoded is not None:
        assert found == encoded
    # HELM replaces the first letter or digit wherever it stands.
    sign = next((char for char in found if char.isalnum()), None)
    if sign is not None and encoded is not None:
        assert found.count(sign) == 1


def test_prefixes_that_helm_cannot_render():
    assert refused(encode_prefix, "Answer: ", ["A", "B"]) == (
        'reference_prefix "Answer: " holds no label, and multiple_choice_joint writes one before each option',
'set it to "A. ", or, if the options stand in input.text already, "method": "generation"', "no-labels", (),
    )  # fmt: skip
    assert refused(encode_prefix, "A. AXQZ1甲 ", ["A", "B"]) == (
        'reference_prefix "A. AXQZ1甲 " cannot be rendered by HELM\'s joint adapter',
        'begin it with the label, for example "A. "', "prefix-before-label", (),
    )  # fmt: skip
