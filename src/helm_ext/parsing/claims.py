"""Where a completion claims that options are the answer, or that they are not, and how much a claim weighs."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from helm_ext.parsing import words
from helm_ext.parsing.marks import ABOUT_LABEL, Marks
from helm_ext.parsing.options import CLOSERS, PUNCTUATION

Named: TypeAlias = "frozenset[str]"
"""The labels of the options that are named together."""

UNCLEAR: Named = frozenset()
"""Options are named, but not which: "A or B", or a label with another option's text."""

_MAX_GROUPS = 150
"""At most this many groups of options are looked at, from the end."""
_BACK = 160
"""Characters before a group of options that tell what is said of it."""


class Rank(IntEnum):
    """How much a claim weighs: against one of a lower rank that it follows, it is right."""

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


class Claim(NamedTuple):
    """What is claimed somewhere."""

    place: int
    end: int
    rank: Rank
    named: Named
    is_denied: bool = False


class Group(NamedTuple):
    """Options that are named together."""

    start: int
    end: int
    labels: frozenset[str]
    named: Named
    """The labels, UNCLEAR where only one of them is meant."""
    is_named: bool
    """Whether the last of them ends there, so that an introduction may introduce it."""


class Reading:
    """What one completion, spelled in symbols, claims."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        self.text = text = marks.text
        self._ends = [0, *(match.end() for match in words.SENTENCE_END.finditer(text)), len(text)]
        self.sentences = [(begin, end) for begin, end in pairwise(self._ends) if text[begin:end].strip()]
        self.groups: list[Group] = []
        place = 0
        while found := words.GROUP.search(text, place):
            comma = _COMMA.match(text, found.start(), found.end())
            if comma and self.is_denied(found.start()):  # "Not A, B."
                found = words.GROUP.match(text, found.start(), comma.start(1)) or found
            self.groups.append(self._read_group(found))
            place = found.end()
        self._starts = [group.start for group in self.groups]

    def _read_group(self, match: re.Match[str]) -> Group:
        symbols = re.findall(words.SYMBOL, match[0])
        labels = [self.marks.get_label(symbol) for symbol in symbols]
        named = frozenset(label for label in labels if label is not None)
        is_either = len(named) > 1 and words.EITHER.search(match[0])
        is_unclear = None in labels or is_either or words.STRANGER.match(self.text, match.end())
        return Group(*match.span(), named, UNCLEAR if is_unclear else named, ord(symbols[-1]) < ABOUT_LABEL)

    def get_before(self, place: int) -> str:
        """Return what stands before a place in its sentence."""
        begin = self._ends[bisect_right(self._ends, place) - 1]
        has_ended = self.text.endswith((".", "!", "?"), 0, place)
        return "" if has_ended else self.text[max(begin, place - _BACK) : place].lstrip(" ')#")

    def _find_unnamed(self, group: Group) -> int:
        """Return where the text before a group begins that names no option, and is looked at."""
        return max(0, group.start - _BACK, *(one.end for one in self.get_groups(0, group.start)[-1:]))

    def get_groups(self, begin: int, end: int) -> list[Group]:
        """Return the groups of options that begin between two places."""
        return self.groups[bisect_left(self._starts, begin) : bisect_left(self._starts, end)]

    def is_denied(self, place: int) -> bool:
        """Tell whether a word before a place denies the options there alone: "not B"."""
        return words.DENIED.search(self.text[max(0, place - 60) : place]) is not None

    def read_alone(self, start: int, end: int) -> Named | None:
        """Return the options that the text from `start` to `end` is nothing but, with "so", "option" and the like."""
        begin = words.LEAD.match(self.text, start, end).end()  # type: ignore[union-attr]
        group = words.GROUP.match(self.text, begin, end)
        if group is None:
            return None
        named = self._read_group(group).named
        rest = self.text[group.end() : end].strip(CLOSERS + PUNCTUATION + " \n")
        is_asked = (begin > start or not named) and "?" in self.text[group.end() : end]
        return None if rest or is_asked else named

    def find_claims(self) -> list[Claim]:
        """Return what the completion claims."""
        return [claim for group in self.groups[-_MAX_GROUPS:] for claim in self._read_claim(group)]

    def _read_claim(self, group: Group) -> Iterator[Claim]:
        before = self.get_before(group.start)
        is_asked = self.text.startswith("?", group.end)
        if group.is_named and (claim := self._read_introduced(group, is_asked)):
            yield claim
        elif group.is_named and (denial := words.DENIAL.search(before)):
            start = group.start - len(before) + denial.start()
            said = words.CORRECTION.sub(" ", before[: denial.start()])
            if not _WORD.search(_INTERJECTION.sub(" ", said)):
                yield Claim(start, group.end, Rank.STATED, group.labels, is_denied=True)
            elif words.INTRODUCTION.search(before[: denial.start()]):
                yield Claim(start, group.end, Rank.DECLARED, group.labels, is_denied=True)
        elif verdict := words.VERDICT.match(self.text, group.end):
            yield from self._read_declared(group, verdict, before)
        elif group.is_named and not is_asked and (apology := self._find_apology(group)) is not None:
            yield Claim(apology, group.end, Rank.CORRECTED, group.named)

    def _read_introduced(self, group: Group, is_asked: bool) -> Claim | None:
        """Return what an introduction before the group makes of it; None without one."""
        found = words.INTRODUCTION.search(self.text, self._find_unnamed(group), group.start)
        while found:
            kind, start = found.lastgroup or "", found.start()
            before = self.get_before(start)
            points = _POINTS.match(found[0]) and re.match(words.LABEL, self.text[group.start])  # "... → B"
            if points or _introduces(kind, found[0], before):
                break
            found = words.INTRODUCTION.search(self.text, found.start() + 1, group.start)
        else:
            return None
        named = group.named
        if kind in {"left", "pronoun", "ellipsis"} and _CALCULATION.search(self.text, group.end):
            return None  # "leaving 12. Then 12 + 6 = 18"
        if kind == "noun" and _OTHERS.search(found[0]):
            return None
        is_modal = words.MODAL.search(found[0])
        if is_asked or (kind != "contrast" and is_void(before)):
            named = UNCLEAR
        rank = Rank.SUGGESTED if is_modal or words.ELSEWHERE.search(before + found[0]) else _rank(kind, before)
        return Claim(start, group.end, rank, named, is_denied=not named and group.named != named)

    def _read_declared(self, group: Group, verdict: re.Match[str], before: str) -> Iterator[Claim]:
        """Yield what a verdict behind the group declares, where the group begins its clause."""
        clause = max((match.end() for match in words.CLAUSE.finditer(before)), default=0)
        if not words.LEAD.fullmatch(before, clause) and not words.LEAD.fullmatch(before):
            return
        is_denied = (verdict.lastgroup or "").startswith("denied")
        if is_denied or not is_void(before[:clause]):
            rank = Rank.CONCLUDED if words.CONCLUSION.search(before) else Rank.DECLARED
            is_weak = words.MODAL.search(verdict[0]) or words.ELSEWHERE.search(before)
            yield Claim(group.start, verdict.end(), Rank.SUGGESTED if is_weak else rank, group.named, is_denied)

    def _find_apology(self, group: Group) -> int | None:
        """Return where an apology begins that the group is the first to be named behind: "Sorry, I meant to say B"."""
        begin = max(self._find_unnamed(group), group.start - _LONGEST_APOLOGY)
        for apology in reversed([*words.APOLOGY.finditer(self.text, begin, group.start)]):
            between = self.text[apology.end() : group.start]
            ended = len([*words.SENTENCE_END.finditer(between)]) > 1
            denied = words.NEGATION.search(between) or words.EARLIER.search(between)
            return None if ended or denied else apology.start()
        return None


_LONGEST_APOLOGY = 100
_WORD = re.compile(r"\w")
_COMMA = re.compile(rf"{words.SYMBOL}(,\s){words.SYMBOL}(?!,?\s(?:or|nor|and)\b)")
_OTHERS = re.compile(r"\b(?:by|students?|people|others|many|some|you|they|he|she)\b")
"""In an introduction: the answer is somebody else's."""
_LISTS = re.compile(r"(?:options?|choices?|选项|選項)\s?:\s*\n")
"""At the end of a line: the options follow, not an answer."""
_CALCULATION = re.compile(rf"(?:\d|{words.SYMBOL})\s?=\s?\$?(?:\d|{words.SYMBOL})")
_POINTS = re.compile(r"→|⇒|[-=]>")
_INTERJECTION = re.compile(r"\b(?:oh|ah|hm{1,3}|no|but|my)\b")


