"""Questions that stand in the data twice: word for word, or with small changes: a word more, another spelling or order.

Of those that nearly do, pairs of rows that share many words are proposed: in small files out of all pairs, in others by
MinHash (`minhash`). Their words are compared, and what are two questions of one template is taken out (`alike`).
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from helm_ext.analysis.lint.alike import Pair, compare, drop_templates
from helm_ext.analysis.lint.rows import Row, Rows, Shared, contradict, find_figures, fold, split_words
from helm_ext.errors import KEPT_PROBLEMS, Problems, show

if TYPE_CHECKING:
    from helm_ext.analysis.lint.minhash import MinHashPairs

ALL_PAIRS = 300
"""Of up to this many rows all pairs are compared: none is missed, and numpy, which MinHash needs, is not imported."""
LEAST_ALIKE = {True: 0.3, False: 0.45}
"""Of the shares of common words and pairs of words: pairs below are not proposed. The second where the gold is not
rare, and only questions that are nearly equal count."""
NEAREST = 4
"""Of a row's pairs those are proposed that are most alike."""
_SAME_WORDS = 0.6
"""Two golds of many words are one if they share this part of them."""
_MOST_CONTEXT = 6
"""A row is compared as a whole if it is at most this many times as long as its own sentences."""
_SHORT = 300
"""Characters. So short a row is compared as a whole too."""

Views = tuple[set[int], set[int]]
"""What is compared of a row, as words and pairs of words: all of it, and what is its own; empty: is not compared."""
_LEAK_HINT = "a model is shown, or was trained on, the answer that it is scored on; take the row out of one split"


class Member(NamedTuple):
    """A row among those that ask the same."""

    number: int
    is_train: bool
    is_choice: bool = False
    golds: frozenset[int] = frozenset()
    """Hashes."""


class EqualRows:
    """Finds rows that ask what another asked before, and keeps of these numbers alone."""

    def __init__(self, shared: Shared) -> None:
        self._repeated = shared.repeated
        self._keys = iter(shared.questions)
        self._groups: dict[int, list[Member]] = {}
        """Rows that ask the same, by the hash of their question."""

    def see(self, row: Row) -> bool:
        """Look at a row; return whether no row before it asked the same."""
        key = next(self._keys)
        if key not in self._repeated:
            return True
        group = self._groups.setdefault(key, [])
        group.append(Member(row.number, row.is_train, bool(row.options), frozenset(map(hash, row.gold_keys))))
        return len(group) == 1

    def find_groups(self) -> dict[int, list[Member]]:
        """Return the rows that ask the same by the number of the first of them."""
        return {group[0].number: group for group in self._groups.values()}

    def report(self, rows: Rows, problems: Problems) -> None:
        """Report each row once, beside the first that it repeats.

        That is for contradicting it, else as a leak, else as a duplicate. Of each of these the first are read again
        and listed, as many as `problems` keeps, and the others counted.
        """
        found: Counter[str] = Counter()
        listed: list[tuple[str, tuple[int, int]]] = []
        for group in self._groups.values():
            for one, other, code in _judge(group):
                found[code] += 1
                if found[code] <= KEPT_PROBLEMS:
                    listed.append((code, (one.number, other.number)))
        for (code, _), (row, first) in zip(listed, rows.take_pairs(pair for _, pair in listed), strict=True):
            if code == "different-golds":
                problems.warn(
                    row.place,
                    f"id {show(row.id)}: the question of {first.title(row)} with another gold: {_show_golds(row)}, "
                    f"and there {_show_golds(first)}",
                    "one of them is wrong, or the question lacks what tells them apart",
                    code=code,
                    also=first.path,
                )
            else:
                _say_duplicate(row, first, problems)
        for code, number in found.items():
            problems.count_more(code, number - KEPT_PROBLEMS)


def _judge(group: Sequence[Member]) -> Iterator[tuple[Member, Member, str]]:
    """Yield which rows of a group are reported, beside which row, and for what."""
    train = next((one for one in group if one.is_train), None)
    evaluated = next((one for one in group if not one.is_train), None)
    with_gold = next((one for one in group if one.golds), None)
    for one in group:
        first = train if one.is_train else evaluated
        if with_gold is not None and contradict(one.golds, with_gold.golds, is_choice=one.is_choice):
            yield one, with_gold, "different-golds"
        elif not one.is_train and train is not None:
            yield one, train, "leak"
        elif first is not None and one is not first:
            yield one, first, "duplicate"


def _say_duplicate(row: Row, first: Row, problems: Problems, *, nearly: bool = False) -> None:
    """Report that a row asks what another asks, word for word or `nearly`."""
    what = "nearly the question" if nearly else "the question"
    if row.is_train != first.is_train:
        message = f"id {show(row.id)}: {what} of {first.title(row)}, a row of the {first.split} split"
        problems.warn(row.place, message, _LEAK_HINT, code="leak", also=first.path)
        return
    of = f", a row of the {first.split} split" if row.split != first.split else ""
    message = f"id {show(row.id)}: {what} of {first.title(row)}{of}, with the same gold"
    hint = "it counts twice in every score" if not row.is_train else "it is drawn twice as often as others"
    code = "near-duplicate" if nearly else "duplicate"
    problems.warn(row.place, message, hint, code=code, also=first.path)


def _show_golds(row: Row) -> str:
    return show(row.golds[0] if len(row.golds) == 1 else list(row.golds))


