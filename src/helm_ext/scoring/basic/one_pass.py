"""The frame of a metric that is computed in one pass: contexts, trials, sums, means, worst cases.

`helm.benchmark.metrics.metric.Metric.evaluate` builds some 25 `Stat`s a row, copies each into its context, merges
each into a sum behind a hash of its name, and does it once more for worst cases among perturbations that are not there.
Here a row is the values of its stats (`row_stats`), and sums are made of columns of numbers (`tally`). Names, values
and order are HELM's: numbers are added in the same sequence, so that not even the last bit differs.

`Stat`s of several values (`Context.stat`) are shared by the rows that have them, and must not be changed by whoever
receives them; HELM's own code copies before it merges.

Plain equivalent: `Metric.evaluate`. Of a recorded run are saved: 75 % by the worst cases, which HELM computes without
perturbations too (`_name_worst_cases`). Held equal by tests/unit/scoring/test_basic_metrics.py,
test_generation_equals_helm and test_references_equal_helm.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.adapter_spec import ADAPT_LANGUAGE_MODELING, AdapterSpec
from helm.benchmark.augmentations.perturbation_description import PERTURBATION_WORST, PerturbationDescription
from helm.benchmark.metrics.metric import PerInstanceStats, add_context, compute_worst_case_metrics
from helm.benchmark.metrics.metric_name import MetricContext, MetricName
from helm.benchmark.metrics.statistic import Stat, merge_stat

from helm_ext.scoring.basic.row_stats import Names, RowStats, find_mean
from helm_ext.scoring.basic.tally import Column, Totals, to_columns
from helm_ext.scoring.folding import FoldingMetric, Measured, MeasuredRows, RunFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.scenarios.scenario import Instance

    from helm_ext.scoring.basic.requests import Values

REMEMBERED = 2_000
"""How many Stats of several values a context remembers."""

Stats = Sequence[Stat]


class Context:
    """Makes the Stats of one (split, sub-split, perturbation); equal values give the same object."""

    def __init__(self, instance: Instance, left_out: frozenset[str] = frozenset()) -> None:
        self.left_out = left_out
        """Names of stats that are not made."""
        self.metric_context = MetricContext.from_instance(instance)
        self._names: dict[str, MetricName] = {}
        self._remembered: dict[Any, Stat] = {}
        self._rows: dict[tuple[str, ...], tuple[Names, Sequence[bool]]] = {}
        """By the names of all values: those that are not left out, and which these are."""

    def make_row(self, *parts: Mapping[str, Any]) -> RowStats:
        """Return the Stats of a row, without those that are left out. Raises ValueError for a name that is repeated."""
        values: Values = {}
        for part in parts:
            values |= part
        names = tuple(values)
        if len(names) < sum(map(len, parts)):
            times = Counter(name for part in parts for name in part if name not in self.left_out)
            if repeated := sorted(name for name, number in times.items() if number > 1):
                raise ValueError(f"these stats are computed already: {', '.join(repeated)}")
        known = self._rows.get(names)
        if known is None:
            is_kept = [name not in self.left_out for name in names]
            known = self._rows[names] = Names(map(self._get_name, compress(names, is_kept))), is_kept
        return RowStats(known[0], tuple(compress(values.values(), known[1])))

    def stat(self, name: str, *values: float | None) -> Stat:
        """Return a Stat of these values, added one after the other (None adds nothing, as in `Stat.add`)."""
        # 1.0 must not become the 1 of another row, nor 0.0 be -0.0.
        key = name, *[(value.__class__, value or str(value)) for value in values]
        stat = self._remembered.get(key)
        if stat is None:
            stat = Stat(self._get_name(name))
            for value in values:
                stat.add(value)
            if len(self._remembered) < REMEMBERED:
                self._remembered[key] = stat
        return stat

    def _get_name(self, name: str) -> MetricName:
        known = self._names.get(name)
        if known is None:
            context = self.metric_context
            known = self._names[name] = MetricName(name, context.split, context.sub_split, context.perturbation)
        return known


Kept = dict[MetricContext, "tuple[array[float], ...]"]
"""Of the rows of each context that have all stats of `OnePassMetric.kept`: their means, in the rows' order."""


