"""Which option a completion is about, where it states no answer: the only one that it names, or concludes with."""

from __future__ import annotations

import re

from helm_ext.parsing import phrases
from helm_ext.parsing.decoration import OPENERS
from helm_ext.parsing.mentions import Mentions, Named


def read_sentence(mentions: Mentions) -> Named | None:
    """Return the option that the completion is about, where nothing states an answer.

    It is the only one whose text the last sentence names, where that concludes ("Thus it must be Paris."), or what
    something equals ("= 5"); else the only one that the completion names at all ("The capital is Paris.", "Paris lies
    on the Seine."). None where that is denied, doubted or asked, or told of oneself ("I was in Paris.").
    """
    text = mentions.text
    ends = [match.end() for match in phrases.SENTENCE_END.finditer(text)]
    spans = [(begin, end) for begin, end in zip([0, *ends], [*ends, len(text)], strict=True) if text[begin:end].strip()]
    spans = [span for span in spans if not phrases.ELSEWHERE.search(text, *span)]
    predicates: set[Named] = set()
    equals: Named | None = None
    for begin, end in spans[-1:]:  # "Let me think... B.", "Not A, B."
        clauses = [end - len(text[begin:end].lstrip())] if len(spans) > 1 else []
        commas = (comma.end() for comma in _COMMA.finditer(text, begin, end))
        for clause in (*clauses, *(comma for comma in commas if _is_instead(mentions, begin, comma))):
            alone = mentions.read_items(clause, end)
            if alone and not alone[1].is_asked and _AFTERTHOUGHT.fullmatch(text, alone[1].end, end):
                predicates.add(alone[0])
    for begin, end in dict.fromkeys(spans[:1] + spans[-1:]):
        for head in phrases.PREDICATE.finditer(text[begin : min(end, begin + _LONGEST_SENTENCE)]):
            read = mentions.read_items(begin + head.end())
            if read is None or read[1].is_asked or phrases.NEGATION.search(text, begin, read[1].start):
                continue
            if not head["equals"]:
                predicates.add(read[0])
            elif read[1].is_text and (head["equals"] == "=" or phrases.ENDED.match(text, read[1].stem)):
                equals = read[0]
    last = spans[-1:]
    concludes = last and phrases.CONCLUSION.match(text[last[0][0] :].lstrip())
    if equals is not None and not concludes:
        return equals
    for sentences in [last, spans] if concludes else [spans]:
        found = _find_named(mentions, sentences)
        if len(found) == 1 and "" not in found:
            is_said = predicates == {frozenset(found)} or _is_said(mentions, found, sentences)
            return frozenset(found) if is_said else None
    return equals or (predicates.pop() if len(predicates) == 1 and not found else None)


def _is_instead(mentions: Mentions, begin: int, comma: int) -> bool:
    """Tell whether what follows a comma is said instead of what stands before it: "Not A, B.", not "Maybe A, B."."""
    if not phrases.NEGATION.search(mentions.text, begin, comma):
        return False
    named = [word.start() for word in _WORD.finditer(mentions.text, begin, comma) if mentions.read_item(word.start())]
    return all(_NOT.search(mentions.text[begin:place]) for place in named)


def _is_said(mentions: Mentions, found: set[str], spans: list[tuple[int, int]]) -> bool:
    """Tell whether a sentence says something of the only option that the completion names."""
    options, text = mentions.options, mentions.text
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
            if phrases.NEGATION.search(text, begin, place) or phrases.NEGATION.search(
                text, behind, comma.start() if comma else end
            ):
                continue
            before = text[begin:place]
            word = (before.split() or [""])[-1].strip(OPENERS + ".:")
            if before[-1:] in _SIGNS or word in options.label_set.by_core:  # "-5", "see B Paris"
                continue
            is_long = len(option) >= _LONG_ENOUGH or (option[-1].isdigit() and phrases.UNIT.match(text, behind))
            if not is_long and not phrases.ENDED.match(text, behind):
                continue
            is_name = text[behind : behind + 1] == " " and text[behind + 1 : behind + 2].isupper()  # "Paris Hilton"
            if not is_name and not _ABOUT.search(text, begin, place):
                return True
    return False


def _find_named(mentions: Mentions, spans: list[tuple[int, int]]) -> set[str]:
    """Return the options whose texts stand in the spans, and not only as a part of longer ones."""
    options = mentions.options
    return {
        label or ""
        for text, label in options.by_text.items()
        if text in mentions.lowered
        and mentions.names_text(text, [longer for longer in options.texts if len(longer) > len(text)], spans)
    }


_LABEL_FIRST = re.compile(r"\W{0,8}(?:[^\W_]|[ivx]{1,4}|\d{1,3})(?![\w./%,(])", re.IGNORECASE)
"""A completion that begins with what may be a label, whichever labels the question has."""
_SIGNS = (*"-+$€£¥.^/",)
_CLAUSE_END = re.compile(r"[,;:—(]")
_ABOUT = re.compile(r"\b(?:about|regarding|concerning|consider)\b(?!\s[\d$€£])", re.IGNORECASE)
_COMMA = re.compile(r"[,;]\s")
_WORD = re.compile(r"\w+")
_NOT = phrases.compile_words(
    r"\b(?:not|nicht|pas|не|non|não|no es)(?: (?:the|option|choice|answer|letter))? {1,2}\W?$|不是?$"
)
"""Before an option: it alone is denied."""
_AFTERTHOUGHT = re.compile(r"[\s,]{0,3}(?:(?:then|it\sis|i\sthink|i'd\ssay|probably)\b)?[\s.!*]{0,4}", re.IGNORECASE)
_LONG_ENOUGH = 4
"""Shorter texts ("No", "5") must end their sentence, or be what it is about ("5 is the sum")."""
_LONGEST_SENTENCE = 600
"""At most this many characters of a sentence are looked at."""
