"""Rules about what stands beside the texts of a row: ids, perturbations, numbers, and keys that nothing reads."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from helm_ext.errors import Path, count, format_path, show
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.checks.rule import ALL_ROWS, HASH_MASK, MOST_KEPT, File, Rule
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.perturbations import to_perturbation
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.survey import First

__all__ = ["Ids", "NonfiniteNumbers", "UnknownPerturbation"]


class Ids(Rule):
    """Rows whose id is missing, empty, or taken by an earlier row."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.found = First()
        self.absent = 0
        """How many of them have none."""
        self.ids: set[int] = set()
        self.order, self.places = array("q"), array("q")
        """Of each new id, its hash and where it stands (line or index): in few bytes."""
        self.twin = 0
        """Where the row stands whose id the first of them has."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        given = row.instance.get("id")
        if given is None or given == "":
            self.absent += 1
            self.found.add(row)
            return
        perturbation = row.instance.get("perturbation")
        hashed = hash((str(given), canonical_json(perturbation)) if perturbation else str(given)) & HASH_MASK
        if hashed not in self.ids:
            self.ids.add(hashed)
            if not self.found.count:  # only the first one is told where its twin is
                self.order.append(hashed)
                self.places.append(row.place.number)
            return
        if not self.found.count:
            self.twin = self.places[self.order.index(hashed)]
        self.found.add(row)

    def report(self, file: File) -> None:
        row = self.found.row
        if row is None or (file.is_imported and self.absent == file.survey.rows):  # a table without a column of ids
            return
        file.counts["renamed_ids"] = self.found.count
        message = f"{count(self.found.count, 'row has no id of its', 'rows have no id of their')} own; made unique"
        given = row.instance.get("id")
        twin: Path = ()
        if given is not None and given != "":
            message += f": {show(given)} is also the id of "
            if row.place.line is None:
                twin = (*ALL_ROWS, self.twin, "instance", "id")
                message += format_path(twin[:2])
            else:
                message += f"line {self.twin}"
        row.place.warn("instance", "id", message=message, code="ids", also=twin)


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
