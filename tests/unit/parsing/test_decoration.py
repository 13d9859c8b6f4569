"""How labels and texts are spelled, and what is taken off around them."""

from __future__ import annotations

import pytest

from helm_ext.parsing.options import (
    MARKER,
    peelings,
    simplify,
    strip_end_tokens,
)


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("（Ｂ）", "(B)"), ("B\u200b\u00ad", "B"), ("−5", "-5"), ("–5", "-5"),
        ("3–5", "3–5"),  # a range
        ("a\t  b\nc", "a b\nc"), ("```json\nB\n```", "```\nB\n```"), ("x\n```python\n1\n```", "x\n```\n1\n```"),
        ("```\nB```", "```\nB```"), ("\\boxed{B}", MARKER + "{B}"), ("\\fbox {B}", MARKER + "{B}"),
        ("\\boxed{\\text{B}}", MARKER + "{B}"), ("\\textbf{B} and \\(x\\)", "B and x"),
        ("<answer>B</answer>", MARKER + "B\n"), ("<b>B</b> <i>x</i>", "*B* *x*"), ("<b>B</i>", "<b>B</i>"),
        ("B<br/>C", "B\nC"), ("a < b", "a < b"),
    ],
)  # fmt: skip
def test_simplified(text, simple):
    assert simplify(text) == simple


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("(5)", ["(5)", "5"]),  # both at once
        ("((5)", ["((5)", "(5", "5"]), ("- 5", ["- 5", "5"]), ("-5", ["-5"]), ("[5] x)", ["[5] x)", "[5] x", "5] x"]),
        (":5", [":5", "5"]), ("**5**.", ["**5**.", "**5**", "*5*", "5"]),
        (MARKER + "{B}.", [MARKER + "{B}.", "B}.", "B}", "B"]), ("", [""]),
    ],
)  # fmt: skip
def test_less_and_less_decoration(text, steps):
    assert list(peelings(text)) == steps


def test_endless_decoration_is_taken_off_at_last():
    *_, last = peelings("(" * 90 + "B")
    assert last == "B"


@pytest.mark.parametrize(
    ("text", "options", "left"),
    [
        ("B</s>", [], "B"), (" B </s>", [], " B"),
        ("B <|im_end|></s>\n", [], "B <|im_end|></s>\n"),  # the text ends in white space
        ("B <|im_end|></s>", [], "B"), ("B[SEP][PAD]", [], "B"), ("B</s> x", [], "B</s> x"),
        ("B[SEP]", ["a", "x[SEP]"], "B[SEP]"), ("B<x>", [], "B<x>"), ("x" * 900 + "</s>", [], "x" * 900),
    ],
)  # fmt: skip
def test_special_tokens_at_the_end(text, options, left):
    assert strip_end_tokens(text, options) == left
