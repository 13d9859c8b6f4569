"""Whether two questions that share most of their words are one question, written twice, or two of a template.

What both share word for word (a passage, worked examples, instructions) says nothing: two questions about one passage
are two questions. So whole sentences that stand in both are left out, and what remains is compared, word by word.

Two that differ in a word may be two of a template: "the capital of France", "... of Spain". A place is a slot of one
where a question with another answer has other words, between the same two words before and the same two behind; or
many questions have, with any answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from helm_ext.analysis.lint.rows import Row, words_of

Words = tuple[str, ...]
_MOST_CHANGED = 0.25
"""The share of the words that may differ, where the golds are equal and rare enough to say something."""
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
_LONGEST_FILLER = 4
"""Words."""
_KEPT_FILLERS = 20
"""Of one place: more would tell no more."""
_ENOUGH_OTHERS = 3
"""Words that other questions have in one place make it a slot, whatever their answers."""
_SENTENCE_END = ("", "")

_TURNS_MEANING = frozenset(
    """not no never none neither nor without except cannot can't don't doesn't didn't isn't aren't wasn't weren't won't
    nicht kein keine nie ohne pas jamais sans nunca sin não sem non mai senza не нет без 不 没 非 無
    more less most least first last before after above below larger smaller largest smallest highest lowest longest
    shortest oldest youngest maximum minimum increase decrease true false odd even north south east west one two three
    four five six seven eight nine ten eleven twelve""".split()  # noqa: SIM905
)
"""Words that make another question when one of them stands on one side only."""


class Swap(NamedTuple):
    """A place where one row has other words than the other."""

    before: Words
    behind: Words
    """Two words each."""
    fillers: tuple[Words, Words]


class Pair(NamedTuple):
    """A row that asks nearly what an earlier one asks."""

    row: Row
    other: Row
    changed: int
    """In how many words they differ."""
    swaps: Sequence[Swap]


def compare(row: Row, other: Row, context: Collection[str], *, gold_is_rare: bool) -> Pair | None:
    """Return two rows as a pair, if they differ in too little for two questions; else None.

    `context` are sentences that no row has for itself.
    """
    if len(row.texts) != len(other.texts) or row.option_keys() != other.option_keys():
        return None  # a conversation and its continuation, other options
    sides = _take(row, other), _take(other, row)
    own = max(_count(part for part in one.parts if part not in context) for one in (row, other))
    total = max(_count(one.parts) for one in (row, other))
    found = _compare(*sides, own, total, gold_is_rare=gold_is_rare)
    bare = _without_instructions(sides[0], context), _without_instructions(sides[1], context)
    if found is None and bare != sides:
        found = _compare(*bare, own, total, gold_is_rare=gold_is_rare)
    return found and Pair(row, other, *found)


def _compare(
    ours: Sequence[str], theirs: Sequence[str], own: int, total: int, *, gold_is_rare: bool
) -> tuple[int, Sequence[Swap]] | None:
    """Return what a `Pair` says of sentences: of rows with so many words of their own, and in total."""
    longest = max(map(_count, (ours, theirs)))
    if not ours or not theirs:
        return (longest, ()) if longest <= max(_LEAST_ADDED, _MOST_ADDED * total) else None
    share = _MOST_CHANGED if gold_is_rare else _MOST_CHANGED_COMMON_GOLD
    most = min(share * max(own, longest), _MOST_OF_SENTENCE * longest)
    if not gold_is_rare:
        most = min(most, max(_FEW_CHANGED, _LONG_CHANGED * longest))
    from rapidfuzz.distance import Levenshtein  # its import takes 20 ms, and most files need none of it

    mine, others = _join(ours), _join(theirs)
    more: list[str] = []
    less: list[str] = []
    swaps: list[Swap] = []
    for edit in Levenshtein.opcodes(mine, others):
        a, b, c, d = edit.src_start, edit.src_end, edit.dest_start, edit.dest_end
        if edit.tag == "equal" or (edit.tag == "replace" and all(map(_is_spelling, mine[a:b], others[c:d]))):
            continue
        more += filter(None, mine[a:b])
        less += filter(None, others[c:d])
        if edit.tag == "replace":
            before, behind = (_generalise(words) for words in (others[c - 2 : c], others[d : d + 2]))
            swaps.append(Swap(before, behind, (tuple(mine[a:b]), tuple(others[c:d]))))
    changed = max(len(more), len(less))
    if changed > most:
        return None
    turned = (Counter(more) - Counter(less)) + (Counter(less) - Counter(more))
    return (changed, swaps) if _TURNS_MEANING.isdisjoint(turned) else None


def _take(row: Row, other: Row) -> list[str]:
    """Return the sentences of a row that the other lacks."""
    there, taken = Counter(map(words_of, other.parts)), []
    for part in row.parts:
        words = words_of(part)
        there[words] -= 1
        if there[words] < 0:
            taken.append(part)
    return taken


def _without_instructions(sentences: list[str], context: Collection[str]) -> list[str]:
    """Return the sentences but for short ones that many rows share; a passage that they share stays."""
    own = [one for one in sentences if one not in context]
    return own if _count(sentences) - _count(own) <= _LEAST_ADDED else sentences


def _count(sentences: Iterable[str]) -> int:
    return sum(len(words_of(one)) for one in sentences)


def _join(sentences: Iterable[str]) -> list[str]:
    """Return the words of sentences, with what stands for an end before, between and behind them."""
    joined = [*_SENTENCE_END]
    for one in sentences:
        joined += [*words_of(one), *_SENTENCE_END]
    return joined


def _is_spelling(word: str, other: str) -> bool:
    """Whether two words of five letters or more differ in one letter, or in two that changed places.

    The first letter is the same: "right" and "light" are two words.
    """
    long = max(word, other, key=len)
    if len(long) < 5 or word[:1] != other[:1] or not long.isalpha():
        return False
    from rapidfuzz.distance import OSA

    return OSA.distance(word, other, score_cutoff=1) <= 1


@lru_cache(maxsize=4096)
def _as_number(word: str) -> str:
    """Return 0 for a word with a digit, else the word: in a template, numbers differ too."""
    return "0" if any(character.isdigit() for character in word) else word


def _generalise(words: Sequence[str]) -> Words:
    return tuple(map(_as_number, words))


def drop_templates(pairs: Sequence[Pair], rows: Collection[Row]) -> list[Pair]:
    """Return the pairs that differ in more than slots. `rows`: all questions."""
    fillers: dict[Words, dict[Words, dict[Words, Row]]] = {}
    """By the words before and behind a place, what stands there, and in which row first."""
    for pair in pairs:
        for swap in pair.swaps:
            fillers.setdefault(swap.before, {})[swap.behind] = {}
    for row in rows if fillers else ():
        words = _generalise(_join(row.parts))
        for start in range(2, len(words)):
            if (places := fillers.get(words[start - 2 : start])) is not None:
                for end in range(start + 1, min(start + _LONGEST_FILLER, len(words) - 2) + 1):
                    found = places.get(words[end : end + 2])
                    if found is not None and len(found) < _KEPT_FILLERS and "" not in words[start:end]:
                        found.setdefault(words[start:end], row)

    def is_slot(swap: Swap, row: Row) -> bool:
        found = fillers[swap.before][swap.behind]
        longest = max(map(len, swap.fillers))
        others = [one for words, one in found.items() if words not in swap.fillers and len(words) <= longest]
        return len(others) >= _ENOUGH_OTHERS or any(map(row.contradicts, others))

    return [pair for pair in pairs if not pair.swaps or not all(is_slot(swap, pair.row) for swap in pair.swaps)]
