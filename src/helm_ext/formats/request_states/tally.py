"""What is counted of rows: small however many rows there are, and the same wherever a file is cut."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING, Any

from helm_ext.errors import count
from helm_ext.scoring.stops import StopCensus

if TYPE_CHECKING:
    from helm_ext.formats.request_states.rows import Row

MOST_KEPT = 1_000
"""Rows, texts and the like that are kept at most; what is beyond is counted."""


class First:
    """How often something was seen, and where first."""

    __slots__ = ("count", "row")

    def __init__(self) -> None:
        self.count = 0
        self.row: Row | None = None

    def add(self, row: Row) -> None:
        """Count a row."""
        if self.row is None:
            self.row = row
        self.count += 1

    def warn(
        self, *where: str | int, message: str, one: str = "row has", hint: str = "", code: str, is_error: bool = False
    ) -> None:
        """Report them where the first one is, if there is one: how many have what the message goes on with."""
        if self.row is not None:
            said = f"{count(self.count, one, one.removesuffix(' has') + 's have')} {message}"
            report = self.row.place.error if is_error else self.row.place.warn
            report(*where, message=said, hint=hint, code=code)

    def refuse(self, *where: str | int, message: str, hint: str, code: str) -> bool:
        """Report an error at the first one, if there is one; return whether there is."""
        if self.row is not None:
            self.row.place.error(*where, message=message, hint=hint, code=code, is_integrity=True)
        return self.row is not None

    def merge(self, other: First) -> None:
        """Add what another one has counted."""
        self.count += other.count
        rows = [row for row in (self.row, other.row) if row is not None]
        self.row = min(rows, key=lambda row: row.place.number, default=None)


class Tally:
    """Something that is known of some rows which follow one another."""

    def merge(self, other: Any) -> None:
        """Add what is known of the rows that follow. Numbers are added up, and where one value stands, the first does.

        So nothing may depend on where a file is cut: hashes are equal in every process, and counts have no order.
        """
        for name, mine in vars(self).items():
            setattr(self, name, _join(mine, getattr(other, name)))


def _join(mine: Any, theirs: Any) -> Any:
    if isinstance(mine, Tally | First | StopCensus):
        mine.merge(theirs)
    elif isinstance(mine, Counter):
        mine.update(theirs)
    elif isinstance(mine, dict):
        for key, value in theirs.items():
            mine[key] = _join(mine[key], value) if key in mine else value
    elif isinstance(mine, set):
        mine |= theirs
    elif isinstance(mine, array | bytearray):
        mine.extend(theirs)
    elif isinstance(mine, list):
        mine.extend(theirs[: MOST_KEPT - len(mine)])
    elif isinstance(mine, int) and not isinstance(mine, bool):
        return mine + theirs
    else:
        return mine or theirs
    return mine
