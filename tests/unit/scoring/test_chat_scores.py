"""Every value here was worked out by hand, or is that of an independent implementation, as noted beside it."""

import json
import time
from pathlib import Path

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from helm_ext.scoring.normal_form import words
from helm_ext.scoring.scores import texts

SCORES = {score.name: score.function for score in texts.SCORES if score.name.startswith("expected_")}


@pytest.mark.parametrize(("gold", "reply", "exact", "prefix", "contains"), [
    ("Paris", "Paris", 1, 1, 1), ("Paris", " paris. ", 1, 1, 1), ("Paris", "Paris is the capital.", 0, 1, 1),
    ("Paris", "It is Paris!", 0, 0, 1),
    ("Paris", "Parisian", 0, 0, 0),  # whole words
    ("cat", "concatenate", 0, 0, 0), ("New York", "I love New  York City", 0, 0, 1),
    ("New York", "New Yorkers", 0, 0, 0),
    ("York New", "New York", 0, 0, 0),  # in order
    ("don't know", "I don’t know.", 0, 0, 1),  # either apostrophe
    ("1.5", "15", 0, 0, 0), ("1.5", "1.5.", 1, 1, 1), ("1,000", "about 1,000 people", 0, 0, 1), ("-5", "5", 0, 0, 0),
    ("-5", "It is -5.", 0, 0, 1), ("5%", "5", 0, 0, 0), ("C#", "C", 0, 0, 0), ("C++", "C", 0, 0, 0),
    ("well-known", "well known", 1, 1, 1),
    ("Café", "cafe\u0301", 1, 1, 1),  # NFC: é in one character and in two
    ("STRASSE", "straße", 1, 1, 1),  # casefold, not lower
    ("北京", "中国的首都是北京。", 0, 0, 1), ("北京", "北京!", 1, 1, 1), ("東京", "東京都です", 0, 1, 1),
    ("กรุงเทพ", "เมืองกรุงเทพครับ", 0, 0, 1),  # Thai writes no spaces
    ("서울", "서울은 수도", 0, 1, 1),  # Korean does, but particles follow nouns without one
    ("", "", 1, 1, 1), ("", "anything", 0, 0, 0), ("", "  \n", 1, 1, 1), ("yes", "", 0, 0, 0), ("?", "?", 1, 1, 1),
    ("?", "", 0, 0, 0),  # only punctuation is not nothing
    ("?", "!", 0, 0, 0),
])  # fmt: skip
def test_matches(gold, reply, exact, prefix, contains):
    found = [SCORES[f"expected_{place}"](gold, reply) for place in ("exact", "prefix", "contains")]
    assert found == [exact, prefix, contains]


@pytest.mark.parametrize(("gold", "reply", "plain", "cased", "punct", "strict"), [
    ("Yes", "Yes", 1, 1, 1, 1), ("Yes", "yes", 1, 0, 1, 0), ("Yes", "Yes.", 1, 1, 0, 0), ("Yes", "yes.", 1, 0, 0, 0),
    ("No, thanks.", "no, thanks.", 1, 0, 1, 0),
])  # fmt: skip
def test_what_is_ignored(gold, reply, plain, cased, punct, strict):
    found = [SCORES[f"expected_exact{suffix}"](gold, reply) for suffix in ("", "_cased", "_punct", "_strict")]
    assert found == [plain, cased, punct, strict]
    if plain:
        for place in ("prefix", "contains"):
            assert SCORES[f"expected_{place}{'' if not strict else '_strict'}"](gold, reply + " so") == 1


@pytest.mark.parametrize(("gold", "reply", "f1", "rouge_l"), [
    # gold 2 words, reply 3, both common: P 2/3, R 1, F1 = 2*2/(2+3) = 0.8; in order, so the LCS is 2 too.
    ("the cat", "The cat sat.", 0.8, 0.8),
    # 4 and 4 words, 4 common, but the longest common subsequence of "a b c d" and "b a d c" is 2.
    ("a b c d", "b a d c", 1.0, 0.5),
    # Multisets: "a a b" and "a b b" have a, b in common: 2*2/6. LCS "a b" 2.
    ("a a b", "a b b", 2 / 3, 2 / 3), ("a", "b", 0.0, 0.0), ("", "", 1.0, 1.0), ("a", "", 0.0, 0.0),
    ("", "a", 0.0, 0.0),
    # 2 and 3 characters, 2 common.
    ("北京", "在北京。", 0.8, 0.8), ("über", "UBER über", 2 / 3, 2 / 3),
])  # fmt: skip
def test_f1_and_rouge_l(gold, reply, f1, rouge_l):
    assert SCORES["expected_f1"](gold, reply) == pytest.approx(f1)
    assert SCORES["expected_rouge_l"](gold, reply) == pytest.approx(rouge_l)


