"""What a bundle must hold for `refusal_match` to measure anything (docs/innodata.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from helm_ext.errors import Location, Problem
from helm_ext.hub.codes import BundleCode
from helm_ext.hub.records import Record
from helm_ext.scoring.scores.refusal import GOLD_KEY, gold_refuses

__all__ = ["find_missing_refusals"]


def find_missing_refusals(records: Sequence[Record], place: str) -> Iterator[Problem]:
    """Yield a warning if nothing in the data is a refusal, and one for keys `refusal` that say neither true nor false.

    For runs that ask for `refusal_match`: they would measure nothing but how seldom the model refuses.
    """
    where = Location(place)
    unusable = sum(not isinstance(record.extra.get(GOLD_KEY, False), bool) for record in records)
    if unusable:
        message = f"{unusable} of {len(records)} records have a key {GOLD_KEY!r} that is neither true nor false"
        hint = "it is not used; what `expected` says counts"
        yield Problem(message, where, hint, "warning", BundleCode.REFUSAL_KEY)
    if not any(gold_refuses(record.extra, record.expected) for record in records):
        message = f"refusal_match: none of the {len(records)} expected texts is recognised as a refusal"
        hint = f'say it in the records: "{GOLD_KEY}": true, or give phrases of your own (HELM_EXT_REFUSALS=FILE)'
        yield Problem(message, where, hint, "warning", BundleCode.NO_REFUSALS)
