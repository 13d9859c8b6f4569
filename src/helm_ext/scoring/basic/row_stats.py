"""The Stats of a row as what they are made of: names that many rows share, and a value each.

A row has some twenty Stats, and hardly anybody looks at one: sums are made of columns of values (`tally`), and files
are written of values (`running.serialise`). So a Stat is made when somebody asks for it.

Plain equivalent: a list of Stats. Saves 8 to 10 % of a recorded run. Held equal by tests/unit/scoring/test_tally.py and
tests/unit/running/test_serialise.py, test_stats_of_values_are_those_of_their_stats.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, overload

from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat


class Names:
    """The names of a row's stats, in their order. Rows with the same ones share it."""

    def __init__(self, names: Iterable[MetricName]) -> None:
        self.names = tuple(names)
        self.places = {name.name: place for place, name in enumerate(self.names)}
        self._further: dict[MetricName, Names] = {}

    def extend(self, name: MetricName) -> Names:
        """Return these names and a further one."""
        return self._further.setdefault(name, Names([*self.names, name]))


class RowStats(Sequence[Stat]):
    """The Stats of a row."""

    __slots__ = ("names", "values")

    def __init__(self, names: Names, values: Sequence[Any]) -> None:
        """`values`: of each name a number, or None."""
        self.names = names
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, place: int) -> Stat: ...
    @overload
    def __getitem__(self, place: slice) -> list[Stat]: ...
    def __getitem__(self, place: int | slice) -> Stat | list[Stat]:
        if isinstance(place, slice):
            return [*self][place]
        return to_stat(self.names.names[place], self.values[place])

    def append(self, stat: Stat) -> None:
        """Add a Stat of one value."""
        self.names, self.values = self.names.extend(stat.name), (*self.values, stat.sum)


def to_stat(name: MetricName, value: Any) -> Stat:
    """Return a Stat of a value; one that is a Stat is returned as it is."""
    return value if isinstance(value, Stat) else Stat(name).add(value)


def find_mean(stats: Sequence[Stat], name: str) -> tuple[MetricName, float] | None:
    """Return the mean of a row's stat, and its name; None where the row has no such stat, or that has no value."""
    if not isinstance(stats, RowStats):
        found = next((stat for stat in stats if stat.name.name == name), None)
        return None if found is None or found.mean is None else (found.name, found.mean)
    place = stats.names.places.get(name)
    if place is None or stats.values[place] is None:
        return None
    return stats.names.names[place], float(stats.values[place])


def select(stats: Sequence[Stat], names: Collection[str]) -> list[Stat]:
    """Return the Stats of a row that have one of these names."""
    if not isinstance(stats, RowStats):
        return [stat for stat in stats if stat.name.name in names]
    return [stats[place] for name, place in stats.names.places.items() if name in names]