@dataclass(slots=True)
class _TrialSummary:
    """What the rows of a batch say of one trial."""

    columns: list[Column]
    kept: Kept
    worst: list[Stat] | None = None
    """HELM's worst cases, where there are perturbations: the batch is the whole run."""


@dataclass(slots=True)
class _Trial:
    """Adds up the batches of one trial."""

    totals: Totals = field(default_factory=Totals)
    kept: Kept = field(default_factory=dict)
    worst: list[Stat] | None = None

    def add(self, summary: _TrialSummary) -> None:
        self.totals.add(summary.columns)
        for context, values in summary.kept.items():
            for mine, new in zip(self.kept.setdefault(context, tuple(array("d") for _ in values)), values, strict=True):
                mine.extend(new)
        self.worst = summary.worst


class _Total:
    """Adds up the batches of a run: `Total` of a metric that is computed in one pass."""

    def __init__(self, metric: OnePassMetric, trials: int) -> None:
        self.metric = metric
        self.trials = [_Trial() for _ in range(trials)]

    def add(self, summary: Sequence[_TrialSummary]) -> None:
        """Add a batch: its trials."""
        for trial, of_batch in zip(self.trials, summary, strict=True):
            trial.add(of_batch)

    def to_stats(self) -> list[Stat]:
        """Return the means over trials."""
        means: dict[MetricName, Stat] = {}
        for trial in self.trials:
            for stat in self._sum_up(trial):
                merge_stat(means, stat.take_mean())
        return list(means.values())

    def _sum_up(self, trial: _Trial) -> list[Stat]:
        by_name: dict[MetricName, Stat] = {}
        sums: dict[MetricContext, dict[MetricName, Stat]] = defaultdict(dict)
        for stat in trial.totals.to_stats():
            by_name[stat.name] = sums[MetricContext.from_metric_name(stat.name)][stat.name] = stat
        derived = [(context, self.metric.derive(stats)) for context, stats in sums.items()]
        kept = trial.kept
        derived += [
            (context, self.metric.derive_from_kept(stats, kept.get(context, ()))) for context, stats in sums.items()
        ]
        for context, stats in derived:
            for stat in stats:
                merge_stat(by_name, add_context(stat, context))
        worst = trial.worst if trial.worst is not None else _name_worst_cases(trial.totals.lowest())
        for stat in worst:
            merge_stat(by_name, stat)
        return list(by_name.values())


def _name_worst_cases(stats: Iterable[Stat]) -> list[Stat]:
    """Return what `compute_worst_case_metrics` returns where there is no perturbation: sums of rows' lowest values.

    The worst case of a row is then the row itself, for "robustness" and "fairness" alike.
    """
    return [
        replace(stat, name=replace(stat.name, perturbation=description))
        for stat in stats
        for description in _WORST_DESCRIPTIONS
    ]


_WORST_DESCRIPTIONS = (
    PerturbationDescription(name="robustness", robustness=True, computed_on=PERTURBATION_WORST),
    PerturbationDescription(name="fairness", fairness=True, computed_on=PERTURBATION_WORST),
)


