"""Where a completion states an answer, and how much the statement weighs against others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

from helm_ext.parsing import phrases
from helm_ext.parsing.mentions import UNCLEAR, Item, Mentions, Named
from helm_ext.parsing.options import OPENERS

_MAX_STATEMENTS = 100
"""At most this many introductions and verdicts are read, from the end."""

_LOOK_BACK = 160
"""Characters before a statement, in its sentence, that tell whether it is one."""

_LOOK_BACK_VOID = 80
"""Of these, characters that may take a statement's meaning away where they stand directly before it."""

_MAX_CLAUSES = 12
"""At most this many beginnings of clauses are tried for what stands before a verdict."""


class Rank(IntEnum):
    """How much a statement weighs: against one of a lower rank that it follows, it is right."""

    SUGGESTED = 0
    """ "C would be correct": counts where nothing else is said. """
    DECLARED = 1
    """ "B is correct", "it is B". """
    STATED = 2
    """ "The answer is B", "I choose B". """
    CONCLUDED = 3
    """ "So the answer is B"; also a first line that is nothing but an answer. """
    CORRECTED = 4
    """ "Sorry, I meant B", "Final answer: B", `\\boxed{B}`. """


class Statement(NamedTuple):
    """What is stated somewhere."""

    place: int
    end: int
    rank: Rank
    named: Named
    is_denied: bool = False


def find_statements(mentions: Mentions) -> list[Statement]:
    """Return what the completion states."""
    lowered = mentions.lowered
    anchors = (phrases.INTRODUCTION.match(lowered, at.start()) for at in phrases.ANCHOR.finditer(lowered))
    found = list(filter(None, anchors))
    statements = [s for introduction in found[-_MAX_STATEMENTS:] for s in _read_introduced(mentions, introduction)]
    statements.extend(
        _read_declared(mentions, sorted(phrases.find_verdicts(lowered), key=re.Match.start)[-2 * _MAX_STATEMENTS :])
    )
    first = min((statement.place for statement in statements), default=0)
    statements.extend(_read_apologies(mentions, first))
    return statements


def _read_apologies(mentions: Mentions, start: int) -> Iterator[Statement]:
    """Yield the options that a sentence names behind an apology: "Sorry, I meant to say B"."""
    for apology in list(phrases.APOLOGY.finditer(mentions.lowered, start))[-_MAX_STATEMENTS:]:
        begin = apology.end()
        ends = phrases.SENTENCE_END.finditer(mentions.lowered, begin, begin + _LONGEST_APOLOGY)
        stop = [*islice((end.start() for end in ends), 2), min(len(mentions.text), begin + _LONGEST_APOLOGY)][:2][-1]
        for word in _WORD.finditer(mentions.text, begin, stop):
            read = mentions.read_items(word.start())
            if read is None or phrases.OBJECTION.match(mentions.lowered, read[1].stem):
                continue
            between = mentions.lowered[begin : word.start()]
            if not phrases.NEGATION.search(between) and not phrases.EARLIER.search(between) and not read[1].is_asked:
                yield Statement(apology.start(), read[1].end, Rank.CORRECTED, read[0])
            break


_LONGEST_APOLOGY = 100
_WORD = re.compile(r"(?<![^\W_])(?=[^\W_])|(?<=[\u3040-\u9fff])(?=[^\W_])|(?<=[\s,])(?=[(\[*\"'])")


def raise_corrections(text: str, statements: list[Statement]) -> list[Statement]:
    """Return the statements; those with "wait" or "sorry" between them and the one before are corrections.

    What is stated inside another statement is left out: "No, Maybe" in "Answer: No, Maybe" corrects nothing.
    """
    raised: list[Statement] = []
    last: Statement | None = None
    for statement in statements:
        if last is not None and statement.place < last.end and not last.is_denied:
            continue
        between = last is not None and phrases.CORRECTION.search(text, last.end, statement.place)
        raised.append(statement._replace(rank=Rank.CORRECTED) if between else statement)
        if not (between and statement.is_denied):  # "Wait, not A. It is C."
            last = statement
    return raised


