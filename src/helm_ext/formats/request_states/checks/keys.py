"""Rules about what stands beside the texts of a row: ids, perturbations, numbers, and keys that nothing reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from helm_ext.errors import Path, count, format_path, show
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.checks.rule import ALL_ROWS, MOST_KEPT, File, Rule
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.perturbations import to_perturbation
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.survey import First

__all__ = ["Ids", "NonfiniteNumbers", "Scales", "UnknownPerturbation"]


class Ids(Rule):
    """Rows whose id is missing, empty, or taken by an earlier row."""

    def report(self, file: File) -> None:
        ids, first = file.ids, file.ids.first
        if first is None or (file.is_imported and ids.absent == file.survey.rows):  # a table without a column of ids
            return
        number = file.counts["renamed_ids"] = ids.count_repeated()
        message = f"{count(number, 'row has no id of its', 'rows have no id of their')} own; made unique"
        twin: Path = ()
        if first.twin is not None:
            message += f": {show(first.given)} is also the id of "
            if first.place.line is None:
                twin = (*ALL_ROWS, first.twin, "instance", "id")
                message += format_path(twin[:2])
            else:
                message += f"line {first.twin}"
        first.place.warn("instance", "id", message=message, code="ids", also=twin)


class Scales(Rule):
    """Judgements of one criterion on several scales: their mean would mean nothing."""

    def report(self, file: File) -> None:
        row, scales = file.survey.other_scale.row, file.survey.scales
        for number, one in enumerate((row and row.judgements) or ()):
            assert row is not None
            if one.scale != scales[one.criterion][0]:
                row.place.error(
                    "judgements", number, "scale",
                    message=f"{show(msgspec.to_builtins(one.scale))}, where {show(one.criterion)} was judged on "
                    f"{show(msgspec.to_builtins(scales[one.criterion][0]))} before",
                    hint="a criterion has one scale: name the other one otherwise",
                    code="judgement", is_integrity=True,
                )  # fmt: skip
                return


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

    def merge(self, other: Rule) -> None:
        assert isinstance(other, NonfiniteNumbers)
        self.found.merge(other.found)
        self.numbers += other.numbers

    def report(self, file: File) -> None:  # noqa: ARG002
        if self.found.row is not None:
            self.found.row.place.warn(
                message=f"{count(self.numbers, 'number')} in {count(self.found.count, 'row')} "
                f"{'is' if self.numbers == 1 else 'are'} NaN or infinite; treated as not recorded",
                hint="write null",
                code="not-finite",
            )
