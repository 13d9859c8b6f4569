"""Which option a completion is about where nothing claims an answer.

Told by whole sentences: by the only option that is named, by its text or by words that no other option has; by what is
left when all others are denied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from helm_ext.parsing import words
from helm_ext.parsing.claims import Named, Reading
from helm_ext.parsing.marks import LOOSE_TEXT, UNCLEAR
from helm_ext.parsing.options import lower

Span = tuple[int, int]


def read_sentence(reading: Reading) -> Named | None:
    """Return the option that the completion is about, where nothing claims an answer.

    It is the only one whose text the last sentence names, where that concludes ("Thus it must be Paris."), or what a
    calculation comes to; else the only one that the completion names at all ("The capital is Paris.", "Paris lies on
    the Seine."). None where that is denied, doubted or asked, or told of oneself ("I was in Paris.").
    """
    text = reading.text
    spans = [span for span in reading.sentences if not words.ELSEWHERE.search(text, *span)]
    if not spans or words.UNSURE.search(text, *spans[-1]):
        return None
    predicates = {*_find_predicates(reading, spans)}
    if not predicates and (left := _find_left(reading, spans)):
        return left
    result = _find_result(reading, *spans[-1])
    found: set[str] = set()
    conclusion = _find_conclusion(text, *spans[-1])
    for sentences in ([conclusion] if conclusion else [], spans):
        found = _find_named(reading, sentences)
        if len(found) == 1 and "" not in found:
            is_said = frozenset(found) in {result, *predicates} or (
                _is_said(reading, found, sentences)
                and all(reading.read_alone(*span) in {None, frozenset(found)} for span in spans)
            )
            return frozenset(found) if is_said else None
    if found:
        return result
    return predicates.pop() if len(predicates) == 1 else _find_part(reading, spans)


def _find_predicates(reading: Reading, spans: Sequence[Span]) -> Iterator[Named]:
    """Yield what the last sentence says instead of what it denies, and what it, or the first one, says that it is."""
    text = reading.text
    begin, end = spans[-1]
    for group in reading.get_groups(begin, end):
        if not (group.is_named and _AFTERTHOUGHT.fullmatch(text, group.end, end)):
            continue
        before = text[begin : group.start].rstrip(" '(")
        others = reading.get_groups(begin, group.start)
        is_instead = (
            (before[-1:] in {",", ";"} or (others and before.endswith(":")))
            and words.NEGATION.search(before)
            and all(reading.is_denied(one.start) for one in others)
        )
        if is_instead or (begin and not before):
            yield group.named
    for begin, end in dict.fromkeys((spans[0], spans[-1])):
        for group in reading.get_groups(begin, end):
            is_said = group.is_named and not text.startswith("?", group.end)
            before = text[max(begin, group.start - _LONGEST_SENTENCE) : group.start]
            if (
                is_said
                and words.PREDICATE.search(before[-60:])
                and not (words.NEGATION.search(before) or "{" in before)
            ):
                yield group.named


def _find_conclusion(text: str, begin: int, end: int) -> Span | None:
    """Return the part of a sentence from a word on that concludes, at the beginning of a clause."""
    heads = [
        head.start()
        for head in words.CONCLUSION.finditer(text, begin, end)
        if text[begin : head.start()].rstrip()[-1:] in {"", ",", ";", ":"}
    ]
    return (heads[-1], end) if heads else None


def _find_result(reading: Reading, begin: int, end: int) -> Named | None:
    """Return what the last sentence ends in where it calculates: what something equals, or the last of some numbers."""
    text, groups = reading.text, reading.get_groups(begin, end)
    if not groups or not groups[-1].is_named or not words.ENDED.match(text, groups[-1].end):
        return None
    before = text[begin : groups[-1].start]
    if _EQUALS.search(before):
        return groups[-1].named
    are_numbers = all(map(_NUMBER.match, reading.marks.options.texts))
    is_result = "=" in text or words.CONCLUSION.search(before) or words.RETURN.search(before)
    if (
        are_numbers
        and is_result
        and not words.NEGATION.search(before)
        and len(_find_named(reading, [(begin, end)])) == 1
    ):
        return groups[-1].named
    return None


def _find_left(reading: Reading, spans: Sequence[Span]) -> Named | None:
    """Return the option that is left where all others are named, and all of them in sentences that deny something."""
    said: dict[bool, set[str]] = {True: set(), False: set()}
    for begin, end in spans:
        named = {label for group in reading.get_groups(begin, end) for label in group.labels}
        sentence = reading.text[begin:end]
        if not named:
            continue
        if words.DOUBT.search(sentence):
            return None
        said[words.DENYING.search(sentence) is None] |= named
    left = frozenset(reading.marks.options.folded) - said[False]
    return left if len(left) == 1 and len(said[False]) > 2 and left >= said[True] else None


def _find_part(reading: Reading, spans: Sequence[Span]) -> Named | None:
    """Return the option of which words are named that no other option has: "Westphalia" of "Treaty of Westphalia".

    A name or a date; or two words that are at least half of what sets the option apart.
    """
    texts = reading.marks.options.simplified
    parts = {label: {lower(part) for part in _PART.findall(option)} for label, option in texts.items()}
    counts = Counter(part for one in parts.values() for part in one)
    own = {part: label for label, one in parts.items() for part in one if counts[part] == 1}
    said: set[str] = set()
    for begin, end in spans:
        if here := {part for part in _PART.findall(reading.text[begin:end]) if part in own}:
            if words.NEGATION.search(reading.text, begin, end) or "?" in reading.text[end - 2 : end]:
                return None
            said |= here
    labels = {own[part] for part in said}
    if len(labels) != 1:
        return None
    (label,) = labels
    option = texts[label]
    is_half = 2 * len(said) >= max(sum(one == label for one in own.values()), 4)
    names = {lower(part) for part in _PART.findall(reading.marks.source) if part[0].isupper() and option.find(part) > 0}
    return frozenset(labels) if is_half or said & names or any(map(_DATE.fullmatch, said)) else None


def _is_said(reading: Reading, found: set[str], spans: Sequence[Span]) -> bool:
    """Tell whether a sentence says something of the only option that the completion names."""
    text = reading.text
    label_like = _LABEL_FIRST.match(text)
    for begin, end in spans:
        for match in _TEXT.finditer(text, begin, end):
            place, behind = match.span()
            if reading.marks.get_label(match[0]) not in found or "?" in text[end - 2 : end]:
                continue
            if label_like and place >= label_like.end():
                continue  # "B Paris", "A city", where the text may be another option's
            comma = _CLAUSE_END.search(text, behind, end)
            parts = (begin, place), (behind, comma.start() if comma else end)
            option = reading.marks.options.folded[min(found)]
            is_about = _ABOUT.search(text, begin, place) and not _NUMBER.match(option)
            if any(_is_denied(reading, found, *part) for part in parts) or is_about:
                continue
            has_more = _AND_MORE.match(text, behind) and not _ANSWER.search(text, begin, place)
            is_long = len(option) >= _LONG_ENOUGH and not has_more
            if is_long or ord(match[0]) < LOOSE_TEXT:
                return True
    return False


def _is_denied(reading: Reading, found: set[str], begin: int, end: int) -> bool:
    """Tell whether something is denied or doubted there, but for another option: "not Rome, but Paris"."""
    for denial in words.NEGATION.finditer(reading.text, begin, end):
        symbol = _SOON.match(reading.text, denial.end())
        if symbol is None or reading.marks.get_label(symbol[1]) in found:
            return True
    return False


def _find_named(reading: Reading, spans: Sequence[Span]) -> set[str]:
    """Return the options whose texts stand in the spans, "" for an unclear one, but for those that "not" denies."""
    return {
        reading.marks.get_label(match[0]) or ""
        for span in spans
        for match in _TEXT.finditer(reading.text, *span)
        if not words.DENIED.search(reading.text[max(span[0], match.start() - 60) : match.start()])
    }


_TEXT = re.compile(f"{words.TEXT}|{chr(UNCLEAR)}")
_SOON = re.compile(rf"[\s'(]{{0,3}}(?:(?:the|an?) )?({words.SYMBOL})")
_NUMBER = re.compile(r"[-+$€£¥]{0,2}\d")
_EQUALS = re.compile(r"(?:[=≈]|\b(?:gives|makes|yields|totals|comes to|adds up to))\s{0,3}\Z")
_PART = re.compile(r"[^\W\d_]{4,}|\d{1,2}:\d\d|\d+")
_DATE = re.compile(r"\d{1,2}:\d\d|[12]\d{3}")
_LABEL_FIRST = re.compile(r"\W{0,8}(?:[^\W_]|[ivx]{1,4}|\d{1,3})(?![\w./%,(])")
"""A completion that begins with what may be a label, whichever labels the question has."""
_CLAUSE_END = re.compile(r"[,;:—(]|\band\b")
_AND_MORE = re.compile(r"\sand\s(?!(?:thanks|done|only|\w+ly)\b)\w+\W*(?:[.!]|\Z)")
"""Behind the text of an option: it goes on, so that something else is meant ("salt and vinegar")."""
_ANSWER = re.compile(r"\banswer\b")
_ABOUT = re.compile(r"\b(?:about|regarding|concerning|consider)\b")
_AFTERTHOUGHT = re.compile(r"[\s,]{0,3}(?:(?:then|it\sis|i\sthink|i'd\ssay|probably)\b)?[\s.!]{0,4}")
_LONG_ENOUGH = 4
"""Shorter texts ("No", "5") must end their sentence, or be what it is about ("5 is the sum")."""
_LONGEST_SENTENCE = 600
"""At most this many characters of a sentence are looked at."""
