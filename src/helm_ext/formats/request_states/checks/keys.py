"""Rules about what stands beside the texts of a row: ids, perturbations, numbers, and keys that nothing reads."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from helm_ext.errors import Path, count, format_path, show
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.checks.rule import ALL_ROWS, MOST_KEPT, File, Rule
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.perturbations import to_perturbation
from helm_ext.formats.request_states.reading import Place, State
from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.survey import First

__all__ = ["Ids", "NonfiniteNumbers", "UnknownPerturbation"]


_AT_ONCE = 10_000
"""Rows whose ids are compared together."""


class _Seen(NamedTuple):
    """A row whose id is yet to be compared with those of earlier rows."""

    hashed: int
    """0: it has none."""
    place: Place
    given: Any


class Ids(Rule):
    """Rows whose id is missing, empty, or taken by an earlier row.

    Ids are compared as hashes, some thousand rows at a time, with those of all earlier rows: 16 bytes a row.
    """

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.count = 0
        self.first: _Seen | None = None
        self.absent = 0
        """How many of them have none."""
        self._new: list[_Seen] = []
        self._order, self._places = array("q"), array("q")
        """Of each row with an id: its hash, and where it stands (line or index)."""
        self._sorted: Any = None

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        given = row.instance.get("id")
        if given is None or given == "":
            self.absent += 1
            hashed = 0
        else:
            perturbation = row.instance.get("perturbation")
            hashed = hash((str(given), canonical_json(perturbation)) if perturbation else str(given)) or 1
        self._new.append(_Seen(hashed, row.place, given))
        if len(self._new) == _AT_ONCE:
            self._compare()

    def _compare(self) -> None:
        """Compare the new rows with one another, and with those before them."""
        new, self._new = self._new, []
        met: set[int] = set()
        old = self._find_old(new) if self._order else ()
        for one in new:
            if not one.hashed or one.hashed in met or one.hashed in old:
                self.count += 1
                self.first = self.first or one
            met.add(one.hashed)
            if one.hashed:
                self._order.append(one.hashed)
                self._places.append(one.place.number)

    def _find_old(self, new: Sequence[_Seen]) -> set[int]:
        """Return those of the new hashes that an earlier row has."""
        import numpy as np  # a small file needs none

        known = 0 if self._sorted is None else len(self._sorted)
        late = np.frombuffer(self._order, np.int64)[known:].copy()
        self._sorted = np.sort(late if self._sorted is None else np.concatenate([self._sorted, late]), kind="stable")
        hashes = np.array([one.hashed for one in new], np.int64)
        places = np.minimum(self._sorted.searchsorted(hashes), len(self._sorted) - 1)
        return set(hashes[self._sorted[places] == hashes].tolist())

    def report(self, file: File) -> None:
        self._compare()
        first = self.first
        if first is None or (file.is_imported and self.absent == file.survey.rows):  # a table without a column of ids
            return
        file.counts["renamed_ids"] = self.count
        message = f"{count(self.count, 'row has no id of its', 'rows have no id of their')} own; made unique"
        twin: Path = ()
        if first.hashed:
            where = self._places[self._order.index(first.hashed)]
            message += f": {show(first.given)} is also the id of "
            if first.place.line is None:
                twin = (*ALL_ROWS, where, "instance", "id")
                message += format_path(twin[:2])
            else:
                message += f"line {where}"
        first.place.warn("instance", "id", message=message, code="ids", also=twin)


class UnknownPerturbation(Rule):
    """Descriptions of perturbations that HELM does not know."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.wrong: dict[bytes, str] = {}
        """Descriptions that were looked at, and what is wrong with each: "" for nothing."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        given = row.instance.get("perturbation")
        if not given:
            return
        key = canonical_json(given)
        if key not in self.wrong:
            if len(self.wrong) >= MOST_KEPT:
                self.wrong.clear()
            self.wrong[key] = _is_unknown(given)
        if self.wrong[key]:
            row.place.error("instance", "perturbation", message=self.wrong[key], code="perturbation")


def _is_unknown(perturbation: Mapping[str, Any]) -> str:
    try:
        to_perturbation(perturbation)
    except ValueError as error:
        return str(error)
    return ""


class NonfiniteNumbers(Rule):
    """NaN and infinity, which no browser reads."""

    sees_all_states = True

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.found = First()
        self.numbers = 0

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if row.nonfinite:
            self.found.add(row)
            self.numbers += row.nonfinite

    def report(self, file: File) -> None:  # noqa: ARG002
        if self.found.row is not None:
            self.found.row.place.warn(
                message=f"{count(self.numbers, 'number')} in {count(self.found.count, 'row')} "
                f"{'is' if self.numbers == 1 else 'are'} NaN or infinite; treated as not recorded",
                hint="write null",
                code="not-finite",
            )
