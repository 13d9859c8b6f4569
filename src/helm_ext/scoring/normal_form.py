"""The normal form of a short answer, in which `normalized_exact_match` and `normalized_f1` compare texts.

Like HELM's (`normalize_text` of helm/benchmark/metrics/evaluate_reference_metrics.py) it drops case, punctuation and
English articles; on ASCII letters, spaces and sentence punctuation both are equal. Beyond that:

- Unicode: case folding, compatibility forms (full width, ligatures; not super- and subscripts: 10² is not 102), digits
  of all scripts, every kind of punctuation and symbol, invisible characters; no spaces beside Chinese and kana;
- what changes the meaning stays: a sign (-5), a decimal point (3.5, .5), `:`, `/` and a dash between digits (10:30,
  1/2, 2020-24), a comma between digits unless exactly three follow it (1,000 is 1000), `+` after a letter or digit and
  `#` after a letter (C++, A+, C#). Other dashes and the minus sign U+2212 are `-`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

__all__ = ["bare_form", "normalize"]

_ARTICLES = frozenset({"a", "an", "the"})

_MEANING = re.compile(
    r"[.:/,+#-](?:"  # first what it is, so that the search leaps from one to the next
    r"(?<=\d[.:/-])(?=\d)"
    r"|(?<=\d,)(?=\d)(?!\d{3}(?!\d))"
    r"|(?<=\.)(?<![\w.]\.)(?=\d)"
    r"|(?<=[+-])(?<!\w[+-])(?=[^\w\s+-]?\.?\d)"  # also before an amount: -$5
    r"|(?<=[\w+]\+)"
    r"|(?<=[^\W\d_]#))"
)
"""Punctuation that stays. Dashes are `-` already."""
_MAY_MEAN = re.compile(r"[\d+#]")
"""Only beside one of these does punctuation stay."""
_KEPT = ".:/-,+#"
_PROTECTED = {character: chr(0xFDD0 + number) for number, character in enumerate(_KEPT)}
"""Noncharacters that stand for kept punctuation while the rest is dropped."""

_SAME = str.maketrans(
    dict.fromkeys("\u00ad\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
    | dict.fromkeys("\u2044\u2215", "/")
    | {"\u2236": ":", "\u066b": ".", "\u066c": ","}
)
"""Invisible characters are nothing; dashes, slashes and marks in numbers are written alike."""

_SUPERSCRIPTS = (
    "\u00aa\u00b2\u00b3\u00b9\u00ba\u02b0-\u02b8\u02e0-\u02e4\u1d2c-\u1d6a\u1d78\u1d9b-\u1dbf"
    "\u10fc\u2070-\u209c\u2120\u2122\u2c7c\u2c7d\u2d6f\u3192-\u319f"
    "\ua69c\ua69d\ua770\ua7f2-\ua7f4\ua7f8\ua7f9\uab5c-\uab5f\uab69\U00010781-\U000107ba\U0001f16a-\U0001f16c"
)
_RAISED = re.compile(f"([{_SUPERSCRIPTS}]+)")
_FRACTION = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215e\u2189])")
"""1½ is one and a half, not eleven halves."""
_UNSPACED = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SPACE_BESIDE = re.compile(f"(?<=[{_UNSPACED}]) | (?=[{_UNSPACED}])")


class _Dropped(dict[int, int | str | None]):
    """What becomes of each character: nothing of punctuation and symbols, the ASCII digit of a digit."""

    def __missing__(self, code: int) -> int | str | None:
        character = chr(code)
        kind = unicodedata.category(character)
        value: int | str | None = code
        if kind[0] in "PS":
            value = None
        elif kind == "Nd":
            value = str(unicodedata.decimal(character))
        self[code] = value
        return value


_TABLE = _Dropped({ord(protected): character for character, protected in _PROTECTED.items()})


@lru_cache(maxsize=4096)
def normalize(text: str) -> str:
    """Return the normal form; "" for a text of nothing but articles and punctuation."""
    if text.isascii():
        return " ".join([word for word in _drop(text.lower()).split() if word not in _ARTICLES])
    return _SPACE_BESIDE.sub("", " ".join([word for word in _drop(_fold(text)).split() if word not in _ARTICLES]))


@lru_cache(maxsize=4096)
def bare_form(text: str) -> str:
    """Return what is compared where the normal form of one of two texts is empty.

    The words with their articles ("A", "The"); of punctuation alone the stripped, casefolded text.
    """
    return _SPACE_BESIDE.sub("", " ".join(_drop(_fold(text)).split())) or text.strip().casefold()


def _drop(text: str) -> str:
    """Return a folded text without the punctuation and symbols that do not change its meaning."""
    if _MAY_MEAN.search(text):
        text = _MEANING.sub(_protect, text)
    return text.translate(_TABLE)


def _protect(match: re.Match[str]) -> str:
    return _PROTECTED[match.group()]


def _fold(text: str) -> str:
    folded = _compatible(_FRACTION.sub(" ", text)).casefold()
    return _compatible(folded).translate(_SAME)


def _compatible(text: str) -> str:
    """Return Unicode's compatibility form (NFKC), super- and subscripts as they are."""
    pieces = _RAISED.split(text)
    return "".join(piece if number % 2 else unicodedata.normalize("NFKC", piece) for number, piece in enumerate(pieces))
