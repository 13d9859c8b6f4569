"""Scores for chat replies: `expected` against what the model said, offline and in any script.

HELM's own metrics stay available; these stand where HELM's fail on chat: `quasi_exact_match` and `f1_score` follow
SQuAD's English habits (articles go, `1.5` becomes `15`), `rouge_l` sees no letters beyond ASCII, `bleu_*` downloads
NLTK data at run time, and none of them knows a word in a script without spaces.

A reasoning model's thinking is no part of its reply. All texts are normalised to NFC. A *word* is what stands between
spaces; in scripts that write no spaces (Han, kana, Thai, Lao, Khmer, Burmese) every character is a word, and so are
relations (`=`), arrows and pictures. All scores are in 0..1 and defined for empty texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from helm_ext.parsing import without_thinking
from helm_ext.scoring.score import Score
from helm_ext.scoring.scores.refusal import APOSTROPHES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

__all__ = ["SCORES", "words"]

# Scripts that are written without spaces. Hangul has spaces and is not here.
_UNSPACED = re.compile(
    "["
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "]"
    "[\u0300-\u036f\u3099\u309a\ufe00-\ufe0f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd]*"
)
_ALONE = re.compile(
    "[=<>|~\u223c-\u226f]+"  # relations: "x=5" says 5, and is "x = 5"
    "|[\u00a9\u00ae\u2122\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2900-\u297f\u2b00-\u2bff"  # arrows, pictures
    "\U0001f000-\U0001faff][\ufe0e\ufe0f]?"
)
"""Symbols that are words of their own, with or without spaces around them."""
_MATH = re.compile(r"(?<![\w$])\$\$?(?=[^\s$])([^$\n]*)(?<=\S)\$\$?(?!\d)")
"""A formula between dollar signs. Pandoc's rule tells it from amounts: no space inside, no digit behind (`$4-$5`)."""
_SIGNED = re.compile(r"[$€£¥₹]?\.?\d")
"""What a minus may stand before."""
_DASH = "[\u2010-\u2013\u2212\ufe63]"
_MINUS = re.compile(rf"(?<!\w){_DASH}(?={_SIGNED.pattern})|(?<=\d){_DASH}(?=\d)")
"""The other ways to write a minus, or the dash of a range or a date: hyphens, the en dash, U+2212, the small one."""
_PERCENT = re.compile(r"(?<=\d)\s+(?=[%٪％])")


_PLAIN = str.maketrans(
    dict.fromkeys("\u00ad\u200b\u2060\ufeff") | {chr(0xFEE0 + code): chr(code) for code in range(33, 127)}
)
"""Soft hyphen, zero-width space, word joiner, BOM are invisible; joiners that letters need (U+200C, U+200D) stay.
Full-width letters, digits and signs are those of ASCII."""


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P") or character in "`´"


def _without_punctuation(text: str) -> str:
    """Replace punctuation by spaces, except where it is part of a word.

    Kept: between digits (`1.5`, `10:30`), a minus before a number or an amount (`-3`, `-.5`, `-$5`, also as U+2212 and
    its like), a leading decimal point (`.5`), `%` after a number (also after a space), `#` after a letter (`C#`).
    An apostrophe between letters goes without leaving a space (`don't` = `don’t` = `dont`). Symbols such as `+` and `$`
    are no punctuation in Unicode and stay, but for the `$` around formulas.
    """
    text = _PERCENT.sub("", _MINUS.sub("-", _MATH.sub(r" \1 ", text)))
    out: list[str] = []
    for index, character in enumerate(text):
        if not _is_punctuation(character):
            out.append(character)
            continue
        before = text[index - 1] if index else " "
        after = text[index + 1] if index + 1 < len(text) else " "
        if (
            (before.isdigit() and after.isdigit())
            or (character == "-" and _SIGNED.match(text, index + 1) and not before.isalnum())
            or (character == "." and after.isdigit() and not before.isalnum() and before != ".")
            or (character in "%٪％" and before.isdigit())
            or (character == "#" and before.isalpha())
        ):
            out.append(character)
        elif not (character in APOSTROPHES and before.isalpha() and after.isalpha()):
            out.append(" ")
    return "".join(out)


@lru_cache(maxsize=4096)
def words(text: str, *, ignore_case: bool = True, ignore_punctuation: bool = True) -> tuple[str, ...]:
    """Return the words of `text` in order.

    A text that consists of punctuation only keeps it even when punctuation is ignored: otherwise "?" would equal "".
    """
    text = unicodedata.normalize("NFC", text.translate(_PLAIN))
    if ignore_case:
        text = unicodedata.normalize("NFC", text.casefold())
    if ignore_punctuation:
        found = _split(_without_punctuation(text))
        if found:
            return found
    return _split(text)


def _split(text: str) -> tuple[str, ...]:
    return tuple(_ALONE.sub(r" \g<0> ", _UNSPACED.sub(r" \g<0> ", text)).split())


def _match(
    gold: str,
    prediction: str,
    place: Literal["exact", "prefix", "contains"],
    ignore_case: bool,
    ignore_punctuation: bool,
) -> float:
    """Compare whole words. A gold without words is matched by a reply without words only, wherever it is looked for."""
    wanted = words(gold, ignore_case=ignore_case, ignore_punctuation=ignore_punctuation)
    said = words(prediction, ignore_case=ignore_case, ignore_punctuation=ignore_punctuation)
    if not wanted or place == "exact":
        return float(wanted == said)
    starts = range(1 if place == "prefix" else len(said) - len(wanted) + 1)
    return float(any(said[start : start + len(wanted)] == wanted for start in starts))


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
    def score_reply(gold: str, prediction: str) -> float:
        return function(gold, without_thinking(prediction))

    return Score(name=name, function=score_reply, display_name=display_name, description=description)


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


def _f1(overlap: int, wanted: int, said: int) -> float:
    return 2 * overlap / (wanted + said) if overlap else 0.0


def _word_f1(gold: str, prediction: str) -> float:
    """F1 over the multisets of words (SQuAD's rule, without its English article list)."""
    wanted, said = words(gold), words(prediction)
    if not wanted or not said:
        return float(wanted == said)
    return _f1(sum((Counter(wanted) & Counter(said)).values()), len(wanted), len(said))


def _lcs_length(left: Sequence[str], right: Sequence[str]) -> int:
    """Length of the longest common subsequence, bit-parallel (Hyyrö 2004): one integer operation per word."""
    places: dict[str, int] = {}
    for index, word in enumerate(left):
        places[word] = places.get(word, 0) | 1 << index
    full = (1 << len(left)) - 1
    row = full
    for word in right:
        matches = row & places.get(word, 0)
        row = (row + matches | row - matches) & full
    return len(left) - row.bit_count()


def _rouge_l(gold: str, prediction: str) -> float:
    """ROUGE-L F1 (Lin 2004), no stemming."""
    wanted, said = words(gold), words(prediction)
    if not wanted or not said:
        return float(wanted == said)
    return _f1(_lcs_length(wanted, said), len(wanted), len(said))


@lru_cache(maxsize=1)
def _sacrebleu() -> tuple[BLEU, CHRF]:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    return BLEU(effective_order=True), CHRF()


def _spaced(text: str) -> str:
    return " ".join(_UNSPACED.sub(r" \g<0> ", unicodedata.normalize("NFC", text)).split())


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
