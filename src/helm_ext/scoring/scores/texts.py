"""Scores of texts: a gold text against what the model said, in any script, offline. All are in 0..1.

They stand where HELM's fail: `quasi_exact_match` and `f1_score` follow SQuAD's English habits (articles go, `1.5`
becomes `15`), `rouge_l` sees no letters beyond ASCII, `bleu_*` downloads NLTK data at run time, and none of them knows
a word in a script without spaces. What a word is stands in `helm_ext.scoring.normal_form`.

An empty gold is a gold: an empty prediction is equal to it. (HELM's scores of equality are 0 for empty predictions.)
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from datetime import date
from decimal import Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal

from helm_ext.scoring.score import Score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF


def _words(text: str, *, ignore_case: bool = True, ignore_punctuation: bool = True) -> tuple[str, ...]:
    from helm_ext.scoring.normal_form import words  # its patterns take 10 ms to compile, too long for the names alone

    return words(text, ignore_case=ignore_case, ignore_punctuation=ignore_punctuation)


def normalized_exact_match(gold: str, prediction: str) -> float:
    """Return 1.0 if both have one normal form; where that is empty ("A", "?"), if they have one bare form."""
    from helm_ext.scoring.normal_form import bare_form, may_have, normalize

    if gold.strip() == prediction.strip():  # whatever their form is
        return 1.0
    wanted = normalize(gold)
    if wanted and not may_have(prediction, wanted):
        return 0.0
    said = normalize(prediction)
    if wanted and said:
        return float(wanted == said)
    return float(bare_form(gold) == bare_form(prediction))


def normalized_f1(gold: str, prediction: str) -> float:
    """Return the F1 of the words of both normal forms, with multiplicity (SQuAD's rule; HELM's f1_score takes sets)."""
    from helm_ext.scoring.normal_form import normalize

    wanted, said = normalize(gold).split(), normalize(prediction).split()
    return f1(wanted, said) if wanted and said else normalized_exact_match(gold, prediction)


def squad_f1(gold: str, prediction: str) -> float:
    """Return the F1 of SQuAD's own script: words in lower case without ASCII punctuation and articles, as often as they
    stand. Two texts without such words score 1.
    """
    from helm_ext.scoring.scores.helm import normalize_text

    return f1(normalize_text(gold).split(), normalize_text(prediction).split())


def f1(wanted: Sequence[str], said: Sequence[str]) -> float:
    """Return the F1 of two texts' words, each as often as it stands (SQuAD's rule); without words they are equal."""
    if not wanted or not said:
        return float(len(wanted) == len(said))
    return 2 * sum((Counter(wanted) & Counter(said)).values()) / (len(wanted) + len(said))


# ---- Values

_AMOUNT = re.compile(r"([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?:\s+(\S.*))?", re.DOTALL)
_MAX_EXPONENT = 400
"""A number beyond is compared as it is written: spelt out, it could have a billion digits."""
_DAY = re.compile(r"(\d{1,4})-(\d{1,2})-(\d{1,2})")
_YEAR = re.compile(r"[+-]?\d{1,4}")


def value_exact_match(gold: str, prediction: str) -> float:
    """Return 1.0 if both are the same value: a number with its unit, a day or year, else the same stripped text.

    "100.0 metres" is "100 metres"; "2001-05-03" is "2001-5-3", and the year "2001" is every day in it.
    """
    wanted, said = _to_value(gold), _to_value(prediction)
    if wanted == said:
        return 1.0
    one, other = _to_day(wanted), _to_day(said)
    if one is None or other is None:
        return 0.0
    if isinstance(one, date) and isinstance(other, date):
        return float(one == other)
    return float(_year(one) == _year(other))


def _to_value(text: str) -> str:
    """Return a number, exactly, with single spaces before and in its unit and no empty zeros; else the text."""
    text = text.strip()
    amount = _AMOUNT.fullmatch(text)
    number = Decimal(amount[1]) if amount else None
    if amount is None or number is None or abs(number.adjusted()) > _MAX_EXPONENT:
        return text
    shown = f"{number:f}"
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    shown = "0" if shown == "-0" else shown
    return " ".join([shown, *(amount[2] or "").split()])


def _to_day(text: str) -> date | int | None:
    day = _DAY.fullmatch(text)
    if day:
        try:
            return date(int(day[1]), int(day[2]), int(day[3]))
        except ValueError:
            return None
    return int(text) if _YEAR.fullmatch(text) else None


def _year(day: date | int) -> int:
    return day.year if isinstance(day, date) else day


# ---- An expected text as whole words of a reply: Korean particles may follow them

_AFTER_CONSONANT = (
    "은 이 을 과 으로 으로서 으로써 이나 이랑 이라고 이란 이며 이고 이라는 이에요 이야 이었다 이었습니다 아 이여"
)
_AFTER_VOWEL = "는 가 를 와 로 로서 로써 나 랑 라고 란 며 고 라는 예요 야 였다 였습니다 다 지만 죠 지 여"
_AFTER_BOTH = (
    "의 에 에서 에게 에게서 께 께서 한테 한테서 도 만 까지 부터 "
    "보다 처럼 마다 조차 밖에 하고 입니다 이다 입니다만 이지만 인데 이죠 이지"
)
"""What may follow a Korean noun without a space: particles and forms of the copula. A closed list."""
_TOPICS = ("은", "는", "도", "만", "이", "의")
"""What may follow another particle ("까지는")."""
_WRONG_AFTER_CONSONANT = frozenset(_AFTER_VOWEL.split())
_WRONG_AFTER_VOWEL = frozenset(_AFTER_CONSONANT.split())
_PARTICLES = _WRONG_AFTER_CONSONANT | _WRONG_AFTER_VOWEL | frozenset(_AFTER_BOTH.split())
_ENDINGS = _PARTICLES | {
    first + topic for first in _PARTICLES for topic in _TOPICS if len(first) > 1 or first in "에로만"
}  # fmt: skip


def _may_follow(ending: str, word: str) -> bool:
    """Tell whether `ending` is a Korean particle that may follow the last sound of `word`."""
    if ending not in _ENDINGS:
        return False
    last = ord(word[-1]) - 0xAC00
    if not 0 <= last < 28 * 399:  # no syllable: how the word sounds is not known
        return True
    final = last % 28
    if final == 8 and ending.startswith("로"):
        return True
    return ending not in (_WRONG_AFTER_CONSONANT if final else _WRONG_AFTER_VOWEL)


def find(wanted: tuple[str, ...], said: tuple[str, ...], *, at_start: bool) -> bool:
    """Tell whether `wanted` (not empty) stands in `said`, or at its start; a Korean particle may follow it."""
    needle, text = "\n".join(("", *wanted)), "\n".join(("", *said, ""))
    place = text.find(needle)
    while place != -1 and not (at_start and place):
        end = place + len(needle)
        ending = text[end : text.index("\n", end)]
        if not ending or _may_follow(ending, wanted[-1]):
            return True
        place = text.find(needle, end)
    return False


def _match(
    place: Literal["exact", "prefix", "contains"],
    ignore_case: bool,
    ignore_punctuation: bool,
    gold: str,
    prediction: str,
) -> float:
    """Compare whole words; as values where the whole gold is a number.

    A gold without words is matched by a reply without words only, wherever it is looked for.
    """
    if place == "exact" and ignore_case and ignore_punctuation:
        from helm_ext.scoring.normal_form import read_value

        value = read_value(gold)
        if value is not None:
            return float(value == read_value(prediction))
    wanted = _words(gold, ignore_case=ignore_case, ignore_punctuation=ignore_punctuation)
    said = _words(prediction, ignore_case=ignore_case, ignore_punctuation=ignore_punctuation)
    if not wanted or place == "exact":
        return float(wanted == said)
    return float(find(wanted, said, at_start=place == "prefix"))


_LETTERS = re.compile("[a-z]+")


def holds(gold: str, text: str) -> bool:
    """Tell whether a gold stands in a text as whole words (`expected_contains`), spelled alike but for case."""
    sought, lowered = gold.strip().lower(), text.lower()
    if sought not in lowered:  # most texts need not be taken apart
        return False
    if _LETTERS.fullmatch(sought) and f" {sought} " in lowered:  # nor those where a word stands between spaces
        return True
    wanted = _words(gold)
    return bool(wanted) and find(wanted, _words(text), at_start=False)


def _word_f1(gold: str, prediction: str) -> float:
    """F1 over the multisets of words (SQuAD's rule, without its English article list)."""
    return f1(_words(gold), _words(prediction))


def _rouge_l(gold: str, prediction: str) -> float:
    """ROUGE-L F1 (Lin 2004), no stemming."""
    from rapidfuzz.distance import LCSseq

    wanted, said = _words(gold), _words(prediction)
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

EXACT = frozenset(
    {
        "exact_match",
        "quasi_exact_match",
        "prefix_exact_match",
        "quasi_prefix_exact_match",
        "normalized_exact_match",
        "value_exact_match",
        *(f"expected_{place}{suffix}" for place in ("exact", "prefix") for suffix, *_ in _VARIANTS),
    }
)
"""The scores, HELM's and ours, by which a right answer within other words is wrong."""

SCORES: tuple[Score, ...] = (
    Score(
        "normalized_exact_match", normalized_exact_match, "Normalized exact match",
        "Fraction of rows whose answer is a correct one; case, sentence punctuation and articles aside.",
        short_display_name="Norm. EM",
    ),
    Score("normalized_f1", normalized_f1, "Normalized F1",
          "F1 over words, each as often as it stands; case, punctuation and English articles aside."),
    Score("squad_f1", squad_f1, "SQuAD F1",
          "F1 over words as SQuAD's own script has it; case, ASCII punctuation and articles aside."),
    Score("value_exact_match", value_exact_match, "Value exact match",
          "Fraction of rows whose answer is the right number with its unit, day, year, or text."),
    *(
        Score(
            f"expected_{place}{suffix}", partial(_match, place, ignore_case, ignore_punctuation),
            f"Expected ({place}{label})", f"{says}, as whole words; {rule}.",
        )
        for place, says in _PLACES.items()
        for suffix, label, ignore_case, ignore_punctuation, rule in _VARIANTS
    ),
    Score("expected_f1", _word_f1, "Expected (F1)", "F1 over the words of the reply and of the expected text."),
    Score("expected_rouge_l", _rouge_l, "Expected (ROUGE-L)",
          "ROUGE-L F1 over words: the longest common subsequence of the reply and the expected text."),
    Score("expected_bleu", _bleu, "Expected (BLEU)", "Sentence BLEU (sacrebleu, 0 to 1), characters as words in CJK."),
    Score("expected_chrf", _chrf, "Expected (chrF)", "chrF2 (sacrebleu, 0 to 1): F-score over character n-grams."),
)  # fmt: skip
"""What `helm_ext.scoring.registry` offers from this module."""
