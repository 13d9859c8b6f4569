"""How labels and texts are spelled, and what is taken off around them."""

from __future__ import annotations

import pytest

from helm_ext.parsing.options import (
    MARKER,
    fold,
    get_label_set,
    index,
    is_sign,
    is_unspaced,
    lower,
    peel,
    peelings,
    simplify,
    squeeze,
    strip_end_tokens,
)


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("（Ｂ）", "(B)"),
        ("B\u200b\u00ad", "B"),
        ("−5", "-5"),
        ("–5", "-5"),
        ("3–5", "3–5"),  # a range
        ("a\t  b\nc", "a b\nc"),
        ("```json\nB\n```", "```\nB\n```"),
        ("x\n```python\n1\n```", "x\n```\n1\n```"),
        ("```\nB```", "```\nB```"),
        ("\\boxed{B}", MARKER + "{B}"),
        ("\\fbox {B}", MARKER + "{B}"),
        ("\\boxed{\\text{B}}", MARKER + "{B}"),
        ("\\textbf{B} and \\(x\\)", "B and x"),
        ("<answer>B</answer>", MARKER + "B\n"),
        ("<b>B</b> <i>x</i>", "*B* *x*"),
        ("<b>B</i>", "<b>B</i>"),
        ("B<br/>C", "B\nC"),
        ("a < b", "a < b"),
    ],
)
def test_simplified(text, simple):
    assert simplify(text) == simple


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("(B)", "B"), ("- (B).", "B"), ("* B", "B"), ("**B**", "B"), (": B \n", "B"), ("> B", "B"), ("-5", "-5"),
        ("- -5", "-5"), ("1. B", "1. B"), (MARKER + "{B}", "B"), ("B", "B"), ("", ""), ("「B」。", "B"),
    ],
)  # fmt: skip
def test_peeled(text, bare):
    assert peel(text) == bare


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("(5)", ["(5)", "5"]),  # both at once
        ("((5)", ["((5)", "(5", "5"]),
        ("- 5", ["- 5", "5"]),
        ("-5", ["-5"]),
        ("[5] x)", ["[5] x)", "[5] x", "5] x"]),
        (":5", [":5", "5"]),
        ("**5**.", ["**5**.", "**5**", "*5*", "5"]),
        (MARKER + "{B}.", [MARKER + "{B}.", "B}.", "B}", "B"]),
        ("", [""]),
    ],
)
def test_less_and_less_decoration(text, steps):
    assert list(peelings(text)) == steps


def test_endless_decoration_is_taken_off_at_last():
    *_, last = peelings("(" * 90 + "B")
    assert last == "B"


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("-5", True),
        ("+.5", True),
        ("–$5", True),
        ("- 5", False),
        ("5", False),
        ("-x", False),
        ("-$ 5", True),
        ("", False),
    ],
)
def test_signs(text, sign):
    assert is_sign(text) is sign
    assert is_sign("x" + text, 1) is sign


@pytest.mark.parametrize(
    ("text", "options", "left"),
    [
        ("B</s>", [], "B"),
        (" B </s>", [], " B"),
        ("B <|im_end|></s>\n", [], "B <|im_end|></s>\n"),  # the text ends in white space
        ("B <|im_end|></s>", [], "B"),
        ("B[SEP][PAD]", [], "B"),
        ("B</s> x", [], "B</s> x"),
        ("B[SEP]", ["a", "x[SEP]"], "B[SEP]"),
        ("B<x>", [], "B<x>"),
        ("x" * 900 + "</s>", [], "x" * 900),
    ],
)
def test_special_tokens_at_the_end(text, options, left):
    assert strip_end_tokens(text, options) == left


def test_lower_case_keeps_places():
    assert lower("İB") == "İb"
    assert lower("AẞC") == "aẞc"
    assert lower("ABC") == "abc"


def test_folded():
    assert [fold(text) for text in ("A  b. ", "B!?", "x,\n y", " İ ", "..")] == ["a b", "b", "x, y", "İ", ""]
    assert squeeze("a \t b\n  c") == "a b\n c"


def test_an_index_knows_what_is_shared():
    assert index([("a", "1"), ("b", "2"), ("a", "3"), ("b", "2")]) == {"a": None, "b": "2"}


def test_label_sets():
    found = get_label_set(("(A)", "b", "10", " "))
    assert found.by_core == {"A": "(A)", "b": "b", "10": "10"}
    assert [found.find(spelling) for spelling in ("A", "a", "B", "10", "c")] == ["(A)", "(A)", "b", "10", None]
    assert found.longest == 3
    both = get_label_set(("a", "A"))
    assert [both.find(spelling) for spelling in ("a", "A")] == ["a", "A"]
    assert get_label_set(()).longest == 0
    assert found.pattern.match("(10)!")["label"] == "10"
    assert found.plain.fullmatch("So the correct answer is: (B)")["named"] == "(B)"
    assert found.plain.fullmatch("Answer: option b.")["label"] == "b"
    assert found.plain.fullmatch("B") is None


def test_scripts_without_spaces_between_words():
    assert all(map(is_unspaced, "가힣あン一漢\u1100\u11ff\u3040\u9fff\uac00"))  # Hangul, kana, Han
    assert not any(
        map(is_unspaced, ["a", "Z", "À", "ก", "ا", "5", "", "\u10ff", "\u1200", "\u303f", "\ua000", "\uabff"])
    )
