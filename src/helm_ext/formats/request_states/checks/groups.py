"""The rules about `by=` and `cluster=`: keys that no row has, and those with too many values for a report."""

from __future__ import annotations

from helm_ext.errors import count, did_you_mean, show
from helm_ext.formats.request_states.checks.rule import MOST_KEPT, File, Rule
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.tally import First

__all__ = ["Cluster", "Groups"]

_MOST_VALUES = 200
"""Of one attribute: each is a column of a report."""


class Groups(Rule):
    """Keys that `by=` names."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.values: dict[str, set[str]] = {name: set() for name in header.settings.by}
        self.lacking = {name: First() for name in self.values}
        self.keys: dict[str, None] = {}
        """Keys that the first rows have."""

    def see(self, row: Row, state: State) -> None:
        for name, values in self.values.items():
            value = (row.attributes or {}).get(name)
            if value is None:
                self.lacking[name].add(row)
            elif len(values) <= _MOST_VALUES:
                values.add(value)
        if self.values and len(self.keys) < MOST_KEPT:
            extra = row.instance.get("extra_data") or {}
            self.keys |= dict.fromkeys((*extra, *row.instance, *state.value))

    def report(self, file: File) -> None:
        for name, values in self.values.items():
            row = self.lacking[name].row
            if not values:
                hint = did_you_mean(name, self.keys) or f"keys: {', '.join(map(show, list(self.keys)[:20]))}"
                file.problems.add(("by",), f"no row has a value of {show(name)}", hint, code="by")
            elif len(values) > _MOST_VALUES:
                message = f"{show(name)} has more than {_MOST_VALUES} values, each a column of the report"
                file.problems.add(("by",), message, "name a key with fewer values", code="by")
            elif row is not None:
                fewer = count(self.lacking[name].count, "row has", "rows have")
                row.place.warn(message=f"{fewer} no value of {show(name)}: in no group of it", code="by")


class Cluster(Rule):
    """The key that `cluster=` names."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.name = header.settings.cluster
        self.lacking = First()
        self.there = 0

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if self.name is None:
            return
        if row.cluster is None:
            self.lacking.add(row)
        else:
            self.there += 1

    def report(self, file: File) -> None:
        row = self.lacking.row
        if row is None:
            return
        if not self.there:
            file.problems.add(("cluster",), f"no row has a value of {show(self.name)}", code="cluster")
        else:
            fewer = count(self.lacking.count, "row has", "rows have")
            row.place.warn(message=f"{fewer} no value of {show(self.name)}: each a cluster of its own", code="cluster")
