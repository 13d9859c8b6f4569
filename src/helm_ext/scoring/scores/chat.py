"""Scores for chat replies: `expected` against what the model said, offline and in any script.

HELM's own metrics stay available; these stand where HELM's fail on chat: `quasi_exact_match` and `f1_score` follow
SQuAD's English habits (articles go, `1.5` becomes `15`), `rouge_l` sees no letters beyond ASCII, `bleu_*` downloads
NLTK data at run time, and none of them knows a word in a script without spaces.

What a word is stands in `helm_ext.scoring.normal_form`. All
scores are in 0..1 and defined for empty texts.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from helm_ext.scoring.score import Score
from helm_ext.scoring.scores.words import f1

if TYPE_CHECKING:
    from collections.abc import Callable

    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF


def _match(
    gold: str,
    prediction: str,
    place: Literal["exact", "prefix", "contains"],
    ignore_case: bool,
    ignore_punctuation: bool,
) -> float:
    """Compare whole words; as values where the whole gold is a number.

    A gold without words is matched by a reply without words only, wherever it is looked for.
    """
    # The patterns take 10 ms to compile: not for names alone.
    from helm_ext.scoring.normal_form import read_value, words
    from helm_ext.scoring.scores.words import find

    if place == "exact" and ignore_case and ignore_punctuation:
        value = read_value(gold)
        if value is not None:
            return float(value == read_value(prediction))
    wanted = words(gold, ignore_case=ignore_case, ignore_punctuation=ignore_punctuation)
    said = words(prediction, ignore_case=ignore_case, ignore_punctuation=ignore_punctuation)
    if not wanted or place == "exact":
        return float(wanted == said)
    return float(find(wanted, said, at_start=place == "prefix"))


_PLACES: dict[Literal["exact", "prefix", "contains"], str] = {
    "exact": "The reply is the expected text",
    "prefix": "The reply starts with the expected text",
    "contains": "The expected text stands somewhere in the reply",
}
_VARIANTS = (
    ("", "", True, True, "case and punctuation ignored"),
    ("_cased", ", cased", False, True, "punctuation ignored, case counts"),
    ("_punct", ", punctuation", True, False, "case ignored, punctuation counts"),
    ("_strict", ", strict", False, False, "case and punctuation count"),
)


def _score(name: str, function: Callable[[str, str], float], display_name: str, description: str) -> Score:
    return Score(name=name, function=function, display_name=display_name, description=description)


def _match_score(place: Literal["exact", "prefix", "contains"], variant: tuple[str, str, bool, bool, str]) -> Score:
    suffix, label, ignore_case, ignore_punctuation, rule = variant

    def function(gold: str, prediction: str) -> float:
        return _match(gold, prediction, place, ignore_case, ignore_punctuation)

    return _score(
        f"expected_{place}{suffix}",
        function,
        f"Expected ({place}{label})",
        f"{_PLACES[place]}, as whole words; {rule}.",
    )


def _word_f1(gold: str, prediction: str) -> float:
    """F1 over the multisets of words (SQuAD's rule, without its English article list)."""
    from helm_ext.scoring.normal_form import words

    return f1(words(gold), words(prediction))


def _rouge_l(gold: str, prediction: str) -> float:
    """ROUGE-L F1 (Lin 2004), no stemming."""
    from rapidfuzz.distance import LCSseq

    from helm_ext.scoring.normal_form import words

    wanted, said = words(gold), words(prediction)
    if not wanted or not said:
        return float(wanted == said)
    return 2 * LCSseq.similarity(wanted, said) / (len(wanted) + len(said))


@lru_cache(maxsize=1)
def _sacrebleu() -> tuple[BLEU, CHRF]:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    return BLEU(effective_order=True), CHRF()


def _spaced(text: str) -> str:
    from helm_ext.scoring.normal_form import separate_characters

    return " ".join(separate_characters(unicodedata.normalize("NFC", text)).split())


def _bleu(gold: str, prediction: str) -> float:
    """Sentence BLEU of sacrebleu (13a tokens, exponential smoothing, effective order)."""
    if not gold.strip() or not prediction.strip():
        return float(gold.strip() == prediction.strip())
    return float(_sacrebleu()[0].sentence_score(_spaced(prediction), [_spaced(gold)]).score) / 100


def _chrf(gold: str, prediction: str) -> float:
    """chrF2 of sacrebleu: character n-grams, so scripts without spaces need nothing."""
    if not gold.strip() or not prediction.strip():
        return float(gold.strip() == prediction.strip())
    gold, prediction = (unicodedata.normalize("NFC", text) for text in (gold, prediction))
    return float(_sacrebleu()[1].sentence_score(prediction, [gold]).score) / 100


SCORES: tuple[Score, ...] = (
    *(_match_score(place, variant) for place in _PLACES for variant in _VARIANTS),
    _score("expected_f1", _word_f1, "Expected (F1)", "F1 over the words of the reply and of the expected text."),
    _score(
        "expected_rouge_l",
        _rouge_l,
        "Expected (ROUGE-L)",
        "ROUGE-L F1 over words: the longest common subsequence of the reply and the expected text.",
    ),
    _score("expected_bleu", _bleu, "Expected (BLEU)", "Sentence BLEU (sacrebleu, 0 to 1), characters as words in CJK."),
    _score("expected_chrf", _chrf, "Expected (chrF)", "chrF2 (sacrebleu, 0 to 1): F-score over character n-grams."),
)
"""What `helm_ext.scoring.registry` offers from this module."""
