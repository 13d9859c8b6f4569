"""Scores of short answers: equal or alike in the normal form (`scoring.normal_form`), equal as values.

An empty gold is a gold: an empty prediction is equal to it. (HELM's scores of equality are 0 for empty predictions.)
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

from helm_ext.scoring.score import Score
from helm_ext.scoring.scores.words import f1


def normalized_exact_match(gold: str, prediction: str) -> float:
    """Return 1.0 if both have one normal form; where that is empty ("A", "?"), if they have one bare form."""
    from helm_ext.scoring.normal_form import bare_form, may_have, normalize

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
    if not wanted or not said:
        return normalized_exact_match(gold, prediction)
    return f1(wanted, said)


def squad_f1(gold: str, prediction: str) -> float:
    """Return the F1 of SQuAD's own script: words in lower case without ASCII punctuation and articles, as often as they
    stand. Two texts without such words score 1.
    """
    from helm_ext.scoring.basic.scores import normalize_text  # loads HELM

    return f1(normalize_text(gold).split(), normalize_text(prediction).split())


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


SCORES: tuple[Score, ...] = (
    Score(
        name="normalized_exact_match",
        function=normalized_exact_match,
        display_name="Normalized exact match",
        short_display_name="Norm. EM",
        description="Fraction of rows whose answer is a correct one; case, sentence punctuation and articles aside.",
    ),
    Score(
        name="normalized_f1",
        function=normalized_f1,
        display_name="Normalized F1",
        description="F1 over words, each as often as it stands; case, punctuation and English articles aside.",
    ),
    Score(
        name="squad_f1",
        function=squad_f1,
        display_name="SQuAD F1",
        description="F1 over words as SQuAD's own script has it; case, ASCII punctuation and articles aside.",
    ),
    Score(
        name="value_exact_match",
        function=value_exact_match,
        display_name="Value exact match",
        description="Fraction of rows whose answer is the right number with its unit, day, year, or text.",
    ),
)
"""What `helm_ext.scoring.registry` offers from this module."""
