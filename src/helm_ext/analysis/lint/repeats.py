"""Questions that stand in the data twice: word for word, or with small changes: a word more, another spelling or order.

Rows that nearly do have the same gold, and the same numbers. Of those, each row is compared with the ones before it
that have most of its rarest words in common, and pairs of words; the rarest of those that two rows have at all.
The words of a pair are compared, and what are two questions of one template is taken out (`alike`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import pairwise
from zlib import crc32

from helm_ext.analysis.lint.alike import Pair, compare, drop_templates
from helm_ext.analysis.lint.rows import Row, Shared, find_figures, fold, split_words
from helm_ext.errors import Problems, show

_RAREST = 12
"""Words, and pairs of words, of a row that propose rows which have them too."""
_NEWEST = 8
"""Of the rows that have one, the last ones are proposed."""
_NEAREST = 3
"""Of the proposed rows, those are compared that have most of them; the rarer, the more it counts."""
_LEAST_SHARED = 0.3
"""Of what they count together, at least so much is in common."""
_SAME_WORDS = 0.6
"""Two golds of many words are one if they share this part of them."""
_LEAK_HINT = "a model is shown, or was trained on, the answer that it is scored on; take the row out of one split"


def report_equal(shared: Shared, problems: Problems) -> None:
    """Report each row that asks what another asks once, beside the first that it repeats.

    That is for contradicting it, else as a leak, else as a duplicate.
    """
    for group in shared.groups.values():
        train = next((one for one in group if one.is_train), None)
        evaluated = next((one for one in group if not one.is_train), None)
        with_gold = next((one for one in group if one.golds), None)
        for row in group if len(group) > 1 else ():
            first = train if row.is_train else evaluated
            if with_gold is not None and row.contradicts(with_gold):
                problems.warn(
                    row.place,
                    f"id {show(row.id)}: asks the same as {with_gold.title(row)}, but has another gold: "
                    f"{_show_golds(row)}, there {_show_golds(with_gold)}",
                    "one of them is wrong, or the question lacks what tells them apart",
                    code="different-golds",
                    also=with_gold.path,
                )
            elif not row.is_train and train is not None:
                _say_duplicate(row, train, problems)
            elif first is not None and row is not first:
                _say_duplicate(row, first, problems)


def _say_duplicate(row: Row, first: Row, problems: Problems, *, nearly: bool = False) -> None:
    """Report that a row asks what another asks, word for word or `nearly`."""
    what = "asks nearly the same as" if nearly else "asks the same as"
    if row.is_train != first.is_train:
        message = f"id {show(row.id)}: {what} {first.title(row)}, a row of the {first.split} split"
        problems.warn(row.place, message, _LEAK_HINT, code="leak", also=first.path)
        return
    of = f", a row of the {first.split} split" if row.split != first.split else ""
    message = f"id {show(row.id)}: {what} {first.title(row)}{of}, with the same gold"
    hint = "it counts twice in every score" if not row.is_train else "it is drawn twice as often as others"
    code = "near-duplicate" if nearly else "duplicate"
    problems.warn(row.place, message, hint, code=code, also=first.path)


def _show_golds(row: Row) -> str:
    return show(row.golds[0] if len(row.golds) == 1 else list(row.golds))


def report_near(shared: Shared, problems: Problems) -> None:
    """Report rows that ask nearly what another row asks, with the same gold, and all figures in one order."""
    classes: defaultdict[int, list[Row]] = defaultdict(list)
    for row in shared.groups:
        classes[hash((bool(row.options), row.gold_hash(), find_figures("\n".join(row.parts))))].append(row)
    pairs: list[Pair] = []
    for rows in classes.values():
        gold = rows[0].gold_hash()
        is_rare = not gold or (bool(rows[0].golds) and gold not in shared.common_golds)
        for row, other in _propose(rows) if len(rows) > 1 else ():
            if _golds_agree(row, other) and (pair := compare(row, other, shared.context, gold_is_rare=is_rare)):
                pairs.append(pair)
    nearest: dict[Row, Pair] = {}
    for pair in drop_templates(pairs, shared.groups):
        known = nearest.get(pair.row)
        if known is None or pair.changed < known.changed:
            nearest[pair.row] = pair
    for pair in nearest.values():
        _say_duplicate(*_choose(shared.groups[pair.row], shared.groups[pair.other]), problems, nearly=True)


def _propose(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield rows, each with earlier ones that may ask nearly the same."""
    number: Counter[int] = Counter()
    for row in rows:
        number.update(_to_shingles(row))
    holders: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        shared = (shingle for shingle in _to_shingles(row) if number[shingle] > 1)
        rarest = sorted(shared, key=lambda shingle: (number[shingle], shingle))[:_RAREST]
        near: defaultdict[Row, float] = defaultdict(float)
        for shingle in rarest:
            for other in holders[shingle][-_NEWEST:]:
                near[other] += 1 / number[shingle]
            holders[shingle].append(row)
        least = _LEAST_SHARED * sum(1 / number[shingle] for shingle in rarest)
        for other in nlargest(_NEAREST, near, key=near.__getitem__):
            if near[other] >= least:
                yield row, other


def _to_shingles(row: Row) -> set[int]:
    """Return numbers for the words, and the pairs of words, of a row."""
    words = [crc32(word.encode("utf-8", "surrogatepass")) for word in split_words("\n".join(row.parts))]
    return {*words, *((one * 31 + two) & 0xFFFFFFFF for one, two in pairwise(words))}


def _golds_agree(row: Row, other: Row) -> bool:
    """Whether golds of many words, which no second author writes in the same ones, share most of them."""
    if not row.contradicts(other):
        return True
    ours, theirs = (set(fold(" ".join(one.golds)).split()) for one in (row, other))
    return len(ours & theirs) >= _SAME_WORDS * len(ours | theirs)


def _choose(group: Sequence[Row], earlier: Sequence[Row]) -> tuple[Row, Row]:
    """Return which row of a group is reported beside which of an earlier one.

    As a leak where it is one: the evaluated row.
    """
    for these, those in ((group, earlier), (earlier, group)):
        row = next((member for member in these if not member.is_train), None)
        shown = next((member for member in those if member.is_train), None)
        if row is not None and shown is not None:
            return row, shown
    return group[0], earlier[0]
