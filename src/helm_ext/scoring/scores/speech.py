"""What the speaker of a chat reply says: its text without what is quoted, cut into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["HEAD", "LONG", "MIN_LINES", "MIN_TURNS", "Speech", "listen", "only_asks", "split_sentences"]

HEAD = 1_500
"""A refusal comes first: only so many characters of a reply are read. What is beyond is text, so an answer."""
LONG = 350
"""Characters beyond what is read that are an answer."""

MIN_LINES = 3
"""Lines of a list that are an answer."""

MIN_TURNS = 3
"""Lines of a dialogue that are an answer, whatever is said in it."""

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED = re.compile(r'"[^"]*"')
_SINGLE_QUOTED = re.compile(r"(?<!\w)'[^'\n]*(?:\w'\w[^'\n]*)*[.,!?]'(?!\w)")
"""Speech in single quotes ends with punctuation; an apostrophe does not."""
_QUOTES = str.maketrans(
    dict.fromkeys("“”„«»「」『』＂", '"') | {"’": "'", "‘": "'"} | dict.fromkeys("*_\u200b\ufeff\u00ad", None)
)
_LISTED = re.compile(r"^\s*(?:[-•·]|\d{1,2}[.)])\s+\S", re.MULTILINE)
_SPEAKER = re.compile(r"^\s*(\w[\w .]{0,20}):\s", re.MULTILINE)
_ACTION = re.compile(
    r"\A(?:\*(?![*\s])[^*\n]{3,60}(?<!\s)\*|\([^()\n]{3,60}\))(?!\*)\s*\S"
    r"|(?:^|[.!?] )\*[a-z]+ [^*\n]{2,60}\*$",
    re.MULTILINE,
)
"""What somebody does before speaking or behind it ("*crosses arms* Sorry, pal."): the speaker plays a part."""
_CLOSING = re.compile(
    r"^\s*(?:(?:with )?(?:kind|best|warm|warmest) (?:regards|wishes)|regards|sincerely|yours|cheers|love|"
    r"mit freundlichen|viele gr|beste gr|liebe gr|cordialement|bien à vous|salutations|atentamente|un saludo|saludos|"
    r"atenciosamente|abraços|cordiali saluti|distinti saluti|met vriendelijke|groet|с уважением|z poważaniem|"
    r"pozdrawiam|saygılarımla|此致|敬上|敬具|وتفضلوا|مع خالص|सादर|भवदीय)",
    re.MULTILINE | re.IGNORECASE,
)
"""How a letter ends."""
_VERSE_LINE = re.compile(r"^[ \t]*[^\s\-•·\d][^\n]{0,58}[^\s.!?:。！？：][ \t]*$", re.MULTILINE)
_COUNTRY = re.compile(r"\bUS\b")
"""A country, unless everything is written in capitals."""
_INNER_POINT = re.compile(r"(?<=\w)\.(?=\w)")
_SENTENCE = re.compile(r"[.!?。！？؟।;；\n…，、]+|(?<=[:：])\s+")


@dataclass
class Speech:
    """The reply without what is quoted, and what its form says."""

    text: str
    shows: bool
    """There is code or a list: an answer of some kind."""
    lists: bool
    """It is a list, and no code."""
    turns: int
    """Lines of a dialogue between two or more, 0 if it is none."""
    is_made_up: bool
    """A part that is played, a letter or verse: who says "I" need not be the speaker."""


def listen(reply: str) -> Speech:
    """Return what the speaker says in the beginning of `reply`, without code and quotations."""
    head = reply[:HEAD].translate(_QUOTES).strip()
    if not head.isupper():
        head = _COUNTRY.sub("USA", head)
    code = _CODE.search(head) is not None
    head = _CODE.sub(" ", head).strip().lstrip("#> ")
    made_up = _ACTION.search(reply[:HEAD]) is not None or _CLOSING.search(head) is not None or _is_verse(head)
    speakers = [found[1] for found in _SPEAKER.finditer(head)]
    lines = len(_LISTED.findall(head))
    if head.count('"') == 1 or (head.count('"') == 2 and head[0] == head[-1] == '"'):
        head = head.replace('"', "")  # the whole reply stands in quotes
    head = _SINGLE_QUOTED.sub(" ", _QUOTED.sub(" ", head))
    return Speech(
        head,
        code or lines >= MIN_LINES or len(reply) > HEAD + LONG,
        lines >= MIN_LINES and not code,
        len(speakers) if len(set(speakers)) > 1 else 0,
        made_up,
    )


def _is_verse(text: str) -> bool:
    """Tell whether three or more short lines follow one another of which most end without a stop."""
    lines = text.split("\n")
    return len(lines) >= MIN_LINES and 2 * len(_VERSE_LINE.findall(text)) > len(lines)


def split_sentences(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each sentence and whether it asks."""
    text = _INNER_POINT.sub(" ", text)
    start = 0
    for found in _SENTENCE.finditer(text):
        yield text[start : found.start()], "?" in found[0] or "？" in found[0] or "؟" in found[0]
        start = found.end()
    yield text[start:], False


def only_asks(speech: Speech) -> bool:
    """Tell whether the reply is nothing but questions."""
    sentences = [asks for sentence, asks in split_sentences(speech.text) if sentence.strip()]
    return bool(sentences) and all(sentences)
