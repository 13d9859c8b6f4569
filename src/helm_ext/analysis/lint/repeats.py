"""Questions that stand in the data twice: word for word, or with small changes: a word more, another spelling or order.

Of those that nearly do, pairs of rows that share many words are proposed: in small files out of all pairs, in others by
MinHash (Broder 1997, "On the resemblance and containment of documents") over words and pairs of words, in bands
(Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4). Of two questions that share half of what they consist
of, 94 % fall into one bucket of a band of three hashes; of two that share a tenth, 2 %. A bucket may hold many rows, of
one template say: so its rows stand in the order of eight further hashes, and each is compared with those behind it.
Rows that are nearly equal stand side by side in the order of some band.

The words of a pair are compared, and what are two questions of one template is taken out (`alike`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING
from zlib import crc32

from helm_ext.analysis.lint.alike import Pair, compare, drop_templates
from helm_ext.analysis.lint.rows import Row, Shared, find_figures, fold, split_words
from helm_ext.errors import Problems, show

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    rows = list(shared.groups)
    is_rare = [not (gold := row.gold_hash()) or (bool(row.golds) and gold not in shared.common_golds) for row in rows]
    classes = [hash((row.gold_hash(), find_figures("\n".join(row.parts)))) for row in rows]
    views = (_views(row, shared.context) for row in rows)
    find = _find_of_all if len(rows) <= ALL_PAIRS else _find_by_minhash
    pairs: list[Pair] = []
    for one, two in find(views, classes, [LEAST_ALIKE[rare] for rare in is_rare]):
        if _golds_agree(rows[two], rows[one]):
            pair = compare(rows[two], rows[one], shared.context, gold_is_rare=is_rare[one])
            pairs += [] if pair is None else [pair]
    nearest: dict[Row, Pair] = {}
    for pair in drop_templates(pairs, rows):
        known = nearest.get(pair.row)
        if known is None or pair.changed < known.changed:
            nearest[pair.row] = pair
    for pair in nearest.values():
        row, other = _choose(shared.groups[pair.row], shared.groups[pair.other])
        _say_duplicate(row, other, problems, nearly=True)


def _views(row: Row, context: Collection[str]) -> Views:
    """Return all of a row's text, and its own sentences.

    Where sentences that many rows share are the greater part of a row, what remains is compared; where they are the
    smaller one, all is; and both where it is neither.
    """
    parts, options = row.parts, sorted(row.options)
    own = [part for part in parts if part not in context]
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


def _find_of_all(views: Iterable[Views], classes: Sequence[int], least: Sequence[float]) -> list[tuple[int, int]]:
    """Return the pairs of one class that share at least so much: each row's nearest, in order of the second."""
    by_class: defaultdict[int, list[int]] = defaultdict(list)
    for place, of in enumerate(classes):
        by_class[of].append(place)
    shares: dict[tuple[int, int], float] = {}
    for shingles in zip(*views, strict=True):
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


# MinHash

_HASHES = 63
_BAND = 3
"""Hashes of a band."""
_NEIGHBOURS = 3
"""Of a bucket, each row is compared with this many behind it."""
_MIX = 0x9E3779B97F4A7C15


def _find_by_minhash(views: Iterable[Views], classes: Sequence[int], least: Sequence[float]) -> list[tuple[int, int]]:
    """Return nearly what `_find_of_all` does, in time that grows with the rows and not with the pairs."""
    import numpy as np

    signed: tuple[dict[int, NDArray[np.uint16]], ...] = ({}, {})
    """Of either view: the signatures by row."""
    for place, row_views in enumerate(views):
        for found, shingles in zip(signed, row_views, strict=True):
            if shingles:
                found[place] = _sign(shingles)
    rows = np.full((NEAREST, len(classes)), -1, dtype=np.int32)
    equal = np.zeros(rows.shape, dtype=np.uint8)
    """Of each row the rows that are most like it, and how many hashes they have in common."""
    of_class, wanted = np.array(classes, dtype=np.int64), np.array(least, dtype=np.float32) * _HASHES
    for found in filter(None, signed):
        compared, signatures = np.array(list(found)), np.stack(list(found.values()), axis=1)
        for one, two, number in _find_in_bands(signatures, of_class[compared], wanted[compared]):
            ones, others = compared[one], compared[two]
            is_new = ~(rows[:, ones] == others).any(axis=0)
            worst = equal[:, ones].argmin(axis=0)
            is_nearer = is_new & (number > equal[worst, ones])
            at = worst[is_nearer], ones[is_nearer]
            rows[at], equal[at] = others[is_nearer], number[is_nearer]
    pairs = np.stack([rows, np.broadcast_to(np.arange(len(classes), dtype=np.int32), rows.shape)])
    first, second = np.sort(pairs[:, rows >= 0], axis=0)
    two, one = np.divmod(np.unique(second * np.int64(len(classes)) + first), np.int64(len(classes)))
    return list(zip(one.tolist(), two.tolist(), strict=True))


@cache
def _make_hashes() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return factors and shifts of the hash functions: multiply, add, and take the upper bits (Dietzfelbinger 1996)."""
    import numpy as np

    random = np.random.default_rng(1)
    factors, shifts = (random.integers(0, 2**64, _HASHES, np.uint64) | np.uint64(1) for _ in range(2))
    return factors, shifts


def _sign(shingles: set[int]) -> NDArray[np.uint16]:
    """Return the signature of a text: of each hash function the least value, mixed, for it has many zeros in front."""
    import numpy as np

    factors, shifts = _make_hashes()
    least = (np.array([*shingles], dtype=np.uint64)[:, None] * factors + shifts).min(axis=0)
    return (least * np.uint64(_MIX) >> np.uint64(48)).astype(np.uint16)


def _find_in_bands(
    signatures: NDArray[np.uint16], classes: NDArray[np.int64], least: NDArray[np.float32]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]]:
    """Yield pairs of one class that have at least `least` hashes in common, from both sides, and how many.

    Of what is yielded together, no two pairs begin with the same one.
    """
    import numpy as np

    def pack(start: int) -> NDArray[np.uint64]:
        """Return four hashes of each, in one number."""
        packed = np.zeros(signatures.shape[1], dtype=np.uint64)
        for number in range(start, start + 4):
            packed = packed << np.uint64(16) | signatures[number % _HASHES]
        return packed

    for start in range(0, _HASHES, _BAND):
        bucket = classes.astype(np.uint64)
        for number in range(start, start + _BAND):
            bucket = (bucket ^ signatures[number]) * np.uint64(_MIX)
            bucket ^= bucket >> np.uint64(32)
        order = np.lexsort((pack(start + _BAND + 4), pack(start + _BAND), bucket))
        bucket = bucket[order]
        for step in range(1, _NEIGHBOURS + 1):
            at = np.flatnonzero(bucket[:-step] == bucket[step:])
            one, two = order[at], order[at + step]
            equal = (signatures[:, one] == signatures[:, two]).sum(axis=0, dtype=np.uint8)
            is_alike = equal >= least[one]
            one, two, equal = one[is_alike], two[is_alike], equal[is_alike]
            yield one, two, equal
            yield two, one, equal