def test_rouge_l_equals_rouge_score_on_plain_english():
    scorer = rouge_scorer.RougeScorer(["rougeL"])
    pairs = [
        ("the quick brown fox jumps over the lazy dog", "a quick dog jumps over the brown lazy fox today"),
        ("police killed the gunman", "the gunman was killed by police"),
        ("one two three four five six seven", "seven six five four three two one"),
        ("x " * 90 + "y", "y " + "x " * 70),  # more than 64 words
    ]
    for gold, reply in pairs:
        assert SCORES["expected_rouge_l"](gold, reply) == pytest.approx(scorer.score(gold, reply)["rougeL"].fmeasure)


def test_bleu_and_chrf_equal_sacrebleu():
    gold, reply = "The cat sat on the mat, quietly.", "The cat is on the mat, and quiet."
    assert SCORES["expected_bleu"](gold, reply) == pytest.approx(sacrebleu.sentence_bleu(reply, [gold]).score / 100)
    assert SCORES["expected_chrf"](gold, reply) == pytest.approx(sacrebleu.sentence_chrf(reply, [gold]).score / 100)
    gold, reply = "今天天气很好，我们去公园。", "今天天气不错，我们去公园。"
    bleu = sacrebleu.sentence_bleu(reply, [gold], tokenize="zh").score / 100
    assert SCORES["expected_bleu"](gold, reply) == pytest.approx(bleu)
    assert 0 < bleu < 1


@pytest.mark.parametrize("name", ["expected_bleu", "expected_chrf"])
def test_bleu_and_chrf_of_nothing(name):
    assert SCORES[name]("", " ") == 1
    assert SCORES[name]("a", "") == 0
    assert SCORES[name]("", "a") == 0
    assert SCORES[name]("é", "e\u0301") == pytest.approx(1)  # NFC


@pytest.mark.parametrize(("gold", "reply", "value"), [
    # A minus is a minus however it is written, and never nothing.
    *(("3", f"{minus}3", 0) for minus in "-\u2011\u2013\u2212\ufe63\uff0d"),
    *(("-3", f"{minus}3", 1) for minus in "-\u2011\u2013\u2212\ufe63\uff0d"),
    (".5", "5", 0), ("5", ".5", 0), (".5", ".5", 1), ("-.5", ".5", 0), ("-$5", "$5", 0), ("$5", "-$5", 0),
    ("95", "95 %", 0), ("95%", "95 %", 1),
    # Dashes and dots that are none of a number's.
    ("3-5", "3 \u2013 5", 1), ("3 5", "3 \u2013 5", 0), ("answer 5", "answer...5", 1), ("a 3", "a \u2014 3", 1),
])  # fmt: skip
def test_signs_and_points_belong_to_numbers(gold, reply, value):
    assert SCORES["expected_exact"](gold, reply) == value


@pytest.mark.parametrize(("gold", "reply", "value"), [
    # Relations are words of their own.
    ("-3", "x=-3", 1), ("-3", "x=\u22123", 1), ("3", "x=-3", 0), ("5", "10-5=5", 1), ("-5", "10-5=5", 0),
    ("x=5", "x = 5", 1), ("x = 5", "so x=5.", 1), (".5", "x=.5", 1), ("-3", "x\u2265-3", 1),
    ("Paris", "answer=Paris", 1), ("Paris", "<b>Paris</b>", 1), ("Paris", "|Paris|2.1|", 1), ("2.1", "|Paris|2.1|", 1),
    # Pictures and arrows too.
    ("Paris", "Paris\U0001f389", 1), ("Paris", "\u2705Paris\u2764\ufe0f!", 1), ("Paris", "France\u2192Paris", 1),
    ("Windows", "Windows\u2122", 1),
    # Dashes between digits, however they are written.
    ("10-20", "10\u201320 people", 1), ("2024-01-02", "2024\u201101\u201102", 1), ("20", "10\u201320", 0),
    # Formulas between dollar signs, and amounts.
    ("4", "It is $4$.", 1), ("4", "$$4$$", 1), ("-4", "$x=-4$", 1), ("x", "where $x$ is", 1), ("4", "It costs $4.", 1),
    ("4", "$4-$5", 0), ("4", "between $4 and $5", 1), ("$4", "between $4 and $5", 1), ("$4", "US$4/US$5", 0),
    ("$5", "a$ and $5", 1),
    # Full-width forms.
    ("10", "\uff11\uff10です", 1), ("1.5", "\uff11\uff0e\uff15", 1), ("-3", "\uff0d\uff13", 1),
    ("ABC", "\uff21\uff22\uff23\uff01", 1),
])  # fmt: skip
def test_symbols_and_words(gold, reply, value):
    assert SCORES["expected_contains"](gold, reply) == value
    assert SCORES["expected_f1"](gold, reply) >= (0.2 if value else 0)