def _read_introduced(mentions: Mentions, introduction: re.Match[str]) -> Iterator[Statement]:
    """Yield what an introduction introduces: one statement, or none."""
    kind, start, place = introduction.lastgroup or "", introduction.start(), introduction.end()
    before = _sentence_before(mentions.lowered, start)
    if kind == "denied":
        yield from _read_denied(mentions, start, place, before)
        return
    if not _introduces(kind, introduction[0], before, mentions.text, start):
        return
    if _LISTS.fullmatch(introduction[0]) and mentions.text[place : place + 2].lstrip(" ").startswith("\n"):
        return
    if mentions.text.startswith("{", place):
        place += 1  # the brace of \\boxed{}
    # "Likely" and "No" may be options.
    read = mentions.read_items(_skip_filler(mentions, place)) or mentions.read_items(place)
    if read is None and (denial := phrases.DENIAL.match(mentions.lowered, place)):
        read = mentions.read_items(_skip_filler(mentions, denial.end()))
        if read and kind not in {"ellipsis", "correcting", "contrast", "left"}:
            yield Statement(start, read[1].end, Rank.DECLARED, read[0], is_denied=True)
        return
    if read is None and kind == "noun" and (word := _LETTERS.match(mentions.text, place)):  # "AC"
        letters = mentions.read_letters(word[1]) if sorted(word[1]) == [*word[1]] else None
        read = (letters, Item(word[1], word.start(1), word.end(), word.end(), is_done=True)) if letters else None
    if read is None or (kind in {"left", "pronoun", "ellipsis"} and _is_step(mentions, read[1])):
        return
    named, last = read
    is_modal = phrases.MODAL.search(introduction[0]) is not None
    is_unreal = phrases.UNREAL.search(introduction[0])
    if last.is_asked or (is_modal and is_unreal) or (kind != "contrast" and _is_void(before)):
        named = UNCLEAR
    rank = Rank.SUGGESTED if is_modal or phrases.ELSEWHERE.search(before) else _rank(kind, before)
    yield Statement(start, last.end, rank, named, is_denied=not named and read[0] != named)


def _is_step(mentions: Mentions, item: Item) -> bool:
    """Tell whether a calculation goes on behind a number: "leaving 12. Then 12 + 6 = 18"."""
    text = mentions.text
    return item.is_text and text[item.start].isdigit() and _CALCULATION.search(text, item.stem) is not None


_CALCULATION = re.compile(r"\d\s?=\s?[$]?\d")


def _skip_filler(mentions: Mentions, place: int) -> int:
    """Return the place behind "option", "I think", "it is" and the like."""
    filler = phrases.FILLER.match(mentions.lowered, place)
    return filler.end() if filler else place


def _read_denied(mentions: Mentions, start: int, place: int, before: str) -> Iterator[Statement]:
    """Yield that B is denied by "Not B", where only a correction stands before "not"."""
    said = _ANY_WORD.search(_INTERJECTION.sub(" ", phrases.CORRECTION.sub(" ", before)))
    place = _skip_filler(mentions, place)
    wrong = None if said or mentions.read_item(start) else mentions.read_item(place)
    if wrong and mentions.read_items(place):
        yield Statement(start, wrong.end, Rank.STATED, frozenset({wrong.label}), is_denied=True)


_LETTERS = re.compile(r"\W{0,4}([A-ZА-Я]{2,10})(?![A-Za-zА-Яа-я0-9])")
_ANY_WORD = re.compile(r"\w")
_INTERJECTION = re.compile(r"\b(?:oh|ah|hm{1,3}|no|but|my)\b")

_LISTS = re.compile(r"(?:options?|choices?|选项|選項)\s?:", re.IGNORECASE)
"""At the end of a line: the options follow, not an answer."""


