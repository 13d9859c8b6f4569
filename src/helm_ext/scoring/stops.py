"""References that hold a stop sequence: how many there are, and whether they are cut there.

A live model never says what stands behind a stop sequence, so such a reference is out of its reach. Where only white
space follows the stop sequence in every reference that holds it, nothing is lost by cutting there, and references and
predictions are cut, in all rows alike. Where more follows, only the file can say so (`scoring.cut_at_stop`).
"""

from __future__ import annotations

from collections.abc import Sequence

from helm_ext.parsing import cut_at_stops


class StopCensus:
    """Counts the references of a file that hold a stop sequence, in constant memory."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(dict.fromkeys(stop for stop in stops if stop))
        self._held: set[str] = set()
        """Those that a reference holds."""
        self._with_more: set[str] = set()
        """Those behind which a reference has more than white space."""
        self.count = 0
        """References that hold any stop sequence."""

    def add(self, reference: str) -> bool:
        """Look at one reference; return whether it holds a stop sequence."""
        found = False
        for stop in self._stops:
            before = cut_at_stops(reference, (stop,))
            if before == reference:
                continue
            found = True
            self._held.add(stop)
            if reference[len(before) + len(stop) :].strip():
                self._with_more.add(stop)
        self.count += found
        return found

    def merge(self, other: StopCensus) -> None:
        """Add what another census of the same stop sequences has counted."""
        self.count += other.count
        self._held |= other._held
        self._with_more |= other._with_more

    def decide(self, cut_at_stop: bool | None) -> tuple[str, ...]:
        """Return the stop sequences at which references and predictions are cut.

        True: all of them. False: none. None: those with nothing but white space behind them in each reference.
        """
        if cut_at_stop is not None:
            return self._stops if cut_at_stop else ()
        return tuple(stop for stop in self._stops if stop in self._held - self._with_more)
