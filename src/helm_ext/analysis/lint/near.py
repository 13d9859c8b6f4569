"""Questions that stand in the data twice with small changes: a word more, another spelling, another order.

`likeness` proposes pairs, `alike` compares their words, `templates` takes out what are two questions of one template.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from helm_ext.analysis.lint.alike import compare
from helm_ext.analysis.lint.equal import say_duplicate
from helm_ext.analysis.lint.likeness import find_candidates
from helm_ext.analysis.lint.rows import Row
from helm_ext.analysis.lint.templates import Pair, drop_templates
from helm_ext.analysis.lint.texts import fold
from helm_ext.errors import Problems

__all__ = ["find_near"]

RARE_GOLD = 0.005
"""Of all rows. A gold that more rows have (yes, no, a class) says little about which question it answers."""
FEW = 3
"""A gold that so many rows have is rare in the smallest dataset."""
CONTEXT = 3
"""A sentence that so many rows share is a passage, an example or an instruction, and no part of the question."""
SAME_WORDS = 0.6
"""Two golds of many words that share so many of them are one."""


def find_near(groups: Sequence[Sequence[Row]], problems: Problems) -> None:
    """Report the rows that ask nearly what another row asks, with the same gold. `groups` ask the same each."""
    by_number = {group[0].number: group for group in groups}
    rows = [group[0] for group in groups]
    keys = [0 if row.has_long_golds() else hash(row.gold_keys) for row in rows]
    often = Counter(keys)
    most = max(FEW, RARE_GOLD * len(rows))
    # A long gold is a text of its own, which `_golds_agree` compares.
    rare = [not key or (bool(row.golds) and often[key] <= most) for row, key in zip(rows, keys, strict=True)]
    context = _find_context(rows)
    pairs: list[Pair] = []
    for one, two in find_candidates(rows, keys, rare, context):
        row, other = rows[two], rows[one]
        if _golds_agree(row, other):
            likeness = compare(row, other, context, gold_is_rare=rare[one])
            if likeness is not None:
                pairs.append(Pair(row, other, likeness))
    nearest: dict[int, Pair] = {}
    for pair in drop_templates(pairs, rows):
        known = nearest.get(pair.row.number)
        if known is None or pair.likeness.changed < known.likeness.changed:
            nearest[pair.row.number] = pair
    for pair in nearest.values():
        _report(by_number[pair.row.number], by_number[pair.other.number], problems)


def _find_context(rows: Sequence[Row]) -> frozenset[int]:
    """Return the hashes of sentences that many rows share."""
    counts: Counter[int] = Counter()
    for row in rows:
        counts.update(set(map(hash, row.parts)))
    return frozenset(sentence for sentence, number in counts.items() if number >= CONTEXT)


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
    return len(ours & theirs) >= SAME_WORDS * len(ours | theirs)


def _report(group: Sequence[Row], earlier: Sequence[Row], problems: Problems) -> None:
    """Report one row of a group beside one of an earlier group, as a leak where it is one: the evaluated row."""
    for these, those in ((group, earlier), (earlier, group)):
        row = next((row for row in these if not row.is_train), None)
        shown = next((row for row in those if row.is_train), None)
        if row is not None and shown is not None:
            say_duplicate(row, shown, problems, nearly=True)
            return
    say_duplicate(group[0], earlier[0], problems, nearly=True)