def _introduces(kind: str, words: str, before: str, text: str, start: int) -> bool:
    """Tell whether the words are what they look like: no part of a longer word, and where such words may stand."""
    clause = before.rstrip()
    if kind in {"mark", "key"}:
        return True
    if kind == "verb":
        is_choice = _IMPERATIVE.match(words) is not None
        subject = phrases.SUBJECT.search(before[-40:])
        return is_choice and not clause if subject is None else is_choice or not subject[0].startswith("let")
    if kind == "contrast":
        return phrases.NEGATION.search(before) is not None
    if kind in {"labelled", "ellipsis", "correcting", "pronoun"}:
        points = "→" not in clause and _TO_LABEL.match(text, start) is not None
        return not clause or points or phrases.CLAUSE_START.search(clause[-30:]) is not None
    return True


_TO_LABEL = re.compile(r"[→⇒]\W{0,3}(?:[^\W_]|[ivx]{1,4}|\d{1,2})\W{0,3}(?:$|\n)")
"""Nothing but what looks like a label, whichever labels the question has, behind an arrow."""
_IMPERATIVE = re.compile(r"(?:choos|pick|select|go|opt|vote|settle|stick|mark|take|say)")


def _rank(kind: str, before: str) -> Rank:
    if kind in {"mark", "correcting"} or phrases.FINAL.search(before):
        return Rank.CORRECTED
    if kind in {"ellipsis", "left"} or phrases.CONCLUSION.search(before):
        return Rank.CONCLUDED
    return Rank.DECLARED if kind == "pronoun" else Rank.STATED


def _is_void(before: str) -> bool:
    """Tell whether what stands before a statement, in its sentence, takes its meaning away."""
    if phrases.VOID.search(before.rstrip(OPENERS)[-_LOOK_BACK_VOID:]):
        return True
    hypothesis = None
    for hypothesis in phrases.HYPOTHESIS.finditer(before):  # noqa: B007 - the last one
        pass
    if hypothesis is None:
        return False
    rest = before[hypothesis.end() :]
    return phrases.CONCLUSION.search(rest) is None and phrases.RETURN.search(rest) is None


def _sentence_before(text: str, start: int) -> str:
    """Return what stands before `start` in its sentence."""
    before = text[max(0, start - _LOOK_BACK) : start]
    end = 0
    for match in phrases.SENTENCE_END.finditer(before):
        end = match.end()
    return before[end:].lstrip(" \"')*_")


def _read_declared(mentions: Mentions, verdicts: list[re.Match[str]]) -> Iterator[Statement]:
    """Yield the options that stand before a verdict, from the beginning of their clause."""
    for verdict in verdicts:
        before = _sentence_before(mentions.lowered, verdict.start())
        begin = verdict.start() - len(before)
        places = [begin, *(begin + match.end() for match in _CLAUSE.finditer(before))]
        for place in [*places[:1], *places[1:][-_MAX_CLAUSES:]]:
            lead = phrases.LEAD.match(mentions.lowered, place, verdict.start())
            read = None
            for at in dict.fromkeys((place, lead.end() if lead else place)):
                read = mentions.read_items(at, verdict.start())
                if read and verdict.start() in {read[1].stem, read[1].end}:
                    break
                read = None
            if read is None:
                continue
            is_denied = verdict.lastgroup is not None
            if is_denied or not _is_void(before[: place - begin]):
                rank = Rank.CONCLUDED if phrases.CONCLUSION.search(before, 0, at - begin) else Rank.DECLARED
                is_weak = phrases.MODAL.search(verdict[0]) or phrases.ELSEWHERE.search(before, 0, place - begin)
                rank = Rank.SUGGESTED if is_weak else rank
                yield Statement(place, verdict.end(), rank, read[0], is_denied)
            break


_CLAUSE = phrases.compile_words(
    r"[:,、，—–-]\s{0,2}|\b(?:that|so|think|believe|only|thus|therefore|hence|but|however|while|and|statements?|both|say|because|or|reflection|thought|makes?|leaves?|leaving|with|us|que|che|dass)\s"
    r"|所以|因此|选项|選項|我|は"
)
"""Where a clause may begin."""
