"""HELM's `num_instances`, without the import of all of HELM's metrics.

Restates `InstancesPerSplitMetric` of helm/benchmark/metrics/basic_metrics.py; tests/contract/test_runner_sources.py
fails when HELM changes it. Plain equivalent: that class. Saves its module's import (`fast_scores`). Held equal by
tests/unit/fast/test_fast_stats.py, test_instances_are_counted_as_by_helm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from helm.benchmark.metrics.metric import MetricInterface, MetricMetadata, MetricResult, add_context
from helm.benchmark.metrics.metric_name import MetricContext, MetricName
from helm.benchmark.metrics.statistic import Stat, merge_stat

if TYPE_CHECKING:
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.scenarios.scenario import Instance

__all__ = ["InstanceCountMetric"]


class InstanceCountMetric(MetricInterface):
    """The number of instances in each MetricContext: the mean over the training trials."""

    def evaluate(
        self,
        scenario_state: ScenarioState,
        metric_service: MetricService,  # noqa: ARG002 - HELM's interface
        eval_cache_path: str,  # noqa: ARG002
        parallelism: int,  # noqa: ARG002
    ) -> MetricResult:
        """Count; there are no stats of single instances."""
        counts: dict[MetricName, Stat] = {}
        for trial in range(scenario_state.adapter_spec.num_train_trials):
            found: dict[MetricContext, set[Instance]] = {}
            for state in scenario_state.request_states:
                if state.train_trial_index == trial:
                    found.setdefault(MetricContext.from_instance(state.instance), set()).add(state.instance)
            of_trial: dict[MetricName, Stat] = {}
            for context, instances in found.items():
                merge_stat(of_trial, add_context(Stat(MetricName("num_instances")).add(len(instances)), context))
            for stat in of_trial.values():
                merge_stat(counts, stat.take_mean())
        return MetricResult(list(counts.values()), [])

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
