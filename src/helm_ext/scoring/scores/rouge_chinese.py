"""ROUGE as the package `rouge-chinese` 1.0.3 computes it, which UltraEval's metric `rouge` calls.

It differs from other ROUGEs: n-grams are counted once, however often they occur; sentences end at Chinese full stops,
question and exclamation marks, which therefore also end a word; there is no stemming; and 1e-8 stands in the divisor of
the F1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_SENTENCE_ENDS = (
    (re.compile(r"([。！？?])([^”’])"), r"\1\n\2"),
    (re.compile(r"(\.{6})([^”’])"), r"\1\n\2"),
    (re.compile(r"(…{2})([^”’])"), r"\1\n\2"),
    (re.compile(r"([。！？?][”’])([^，。！？?])"), r"\1\n\2"),
)
"""A closing quotation mark belongs to the sentence before it. In this order, each on what the one before made."""

_EPSILON = 1e-8


def score(reference: str, hypothesis: str, kind: str) -> dict[str, float]:
    """Return precision `p`, recall `r` and F1 `f`, from 0 to 1; `kind` is "1", "2" or "l". 0 where a text is empty."""
    from rapidfuzz.distance import LCSseq

    wanted, found = _words(reference), _words(hypothesis)
    if not wanted or not found:
        return {"p": 0.0, "r": 0.0, "f": 0.0}
    if kind == "l":
        common, size_wanted, size_found = LCSseq.similarity(wanted, found), len(wanted), len(found)
    else:
        grams_wanted, grams_found = _grams(wanted, int(kind)), _grams(found, int(kind))
        common, size_wanted, size_found = len(grams_wanted & grams_found), len(grams_wanted), len(grams_found)
    precision = common / size_found if size_found else 0.0
    recall = common / size_wanted if size_wanted else 0.0
    return {"p": precision, "r": recall, "f": 2.0 * (precision * recall / (precision + recall + _EPSILON))}


def _words(text: str) -> list[str]:
    """Return the words of all sentences; a sentence of white space alone is one empty word."""
    for pattern, replacement in _SENTENCE_ENDS:
        text = pattern.sub(replacement, text)
    return [
        word for sentence in text.rstrip().split("\n") if sentence for word in " ".join(sentence.split()).split(" ")
    ]


def _grams(words: Sequence[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}