MATCHES = [json.loads(line) for line in (Path(__file__).parents[2] / "data/chat/matches.jsonl").open(encoding="utf-8")]


@pytest.mark.parametrize("row", MATCHES, ids=[f"line {number}" for number in range(1, len(MATCHES) + 1)])
def test_matches_judged_by_hand(row):
    assert SCORES[row["metric"]](row["expected"], row["reply"]) == row["value"]


@pytest.mark.parametrize(("noun", "said", "value"), [
    # A particle must fit the last sound: after a vowel, after a consonant, after \u3139.
    ("\uc0ac\uacfc", "\uc0ac\uacfc\ub294", 1), ("\uc0ac\uacfc", "\uc0ac\uacfc\uc740", 0),
    ("\uc0ac\uacfc", "\uc0ac\uacfc\ub85c", 1), ("\uc11c\uc6b8", "\uc11c\uc6b8\ub85c", 1),
    ("\uc11c\uc6b8", "\uc11c\uc6b8\uc73c\ub85c", 1), ("\ubd80\uc0b0", "\ubd80\uc0b0\ub85c", 0),
    ("\ubd80\uc0b0", "\ubd80\uc0b0\uc5d0\uc11c\ub294", 1), ("\ubd80\uc0b0", "\ubd80\uc0b0\uc5d0\uc11c\ub294\uc740", 0),
    ("\ubd80\uc0b0", "\ubd80\uc0b0\uc2dc", 0), ("BTS", "BTS\uac00", 1), ("BTS", "BTSx", 0),
])  # fmt: skip
def test_korean_particles(noun, said, value):
    assert SCORES["expected_contains"](noun, f"\ub124, {said} \ub124") == value
    assert SCORES["expected_prefix"](noun, f"{said} \ub124") == value
    assert SCORES["expected_exact"](noun, said) == 0


def test_where_punctuation_counts_words_stand_between_spaces():
    assert words("$5, 1,000!", ignore_punctuation=False) == ("$5,", "1,000!")
    assert words("\u0664 \u0130", ignore_punctuation=False) == ("4", "i")
    assert words("\u0130I", ignore_case=False) == ("\u0130I",)


@pytest.mark.long
@pytest.mark.parametrize(
    "piece", ["1,", "1-", "$1", "5kg-", "1 ", "a1", "1%", "(", "'", "5.", "EUR", "-", "x1,1-", "$"]
)
def test_hostile_texts_cost_little(piece):
    def cost(length):
        text = piece * (length // len(piece))
        started = time.process_time()
        assert SCORES["expected_contains"]("a b", text) == 0
        assert SCORES["expected_contains"](text[: length // 2], text + "x") in (0, 1)
        return time.process_time() - started

    # Ten times the text may cost ten times as much; what is quadratic costs a hundred times as much.
    assert cost(100_000) < 40 * max(cost(10_000), 0.01)


@given(st.sampled_from(["eur", "Paris", "a", "kg", "New York"]), st.lists(st.sampled_from(
     ["Paris", "eur", "kg ", "a", "New York", " ", " ", "-", "5", "1,000", "```", "*", "$", "'", "\\", "(", "²", "中", "\n"]
), max_size=8))  # fmt: skip
def test_what_a_text_holds_are_its_words(gold, pieces):
    text = "".join(pieces)
    is_near = gold.lower() in text.lower()
    assert texts.holds(gold, text) == (is_near and texts.find(texts._words(gold), texts._words(text), at_start=False))
