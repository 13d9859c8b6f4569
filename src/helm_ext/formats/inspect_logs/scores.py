"""The scores that inspect_ai gave: of a sample in an epoch, of a sample over its epochs, of the log.

    sample.scores[SCORER].value ──to_number──▶ number of an epoch ──reducer──▶ of the row ──mean──▶ results.scores[]

Values, reducers and names are those of inspect_ai: scorer/_metric.py (`value_to_float`), scorer/_reducer/reducer.py,
_eval/task/results.py (`eval_results`).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helm_ext.evalset import SourceScore
from helm_ext.formats.imported.row import is_finite_number
from helm_ext.formats.imported.score_values import to_number
from helm_ext.scoring.reducers import find_noise, find_reducer, mode
from helm_ext.scoring.stat_names import ANSWERS, NOISE

_GRADES = frozenset({"C", "P", "I", "N", True, False})
_MEANS = ("accuracy", "mean")
"""Metrics of inspect_ai that are the mean of the rows' numbers."""
_SPREADS = ("std", "stderr", "bootstrap_stderr", "var")
"""Metrics of it that say how far rows lie apart: neither less nor more is better."""
_NO_MEANS = (*_SPREADS, "perplexity_per_token", "perplexity_per_seq", "krippendorff_alpha")
"""Metrics of it that are no mean of rows, though the mean may be the same number."""
_CLOSE = 1e-9

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
        """By name, when all rows were read (`finish`): those that a row has, and what else the log reports."""
        self.no_answer = 0
        """Scores "N"."""
        self.not_numbers: set[str] = set()
        """Names of scores with values that are no numbers."""
        self._names: dict[tuple[Key, int], str] = {}
        self._taken: set[str] = set()
        self._means: dict[tuple[Key, int], float] = {}
        self._results = results
        self._numeric: set[Key] = set()
        """Scores with values that are numbers, and no grades or truths: these lie between 0 and 1."""
        self._values: dict[tuple[Key, int], array[float]] = {}
        """The rows' numbers."""
        self._known: set[Key] = set()
        """Scores that the log reports, or that a row has."""
        for entry in results:
            self._see_reported(entry)

    @property
    def unknown(self) -> list[str]:
        """The reducers that are not known here."""
        return [reducer.name for reducer in self.reducers if reducer.reduce is None]

    def of_row(self, epochs: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
        """Return the scores of a row, by name, given the values of its epochs. None: it was not scored.

        Behind those of several epochs comes of how many they are made, and how noisy that is.
        """
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
                    self.reported[name] = SourceScore()
                if (value := found[name]) is not None:
                    self._values.setdefault((key, number), array("d")).append(value)
                    found |= self._say_noise(name, (key, number), given)
        return found

    def _say_noise(self, name: str, score: tuple[Key, int], given: Sequence[Any]) -> dict[str, float | None]:
        """Return of how many epochs a row's number is made, and its variance were they drawn again."""
        key, number = score
        values = [self._require_number(key, number, value) for value in given if not _is_nan(value)]
        if len(values) < 2:
            return {}
        noise = find_noise(self.reducers[number].name)(values)
        return {f"{name}{ANSWERS}": len(values)} | ({} if noise is None else {f"{name}{NOISE}": noise})

    def finish(self, *, is_whole: bool) -> list[dict[str, str]]:
        """Settle what the log reports of which score, all rows being read: of each of its scores, metric to name.

        `is_whole`: whether these are all rows that it reports about.
        """
        return [self._settle(entry, is_whole=is_whole) for entry in self._results]

    def _settle(self, entry: Mapping[str, Any], *, is_whole: bool) -> dict[str, str]:
        """Return the names of a score's metrics. The one that is the mean of its rows has the score's own name."""
        key, number = self._find_key(entry)
        name = self._name(key, number)
        metrics = _mapping(entry.get("metrics"))
        names: dict[str, str] = {}
        for metric, found in metrics.items():
            said = _mapping(found)
            value = said.get("value")
            reported = float(value) if is_finite_number(value) else None
            by = str(said.get("group") or said.get("name") or metric).rpartition("/")[2]
            why = self._why_no_mean((key, number), by, reported, is_group=bool(said.get("group")), is_whole=is_whole)
            mine = self.reported.get(name)
            if not why and mine is not None and mine.mean is None:
                names[metric], mine.mean = name, reported
                continue
            names[metric] = f"{name}/{metric}"
            lower = None if by in _SPREADS else "perplexity" in by
            same = "it is the mean of the rows' scores once more"
            self.reported.setdefault(names[metric], SourceScore(reported, lower, why or same))
        if name in self.reported:
            self.reported[name].bounds = None if key in self._numeric else (0.0, 1.0)
            self.reported[name].lower_is_better = any("perplexity" in metric for metric in metrics)
        return names

    def _why_no_mean(
        self, key: tuple[Key, int], by: str, reported: float | None, *, is_group: bool, is_whole: bool
    ) -> str:
        """Return why a metric is no mean of the rows' numbers; "" where it is.

        A metric that is not known is, if it comes to their mean and they are not all the same.
        """
        values = self._values.get(key)
        of_all = f"inspect_ai makes it of all rows at once, by {by}"
        if not values:
            return "" if reported is None and by in _MEANS and not is_group else "no row has a score of this kind"
        mean = math.fsum(values) / len(values)
        is_equal = reported is not None and abs(mean - reported) <= _CLOSE
        if by in _MEANS and not is_group:
            return "" if is_equal or not is_whole else f"the mean of the rows' scores is {mean:.6g}"
        return "" if is_equal and is_whole and by not in _NO_MEANS and min(values) < max(values) else of_all

    def _reduce(self, key: Key, number: int, reducer: _Reducer, values: Sequence[Any]) -> float | None:
        scored = [value for value in values if not _is_nan(value)]
        if any(not isinstance(value, str | bool) or value not in _GRADES for value in scored):
            self._numeric.add(key)
        self.no_answer += sum(value == "N" for value in scored) if number == 0 else 0
        if not scored:
            return None
        assert reducer.reduce is not None
        if reducer.of_values:
            return self._require_number(key, number, reducer.reduce(scored))
        reduced = reducer.reduce([self._require_number(key, number, value) for value in scored])
        return reduced if reduced is not None and math.isfinite(reduced) else None

    def _require_number(self, key: Key, number: int, value: Any) -> float:
        """Return a value as a number. Any other value counts 0 where the log has a mean of it, as for inspect_ai."""
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
        key, number = self._find_key(entry)
        self._name(key, number)
        self._known.add(key)
        metrics = entry.get("metrics")
        for metric in _MEANS if isinstance(metrics, Mapping) else ():
            found = metrics.get(metric)  # type: ignore[union-attr] # it is one
            value = found.get("value") if isinstance(found, Mapping) and not found.get("params") else None
            if is_finite_number(value):
                self._means.setdefault((key, number), float(value))
                break

    def _find_key(self, entry: Mapping[str, Any]) -> tuple[Key, int]:
        """Return the score, and the number of the reducer, that an element of `results.scores` is about."""
        name = str(entry.get("name"))
        scorer = str(entry.get("scorer") or name)
        names = [reducer.name for reducer in self.reducers]
        reducer = entry.get("reducer")
        return (scorer, None if name == scorer else name), names.index(reducer) if reducer in names else 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _find_reducer(name: str) -> _Reducer:
    if name == "mode":
        return _Reducer(name, mode, of_values=True)
    if name == "majority":
        return _Reducer(name, None, of_values=True)
    return _Reducer(name, None if name == "first" else find_reducer(name), of_values=False)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
