"""How labels and options' texts are spelled, and what may be around them: Unicode forms, brackets, markup, case."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from helm_ext.parsing import phrases

__all__ = [
    "BRACKETS",
    "BULLET",
    "CLOSERS",
    "DASHES",
    "OPENERS",
    "PUNCTUATION",
    "LabelSet",
    "fold",
    "get_label_set",
    "index",
    "peel",
    "simplify",
]

# Soft hyphen, tatweel, zero-width space, direction marks, word joiner, emoji variation and keycap, byte order mark.
_INVISIBLE = dict.fromkeys((0x00AD, 0x0640, 0x200B, 0x200E, 0x200F, 0x2060, 0xFE0F, 0x20E3, 0xFEFF))

OPENERS = "([{<«“‘„「『【《〈\"'`*_$\\"
CLOSERS = ")]}>»”’“「」』】》〉\"'`*_$\\"
BRACKETS = ")]}»”“」』】》〉"
DASHES = "-–—"
PUNCTUATION = ".,:;!?。、…"
_FINAL = PUNCTUATION + " "
_OPEN = rf"[\s:{re.escape(OPENERS)}]{{0,16}}"
_CLOSE = rf"[{re.escape(CLOSERS)}]{{0,8}}"
BULLET = re.compile(r"[-•*>#]{1,6}\s+")

_LATEX_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{")
_LATEX_STYLE = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit)\s{0,3}\{|\\[()\[\]]")
_ANSWER_TAG = re.compile(r"<(?:final_)?answer>", re.IGNORECASE)
_END_TAG = re.compile(r"</(?:final_)?answer>|<br\s{0,2}/?>", re.IGNORECASE)
_STYLE_TAG = re.compile(r"<(b|i|u|em|strong|code|p|span|div)>([^<>]{0,200})</\1>", re.IGNORECASE)


def _canonical(text: str) -> str:
    """Return the text in Unicode's compatibility form, without invisible characters."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_INVISIBLE))


def simplify(text: str) -> str:
    """Return the canonical text with LaTeX and HTML reduced to brackets and MARKERs."""
    text = _canonical(text)
    if "\\" in text:
        text = _LATEX_STYLE.sub(lambda m: "{" if m[0].endswith("{") else "", _LATEX_BOX.sub(phrases.MARKER + "{", text))
    if "<" in text:
        text = _STYLE_TAG.sub(r"*\2*", _END_TAG.sub("\n", _ANSWER_TAG.sub(phrases.MARKER, text)))
    return text


def peel(text: str) -> str:
    """Return the text without the decoration around a label or an option's text."""
    text = text.strip().lstrip(phrases.MARKER)
    bullet = BULLET.match(text)
    if bullet:
        text = text[bullet.end() :]
    return text.lstrip(OPENERS + ": \n\t").rstrip(CLOSERS + PUNCTUATION + " \n\t")


def fold(text: str) -> str:
    """Return an option's text so that case, white space and final punctuation do not count."""
    return " ".join(text.casefold().split()).rstrip(_FINAL)


def index(pairs: Iterable[tuple[str, str]]) -> dict[str, str | None]:
    """Return key to label, and None for a key that several labels share."""
    labels: dict[str, str | None] = {}
    for key, label in pairs:
        labels[key] = label if labels.get(key, label) == label else None
    return labels


@dataclass(frozen=True)
class LabelSet:
    """What can be prepared for a sequence of labels, whatever the options' texts are."""

    by_core: dict[str, str | None]
    by_folded_core: dict[str, str | None]
    longest: int
    pattern: re.Pattern[str]
    """A label with what may stand around it: groups open, label, close, mark, close2."""
    clause_end: re.Pattern[str]
    """A label that begins a clause and ends where the search ends."""

    def find(self, spelling: str) -> str | None:
        """Return the label of that spelling, else the only one that differs from it in case."""
        if spelling in self.by_core:
            return self.by_core[spelling]
        return self.by_folded_core.get(spelling.casefold())


@lru_cache(maxsize=512)
def get_label_set(labels: tuple[str, ...]) -> LabelSet:
    cores = [(peel(_canonical(label)) or label.strip(), label) for label in labels if label.strip()]
    by_core = index(cores)
    # The longest first: 10 before 1.
    spellings = "|".join(re.escape(core) for core in sorted(by_core, key=len, reverse=True)) or "(?!)"
    marks = f"[{PUNCTUATION}]{{0,3}}"
    return LabelSet(
        by_core=by_core,
        by_folded_core=index((core.casefold(), label) for core, label in cores),
        longest=max(map(len, labels), default=0),
        pattern=re.compile(
            f"(?P<open>{_OPEN})(?P<label>{spellings})(?P<close>{_CLOSE})(?P<mark>{marks})(?P<close2>{_CLOSE})",
            re.IGNORECASE,
        ),
        clause_end=re.compile(f"{phrases.CLAUSE}{_OPEN}(?P<label>{spellings}){_CLOSE}$", re.IGNORECASE),
    )
