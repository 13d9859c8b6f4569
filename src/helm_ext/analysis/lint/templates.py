"""Whether two questions that differ in a word are two of a template: "the capital of France", "... of Spain".

A place is a slot of a template

- where a third question, with another answer, differs from the two only there (and in numbers); or two more with any;
- where many words stand between the same two words before and after;
- where the same swap ("capital" for "largest city") makes of some other question one with another answer.
"""

from __future__ import annotations

import itertools
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from helm_ext.analysis.lint.alike import SLOT, Likeness, Swap, as_number
from helm_ext.analysis.lint.rows import Row, Rows

_MOST_PATTERNS = 500
"""How many are looked for, the most frequent first: a dataset with more has no templates but mistakes."""
_ENOUGH_OTHERS = 2
"""Further questions that differ in the same place, whatever their answers."""
_ENOUGH_FILLERS = 5
"""Words between the same words, those of the two questions included."""
_FILLER_WORDS = 4
"""Words that a slot holds at most."""

Words = tuple[str, ...]


@dataclass(slots=True, eq=False)
class Pair:
    """A row that asks nearly what an earlier one asks, and the words that make one of the other."""

    row: Row
    other: Row
    likeness: Likeness


@dataclass(slots=True, eq=False)
class _Use:
    """One swap of a pair."""

    row: Row
    swap: Swap
    is_template: bool = False
    others: set[Words] = field(default_factory=set)
    """What further questions have in the slots."""


def drop_templates(pairs: Sequence[Pair], rows: Rows, numbers: Sequence[int]) -> list[Pair]:
    """Return the pairs that differ in more than slots.

    `numbers` are those of all questions, in order; their rows are gone through twice, if need be.
    """
    uses = {id(pair): [_Use(pair.row, swap) for swap in pair.likeness.swaps] for pair in pairs}
    swapped = [use for some in uses.values() for use in some]
    if not swapped:
        return list(pairs)
    slots, contexts = _Slots(swapped), _Contexts(swapped)
    for row in _pick(rows, numbers):
        for words in row.sentences():
            numbered = tuple(map(as_number, words))
            slots.see(row, numbered)
            contexts.see(numbered)
    contexts.finish()
    left = [use for use in swapped if not use.is_template]
    if left:
        exchanges = _Exchanges(left)
        for row in _pick(rows, numbers):
            exchanges.see(row, tuple(itertools.chain.from_iterable(row.sentences())))
        exchanges.finish(rows)
    return [pair for pair in pairs if not uses[id(pair)] or not all(use.is_template for use in uses[id(pair)])]


def _pick(rows: Rows, numbers: Iterable[int]) -> Iterator[Row]:
    wanted = iter(numbers)
    number = next(wanted, None)
    for row in rows:
        if row.number == number:
            yield row
            number = next(wanted, None)


def _is_evidence(third: Row, row: Row) -> bool:
    """Whether the two ask a question of one kind, and have other answers."""
    return third.contradicts(row) and frozenset(third.options) == frozenset(row.options)


class _Slots:
    """Looks for third questions that have other words where two differ from one another."""

    def __init__(self, uses: Iterable[_Use]) -> None:
        by_pattern: dict[Words, list[_Use]] = defaultdict(list)
        for use in uses:
            for pattern in set(use.swap.patterns):
                by_pattern[pattern].append(use)
        often = sorted(by_pattern, key=lambda pattern: (-len(by_pattern[pattern]), pattern))[:_MOST_PATTERNS]
        self._by_edge: dict[str, list[tuple[re.Pattern[str], list[_Use]]]] = defaultdict(list)
        """The first word of a pattern, or its last after a space: a sentence without it need not be compared."""
        for pattern in often:
            edge = pattern[0] if pattern[0] != SLOT else f" {pattern[-1]}"
            self._by_edge[edge].append((_to_regex(pattern), by_pattern[pattern]))

    def see(self, row: Row, words: Words) -> None:
        if not words:
            return
        edges = words[0], f" {words[-1]}", f" {SLOT}"
        if self._by_edge.keys().isdisjoint(edges):
            return
        sentence = " ".join(words)
        for edge in edges:
            for regex, uses in self._by_edge.get(edge, ()):
                match = regex.fullmatch(sentence) if uses else None
                if match is None:
                    continue
                for use in uses:
                    if match.groups() in use.swap.fillers or frozenset(row.options) != frozenset(use.row.options):
                        continue
                    use.others.add(match.groups())
                    use.is_template = row.contradicts(use.row) or len(use.others) >= _ENOUGH_OTHERS
                uses[:] = [use for use in uses if not use.is_template]  # few rows settle all uses of a pattern


