"""The frame of a metric that is computed in one pass: contexts, trials, sums, means, worst cases.

`helm.benchmark.metrics.metric.Metric.evaluate` builds some 25 `Stat`s a row, copies each into its context, merges
each into a sum behind a hash of its name, and does it once more for worst cases among perturbations that are not there.
Here a `Stat` is made once for each value and shared by the rows that have it, and the sums are plain numbers. Names,
values and order are HELM's: numbers are added in the same sequence, so that not even the last bit differs.

Shared `Stat`s must not be changed by whoever receives them; HELM's own code copies before it merges.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.adapter_spec import ADAPT_LANGUAGE_MODELING, AdapterSpec
from helm.benchmark.augmentations.perturbation_description import PERTURBATION_WORST, PerturbationDescription
from helm.benchmark.metrics.metric import (
    MetricInterface,
    MetricResult,
    PerInstanceStats,
    add_context,
    compute_worst_case_metrics,
)
from helm.benchmark.metrics.metric_name import MetricContext, MetricName
from helm.benchmark.metrics.statistic import Stat, merge_stat

from helm_ext.evalset import garbage, quick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.scenarios.scenario import Instance

__all__ = ["Context", "OnePassMetric", "Parts", "Row", "SharedStats", "Stats"]

SHARED_FLOATS = 2_000
"""How many different floats of one stat are remembered: scores repeat, times and log-probabilities do not."""

SHARED_PARTS = 10_000
"""How many different pieces of rows are remembered."""

Stats = list[Stat]
Parts = list[Stats]
"""The Stats of a row, in pieces."""


class SharedStats(list[Stat]):
    """A piece that is the same object in many rows, of whole numbers: it is summed up by counting it."""

    __slots__ = ("encoded", "times")

    def __init__(self, stats: Stats) -> None:
        super().__init__(stats)
        self.times = 0
        """How often it came in the trial that is being added up."""
        self.encoded = b""
        """What `helm_ext.fast.serialise_stats` writes for it."""


class Row(list[Stat]):
    """The Stats of a row, and in `pieces` the same again: those that are shared, and single ones."""

    __slots__ = ("pieces",)

    pieces: list[SharedStats | Stat]


class Context:
    """Makes the Stats of one (split, sub-split, perturbation); equal values give the same object."""

    def __init__(self, instance: Instance, left_out: frozenset[str] = frozenset()) -> None:
        self.left_out = left_out
        """Names of stats that are not made."""
        self.metric_context = MetricContext.from_instance(instance)
        self._shared: dict[str, tuple[MetricName, dict[Any, Stat]]] = {}
        self._parts: dict[Any, SharedStats] = {}
        self.remembered: dict[Any, Any] = {}
        """What a metric made for a row and will need again; filled by `remember`."""

    def remember(self, key: Any, made: Any) -> None:
        """Keep what was made for a row, while there is not too much of it."""
        if len(self.remembered) < SHARED_PARTS:
            self.remembered[key] = made

    def stat(self, name: str, value: float | None) -> Stat:
        """Return a Stat of one value (none at all for None, as in `Stat.add`)."""
        slot = self._shared.get(name)
        if slot is None:
            slot = self._shared[name] = self._new_slot(name)
        metric_name, shared = slot
        kind = type(value)
        if kind is int or kind is bool or value is None:  # True is added as 1, and is equal to 1
            stat = shared.get(value)
            if stat is None:
                stat = shared[value] = Stat(metric_name).add(value)
            return stat
        # 1.0 must not become the 1 of another row, nor 0.0 be -0.0.
        key = (value, kind) if value else (str(value), kind)
        stat = shared.get(key)
        if stat is None:
            stat = Stat(metric_name).add(value)
            if len(shared) < SHARED_FLOATS:
                shared[key] = stat
        return stat

    def stats(self, values: Iterable[tuple[str, float | None]]) -> Stats:
        """Return Stats of one value each, without those that are left out."""
        left_out = self.left_out
        return [self.stat(name, value) for name, value in values if name not in left_out]

    def shared(self, names: tuple[str, ...], values: tuple[int | None, ...]) -> Stats:
        """Return one and the same list of Stats for the same integers: sums of integers are exact in any order."""
        key = (names, values)
        part = self._parts.get(key)
        if part is None:
            stats = self.stats(zip(names, values, strict=True))
            if len(self._parts) >= SHARED_PARTS:
                return stats
            part = self._parts[key] = SharedStats(stats)
        return part

    def single(self, name: str, value: float) -> Stat:
        """Return a Stat of a value that will hardly come again, such as a time: `Stat.add`, spelt out."""
        slot = self._shared.get(name)
        if slot is None:
            slot = self._shared[name] = self._new_slot(name)
        squared = value * value
        variance = squared / 1 - (value / 1) ** 2
        stddev = variance
        if variance:  # rounding, or NaN
            variance = max(variance, 0)
            stddev = math.sqrt(variance)
        return Stat(slot[0], 1, 0 + value, squared, value, value, value / 1, variance, stddev)

    def stat_of_many(self, name: str, values: tuple[float | None, ...]) -> Stat:
        """Return a Stat of several values, added one after the other."""
        slot = self._shared.get(name)
        if slot is None:
            slot = self._shared[name] = self._new_slot(name)
        metric_name, shared = slot
        exact = all(type(value) is int or type(value) is bool or value is None for value in values)
        stat = shared.get(values) if exact else None
        if stat is None:
            stat = Stat(metric_name)
            for value in values:
                stat.add(value)
            if exact and len(shared) < SHARED_FLOATS:
                shared[values] = stat
        return stat

    def _new_slot(self, name: str) -> tuple[MetricName, dict[Any, Stat]]:
        context = self.metric_context
        return MetricName(name, context.split, context.sub_split, context.perturbation), {}


class _Sum:
    """Adds up Stats of one name in the order they come, as `merge_stat` does, without a mean at each step."""

    __slots__ = ("context", "count", "max", "min", "name", "several", "sum", "sum_squared")

    def __init__(self, stat: Stat, context: Context) -> None:
        self.name: MetricName = stat.name
        self.context = context
        self.count: int = stat.count
        self.sum: float = stat.sum
        self.sum_squared: float = stat.sum_squared
        self.min: float | None = stat.min
        self.max: float | None = stat.max
        self.several = stat.count > 1
        """Whether a row brought more than one value: its worst case is then not its value."""

    def to_stat(self, name: MetricName | None = None) -> Stat:
        stat = Stat(name or self.name, self.count, self.sum, self.sum_squared, self.min, self.max)
        stat._update_mean_variance_stddev()  # noqa: SLF001 - HELM's own arithmetic, once instead of once a row
        return stat


class _Trial:
    """What one trial's rows add up to."""

    def __init__(self, instances: Sequence[Instance], contexts: Sequence[Context]) -> None:
        self.instances = instances
        self.contexts = contexts
        self.rows: list[Row] = []
        self.sums: dict[int, _Sum] = {}
        """By the id of the name, of which each context has one. In order of first appearance."""
        self.counted: list[_Sum] = []
        """The sums in the order in which they got their first value."""
        self._shared: list[SharedStats] = []
        """The pieces that came, once each."""

    def add(self, parts: Parts, context: Context) -> Row:
        """Add a row, and return its Stats."""
        row = Row()
        row.pieces = pieces = []
        for part in parts:
            row += part
            if not isinstance(part, SharedStats):
                self._add(part, context)
                pieces += part
                continue
            if not part.times:
                self._add(part, context)
                self._shared.append(part)
            part.times += 1
            pieces.append(part)
        self.rows.append(row)
        return row

    def finish(self) -> None:
        """Add what came again, all at once."""
        for part in self._shared:
            for stat in part:
                total = self.sums[id(stat.name)]
                total.count += (part.times - 1) * stat.count
                total.sum += (part.times - 1) * stat.sum
                total.sum_squared += (part.times - 1) * stat.sum_squared
            part.times = 0
        self._shared.clear()

    def _add(self, part: Stats, context: Context) -> None:
        sums = self.sums
        for stat in part:
            total = sums.get(id(stat.name))
            count = stat.count
            if total is None:
                total = sums[id(stat.name)] = _Sum(stat, context)
                if count:
                    self.counted.append(total)
                continue
            if not count:
                continue
            if not total.count:
                self.counted.append(total)
            if count > 1:
                total.several = True
            total.count += count
            total.sum += stat.sum
            total.sum_squared += stat.sum_squared
            low, high = stat.min, stat.max
            # Written so that NaN behaves as in min(total, stat) and max(total, stat).
            if total.min is None or low < total.min:
                total.min = low
            if total.max is None or high > total.max:
                total.max = high

    def worst_cases(self) -> list[Stat]:
        """Return what `compute_worst_case_metrics` returns: HELM's own result where there is a perturbation.

        Without any, the worst case of a row is the row itself, for "robustness" and "fairness" alike.
        """
        ids = {instance.id for instance in self.instances}
        if len(ids) < len(self.instances) or any(instance.perturbation is not None for instance in self.instances):
            return compute_worst_case_metrics(dict(zip(self.instances, self.rows, strict=True)))
        worst: list[Stat] = []
        for total in self.counted:
            lowest = self._sum_of_minima(total.name) if total.several else total
            worst.extend(
                lowest.to_stat(replace(total.name, perturbation=description)) for description in _WORST_DESCRIPTIONS
            )
        return worst

    def _sum_of_minima(self, name: MetricName) -> _Sum:
        minima = [Stat(name).add(stat.min) for row in self.rows for stat in row if stat.name is name and stat.count]
        trial = _Trial((), ())
        for stat in minima:
            trial.add([[stat]], self.contexts[0])
        return trial.counted[0]


