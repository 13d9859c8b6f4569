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
from helm_ext.formats.request_states.tally import First

__all__ = ["Ids", "NonfiniteNumbers", "Scales", "UnknownPerturbation"]


class Ids(Rule):
    """Rows whose id is missing, empty, or taken by an earlier row."""

    def report(self, file: File) -> None:
        ids = file.ids
        repeated = ids.find_repeated()
        if not repeated or (file.is_imported and not any(ids.hashes)):  # a table without a column of ids
            return
        number = file.counts["renamed_ids"] = len(repeated)
        message = f"{count(number, 'row has no id of its', 'rows have no id of their')} own; made unique"
        also: Path = ()
        first = ids.locate(repeated[0])
        if hashed := ids.hashes[repeated[0]]:
            twin = ids.numbers[ids.hashes.index(hashed)]
            message += f": {show(ids.read_id(repeated[0], file.fetch))} is also the id of "
            also = () if first.line is not None else (*ALL_ROWS, twin, "instance", "id")
            message += format_path(also[:2]) if also else f"line {twin}"
        first.warn("instance", "id", message=message, code="ids", also=also)


class Scales(Rule):
    """Judgements of one criterion on several scales: their mean would mean nothing."""

    def report(self, file: File) -> None:
        for criterion, (first, *others) in file.survey.scales.items():
            for scale in others[:1]:
                row = file.survey.scales[criterion][scale]
                judgements = enumerate(row.judgements or ())
                number = next(n for n, one in judgements if msgspec.json.encode(one.scale) == scale)
                row.place.error(
                    "judgements", number, "scale",
                    message=f"{show(msgspec.json.decode(scale))}, where {show(criterion)} was judged on "
                    f"{show(msgspec.json.decode(first))} before",
                    hint="a criterion has one scale: name the other one otherwise",
                    code="judgement", is_integrity=True,
                )  # fmt: skip


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