def _to_regex(pattern: Words) -> re.Pattern[str]:
    slot = rf"(\S+(?: \S+){{0,{_FILLER_WORDS - 1}}}?)"
    return re.compile(" ".join(slot if word == SLOT else re.escape(word) for word in pattern))


class _Contexts:
    """Looks for places where many words stand between the same words."""

    def __init__(self, uses: Iterable[_Use]) -> None:
        self._uses = list(uses)
        self._fillers: dict[Words, set[str]] = {}
        for use in self._uses:
            for context in _contexts(use.swap):
                self._fillers[context] = set()

    def see(self, words: Words) -> None:
        padded = _pad(words)
        for at in range(2, len(padded) - 2):
            fillers = self._fillers.get((*padded[at - 2 : at], *padded[at + 1 : at + 3]))
            if fillers is not None and len(fillers) < _ENOUGH_FILLERS:
                fillers.add(padded[at])

    def finish(self) -> None:
        for use in self._uses:
            contexts = _contexts(use.swap)
            if contexts and all(len(self._fillers[context]) >= _ENOUGH_FILLERS for context in contexts):
                use.is_template = True


def _contexts(swap: Swap) -> list[Words]:
    """Return the two words before and after each slot, as the earlier row has them."""
    words: list[str] = []
    slots: list[tuple[int, int]] = []
    fillers = iter(swap.fillers[1])
    for word in swap.patterns[1]:
        filler = [as_number(each) for each in next(fillers).split(" ")] if word == SLOT else [word]
        if word == SLOT:
            slots.append((len(words), len(words) + len(filler)))
        words += filler
    padded = _pad(tuple(words))
    return [(*padded[start : start + 2], *padded[end + 2 : end + 4]) for start, end in slots]


def _pad(words: Words) -> Words:
    return ("", "", *words, "", "")


class _Exchanges:
    """Looks for questions of which the same swap makes other questions."""

    def __init__(self, uses: Iterable[_Use]) -> None:
        self._uses: dict[tuple[str, str], list[_Use]] = defaultdict(list)
        for use in uses:
            ours, theirs = use.swap.fillers
            if len(ours) == 1:
                old, new = sorted((ours[0], theirs[0]))
                self._uses[old, new].append(use)
        often = sorted(self._uses, key=lambda swap: (-len(self._uses[swap]), swap))[:_MOST_PATTERNS]
        self._by_first: dict[str, list[tuple[Words, Words, int]]] = defaultdict(list)
        for place, swap in enumerate(often):
            first, second = (tuple(text.split(" ")) for text in swap)
            self._by_first[first[0]].append((first, second, place))
        self._often = often
        self._hashes, self._numbers = array("q"), array("q")
        """Of each question: the hash of its words, and its number."""
        self._made = array("q"), array("q"), array("q")
        """Of each exchange: the hash of the words that it makes, the row's number, and the place in `_often`."""

    def see(self, row: Row, words: Words) -> None:
        self._hashes.append(hash(words))
        self._numbers.append(row.number)
        if self._by_first.keys().isdisjoint(words):
            return
        for at, word in enumerate(words):
            for old, new, swap in self._by_first.get(word, ()):
                if words[at : at + len(old)] == old:
                    made = hash((*words[:at], *new, *words[at + len(old) :]))
                    for values, value in zip(self._made, (made, row.number, swap), strict=True):
                        values.append(value)

    def finish(self, rows: Rows) -> None:
        wanted, first = set(self._made[0]), dict[int, int]()
        for words, number in zip(self._hashes, self._numbers, strict=True):
            if words in wanted:
                first.setdefault(words, number)
        found = [(number, first[made], swap) for made, number, swap in zip(*self._made, strict=True) if made in first]
        pairs = rows.take_pairs([(number, other) for number, other, _ in found])
        for (_, _, swap), (row, other) in zip(found, pairs, strict=True):
            if len(row.texts) == len(other.texts) and _is_evidence(row, other):
                for use in self._uses[self._often[swap]]:
                    use.is_template = True