_WORST_DESCRIPTIONS = (
    PerturbationDescription(name="robustness", robustness=True, computed_on=PERTURBATION_WORST),
    PerturbationDescription(name="fairness", fairness=True, computed_on=PERTURBATION_WORST),
)


class OnePassMetric(MetricInterface):
    """Computes all rows' Stats in one loop in one thread: nothing in it waits for anything."""

    left_out: frozenset[str] = frozenset()
    """Names of stats that are not computed."""

    def evaluate(
        self,
        scenario_state: ScenarioState,
        metric_service: MetricService,
        eval_cache_path: str,  # noqa: ARG002 - HELM's signature
        parallelism: int,  # noqa: ARG002
    ) -> MetricResult:
        """Return HELM's result: means over trials, and the Stats of each row.

        Raises ValueError for instances without an id, and what `prepare` and its function raise.
        """
        adapter_spec = scenario_state.adapter_spec
        if adapter_spec.method == ADAPT_LANGUAGE_MODELING:
            raise ValueError(f"{type(self).__name__} cannot score the method {ADAPT_LANGUAGE_MODELING}")
        compute_row = self.prepare(adapter_spec, metric_service)
        known: dict[tuple[Any, ...], Context] = {}
        contexts: list[Context] = []
        for instance in scenario_state.instances:
            if instance.id is None:
                raise ValueError(f"an instance has no id: {instance.input.text[:80]!r}")
            key = (instance.split, instance.sub_split, instance.perturbation)
            context = known.get(key)
            if context is None:
                context = known[key] = Context(instance, self.left_out)
            contexts.append(context)

        with garbage.paused():
            return self._evaluate(scenario_state, contexts, compute_row)

    def _evaluate(
        self,
        scenario_state: ScenarioState,
        contexts: Sequence[Context],
        compute_row: Callable[[Sequence[RequestState], Context], Parts],
    ) -> MetricResult:
        global_stats: dict[MetricName, Stat] = {}
        per_instance: list[PerInstanceStats] = []
        for index in range(scenario_state.adapter_spec.num_train_trials):
            trial = _Trial(scenario_state.instances, contexts)
            for instance, context in zip(scenario_state.instances, contexts, strict=True):
                states = self.select(scenario_state, index, instance)
                row = trial.add(compute_row(states, context) if states else [], context)
                if row:
                    per_instance.append(quick.PerInstanceStats(str(instance.id), instance.perturbation, index, row))
            trial.finish()
            for stat in self._sum_up(trial):
                merge_stat(global_stats, stat.take_mean())
        return MetricResult(list(global_stats.values()), per_instance)

    def _sum_up(self, trial: _Trial) -> list[Stat]:
        by_name: dict[MetricName, Stat] = {}
        by_context: dict[MetricContext, dict[MetricName, Stat]] = defaultdict(dict)
        for total in trial.sums.values():
            by_name[total.name] = by_context[total.context.metric_context][total.name] = total.to_stat()
        for context, stats in by_context.items():
            for stat in self.derive(stats):
                merge_stat(by_name, add_context(stat, context))
        rows_by_context: dict[MetricContext, dict[Instance, Row]] = defaultdict(dict)
        for instance, row, row_context in zip(trial.instances, trial.rows, trial.contexts, strict=True):
            if row:
                rows_by_context[row_context.metric_context][instance] = row
        for context, rows in rows_by_context.items():
            for stat in self.derive_from_rows(by_context[context], rows):
                merge_stat(by_name, add_context(stat, context))
        for stat in trial.worst_cases():
            merge_stat(by_name, stat)
        return list(by_name.values())

    @abstractmethod
    def prepare(
        self, adapter_spec: AdapterSpec, metric_service: MetricService
    ) -> Callable[[Sequence[RequestState], Context], Parts]:
        """Do what is done once a run; return the function that makes one instance's Stats, each name once."""

    @abstractmethod
    def select(self, scenario_state: ScenarioState, trial: int, instance: Instance) -> list[RequestState]:
        """Return the request states of one instance and trial that this metric is about."""

    def derive(self, stats: dict[MetricName, Stat]) -> list[Stat]:  # noqa: ARG002
        """Return stats made of one context's sums. HELM: `Metric.derive_stats`."""
        return []

    def derive_from_rows(self, stats: dict[MetricName, Stat], rows: dict[Instance, Row]) -> list[Stat]:  # noqa: ARG002
        """Return stats made of one context's rows. HELM: `Metric.derive_per_instance_stats`."""
        return []
