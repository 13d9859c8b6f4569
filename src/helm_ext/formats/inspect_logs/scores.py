"""The scores that inspect_ai gave: of a sample in an epoch, of a sample over its epochs, of the log.

    sample.scores[SCORER].value ──to_number──▶ number of an epoch ──reducer──▶ of the row ──mean──▶ results.scores[]

Values, reducers and names are those of inspect_ai: scorer/_metric.py (`value_to_float`), scorer/_reducer/reducer.py,
_eval/task/results.py (`eval_results`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helm_ext.evalset import SourceScore
from helm_ext.formats.imported.row import is_finite_number
from helm_ext.formats.imported.score_values import to_number
from helm_ext.scoring.reducers import find_reducer, mode

__all__ = ["Scores"]

_MEANS = ("accuracy", "mean")
"""Metrics of inspect_ai that are the mean of the rows' numbers."""

Key = tuple[str, str | None]
"""A scorer, and of an object of scores the key."""


@dataclass(frozen=True, slots=True)
class _Reducer:
    """How a row's number is made of those of its epochs."""

    name: str
    reduce: Callable[[Sequence[Any]], float | None] | None
    """None for one that is not known here: a task may bring its own."""
    of_values: bool
    """Whether it compares the values themselves, not numbers: the most frequent of "I", "N", "I"."""


class Scores:
    """The scores of one log.

    `reducers`: `eval.config.epochs_reducer`. `results`: `results.scores`, of which each score is named after `name`:
    where two have one name, the second also has its scorer's, and that of a second reducer the reducer's.
    """

    def __init__(self, reducers: Sequence[str] | None, results: Sequence[Mapping[str, Any]]) -> None:
        self.reducers = [_find_reducer(name) for name in reducers or ("mean",)]
        self.is_over_epochs = reducers is not None and not reducers
        """Whether the log's own numbers are means over all samples of all epochs, not over rows."""
        self.reported: dict[str, SourceScore] = {}
        """By name, those that a row has, when all rows were read."""
        self.no_answer = 0
        """Scores "N"."""
        self.not_numbers: set[str] = set()
        """Names of scores with values that are no numbers."""
        self._names: dict[tuple[Key, int], str] = {}
        self._taken: set[str] = set()
        self._means: dict[tuple[Key, int], float] = {}
        self._known: set[Key] = set()
        """Scores that the log reports, or that a row has."""
        for entry in results:
            self._see_reported(entry)

    @property
    def unknown(self) -> list[str]:
        """The reducers that are not known here."""
        return [reducer.name for reducer in self.reducers if reducer.reduce is None]

    @property
    def headline(self) -> str:
        """The name of the first score that the log reports a mean of; "" where there is none."""
        return next((self._name(*key) for key in self._means), "")

    def of_row(self, epochs: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
        """Return the scores of a row, by name, given the values of its epochs. None: it was not scored."""
        keys: dict[Key, list[Any]] = {}
        for values in epochs:
            for scorer, value in values.items():
                if isinstance(value, Mapping):
                    for key, one in value.items():
                        keys.setdefault((scorer, key), []).append(one)
                else:
                    keys.setdefault((scorer, None), []).append(value)
        found: dict[str, float | None] = {}
        for key, given in keys.items():
            if key not in self._known and all(map(_is_nan, given)):
                continue  # what is an object of scores in other rows, or epochs, was not scored here
            for number, reducer in enumerate(self.reducers):
                if reducer.reduce is None:
                    continue
                self._known.add(key)
                name = self._name(key, number)
                try:
                    found[name] = self._reduce(key, number, reducer, given)
                except TypeError:  # no number
                    self.not_numbers.add(name)
                    continue
                if name not in self.reported:
                    self.reported[name] = SourceScore(self._means.get((key, number)))
        return found

    def _reduce(self, key: Key, number: int, reducer: _Reducer, values: Sequence[Any]) -> float | None:
        scored = [value for value in values if not _is_nan(value)]
        self.no_answer += sum(value == "N" for value in scored) if number == 0 else 0
        if not scored:
            return None
        assert reducer.reduce is not None
        if reducer.of_values:
            return self._require_number(key, number, reducer.reduce(scored))
        reduced = reducer.reduce([self._require_number(key, number, value) for value in scored])
        return reduced if reduced is not None and math.isfinite(reduced) else None

    def _require_number(self, key: Key, number: int, value: Any) -> float:
        """Return a value as a number. One that is none counts 0 where the log has a mean of it, as inspect_ai does."""
        found = to_number(value)
        if found is None:
            if (key, number) not in self._means or isinstance(value, list | Mapping):
                raise TypeError
            return 0.0
        return found

    def _name(self, key: Key, number: int) -> str:
        name = self._names.get((key, number))
        if name is None:
            scorer, part = key
            candidates = [scorer if part is None else part]
            if number:
                candidates = [f"{candidates[0]},{self.reducers[number].name}"]
            candidates.append(f"{candidates[0]},{scorer}")
            name = next((one for one in candidates if one not in self._taken), f"{candidates[-1]},{len(self._taken)}")
            self._names[key, number] = name
            self._taken.add(name)
        return name

    def _see_reported(self, entry: Mapping[str, Any]) -> None:
        """Note what the log reports of one score: its name, and its mean where it reports one."""
        name = str(entry.get("name"))
        scorer = str(entry.get("scorer") or name)
        key: Key = (scorer, None if name == scorer else name)
        names = [reducer.name for reducer in self.reducers]
        reducer = entry.get("reducer")
        number = names.index(reducer) if reducer in names else 0
        self._name(key, number)
        self._known.add(key)
        metrics = entry.get("metrics")
        for metric in _MEANS if isinstance(metrics, Mapping) else ():
            found = metrics.get(metric)  # type: ignore[union-attr] # it is one
            value = found.get("value") if isinstance(found, Mapping) and not found.get("params") else None
            if is_finite_number(value):
                self._means.setdefault((key, number), float(value))
                break


def _find_reducer(name: str) -> _Reducer:
    if name == "mode":
        return _Reducer(name, mode, of_values=True)
    if name == "majority":
        return _Reducer(name, None, of_values=True)
    return _Reducer(name, None if name == "first" else find_reducer(name), of_values=False)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
