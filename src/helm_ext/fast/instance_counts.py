"""HELM's `num_instances`, without the import of all of HELM's metrics.

Restates `InstancesPerSplitMetric` of helm/benchmark/metrics/basic_metrics.py; tests/contract/test_runner_sources.py
fails when HELM changes it. Plain equivalent: that class. Saves its module's import (`fast_scores`). Held equal by
tests/unit/fast/test_fast_stats.py, test_instances_are_counted_as_by_helm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from helm.benchmark.metrics.metric import MetricMetadata, add_context
from helm.benchmark.metrics.metric_name import MetricContext, MetricName
from helm.benchmark.metrics.statistic import Stat, merge_stat

from helm_ext.evalset.folding import FoldingMetric, Measured, RunFacts

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.scenarios.scenario import Instance

Counts = Counter[MetricContext]


class _Total:
    """Adds up the counts of batches, by trial."""

    def __init__(self, trials: int) -> None:
        self.trials = [Counts() for _ in range(trials)]

    def add(self, summary: Sequence[Counts]) -> None:
        for trial, counts in zip(self.trials, summary, strict=True):
            trial.update(counts)

    def to_stats(self) -> list[Stat]:
        means: dict[MetricName, Stat] = {}
        for counts in self.trials:
            of_trial: dict[MetricName, Stat] = {}
            for context, count in counts.items():
                merge_stat(of_trial, add_context(Stat(MetricName("num_instances")).add(count), context))
            for stat in of_trial.values():
                merge_stat(means, stat.take_mean())
        return list(means.values())


class InstanceCountMetric(FoldingMetric):
    """The number of instances in each MetricContext: the mean over the training trials."""

    def begin(
        self,
        adapter_spec: AdapterSpec,
        service: MetricService,  # noqa: ARG002 - one interface
        facts: RunFacts,  # noqa: ARG002
    ) -> Callable[[ScenarioState], Measured]:
        """Return what counts; there are no stats of single instances."""
        trials = range(adapter_spec.num_train_trials)

        def measure(scenario_state: ScenarioState) -> Measured:
            found: list[dict[Instance, None]] = [{} for _ in trials]
            for state in scenario_state.request_states:
                if state.train_trial_index in trials:
                    found[state.train_trial_index][state.instance] = None
            return Measured([], [Counts(map(MetricContext.from_instance, instances)) for instances in found])

        return measure

    def make_total(self, adapter_spec: AdapterSpec, facts: RunFacts) -> _Total:  # noqa: ARG002
        """Return what adds up the batches."""
        return _Total(adapter_spec.num_train_trials)

    def get_metadata(self) -> list[MetricMetadata]:
        """Describe `num_instances` in HELM's words."""
        return [
            MetricMetadata(
                name="num_instances",
                display_name="# eval",
                description="Number of evaluation instances.",
                lower_is_better=None,
            )
        ]
