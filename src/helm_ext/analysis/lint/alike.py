"""Whether two questions that share most of their words are one question, written twice, or two of a template.

What both share word for word (a passage, worked examples, instructions) says nothing: two questions about one passage
are two questions. So whole sentences that stand in both are left out, and what remains is compared.

Two that differ in a word may be two of a template: "the capital of France", "... of Spain". A place is a slot of one

- where a third question, with another answer, differs from the two only there (and in numbers); or two more with any;
- where many words stand between the same two words before and after.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from helm_ext.analysis.lint.rows import Row, words_of

Words = tuple[str, ...]
_SLOT, _NUMBER = "\0slot", "\0number"

_MOST_CHANGED = 0.25
"""The share of the remaining words that may differ, where the golds are equal and rare enough to say something."""
_MOST_CHANGED_COMMON_GOLD = 0.17
"""Where they say little: yes and no, names of classes, none at all."""
_FEW_CHANGED, _LONG_CHANGED = 3, 0.1
"""There at most three words may differ, or a tenth of a long text."""
_MOST_OF_SENTENCE = 0.5
"""At most this share of the remaining words, however much else is equal: questions about one passage share words."""
_MOST_ADDED = 0.2
"""The share of all words that may be added as sentences of their own."""
_LEAST_ADDED = 6
"""Words of an added sentence that never make another question ("Answer in one word")."""
_LONG_TEXT = 400
"""Longer remainders are compared by their words alone, not by their order."""

_MOST_SPELLINGS = 36
"""Pairs of words that are compared as two spellings of one."""
_PHRASE = 4
"""Words that may stand elsewhere, where both sides have the same words."""
_ORDERED = 12
"""From this many words on, their order says whether two texts are one."""

_TURNS_MEANING = frozenset(
    """not no never none neither nor without except cannot can't don't doesn't didn't isn't aren't wasn't weren't won't
    nicht kein keine nie ohne pas jamais sans nunca sin não sem non mai senza не нет без 不 没 非 無
    more less most least first last before after above below larger smaller largest smallest highest lowest longest
    shortest oldest youngest maximum minimum increase decrease true false odd even north south east west one two three
    four five six seven eight nine ten eleven twelve""".split()  # noqa: SIM905
)
"""Words that make another question when one of them stands on one side only."""

_MOST_PATTERNS = 500
"""How many are looked for, the most frequent first: a dataset with more has no templates but mistakes."""
_ENOUGH_OTHERS = 2
"""Further questions that differ in the same place, whatever their answers."""
_ENOUGH_FILLERS = 5
"""Words between the same words, those of the two questions included."""
_FILLER = r"(\S+(?: \S+){0,3}?)"
"""What a slot holds: four words at most."""


@dataclass(slots=True, eq=False)
class Swap:
    """A sentence of one row and that of another, equal but for words in the same places."""

    patterns: tuple[Words, Words]
    """The words of each, with _SLOT where the other has other words, and _NUMBER for numbers."""
    fillers: tuple[Words, Words]
    """What the two have in the slots."""
    others: set[Words] = field(default_factory=set)
    """What further questions have in the slots."""
    is_template: bool = False


class Pair(NamedTuple):
    """A row that asks nearly what an earlier one asks."""

    row: Row
    other: Row
    changed: int
    """In how many words they differ."""
    swaps: Sequence[Swap]


def compare(row: Row, other: Row, context: Collection[str], *, gold_is_rare: bool) -> Pair | None:
    """Return two rows as a pair, if they differ in too little for two questions; else None.

    `context` are sentences that are no row's own.
    """
    if len(row.texts) != len(other.texts):
        return None  # a conversation and its continuation
    if row.option_keys() != other.option_keys():
        return None
    sides = [_sentences(one, context) for one in (row, other)]
    own = max(sum(len(one.words) for one in side if not one.is_context) for side in sides)
    total = max(len(_words(side)) for side in sides)
    ours, theirs = _take(sides[0], sides[1]), _take(sides[1], sides[0])
    share = _MOST_CHANGED if gold_is_rare else _MOST_CHANGED_COMMON_GOLD
    found = _compare(ours, theirs, own, total, share) or _compare(
        _without_instructions(ours), _without_instructions(theirs), own, total, share
    )
    return None if found is None else Pair(row, other, *found)


def _compare(
    ours: Sequence[_Sentence], theirs: Sequence[_Sentence], own: int, total: int, share: float
) -> tuple[int, Sequence[Swap]] | None:
    mine, others = _words(ours), _words(theirs)
    longest = max(len(mine), len(others))
    allowed = max(share * longest, min(share * own, _MOST_OF_SENTENCE * longest))
    if share < _MOST_CHANGED:
        allowed = min(allowed, max(_FEW_CHANGED, _LONG_CHANGED * longest))
    if mine and others and abs(len(mine) - len(others)) > allowed:
        return None
    more, less = Counter(mine) - Counter(others), Counter(others) - Counter(mine)
    is_reordered = not more and not less and mine != others
    more, less, spellings = _drop_spellings(more, less)
    changed = max(more.total(), less.total())
    if not mine or not others:
        return (changed, ()) if changed <= max(_LEAST_ADDED, _MOST_ADDED * total) else None
    if not _TURNS_MEANING.isdisjoint((*more, *less)):
        return None
    if is_reordered and share < _MOST_CHANGED and longest < _ORDERED:
        return None
    if changed > allowed:
        return None
    others = [spellings.get(word, word) for word in others]
    from rapidfuzz.distance import LCSseq  # its import takes 20 ms, and most files need none of it

    moved = LCSseq.distance(mine, others)
    """Words of the longer side without a partner when both are read side by side, in order."""
    if moved > (_PHRASE if not more and not less else 0) + max(allowed, changed):
        return None
    return max(changed, moved), _find_swaps(ours, theirs) if more and less else ()


class _Sentence(NamedTuple):
    is_context: bool
    words: Words


def _sentences(row: Row, context: Collection[str]) -> list[_Sentence]:
    """Return the sentences of a row; options are sentences."""
    return [_Sentence(part in context, words_of(part)) for part in (*row.parts, *sorted(row.options))]


def _take(sentences: Sequence[_Sentence], others: Sequence[_Sentence]) -> list[_Sentence]:
    """Return the sentences that the others lack."""
    wanted = Counter(one.words for one in sentences) - Counter(one.words for one in others)
    taken: list[_Sentence] = []
    for sentence in sentences:
        if wanted[sentence.words] > 0:
            wanted[sentence.words] -= 1
            taken.append(sentence)
    return taken


def _without_instructions(sentences: list[_Sentence]) -> list[_Sentence]:
    """Return the sentences but for short ones that many rows share; a passage that they share stays."""
    if sum(len(one.words) for one in sentences if one.is_context) > _LEAST_ADDED:
        return sentences
    return [one for one in sentences if not one.is_context]


def _words(sentences: Sequence[_Sentence]) -> list[str]:
    return [word for sentence in sentences for word in sentence.words]


def _drop_spellings(more: Counter[str], less: Counter[str]) -> tuple[Counter[str], Counter[str], dict[str, str]]:
    """Take out pairs of words that are two spellings of one: a letter more, less, changed, or two swapped.

    Return what is left of both sides, and for words of the second the spelling of the first.
    """
    spellings: dict[str, str] = {}
    if not more or not less or more.total() * less.total() > _MOST_SPELLINGS:
        return more, less, spellings
    more, less = Counter(more), Counter(less)
    for word in list(more):
        spelling = next((other for other in less if _edit_is_small(word, other)), None)
        if spelling is not None:
            spellings[spelling] = word
            paired = min(more[word], less[spelling])
            more[word] -= paired
            less[spelling] -= paired
            more, less = +more, +less
    return more, less, spellings


def _edit_is_small(word: str, other: str) -> bool:
    """Whether two words of five letters or more differ in one letter, or in two that changed places.

    The first letter is the same: "right" and "light" are two words.
    """
    long = max(word, other, key=len)
    if len(long) < 5 or word[0] != other[0] or not long.isalpha():
        return False
    from rapidfuzz.distance import OSA

    return OSA.distance(word, other, score_cutoff=1) <= 1


def _find_swaps(ours: Sequence[_Sentence], theirs: Sequence[_Sentence]) -> tuple[Swap, ...]:
    """Return where the sentences have words of their own; nothing where they do not stand side by side."""
    if len(ours) != len(theirs):
        return ()
    swaps = [_find_swap(one.words, two.words) for one, two in zip(ours, theirs, strict=True)]
    return tuple(swap for swap in swaps if swap is not None)


def _find_swap(ours: Words, theirs: Words) -> Swap | None:
    if max(len(ours), len(theirs)) > _LONG_TEXT:
        return None
    patterns: tuple[list[str], list[str]] = ([], [])
    fillers: tuple[list[str], list[str]] = ([], [])
    for tag, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        spans = ours[a:b], theirs[c:d]
        is_spelling = b - a == d - c == 1 and _edit_is_small(ours[a], theirs[c])
        for side, span in enumerate(spans):
            if tag == "replace" and not is_spelling:
                patterns[side].append(_SLOT)
                fillers[side].append(" ".join(span))
            else:
                patterns[side].extend(map(_as_number, span))
    if not fillers[0]:
        return None
    return Swap((tuple(patterns[0]), tuple(patterns[1])), (tuple(fillers[0]), tuple(fillers[1])))


@lru_cache(maxsize=4096)
def _as_number(word: str) -> str:
    """Return _NUMBER for a word with a digit, else the word."""
    return _NUMBER if any(character.isdigit() for character in word) else word


def drop_templates(pairs: Sequence[Pair], rows: Collection[Row]) -> list[Pair]:
    """Return the pairs that differ in more than slots. `rows`: all questions."""
    swapped = [(pair.row, swap) for pair in pairs for swap in pair.swaps]
    if not swapped:
        return list(pairs)
    by_edge = _index_patterns(swapped)
    contexts = {id(swap): _contexts(swap) for _, swap in swapped}
    fillers = {context: set[str]() for some in contexts.values() for context in some}
    for row in rows:
        for sentence in row.sentences():
            words = tuple(map(_as_number, sentence))
            _see(row, words, by_edge)
            padded = _pad(words)
            for at in range(2, len(padded) - 2):
                if (found := fillers.get((*padded[at - 2 : at], *padded[at + 1 : at + 3]))) is not None:
                    found.add(padded[at])
    for _, swap in swapped:
        of_swap = contexts[id(swap)]
        if of_swap and all(len(fillers[context]) >= _ENOUGH_FILLERS for context in of_swap):
            swap.is_template = True
    return [pair for pair in pairs if not pair.swaps or not all(one.is_template for one in pair.swaps)]


_Uses = list[tuple[Row, Swap]]
"""Swaps of one pattern, each with the row that it is of."""


def _index_patterns(swapped: _Uses) -> Mapping[str, list[tuple[re.Pattern[str], _Uses]]]:
    """Return the patterns by their first word, or by their last after a space: a sentence without it has no match."""
    by_pattern: dict[Words, _Uses] = defaultdict(list)
    for row, swap in swapped:
        for pattern in set(swap.patterns):
            by_pattern[pattern].append((row, swap))
    by_edge: dict[str, list[tuple[re.Pattern[str], _Uses]]] = defaultdict(list)
    for pattern in sorted(by_pattern, key=lambda pattern: (-len(by_pattern[pattern]), pattern))[:_MOST_PATTERNS]:
        edge = pattern[0] if pattern[0] != _SLOT else f" {pattern[-1]}"
        regex = " ".join(_FILLER if word == _SLOT else re.escape(word) for word in pattern)
        by_edge[edge].append((re.compile(regex), by_pattern[pattern]))
    return by_edge


def _see(row: Row, words: Words, by_edge: Mapping[str, list[tuple[re.Pattern[str], _Uses]]]) -> None:
    """Note where a third question has other words where two differ from one another."""
    edges = (words[0], f" {words[-1]}", f" {_SLOT}") if words else ()
    if by_edge.keys().isdisjoint(edges):
        return
    sentence = " ".join(words)
    for regex, uses in (found for edge in edges for found in by_edge.get(edge, ())):
        match = regex.fullmatch(sentence) if uses else None
        if match is None:
            continue
        for other, swap in uses:
            if match.groups() not in swap.fillers and frozenset(row.options) == frozenset(other.options):
                swap.others.add(match.groups())
                swap.is_template = row.contradicts(other) or len(swap.others) >= _ENOUGH_OTHERS
        uses[:] = [use for use in uses if not use[1].is_template]  # few rows settle all uses of a pattern


def _contexts(swap: Swap) -> list[Words]:
    """Return the two words before and after each slot, as the earlier row has them."""
    words: list[str] = []
    slots: list[tuple[int, int]] = []
    fillers = iter(swap.fillers[1])
    for word in swap.patterns[1]:
        filler = [_as_number(each) for each in next(fillers).split(" ")] if word == _SLOT else [word]
        if word == _SLOT:
            slots.append((len(words), len(words) + len(filler)))
        words += filler
    padded = _pad(tuple(words))
    return [(*padded[start : start + 2], *padded[end + 2 : end + 4]) for start, end in slots]


def _pad(words: Words) -> Words:
    return ("", "", *words, "", "")