class NearRows:
    """Finds rows that ask nearly what another row asks, with the same gold, and all figures in one order.

    It sees the first row of each question (`EqualRows`), and keeps hashes of them.
    """

    def __init__(self, shared: Shared) -> None:
        self._context, self._common = shared.context, shared.common_golds
        self._numbers, self._classes = array("q"), array("q")
        """Of each row its number, and one for its gold and its figures."""
        self._least = array("d")
        """How much of it another row must share."""
        self._pairs: _AllPairs | MinHashPairs
        if shared.first <= ALL_PAIRS:
            self._pairs = _AllPairs()
        else:
            from helm_ext.analysis.lint.minhash import MinHashPairs

            self._pairs = MinHashPairs(NEAREST)

    def see(self, row: Row) -> None:
        """Look at a row."""
        gold = row.gold_hash()
        self._numbers.append(row.number)
        self._classes.append(hash((gold, find_figures("\n".join(row.parts)))))
        self._least.append(LEAST_ALIKE[not gold or (bool(row.golds) and gold not in self._common)])
        self._pairs.see(_views(row, self._context))

    def report(self, rows: Rows, groups: Mapping[int, Sequence[Member]], problems: Problems) -> None:
        """Report the rows. `groups`: rows that ask the same, by the number of the first of them."""
        nearest: dict[int, Pair] = {}
        for pair in drop_templates(list(self._find_pairs(rows)), rows, self._numbers):
            known = nearest.get(pair.row.number)
            if known is None or pair.likeness.changed < known.likeness.changed:
                nearest[pair.row.number] = pair
        said = [
            _choose(*(groups.get(row.number) or [Member(row.number, row.is_train)] for row in (pair.row, pair.other)))
            for pair in nearest.values()
        ]
        for row, other in rows.take_pairs(said):
            _say_duplicate(row, other, problems, nearly=True)

    def _find_pairs(self, rows: Rows) -> Iterator[Pair]:
        """Yield the pairs of rows that differ in little. Rows are read again as they are compared."""
        places = self._pairs.find(self._classes, self._least)
        numbers = ((self._numbers[one], self._numbers[two]) for one, two in places)
        for (place, _), (other, row) in zip(places, rows.take_pairs(numbers), strict=True):
            if _golds_agree(row, other):
                likeness = compare(row, other, self._context, gold_is_rare=self._least[place] == LEAST_ALIKE[True])
                if likeness is not None:
                    yield Pair(row.without_texts(), other.without_texts(), likeness)


def _views(row: Row, context: Collection[int]) -> Views:
    """Return all of a row's text, and its own sentences.

    Where sentences that many rows share are the greater part of a row, what remains is compared; where they are the
    smaller one, all is; and both where it is neither.
    """
    parts, options = row.parts, sorted(row.options)
    own = [part for part in parts if hash(part) not in context]
    everything, rest = sum(map(len, parts)), sum(map(len, own))
    is_whole = not own or everything <= max(_SHORT, _MOST_CONTEXT * rest)
    return (
        _to_shingles("\n".join([*parts, *options])) if is_whole else set(),
        _to_shingles("\n".join([*own, *options])) if own and len(own) < len(parts) else set(),
    )


def _to_shingles(text: str) -> set[int]:
    """Return numbers for the words, and the pairs of words, of a text."""
    words = [crc32(word.encode("utf-8", "surrogatepass")) for word in split_words(text)]
    return {*words, *((one * 31 + two) & 0xFFFFFFFF for one, two in pairwise(words))} or {0}


def _golds_agree(row: Row, other: Row) -> bool:
    if bool(row.options) != bool(other.options):
        return False
    if not row.golds or not other.golds:
        return not row.golds and not other.golds
    if not row.contradicts(other):
        return True
    if not row.has_long_golds():
        return False
    ours, theirs = (set(fold(" ".join(one.golds)).split()) for one in (row, other))
    return len(ours & theirs) >= _SAME_WORDS * len(ours | theirs)


def _choose(group: Sequence[Member], earlier: Sequence[Member]) -> tuple[int, int]:
    """Return which row of a group is reported beside which of an earlier one.

    As a leak where it is one: the evaluated row.
    """
    for these, those in ((group, earlier), (earlier, group)):
        row = next((member for member in these if not member.is_train), None)
        shown = next((member for member in those if member.is_train), None)
        if row is not None and shown is not None:
            return row.number, shown.number
    return group[0].number, earlier[0].number


class _AllPairs:
    """Compares all pairs of rows."""

    def __init__(self) -> None:
        self._views: list[Views] = []

    def see(self, views: Views) -> None:
        """Look at a row."""
        self._views.append(views)

    def find(self, classes: Sequence[int], least: Sequence[float]) -> list[tuple[int, int]]:
        """Return the pairs of one class that share at least so much: each row's nearest, in order of the second."""
        by_class: defaultdict[int, list[int]] = defaultdict(list)
        for place, of in enumerate(classes):
            by_class[of].append(place)
        shares: dict[tuple[int, int], float] = {}
        for shingles in zip(*self._views, strict=True):
            for members in by_class.values():
                for pair in combinations([place for place in members if shingles[place]], 2):
                    one, two = (shingles[place] for place in pair)
                    common = len(one & two)
                    share = common / (len(one) + len(two) - common)
                    if share >= least[pair[0]]:
                        shares[pair] = max(share, shares.get(pair, 0))
        kept, often = [], Counter[int]()
        for pair in sorted(shares, key=lambda pair: (-shares[pair], pair)):
            if any(often[place] < NEAREST for place in pair):
                kept.append(pair)
            often.update(pair)
        return sorted(kept, key=itemgetter(1, 0))
