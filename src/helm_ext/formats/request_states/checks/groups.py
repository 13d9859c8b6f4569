"""The rules about `by=` and `cluster=`: keys that no row has, and those with too many values for a report."""

from __future__ import annotations

from helm_ext.errors import did_you_mean, show
from helm_ext.formats.request_states.checks.rule import File, Rule
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.tally import MOST_KEPT, First

_MOST_VALUES = 200
"""Of one attribute: each is a column of a report."""


class Groups(Rule):
    """Keys that `by=` names."""

    def __init__(self, header: Header) -> None:
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
            if not values:
                hint = did_you_mean(name, self.keys) or f"keys: {', '.join(map(show, list(self.keys)[:20]))}"
                file.problems.add(("by",), f"no row has a value of {show(name)}", hint, code="by")
            elif len(values) > _MOST_VALUES:
                message = f"{show(name)} has more than {_MOST_VALUES} values, each a column of the report"
                file.problems.add(("by",), message, "name a key with fewer values", code="by")
            else:
                self.lacking[name].warn(message=f"no value of {show(name)}: in no group of it", code="by")


def clusters(file: File) -> None:
    """Report a key that `cluster=` names and rows do not have."""
    lacking, name = file.profile.unclustered, file.plan.settings.cluster
    if name is not None and lacking.count == file.profile.rows:
        file.problems.add(("cluster",), f"no row has a value of {show(name)}", code="cluster")
    elif name is not None:
        lacking.warn(message=f"no value of {show(name)}: each a cluster of its own", code="cluster")
