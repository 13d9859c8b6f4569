"""The normal form against HELM's own, and against itself."""

import re
import unicodedata

from helm.benchmark.metrics.evaluate_reference_metrics import normalize_text, quasi_exact_match
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helm_ext.scoring.normal_form import _RAISED, may_have, normalize
from helm_ext.scoring.scores.texts import normalized_exact_match, normalized_f1

WORDS = st.sampled_from(["a", "an", "the", "The", "cat", "Cat", "theatre", "can't", "A.", "well-known", "no"])
PUNCTUATION = st.sampled_from([" ", "  ", ", ", ". ", "! ", "? ", "; ", ": ", " - ", " (", ") ", '"', "'", "\n", ""])
MINUS = re.compile(r"\b[aA] - [aA]\b")
"""Between single letters, " - " is a minus."""
SENTENCES = st.lists(st.tuples(WORDS, PUNCTUATION), max_size=8).map(lambda parts: "".join(w + p for w, p in parts))


@given(SENTENCES)
def test_helms_form_on_ascii_words_and_sentence_punctuation(text):
    assume(not MINUS.search(text))
    assert normalize(text) == normalize_text(text)


@given(SENTENCES, SENTENCES)
def test_helms_score_on_ascii_words_and_sentence_punctuation(gold, prediction):
    assume(not MINUS.search(gold) and not MINUS.search(prediction))
    assume(normalize_text(gold) and normalize_text(prediction))  # where nothing is left, HELM calls "a" and "the" equal
    assert normalized_exact_match(gold, prediction) == quasi_exact_match(gold, prediction)


@given(st.text())
def test_every_text_is_itself_whatever_its_case(text):
    assert normalized_exact_match(text, text) == 1
    assert normalized_f1(text, text) == 1
    assert normalized_exact_match(text, f" {text}\n") == 1


PIECES = [
    "the ", "a ", "An-", "5 kWh-7", "5 USD-", "$3", "km/h ", "Rs.", "metres", "*b* ", "`x`", "- ", "(a)", "```py\n",
    "\\`", "\n`\u200b``javascript\n", "\n\uff40\uff40\uff40python\n", "t'he ", "甲乙", "水，", "5 kWh\u20147",
    "degreesfahrenheit/", "3.5 ", "x",
]  # fmt: skip


@settings(max_examples=300)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=80).map("".join)))
def test_a_text_may_have_its_own_normal_form(text):
    assert may_have(text, normalize(text))


@given(st.text(), st.text())
def test_the_score_is_symmetric(one, other):
    assert normalized_exact_match(one, other) == normalized_exact_match(other, one)


@given(st.characters())
def test_super_and_subscripts_keep_their_height(character):
    raised = unicodedata.decomposition(character).startswith(("<super>", "<sub>"))
    assert not raised or _RAISED.fullmatch(character)


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
def test_numbers_are_equal_only_to_themselves(one, other):
    assert normalized_exact_match(str(one), f"{other}.") == (one == other)