def _introduces(kind: str, said: str, before: str) -> bool:
    """Tell whether words that may introduce an answer stand where such words do."""
    if kind in {"choose", "believe"}:
        subject = words.SUBJECT.search(before[-40:])
        is_imperative = not before.strip() if subject is None else subject["let"]
        return kind == "choose" if is_imperative else subject is not None
    if kind == "contrast":
        return words.NEGATION.search(before) is not None
    if _LISTS.search(said):
        return False
    if kind in {"labelled", "ellipsis", "correcting", "pronoun"}:
        return not before.strip() or words.CLAUSE_START.search(before[-30:]) is not None
    return True


def _rank(kind: str, before: str) -> Rank:
    if kind in {"mark", "correcting"}:
        return Rank.CORRECTED
    if kind in {"ellipsis", "left"} or words.CONCLUSION.search(before):
        return Rank.CONCLUDED
    return Rank.DECLARED if kind == "pronoun" else Rank.STATED


def is_void(before: str) -> bool:
    """Tell whether what stands before a claim, in its sentence, takes its meaning away."""
    if words.VOID.search(before.rstrip(" '([")[-80:]):
        return True
    hypothesis = None
    for hypothesis in words.HYPOTHESIS.finditer(before):  # noqa: B007 - the last one
        pass
    if hypothesis is None:
        return False
    rest = before[hypothesis.end() :]
    return words.CONCLUSION.search(rest) is None and words.RETURN.search(rest) is None


def raise_corrections(text: str, claims: list[Claim]) -> list[Claim]:
    """Return the claims; those with "wait" or "sorry" between them and the one before are corrections.

    What is claimed inside another claim is left out: "No, Maybe" in "Answer: No, Maybe" corrects nothing.
    """
    raised: list[Claim] = []
    last: Claim | None = None
    for claim in claims:
        if last is not None and claim.place < last.end and not last.is_denied:
            continue
        between = last is not None and words.CORRECTION.search(text, last.end, claim.place)
        raised.append(claim._replace(rank=Rank.CORRECTED) if between else claim)
        if not (between and claim.is_denied):  # "Wait, not A. It is C."
            last = claim
    return raised
