"""Texts as lint compares them: a key that equal questions share, sentences, and words.

Case, white space and the punctuation around words make no other question. Numbers, signs between them and brackets do.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_LOOSE = re.compile(
    r"""[.?!,;:…]+(?=[\s"'”’»)\]]|$)"""  # where a sentence or a part of one ends, not in 3.5, 10:30 or a.b
    r"""|["“”„«»¿¡。？！，、；：「」『』]"""
    r"""|(?<!\w)['‘’]|['‘’](?!\w)"""
)
_SENTENCE_ENDS = (". ", "? ", "! ", "。", "？", "！")
_COLONS = (": ", "：")
_NUMBERED = re.compile(
    r"\s*(?:(?:question|problem|exercise|item|example|q|no)\b\s*[.#]?\s*)?[(\[]?#?\d{1,6}\s*[.):\]]\s+(?=\D)",
    re.IGNORECASE,
)
"""What numbers a question: `12. `, `Q12: `, `Question 12) `."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Scripts without spaces between words: each character counts as a word."""
_SIGNS = "+*/^=<>×÷±√≤≥≠−"
_ASCII_WORD = re.compile(rf"[a-z]+(?:'[a-z]+)*(?![\d_])|\w+(?:[.,:/]\d+)*|(?<![a-z])-|[{_SIGNS}]")
_WORD = re.compile(
    rf"[{_UNSPACED}]"
    rf"|(?:(?![{_UNSPACED}])\w)+(?:['’.,:/](?<![.,:/](?=\D))(?:(?![{_UNSPACED}])\w)+)*"
    rf"|(?<!\w)-|[{_SIGNS}]"
)
_FIGURE = re.compile(rf"\w*\d\w*(?:[.,:/]\d+)*|(?<![^\W\d_])-(?=[\s\d(])|[{_SIGNS}]")


def fold(text: str) -> str:
    """Return the text with letters of one case and one spelling of accents."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text).casefold()


def make_key(text: str) -> str:
    """Return what two texts share that ask the same, but for case, white space and punctuation around words."""
    return " ".join(_LOOSE.sub(" ", fold(text)).split())


def split_sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, without what numbers the question."""
    return _split(text, _SENTENCE_ENDS)


def split_parts(text: str) -> list[str]:
    """Return the sentences of a text, those with a colon in two: "Question: Who was he?" ends in a question."""
    return _split(text, (*_SENTENCE_ENDS, *_COLONS))


def _split(text: str, ends: tuple[str, ...]) -> list[str]:
    numbered = _NUMBERED.match(text)
    if numbered:
        text = text[numbered.end() :]
    for end in ends:
        if end in text:
            text = text.replace(end, f"{end}\n")
    return [part for part in map(str.strip, text.split("\n")) if part]


@lru_cache(maxsize=4096)
def words_of(part: str) -> tuple[str, ...]:
    """Return the words of a sentence; those of the last ones are kept, which are asked for again and again."""
    return tuple(split_words(part))


def split_words(text: str) -> list[str]:
    """Return the words, numbers and arithmetic signs of a text, in order; punctuation is left out."""
    folded = fold(text)
    return (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)


def find_figures(text: str) -> tuple[str, ...]:
    """Return the numbers (all words with a digit) and arithmetic signs, in order: questions that differ in them differ.

    "What is 12 + 5?" and "What is 12 - 5?" are not nearly the same question.
    """
    return tuple(_FIGURE.findall(fold(text)))