class OnePassMetric(FoldingMetric):
    """Computes all rows' Stats in one loop in one thread: nothing in it waits for anything."""

    left_out: frozenset[str] = frozenset()
    """Names of stats that are not computed."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of stats whose mean is kept of each row until the end, for `derive_from_kept`."""
        return ()

    def begin(
        self, adapter_spec: AdapterSpec, service: MetricService, facts: RunFacts
    ) -> Callable[[ScenarioState], Measured]:
        """Return what measures a batch.

        Raises ValueError for a method that it cannot score, and what `prepare` raises; what is returned raises
        ValueError for instances without an id, and what the function of `prepare` raises.
        """
        if adapter_spec.method == ADAPT_LANGUAGE_MODELING:
            raise ValueError(f"{type(self).__name__} cannot score the method {ADAPT_LANGUAGE_MODELING}")
        compute_row = _take_from(service) if isinstance(service, MeasuredRows) else self.prepare(adapter_spec, service)
        contexts: dict[tuple[Any, ...], Context] = {}
        trials = range(adapter_spec.num_train_trials)

        def measure(state: ScenarioState) -> Measured:
            of_rows = [self._get_context(contexts, instance) for instance in state.instances]
            measured = [self._measure_trial(state, trial, of_rows, compute_row, facts) for trial in trials]
            return Measured([rows for rows, _ in measured], [summary for _, summary in measured])

        return measure

    def make_total(self, adapter_spec: AdapterSpec, facts: RunFacts) -> _Total:  # noqa: ARG002
        """Return what adds up the batches."""
        return _Total(self, adapter_spec.num_train_trials)

    def _get_context(self, known: dict[tuple[Any, ...], Context], instance: Instance) -> Context:
        if instance.id is None:
            raise ValueError(f"an instance has no id: {instance.input.text[:80]!r}")
        key = (instance.split, instance.sub_split, instance.perturbation)
        context = known.get(key)
        if context is None:
            context = known[key] = Context(instance, self.left_out)
        return context

    def _measure_trial(
        self,
        scenario_state: ScenarioState,
        index: int,
        contexts: Sequence[Context],
        compute_row: Callable[[Sequence[RequestState], Context], Stats],
        facts: RunFacts,
    ) -> tuple[list[PerInstanceStats], _TrialSummary]:
        """Return the Stats of the rows in one trial, and what they say together."""
        rows: list[PerInstanceStats] = []
        of_instances: dict[Instance, list[Stat]] = {}
        names = self.kept
        kept: dict[Context, tuple[array[float], ...]] = {}
        for instance, context in zip(scenario_state.instances, contexts, strict=True):
            states = self.select(scenario_state, index, instance)
            stats = compute_row(states, context) if states else []
            if stats:
                rows.append(PerInstanceStats(str(instance.id), instance.perturbation, index, stats))
                means = [found for name in names if (found := find_mean(stats, name)) is not None]
                if names and len(means) == len(names):
                    if context not in kept:
                        kept[context] = tuple(array("d") for _ in names)
                    for column, (_, mean) in zip(kept[context], means, strict=True):
                        column.append(mean)
            if facts.has_perturbations:
                of_instances[instance] = [*stats]
        kept_by_name = {context.metric_context: columns for context, columns in kept.items()}
        summary = _TrialSummary(to_columns(row.stats for row in rows), kept_by_name)
        if facts.has_perturbations:
            summary.worst = compute_worst_case_metrics(of_instances)
        return rows, summary

    @abstractmethod
    def prepare(
        self, adapter_spec: AdapterSpec, metric_service: MetricService
    ) -> Callable[[Sequence[RequestState], Context], Stats]:
        """Do what is done once a run; return the function that makes one instance's Stats, each name once."""

    @abstractmethod
    def select(self, scenario_state: ScenarioState, trial: int, instance: Instance) -> list[RequestState]:
        """Return the request states of one instance and trial that this metric is about."""

    def derive(self, stats: dict[MetricName, Stat]) -> list[Stat]:  # noqa: ARG002
        """Return stats made of one context's sums. HELM: `Metric.derive_stats`."""
        return []

    def derive_from_kept(self, stats: dict[MetricName, Stat], kept: Sequence[array[float]]) -> list[Stat]:  # noqa: ARG002
        """Return stats made of one context's rows. HELM: `Metric.derive_per_instance_stats`."""
        return []


def _take_from(rows: MeasuredRows) -> Callable[[Sequence[RequestState], Context], Stats]:
    return lambda states, context: rows.find(states, context.left_out)
