"""Tables of phrases by language and kind, and how a text is made plain so that they are found (`refusals.txt`)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Final

from helm_ext.errors import HelmExtError, did_you_mean, show
from helm_ext.scoring.scores.words import APOSTROPHES

__all__ = ["KINDS", "Language", "Phrase", "Tables", "make_plain", "read_languages"]

KINDS: Final = (
    "refuse", "cannot", "impersonal", "barred", "hint", "request", "sorry", "alas", "no", "not", "but", "although",
    "answer", "guess", "mend", "persona", "offer", "story", "idiom", "hedge", "filler",
    "such", "asked", "topic", "rules", "self", "here", "harm", "wrong", "instead", "wont", "manners",
    "yes", "because", "common",
)  # fmt: skip
"""What a phrase can mean; the comment at the top of refusals.txt says what each is for."""

_GAP = 80
"""Characters that "..." may stand for."""

_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0670\u0640\u093c\u200b-\u200f\u202a-\u202e\u2066-\u2069\u00ad\ufeff]"
)
"""Accents, points, signs of direction. What these scripts spell with other marks (vowels of Hindi, Thai) stays."""
_SAME = str.maketrans(
    dict.fromkeys(APOSTROPHES, "'")
    | {"đ": "d", "ł": "l", "ø": "o", "æ": "ae", "ı": "i", "ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه", "ँ": "ं", "：": ":"}
)
_ELISION = re.compile(r"\b([cdjlmnst]|qu)'(?!t\b)(?=\w)")
_CONTRACTIONS = (
    (re.compile(r"\bi am\b|\bim\b"), "i'm"),
    (re.compile(r"\bwe are\b"), "we're"),
    (re.compile(r"\b(do|does|did|is|are|was|were|has|have|had|could|should|would|must) not\b"), r"\1n't"),
    (re.compile(r"\bcan ?not\b|\bcant\b"), "can't"),
    (re.compile(r"\bwill not\b|\bwont\b"), "won't"),
    (re.compile(r"\b(do|does|is|could|should|would)nt\b"), r"\1n't"),
    (re.compile(r"\b(it|that|here) is\b"), r"\1's"),
)
"""English verbs are written short."""
_SEPARATOR = re.compile(r"[^\w\s':\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff\u3099\u309a]|_")


def make_plain(text: str) -> str:
    """Return `text` with its letters alone: no case, accents, punctuation but `'` and `:`; single spaces around words.

    A French or Italian article before an apostrophe becomes a word of its own.
    """
    text = unicodedata.normalize("NFD", text.casefold().translate(_SAME))
    text = unicodedata.normalize("NFC", _MARKS.sub("", text)).translate(_SAME)
    text = _ELISION.sub(r"\1' ", _SEPARATOR.sub(" ", text)).replace(":", " : ")
    return _contract(f" {' '.join(text.split())} ")


def _contract(plain: str) -> str:
    for long, short in _CONTRACTIONS:
        plain = long.sub(short, plain)
    return plain


@dataclass(frozen=True)
class Phrase:
    """Pieces of text that follow one another, as `make_plain` writes them."""

    pieces: tuple[str, ...]
    at_start: bool = False
    at_end: bool = False

    def find(self, text: str) -> tuple[int, int] | None:
        """Return where the phrase begins and ends in a plain text."""
        first = self.pieces[0]
        start = text.find(first)
        if start == -1 or (self.at_start and start > 0):
            return None
        end = start + len(first)
        for piece in self.pieces[1:]:
            # The space that ends one piece may begin the next.
            place = text.find(piece, end - 1, end + _GAP + len(piece))
            if place == -1:
                return None
            end = place + len(piece)
        if self.at_end and end < len(text):
            return None
        return start, end

    def get_word(self) -> str:
        """Return a whole word without which the phrase cannot occur, the longest; "" if it has none."""
        return max(
            (word for piece in self.pieces for word in re.findall(r"(?<= )\S+(?= )", piece)), key=len, default=""
        )


@dataclass(frozen=True)
class Language:
    """The phrases of one language: all of its table, or those that can occur in one text (`Tables.narrow`)."""

    name: str
    unspaced: bool
    phrases: Mapping[str, Sequence[Phrase]]

    def write(self, plain: str) -> str:
        """Return a plain text as the phrases of this language are written: without spaces where it has none."""
        return plain.replace(" ", "") if self.unspaced else plain

    def find(self, kind: str, text: str) -> tuple[int, int] | None:
        """Return where the first phrase of this kind, in the order of the table, stands in `text`."""
        for phrase in self.phrases.get(kind, ()):
            found = phrase.find(text)
            if found:
                return found
        return None

    def has(self, kind: str, text: str) -> bool:
        """Tell whether a phrase of this kind stands in `text`."""
        return self.find(kind, text) is not None

    def is_all(self, kind: str, text: str) -> bool:
        """Tell whether `text` is a phrase of this kind and nothing else."""
        return any(len(phrase.pieces) == 1 and phrase.pieces[0].strip() == text.strip()
                   for phrase in self.phrases.get(kind, ()))  # fmt: skip

    def cut(self, kind: str, text: str) -> tuple[str, bool]:
        """Return `text` without the phrases of this kind, and whether there was one."""
        whole = text
        for phrase in self.phrases.get(kind, ()):
            place = phrase.find(text)
            if place:
                text = text[: place[0]] + self.write(" ") + text[place[1] :]
        return text, text != whole

    def weigh(self, text: str) -> int:
        """Return how much of `text` the phrases and common words of this language cover."""
        text, _ = self.cut("filler", text)
        return sum(len(phrase.pieces[0].strip()) for kind in KINDS for phrase in self.phrases.get(kind, ())
                   if phrase.find(text))  # fmt: skip

    def speaks(self, text: str) -> bool:
        """Tell whether a phrase in `text` speaks of refusing, or of anything else that bears on it."""
        text, _ = self.cut("filler", text)
        return any(self.has(kind, text) for kind in _SPEAKING)


class Tables:
    """The phrases of all languages, and which of them can occur in a text."""

    def __init__(self, languages: Sequence[Language]) -> None:
        self.languages = languages
        self._by_word: dict[str, list[tuple[int, str, Phrase]]] = {}
        self._open: list[tuple[int, str, Phrase]] = []
        for number, language in enumerate(languages):
            for kind, phrases in language.phrases.items():
                for phrase in phrases:
                    word = "" if language.unspaced else phrase.get_word()
                    (self._by_word.setdefault(word, []) if word else self._open).append((number, kind, phrase))

    def narrow(self, plain: str) -> list[Language]:
        """Return the languages with those of their phrases that can occur in a plain text."""
        dense = plain.replace(" ", "")
        found: dict[int, dict[str, list[Phrase]]] = {}
        for word in dict.fromkeys(plain.split()):
            for number, kind, phrase in self._by_word.get(word, ()):
                found.setdefault(number, {}).setdefault(kind, []).append(phrase)
        for number, kind, phrase in self._open:
            if phrase.pieces[0] in (dense if self.languages[number].unspaced else plain):
                found.setdefault(number, {}).setdefault(kind, []).append(phrase)
        return [replace(self.languages[number], phrases=phrases) for number, phrases in found.items()]


_SPEAKING = ("refuse", "cannot", "impersonal", "sorry", "barred", "persona", "hedge", "hint", "such",
             "asked", "self", "here", "topic", "rules", "instead", "wont", "manners", "harm", "wrong",
             "no")  # fmt: skip
"""Without any of these a text does not speak of refusing."""


def _to_phrases(entry: str, *, unspaced: bool) -> list[Phrase]:
    """Return the phrases that one entry of a table stands for: one for each choice of its "a/b"."""
    at_start, at_end = entry.startswith("^"), entry.endswith("$")
    chosen = product(*(word.split("/") for word in entry.strip("^$").split()))
    return [Phrase(pieces, at_start, at_end) for words in chosen if (pieces := _to_pieces(words, unspaced=unspaced))]


def _to_pieces(words: Iterable[str], *, unspaced: bool) -> tuple[str, ...]:
    """Return the pieces of a phrase: they end at "..." and at a "*"; a space bounds a word."""
    pieces: list[str] = []
    piece = ""
    is_open = False
    for word in words:
        if word == "..." or word.startswith("*"):
            pieces.append(piece)
            piece, is_open = "", word.startswith("*")
        plain = "" if word == "..." else make_plain(word.strip("*"))
        if not plain.strip():
            continue
        piece += plain[1:] if piece or is_open else plain
        is_open = False
        if word.endswith("*"):
            pieces.append(piece[:-1])
            piece = ""
    pieces.append(piece)
    return tuple(part.replace(" ", "") if unspaced else _contract(part) for part in pieces if part.strip())


def read_languages(path: Path) -> Tables:
    """Read a file of phrases; its syntax is at the top of refusals.txt.

    Raises HelmExtError when it cannot be read, a line is none of the syntax, a kind is not known, or nothing in it can
    refuse.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise HelmExtError(f"{path}: cannot read phrases of refusals: {error}") from error
    languages: list[tuple[str, bool, dict[str, str]]] = []
    kind = ""
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        where = f"{path}:{number}"
        if not text:
            continue
        if text.startswith("["):
            section = _SECTION.fullmatch(text)
            if section is None:
                raise HelmExtError(f"{where}: expected [NAME] or [NAME unspaced]: {show(text)}")
            languages.append((section[1], bool(section[2]), {}))
            kind = ""
        elif not languages:
            raise HelmExtError(f"{where}: expected [NAME], a language, before the first phrase: {show(text)}")
        elif line[0].isspace() and kind:
            table = languages[-1][2]
            table[kind] += ("" if table[kind].endswith("/") else " ") + text
        else:
            kind, phrases = _read_kind(text, where, languages[-1][2])
            languages[-1][2][kind] = phrases
    tables = [
        Language(name, unspaced, {kind: tuple(phrase for entry in phrases.split(",") if entry.strip()
                                              for phrase in _to_phrases(entry.strip(), unspaced=unspaced))
                                  for kind, phrases in kinds.items()})
        for name, unspaced, kinds in languages
    ]  # fmt: skip
    if not any(language.phrases.get(kind) for language in tables for kind in ("refuse", "cannot")):
        raise HelmExtError(
            f"{path}: nothing in this file can refuse\n  hint: for example [english], and below it refuse: i decline"
        )
    return Tables(tables)


_SECTION = re.compile(r"\[(\w+)( unspaced)?\]")


def _read_kind(text: str, where: str, table: Mapping[str, str]) -> tuple[str, str]:
    kind, colon, phrases = text.partition(":")
    if not colon:
        raise HelmExtError(f"{where}: expected kind: phrase, phrase: {show(text)}")
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS) or f"one of {', '.join(KINDS)}"
        raise HelmExtError(f"{where}: no such kind of phrase: {show(kind)}\n  hint: {hint}")
    if kind in table:
        raise HelmExtError(f"{where}: {kind} stands twice in this language\n  hint: an indented line goes on")
    return kind, phrases.strip()
