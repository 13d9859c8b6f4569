"""Which option a sentence is about, where a completion states no answer: what it ends in, or what it says of one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from helm_ext.parsing import phrases
from helm_ext.parsing.mentions import Mentions, Named
from helm_ext.parsing.spelling import OPENERS

__all__ = ["read_sentence"]


def read_sentence(mentions: Mentions) -> Named | None:
    """Return the option that a sentence is about, where nothing states an answer.

    The first sentence or the last one ends in it ("The capital of France is Paris."), or the completion begins with an
    option's text that "is the" something. None where that is denied, doubted or asked, or another text is named too.
    """
    text, options = mentions.text, mentions.options
    ends = [match.end() for match in phrases.SENTENCE_END.finditer(text)]
    spans = [(begin, end) for begin, end in zip([0, *ends], [*ends, len(text)], strict=True) if text[begin:end].strip()]
    named: set[Named] = set()
    for begin, end in dict.fromkeys(spans[:1] + spans[-1:]):
        stop = min(end, begin + _LONGEST_SENTENCE)
        if "?" in text[end - 2 : end] or phrases.ELSEWHERE.search(text, begin, end):
            continue
        sentence = text[begin:stop]
        named.update(_read_sentence_end(mentions, begin, stop))
        for head in phrases.PREDICATE.finditer(sentence):
            read = mentions.read_items(begin + head.end())
            if read is None or read[1].is_asked or phrases.NEGATION.search(text, begin, read[1].start):
                continue
            if not head["equals"]:
                named.add(read[0])
            elif read[1].is_text and (head["equals"] == "=" or phrases.ENDED.match(text, read[1].stem)):
                return read[0]
    topics = [t for t in options.texts if mentions.lowered.startswith(t) and phrases.TOPIC.match(text, len(t))]
    if topics and not phrases.NEGATION.search(text, 0, spans[0][1]):
        named.add(frozenset({options.by_text[topics[0]] or ""}))
    if len(named) != 1:
        return None
    found = named.pop()
    longer = [text for text, label in options.by_text.items() if label in found]
    others = [text for text, label in options.by_text.items() if label not in found]
    here = [span for span in spans if not phrases.ELSEWHERE.search(text, *span)]
    return None if any(mentions.names_text(other, longer, here) for other in others) else found


def _read_sentence_end(mentions: Mentions, begin: int, end: int) -> Iterator[Named]:
    """Yield the option that the sentence is nothing but, and the options' texts that it ends in."""
    if begin and end == len(mentions.text):
        whole = mentions.read_items(begin, end)
        if whole is None:
            whole = mentions.read_items(begin + len(mentions.text[begin:]) - len(mentions.text[begin:].lstrip()))
        if whole and not whole[1].is_asked and _AFTERTHOUGHT.fullmatch(mentions.text, whole[1].end):
            yield whole[0]
    ending = (end, end)
    for option in mentions.options.texts:  # the longest first
        place = mentions.lowered.rfind(option, begin, end)
        if place < 0 or ending[0] <= place <= place + len(option) <= ending[1]:
            continue  # "red" in "dark red"
        is_word = any(char.isalpha() or char in "$€£¥" for char in option)
        before = mentions.text[begin : max(begin, place)]
        if (
            not before
            or before[-1].isalnum()
            or before[-1] in "-+"
            or (
                not _HAPPENS.search(before[-40:])
                and (not is_word or before.lower().endswith((" of ", " in ", " from ", " about ")))
            )
        ):
            continue
        if (before.split() or [""])[-1].strip(OPENERS + ".:") in mentions.options.label_set.by_core:
            continue  # "B Paris", where Paris is not B
        read = mentions.read_items(place)
        if (
            read
            and read[1].start == place
            and not read[1].is_asked
            and not phrases.NEGATION.search(mentions.text, begin, place)
        ):
            ending = (place, place + len(option))
            yield read[0]


_AFTERTHOUGHT = re.compile(r"[\s,]{0,3}(?:(?:then|it\sis|i\sthink|i['’]d\ssay|probably)\b)?[\s.!*]{0,4}", re.IGNORECASE)
_HAPPENS = re.compile(
    r"\b(?:\w{2,12}ed|made|lies?|lay|lives?|falls?|fall|fell|born|found|built|begins?|began|occurs?|happens?|consists?|comes?"
    r"|came|grows?|grew|written|held)\s(?:up\s|place\s)?(?:of|in|from)\s(?:the\s)?$",
    re.IGNORECASE,
)
"""Before an option that a sentence ends in: where, when or of what."""

_LONGEST_SENTENCE = 600
"""At most this many characters of a sentence are looked at."""
