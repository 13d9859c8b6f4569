"""How labels and texts are spelled, what is taken off around them, and numbers with units as values."""

import pytest

from helm_ext.parsing import read_label
from helm_ext.parsing.options import MARKER, simplify, spell_as_options, strip_end_tokens


@pytest.mark.parametrize(("text", "simple"), [
    ("（Ｂ）", "(B)"), ("B\u200b\u00ad", "B"), ("\u2068B\u2069", "B"), ("\u202bB\u202c", "B"), ("−5", "-5"), ("–5", "-5"),
    ("3–5", "3–5"),  # a range
    ("a\t  b\nc", "a b\nc"), ("```json\nB\n```", "```\nB\n```"), ("x\n```python\n1\n```", "x\n```\n1\n```"),
    ("```\nB```", "```\nB```"), ("\\boxed{B}", MARKER + "{B}"), ("\\fbox {B}", MARKER + "{B}"),
    ("\\boxed{\\text{B}}", MARKER + "{B}"), ("\\textbf{B} and \\(x\\)", "B and x"),
    ("<answer>B</answer>", MARKER + "B\n"), ("<b>B</b> <i>x</i>", "*B* *x*"), ("<b>B</i>", "<b>B</i>"),
    ("B<br/>C", "B\nC"), ("a < b", "a < b"),
])  # fmt: skip
def test_simplified(text, simple):
    assert simplify(text) == simple


@pytest.mark.parametrize(("text", "options", "left"), [
    ("B</s>", [], "B"), (" B </s>", [], " B"),
    ("B <|im_end|></s>\n", [], "B <|im_end|></s>\n"),  # the text ends in white space
    ("B <|im_end|></s>", [], "B"), ("B[SEP][PAD]", [], "B"), ("B</s> x", [], "B</s> x"),
    ("B[SEP]", ["a", "x[SEP]"], "B[SEP]"), ("B<x>", [], "B<x>"), ("x" * 900 + "</s>", [], "x" * 900),
])  # fmt: skip
def test_special_tokens_at_the_end(text, options, left):
    assert strip_end_tokens(text, options) == left


# Which unit is how large is from the SI brochure


@pytest.mark.parametrize(("option", "same", "others"), [
    ("48 J", ["48J", "48 joules", "0.048 kJ", "48.0 J"], ["48 kJ", "48 mJ", "48", "48 jobs", "480 J"]),
    ("5 mW", ["5mW", "5 milliwatts", "0.005 W"], ["5 MW", "5 W"]),
    ("5 m", ["500 cm", "5 metres", "5.0 m"], ["5 M", "5 mm", "5 min"]),
    ("10 m/s", ["36 km/h", "10 meters per second", "10m/s"], ["10 m", "10 m/s^2", "10 s/m"]),
    ("3 m/s^2", ["300 cm/s^2", "10800 m/min^2"], ["3 m/s", "180 m/min^2"]),
    ("2.5 m", ["2,5 m", "250 cm"], ["25 m"]),
    ("12000", ["12,000", "12000.0", "1.2 × 10^4"], ["12,0000", "12.000.0", "x12,000", "12000^2"]),
    ("37 °C", ["37°C", "37 degrees Celsius"], ["37 °F", "37"]),
    ("2 hPa", ["200 Pa", "2 hectopascals", "0.2 kPa"], ["2 Pa", "2 h"]),
    ("5 mSv", ["0.005 Sv", "5 millisieverts"], ["5 Sv", "5 MSv", "5 mS"]),
    ("50%", ["50 %", "50 percent"], ["50", "0.5"]),
])  # fmt: skip
def test_a_quantity_is_spelled_as_the_option_of_its_value(option, same, others):
    assert {spell_as_options(text, {"A": option, "B": "red"}) for text in same} == {option}
    assert [spell_as_options(text, {"A": option}) for text in others] == others


def test_options_of_one_value_stay_apart():
    lengths = {"A": "5 m", "B": "500 cm", "C": "5 km"}
    assert [read_label(text, lengths) for text in ("5 m", "500 cm", "5m", "5000 m")] == ["A", "B", None, "C"]
