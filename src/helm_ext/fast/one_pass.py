"""The frame of a metric that is computed in one pass: contexts, trials, sums, means, worst cases.

`helm.benchmark.metrics.metric.Metric.evaluate` builds some 25 `Stat`s a row, copies each into its context, merges
each into a sum behind a hash of its name, and does it once more for worst cases among perturbations that are not there.
Here a `Stat` is made once for each value and shared by the rows that have it, and the sums are plain numbers. Names,
values and order are HELM's: numbers are added in the same sequence, so that not even the last bit differs.

Shared `Stat`s must not be changed by whoever receives them; HELM's own code copies before it merges.

Plain equivalent: `Metric.evaluate`. Of a recorded run are saved: 75 % by the worst cases, which HELM computes without
perturbations too (`_Trial.worst_cases`), 7 % by counting what rows share (`SharedStats`), 7 % by `Context.once`. Held
equal by tests/unit/fast/test_fast_stats.py, test_generation_equals_helm and test_references_equal_helm.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

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

from helm_ext.evalset import garbage
from helm_ext.evalset.quick_stats import PerInstanceStats as QuickStats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.scenarios.scenario import Instance

__all__ = ["Context", "OnePassMetric", "Parts", "SharedStats", "Stats"]

REMEMBERED = 10_000
"""How many values of one kind a context remembers: scores repeat, times and log-probabilities do not."""

Stats = list[Stat]
Parts = list[Stats]
"""The Stats of a row, in pieces."""
T = TypeVar("T")


class SharedStats(list[Stat]):
    """A piece of whole numbers: where rows share it, it is summed up by counting it, for such sums are exact."""

    __slots__ = ("times",)

    def __init__(self, stats: Stats) -> None:
        super().__init__(stats)
        self.times = 0
        """How often it came in the trial that is being added up."""


class Context:
    """Makes the Stats of one (split, sub-split, perturbation); equal values give the same object."""

    def __init__(self, instance: Instance, left_out: frozenset[str] = frozenset()) -> None:
        self.left_out = left_out
        """Names of stats that are not made."""
        self.metric_context = MetricContext.from_instance(instance)
        self._names: dict[str, MetricName] = {}
        self._remembered: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        """By the kind of what was made, and by its key."""

    def once(self, kind: str, key: Any, make: Callable[[], T]) -> T:
        """Return what was made for this key, or make it, and remember it while there is not too much of its kind."""
        remembered = self._remembered[kind]
        made: T | None = remembered.get(key)
        if made is None:
            made = make()
            if len(remembered) < REMEMBERED:
                remembered[key] = made
        return made

    def stats(self, values: Iterable[tuple[str, float | None]]) -> Stats:
        """Return Stats of one value each, without those that are left out."""
        kept = [(name, value) for name, value in values if name not in self.left_out]
        stats = [self.stat(name, value) for name, value in kept]
        return SharedStats(stats) if all(value is None or isinstance(value, int) for _, value in kept) else stats

    def stat(self, name: str, *values: float | None) -> Stat:
        """Return a Stat of these values, added one after the other (None adds nothing, as in `Stat.add`)."""
        # 1.0 must not become the 1 of another row, nor 0.0 be -0.0.
        key = tuple([(value.__class__, value or str(value)) for value in values])
        return self.once(name, key, lambda: self._make_stat(name, values))

    def _make_stat(self, name: str, values: Iterable[float | None]) -> Stat:
        stat = Stat(self._get_name(name))
        for value in values:
            stat.add(value)
        return stat

    def single(self, name: str, value: float) -> Stat:
        """Return a Stat of a value that will hardly come again, such as a time."""
        return Stat(self._get_name(name)).add(value)

    def _get_name(self, name: str) -> MetricName:
        known = self._names.get(name)
        if known is None:
            context = self.metric_context
            known = self._names[name] = MetricName(name, context.split, context.sub_split, context.perturbation)
        return known


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
        self.rows: list[Stats] = []
        self.sums: dict[int, _Sum] = {}
        """By the id of the name, of which each context has one. In order of first appearance."""
        self.counted: list[_Sum] = []
        """The sums in the order in which they got their first value."""
        self._shared: list[SharedStats] = []
        """The pieces that came, once each."""

    def add(self, parts: Parts, context: Context) -> Stats:
        """Add a row, and return its Stats."""
        row: Stats = []
        for part in parts:
            row += part
            if isinstance(part, SharedStats):
                part.times += 1
                if part.times > 1:
                    continue
                self._shared.append(part)
            self._add(part, context)
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
                    per_instance.append(QuickStats(str(instance.id), instance.perturbation, index, row))
            trial.finish()
            for stat in self._sum_up(trial):
                merge_stat(global_stats, stat.take_mean())
        return MetricResult(list(global_stats.values()), per_instance)

    def _sum_up(self, trial: _Trial) -> list[Stat]:
        by_name: dict[MetricName, Stat] = {}
        sums: dict[Context, dict[MetricName, Stat]] = defaultdict(dict)
        for total in trial.sums.values():
            by_name[total.name] = sums[total.context][total.name] = total.to_stat()
        rows: dict[Context, dict[Instance, Stats]] = defaultdict(dict)
        for instance, row, context in zip(trial.instances, trial.rows, trial.contexts, strict=True):
            if row:
                rows[context][instance] = row
        derived = [(context, self.derive(stats)) for context, stats in sums.items()]
        derived += [(context, self.derive_from_rows(sums[context], found)) for context, found in rows.items()]
        for context, stats in derived:
            for stat in stats:
                merge_stat(by_name, add_context(stat, context.metric_context))
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

    def derive_from_rows(self, stats: dict[MetricName, Stat], rows: dict[Instance, Stats]) -> list[Stat]:  # noqa: ARG002
        """Return stats made of one context's rows. HELM: `Metric.derive_per_instance_stats`."""
        return []
