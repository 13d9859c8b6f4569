"""Metrics that are computed batch by batch, so that a run of any size takes the memory of one batch.

    request states of some rows ──measure──▶ the rows' Stats, and a summary ──add, in order──▶ the run's Stats

`measure` knows nothing of other batches and may run in another process; the summary is small and can be sent. All
request states of an instance are in one batch. `evaluate`, which HELM's runner calls, is the same with one batch.

A metric that is none of these wants all rows at once, and gets them: `isinstance(metric, FoldingMetric)` is the one
question that a runner asks.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from helm.benchmark.metrics.metric import MetricInterface, MetricResult, PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.metric_service import MetricService
from helm.benchmark.metrics.statistic import Stat

from helm_ext.evalset import garbage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.scenarios.scenario import Instance


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What of all rows of a run a batch must know."""

    unmeasured: frozenset[str] = field(default=frozenset())
    """Names of stats that would be made up (`scoring.completeness`). One row without log-probabilities is enough."""
    has_perturbations: bool = False
    """Whether worst cases are looked for among the perturbations of a row, which may stand anywhere: then there is
    one batch."""


class Measured(NamedTuple):
    """What a metric says of a batch."""

    segments: Sequence[Sequence[PerInstanceStats]]
    """The rows' Stats. Those of a run are its first segments of all batches, then its second ones, ...: HELM lists
    rows by metric and trial. Each batch has the same number."""
    summary: Any
    """For `Total.add`. Can be pickled."""


class MeasuredRows(MetricService):
    """The service of metrics whose rows were measured before, by another process: they take these Stats, and add up."""

    def __init__(self) -> None:
        super().__init__(None)

    @abstractmethod
    def find(self, states: Sequence[RequestState], left_out: frozenset[str]) -> list[Stat]:
        """Return the Stats of a row, without those of names that are left out.

        `states`: those of its request states that a metric is about. Equal names are one object.
        """


class Total(Protocol):
    """Adds up the summaries of batches, in the order of the rows."""

    def add(self, summary: Any) -> None:
        """Add a batch."""

    def to_stats(self) -> list[Stat]:
        """Return the run's stats."""


class JoinedTotal:
    """Adds up what several say of the same batches: their stats, one after the other."""

    def __init__(self, totals: Sequence[Total]) -> None:
        self._totals = totals

    def add(self, summary: Sequence[Any]) -> None:
        """Add a batch: the summary of each."""
        for total, of_one in zip(self._totals, summary, strict=True):
            total.add(of_one)

    def to_stats(self) -> list[Stat]:
        """Return all stats."""
        return [stat for total in self._totals for stat in total.to_stats()]


class FoldingMetric(MetricInterface):
    """A metric that is computed batch by batch."""

    @abstractmethod
    def begin(
        self, adapter_spec: AdapterSpec, service: MetricService, facts: RunFacts
    ) -> Callable[[ScenarioState], Measured]:
        """Do what is done once a run and process; return `measure`."""

    @abstractmethod
    def make_total(self, adapter_spec: AdapterSpec, facts: RunFacts) -> Total:
        """Return what adds up the batches."""

    def find_facts(self, scenario_state: ScenarioState) -> RunFacts:
        """Return the facts of a run that is there as a whole."""
        return RunFacts(has_perturbations=find_perturbations(scenario_state.instances))

    def evaluate(
        self,
        scenario_state: ScenarioState,
        metric_service: MetricService,
        eval_cache_path: str,  # noqa: ARG002 - HELM's signature
        parallelism: int,  # noqa: ARG002
    ) -> MetricResult:
        """Return HELM's result: the run is one batch."""
        facts = self.find_facts(scenario_state)
        measure = self.begin(scenario_state.adapter_spec, metric_service, facts)
        total = self.make_total(scenario_state.adapter_spec, facts)
        with garbage.paused():
            measured = measure(scenario_state)
        total.add(measured.summary)
        rows = [replace(row, stats=[*row.stats]) for segment in measured.segments for row in segment]
        return MetricResult(aggregated_stats=total.to_stats(), per_instance_stats=rows)


class JoinedMetric(FoldingMetric):
    """Several metrics as one: what they say of a batch stands one behind the other."""

    def __init__(self, metrics: Sequence[FoldingMetric]) -> None:
        self.metrics = metrics

    def find_facts(self, scenario_state: ScenarioState) -> RunFacts:
        """Return what at least one of them must know."""
        found = [metric.find_facts(scenario_state) for metric in self.metrics]
        return RunFacts(
            unmeasured=frozenset().union(*(facts.unmeasured for facts in found)),
            has_perturbations=any(facts.has_perturbations for facts in found),
        )

    def begin(
        self, adapter_spec: AdapterSpec, service: MetricService, facts: RunFacts
    ) -> Callable[[ScenarioState], Measured]:
        """Return what lets each measure a batch. The summary has one of each."""
        measures = [metric.begin(adapter_spec, service, facts) for metric in self.metrics]

        def measure(state: ScenarioState) -> Measured:
            measured = [measure(state) for measure in measures]
            return Measured(
                [segment for one in measured for segment in one.segments], [one.summary for one in measured]
            )

        return measure

    def make_total(self, adapter_spec: AdapterSpec, facts: RunFacts) -> JoinedTotal:
        """Return what adds up the summaries of each."""
        return JoinedTotal([metric.make_total(adapter_spec, facts) for metric in self.metrics])


def find_perturbations(instances: Iterable[Instance]) -> bool:
    """Whether one of the instances is perturbed, or two have one id: worst cases are looked for among those."""
    ids = set()
    for instance in instances:
        if instance.perturbation is not None or instance.id in ids:
            return True
        ids.add(instance.id)
    return False


Place = tuple[Any, ...]
"""What stats of instances are told apart by (HELM: MetricContext): split, sub-split, perturbation."""
place_of: Callable[[Instance], Place] = attrgetter("split", "sub_split", "perturbation")


def name_in(instance: Instance, name: str) -> MetricName:
    """Return the name of a stat in the place of an instance."""
    return MetricName(name, *place_of(instance))


def make_row(instance: Instance, values: Mapping[str, float], trial: int = 0) -> PerInstanceStats:
    """Return the Stats of a row: these values, by name."""
    stats = [Stat(name_in(instance, name)).add(value) for name, value in values.items()]
    return PerInstanceStats(str(instance.id), instance.perturbation, trial, stats)
