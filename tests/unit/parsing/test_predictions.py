"""Extraction, cleaning and lists, with values worked out by hand."""

from __future__ import annotations

import pytest

import helm_ext.parsing
from helm_ext.parsing import (
    clean,
    compile_pattern,
    cut_at_stops,
    extract,
    find_segments,
    split_segments,
)
from helm_ext.parsing.texts import apply_pattern


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("So the answer is: 12", r"answer is: (\d+)", "12"),
        ("answer is: 12, no, answer is: 13", r"answer is: (\d+)", "13"),  # the last match
        ("a1 b2", r"[a-z]\d", "b2"),  # no group: the whole match
        ("a1 b2", r"([a-z])(\d)", "b"),  # the first group only
        ("nothing", r"\d+", None),
        ("x", r"(y)?x", ""),  # a group that took no part
        ("", r".*", None),  # a match of no character says nothing
        ("Paris.", r"(?:answer is )?(.*?)\.?$", "Paris"),  # the last match is empty, at the end of the text
        ("I say 7", r"(?=(\d))", "7"),  # of no character, and yet it captures one
        ("Answer: 5. Answer:", r"Answer:(.*?)(?:\.|$)", ""),  # the model began to answer again and stopped
        ("First. Second.", r"^(.*?\.)", "First."),
    ],
)
def test_extract(text, pattern, expected):
    assert extract(text, pattern) == expected


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("a1 b2", r"[a-z]\d", "a1"),  # the first match, unlike `extract`
        ("a1 b2", r"([a-z])(\d)", "a"), ("nothing", r"\d+", ""), ("x", r"(y)?x", ""),
    ],
)  # fmt: skip
def test_apply_pattern(text, pattern, expected):
    assert apply_pattern(text, pattern) == expected


def test_clean_extracts_then_strips_then_lowers():
    text = "Reasoning. Answer:  The GARDEN  "
    assert clean(text) == text
    assert clean(text, pattern="Answer:(.*)") == "  The GARDEN  "
    assert clean(text, pattern="Answer:(.*)", strip=True) == "The GARDEN"
    assert clean(text, pattern="Answer:(.*)", strip=True, lower=True) == "the garden"
    assert clean(text, pattern="answer:(.*)", lower=True) is None  # the pattern sees the text before `lower`
    assert clean(" A ", lower=True) == " a "


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "not a regular expression: missing ), unterminated subpattern at character 1: ("),
        ("a[", "not a regular expression: unterminated character set at character 2: a["),
        ("(" * 100, "not a regular expression: missing ), unterminated subpattern at character 100: " + "(" * 79 + "…"),
        (
            "a{1,99999999999999999999}",
            "not a regular expression: too deeply nested or too large: a{1,99999999999999999999}",
        ),
    ],
)
def test_a_bad_pattern_is_explained(pattern, message):
    with pytest.raises(ValueError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == message
    with pytest.raises(ValueError):
        extract("text", pattern)


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("bedroom", ["bedroom"]), (" a ; b;c ", ["a", "b", "c"]),
        ("a; b;", ["a", "b"]),  # a separator at the end starts no segment
        ("a;;;", ["a"]),
        ("a;;b", ["a", "", "b"]),  # an empty segment elsewhere shifts what follows
        (";a", ["", "a"]), ("", []), (" ; ", []), ("a, b", ["a, b"]), ("a\n;b", ["a", "b"]),
        ("a; b.", ["a", "b"]),  # a final full stop is no part of a segment
        ("a.; b .", ["a", "b"]),
        ("北京；上海。", ["北京；上海"]),  # noqa: RUF001
        ("3.5; v1.", ["3.5", "v1"]), ("wait...", ["wait..."]), ("a; .", ["a"]),
    ],
)  # fmt: skip
def test_split_segments(text, segments):
    assert split_segments(text) == segments


@pytest.mark.parametrize(
    ("text", "separator", "segments"),
    [
        ("a\nb\n\n", "\n", ["a", "b"]), ("a, b;c", ",", ["a", "b;c"]), ("a <sep> b<sep>", "<sep>", ["a", "b"]),
    ],
)  # fmt: skip
def test_another_separator(text, separator, segments):
    assert split_segments(text, separator) == segments


@pytest.mark.parametrize(
    ("text", "pattern", "segments"),
    [
        ("red, Blue. green", r"\w+", ["red", "Blue", "green"]),  # no group: the whole match
        ("<a> <b.>", r"<(.*?)>", ["a", "b"]),
        ("[Rome|city] [Nile | river]", r"\[(.*?)\|(.*?)\]", ["Rome\x1fcity", "Nile\x1friver"]),  # a tuple
        ("(|a)(a|)", r"\((.*?)\|(.*?)\)", ["\x00\x1fa", "a\x1f\x00"]),  # an empty part is a part
        ("nothing", r"\d", []), ("x", r"(y)?x", [""]),
    ],
)  # fmt: skip
def test_find_segments(text, pattern, segments):
    assert find_segments(text, pattern) == segments


@pytest.mark.parametrize(
    ("text", "stops", "kept"),
    [
        ("Paris <stop> more", ("<stop>",), "Paris "),
        ("a END b STOP c", ("STOP", "END"), "a "),  # the first in the text
        ("<stop>", ("<stop>",), ""), ("Paris", ("<stop>",), "Paris"),
        ("\n\nParis\nQ: next", ("\n",), "\n\nParis"),  # white space counts only behind text
        ("  ", ("\n", " "), "  "),
        ("\n\nQ: next", ("\n\nQ:",), ""),  # one that holds more is found in front, too
        ("Paris", (), "Paris"),
    ],
)  # fmt: skip
def test_cut_at_stops(text, stops, kept):
    assert cut_at_stops(text, stops) == kept


def test_public_names():
    assert sorted(helm_ext.parsing.__all__) == helm_ext.parsing.__all__
    assert all(hasattr(helm_ext.parsing, name) for name in helm_ext.parsing.__all__)


@pytest.mark.parametrize("stop", [".", "。", "．"])
def test_a_final_stop_of_any_script_is_no_part_of_a_segment(stop):
    assert split_segments(f"東京{stop} ;大阪{stop}") == ["東京", "大阪"]
    assert split_segments(f"a{stop}b;c{stop * 3};{stop}") == [f"a{stop}b", f"c{stop * 3}"]
    assert find_segments(f"<a {stop}><b>", "<(.*?)>") == ["a", "b"]
