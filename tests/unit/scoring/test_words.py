"""Numbers among words, and words in their place: what docs/innodata.md says a word is."""

from __future__ import annotations

import pytest

from helm_ext.scoring.normal_form import separate_characters, words
from helm_ext.scoring.scores.texts import find


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234", "1234"), ("1,234,567", "1234567"), ("1,234.5", "1234.5"), ("1.234,5", "1234.5"), ("1,23", "1.23"),
        ("0,125", "0.125"), ("2024,125", "2024.125"),
        ("1.23,5", "1.23 5"),  # no thousands, so a list
        ("0.125,5", "0.125 5"), ("2,3,5", "2 3 5"), ("1,234,56", "1 234 56"), ("2,3,5-7", "2 3 5-7"), ("2-3", "2-3"),
        ("2–3–4", "2-3-4"), (".5", "0.5"), ("-5", "-5"), ("+5", "+5"), ("±5", "±5"), ("−5", "-5"), ("x-5", "x - 5"),
        ("5%", "5%"), ("5 %", "5%"), ("$5", "5 $"), ("-$5", "-5 $"), ("$-5", "-5 $"), ("5$", "5 $"), ("5kg", "5 kg"),
        ("5 kg", "5 kg"), ("20°C", "20 °c"), ("7th", "7th"), ("B12", "b12"), ("v1.4", "v1.4"),
        ("C# and C++", "c# and c++"),
        ("don't don’t dont", "dont dont dont"), ("x=5", "x = 5"), ("2+3", "2 + 3"), ("1'000", "1000"), ("٤٢", "42"),
        ("5²", "5²"), ("北京5", "北 京 5"), ("?", "?"),
    ],
)  # fmt: skip
def test_words(text, expected):
    assert " ".join(words(text)) == expected


def test_a_space_on_both_sides_of_a_character():
    assert separate_characters("a北京b") == "a 北  京 b"


@pytest.mark.parametrize(
    ("wanted", "said", "anywhere", "at_start"),
    [
        ("a", "a b", True, True), ("b", "a b", True, False), ("a b", "a b", True, True), ("b c", "a b c", True, False),
        ("b", "a bc", False, False), ("b", "a cb", False, False), ("a", "", False, False), ("X", "Y", False, False),
        ("X", "Y X", True, False), ("서울", "서울은", True, True), ("서울", "나는 서울에서", True, False),
        ("서울", "서울대", False, False), ("서울", "서울대 서울", True, False), ("나무", "나무는", True, True),
        ("나무", "나무은", False, False), ("물", "물로", True, True), ("국가", "국가는", True, True),
        ("국가", "국가은", False, False),  # 가 is the first of all syllables, and ends in a vowel
    ],
)  # fmt: skip
def test_whole_words_in_their_order(wanted, said, anywhere, at_start):
    assert find(tuple(wanted.split()), tuple(said.split()), at_start=False) is anywhere
    assert find(tuple(wanted.split()), tuple(said.split()), at_start=True) is at_start


def test_variants():
    assert words("Don't", ignore_case=False) == ("Dont",)
    assert words("Don't!", ignore_punctuation=False) == ("don't!",)
    assert words("İstanbul") == words("istanbul")
    assert words("İ", ignore_case=False) == ("İ",)
