"""Which option a completion is about where nothing states an answer.

Told by whole sentences: by the only option that is named, by its text or by words that no other option has; by what is
left when all others are denied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from helm_ext.parsing import phrases
from helm_ext.parsing.mentions import Mentions, Named
from helm_ext.parsing.options import CLOSERS, OPENERS, PUNCTUATION, lower


def read_sentence(mentions: Mentions) -> Named | None:
    """Return the option that the completion is about, where nothing states an answer.

    It is the only one whose text the last sentence names, where that concludes ("Thus it must be Paris."), or what
    something equals ("= 5"); else the only one that the completion names at all ("The capital is Paris.", "Paris lies
    on the Seine."). None where that is denied, doubted or asked, or told of oneself ("I was in Paris.").
    """
    text = mentions.lowered
    spans = [span for span in mentions.sentences if not phrases.ELSEWHERE.search(text, *span)]
    if not spans or phrases.UNSURE.search(text, *spans[-1]):
        return None
    predicates: set[Named] = set()
    equals: Named | None = None
    for begin, end in spans[-1:]:  # "Let me think... B.", "Not A, B."
        clauses = [end - len(text[begin:end].lstrip())] if len(spans) > 1 else []
        for clause in (*clauses, *_find_instead(mentions, begin, end)):
            alone = mentions.read_items(clause, end)
            if alone and not alone[1].is_asked and _AFTERTHOUGHT.fullmatch(text, alone[1].end, end):
                predicates.add(alone[0])
    if not predicates and (left := _find_left(mentions, spans)):
        return left
    for begin, end in dict.fromkeys(spans[:1] + spans[-1:]):
        for head in phrases.PREDICATE.finditer(text[begin : min(end, begin + _LONGEST_SENTENCE)]):
            read = mentions.read_items(begin + head.end())
            if read is None or read[1].is_asked or phrases.NEGATION.search(text, begin, read[1].start):
                continue
            item = read[1]
            if not (head["equals"] or head["sign"]):
                predicates.add(read[0])
            elif item.is_text and (head["sign"] or phrases.ENDED.match(text, item.stem)):
                equals = equals if _DIGIT.search(text, end) else read[0]
    last = [
        (head.start(), end)
        for begin, end in spans[-1:]
        for head in phrases.CONCLUSION.finditer(text, begin, end)
        if text[begin : head.start()].rstrip()[-1:] in {"", ",", ";", ":"}
    ][-1:]
    for sentences in filter(None, (last, spans)):
        found = _find_named(mentions, sentences)
        if len(found) == 1 and "" not in found:
            is_said = frozenset(found) in (equals, *predicates) or _is_said(mentions, found, sentences)
            return frozenset(found) if is_said else None
    if found:
        return equals or _find_result(mentions, spans[-1])
    return predicates.pop() if len(predicates) == 1 else _find_part(mentions, spans)


def _find_result(mentions: Mentions, span: tuple[int, int]) -> Named | None:
    """Return the option that the last sentence ends in, where all options are numbers: what a calculation comes to."""
    text, named = mentions.lowered, _find_named(mentions, [span])
    are_numbers = all(map(_NUMBER.match, mentions.options.texts))
    is_result = "=" in text or phrases.CONCLUSION.search(text, *span) or phrases.RETURN.search(text, *span)
    if not are_numbers or not is_result or len(named) != 1 or phrases.NEGATION.search(text, *span):
        return None
    ends = text[slice(*span)].rstrip(CLOSERS + PUNCTUATION.replace("?", "") + " \n").endswith(mentions.options.texts)
    return frozenset(named) if ends else None


_NUMBER = re.compile(r"[-+$€£¥]{0,2}\d")


def _find_left(mentions: Mentions, spans: list[tuple[int, int]]) -> Named | None:
    """Return the option that is left where all others are named, and all of them in sentences that deny something."""
    said: dict[bool, set[str]] = {True: set(), False: set()}
    if not phrases.DENYING.search(mentions.lowered):
        return None  # which is seen sooner than what is named
    for begin, end in spans:
        named = {item.label for item in mentions.find_items(begin, end)}
        named |= _find_named(mentions, [(begin, end)], or_denied=True)
        text = mentions.lowered[begin:end]
        if named and phrases.DOUBT.search(text):
            return None
        said[phrases.DENYING.search(text) is None] |= named
    left = frozenset(mentions.options.folded) - said[False]
    return left if len(left) == 1 and len(said[False]) > 2 and left >= said[True] else None


def _find_part(mentions: Mentions, spans: list[tuple[int, int]]) -> Named | None:
    """Return the option of which words are named that no other option has: "Westphalia" of "Treaty of Westphalia".

    A name or a date; or two words that are at least half of what sets the option apart.
    """
    options, lowered = mentions.options, mentions.lowered
    words = {label: {*_PART.findall(lower(option))} for label, option in options.simplified.items()}
    counts = Counter(word for one in words.values() for word in one)
    own = {label: [word for word in one if counts[word] == 1] for label, one in words.items()}
    found = [
        label for label, one in own.items() if any(mentions.names_text(word, (), spans, or_denies=True) for word in one)
    ]
    if len(found) != 1:
        return None
    parts: set[str] = set()
    for begin, end in spans:
        if here := {part for part in _PART.findall(mentions.text[begin:end]) if lower(part) in own[found[0]]}:
            if phrases.NEGATION.search(lowered, begin, end) or "?" in lowered[end - 2 : end]:
                return None
            parts |= here
    option, is_half = options.simplified[found[0]], 2 * len(parts) >= max(len(own[found[0]]), 4)
    is_name = any(_DATE.fullmatch(part) or (part[0].isupper() and option.find(part) > 0) for part in parts)
    return frozenset(found) if is_name or is_half else None


_PART = re.compile(r"[^\W\d_]{4,}|\d{1,2}:\d\d|\d+")
_DATE = re.compile(r"\d{1,2}:\d\d|[12]\d{3}")


def _find_instead(mentions: Mentions, begin: int, end: int) -> Iterator[int]:
    """Yield where something is said instead of all that is denied before: "Not A, B.", not "Maybe A, B.".

    A sentence is gone through once, however many commas it has.
    """
    text = mentions.lowered
    if (negation := phrases.NEGATION.search(text, begin, end)) is None:
        return
    stated = (item.start for item in mentions.find_items(begin, end) if not mentions.is_denied(item))
    first = next(stated, end)
    for comma in _COMMA.finditer(text, negation.end(), end):
        if comma.end() > first:
            return
        yield comma.end()


def _is_said(mentions: Mentions, found: set[str], spans: list[tuple[int, int]]) -> bool:
    """Tell whether a sentence says something of the only option that the completion names."""
    options, text = mentions.options, mentions.lowered
    label_like = _LABEL_FIRST.match(text)
    for option, label in options.by_text.items():
        for begin, end in spans if label in found else ():
            place = mentions.lowered.find(option, begin, end)
            behind = place + len(option)
            if place < 0 or "?" in text[end - 2 : end]:
                continue
            if label_like and (place >= label_like.end() or option in options.label_set.by_folded_core):
                continue  # "B Paris", "A city", where the text may be another option's
            comma = _CLAUSE_END.search(text, behind, end)
            parts = (begin, place), (behind, comma.start() if comma else end)
            if any(_is_denied(mentions, found, *part) for part in parts):
                continue
            before = mentions.text[begin:place]
            word = (before.split() or [""])[-1].strip(OPENERS + ".:")
            if before[-1:] in _SIGNS or word in options.label_set.by_core:  # "-5", "see B Paris"
                continue
            is_long = len(option) >= _LONG_ENOUGH or (option[-1].isdigit() and phrases.UNIT.match(text, behind))
            if not is_long and not phrases.ENDED.match(text, behind):
                continue
            following = mentions.text[behind : behind + 2]
            is_name = following[:1] == " " and following[1:].isupper()  # "Paris Hilton"
            if not is_name and not _ABOUT.search(text, begin, behind):
                return True
    return False


def _is_denied(mentions: Mentions, found: set[str], begin: int, end: int) -> bool:
    """Tell whether something is denied or doubted there, but for another option: "not Rome, but Paris"."""
    denied = map(mentions.find_text, (found.end() for found in phrases.NEGATION.finditer(mentions.lowered, begin, end)))
    return any(item is None or item.label in found for item in denied)


def _find_named(mentions: Mentions, spans: list[tuple[int, int]], *, or_denied: bool = False) -> set[str]:
    """Return the options whose texts stand in the spans, and not only as a part of longer ones."""
    options = mentions.options
    return {
        label or ""
        for text, label in options.by_text.items()
        if mentions.names_text(
            text, [longer for longer in options.texts if len(longer) > len(text)], spans, or_denies=or_denied
        )
    }


_DIGIT = re.compile(r"\d")
_LABEL_FIRST = re.compile(r"\W{0,8}(?:[^\W_]|[ivx]{1,4}|\d{1,3})(?![\w./%,(])", re.IGNORECASE)
"""A completion that begins with what may be a label, whichever labels the question has."""
_SIGNS = (*"-+$€£¥.^/",)
_CLAUSE_END = re.compile(r"[,;:—(]|\band\b")
_ABOUT = re.compile(r"\b(?:about|regarding|concerning|consider)\b(?!\s[\d$€£])")
_COMMA = re.compile(r"[,;]\s")
_ANY = re.compile(r"\w+")
_AFTERTHOUGHT = re.compile(r"[\s,]{0,3}(?:(?:then|it\sis|i\sthink|i'd\ssay|probably)\b)?[\s.!*]{0,4}")
_LONG_ENOUGH = 4
"""Shorter texts ("No", "5") must end their sentence, or be what it is about ("5 is the sum")."""
_LONGEST_SENTENCE = 600
"""At most this many characters of a sentence are looked at."""
