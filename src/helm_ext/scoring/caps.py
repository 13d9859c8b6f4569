"""What a cap on the rows of a run (`-m`) takes away. HELM draws the rows before anybody is told how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.common.hierarchical_logger import hlog

from helm_ext.adaptation.recorded import is_recorded
from helm_ext.scoring.folding import FoldingMetric, Measured, RunFacts
from helm_ext.scoring.score import describe_count

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.metrics.metric import MetricMetadata
    from helm.benchmark.metrics.metric_service import MetricService

NUM_CAPPED = "num_capped"


class CappedRowsMetric(FoldingMetric):
    """Counts the rows that `--max-eval-instances` keeps out of a run, `num_capped`; nothing where it keeps none out."""

    def __init__(self, rows: Mapping[str, int], live_rows: Mapping[str, int] | None = None) -> None:
        """`rows`: how many rows of each split a recorded run evaluates, `live_rows` a live one where that differs."""
        self.rows = rows
        self.live_rows = rows if live_rows is None else live_rows

    def begin(
        self,
        adapter_spec: AdapterSpec,  # noqa: ARG002 - one interface
        service: MetricService,  # noqa: ARG002
        facts: RunFacts,  # noqa: ARG002
    ) -> Callable[[ScenarioState], Measured]:
        """Return what counts the rows of each split in a batch, by their first trial."""

        def measure(scenario_state: ScenarioState) -> Measured:
            rows = {
                (state.instance.id, state.instance.split)
                for state in scenario_state.request_states
                if state.train_trial_index == 0 and state.instance.perturbation is None
            }
            return Measured([], Counter(split for _, split in rows))

        return measure

    def make_total(self, adapter_spec: AdapterSpec, facts: RunFacts) -> _Total:  # noqa: ARG002
        """Return what adds up the batches."""
        rows = self.rows if is_recorded(adapter_spec.model_deployment) else self.live_rows
        return _Total(rows, adapter_spec.max_eval_instances)

    def get_metadata(self) -> list[MetricMetadata]:
        """Describe the stat."""
        what = "Rows that are no part of the run, because --max-eval-instances is smaller than the file."
        return [describe_count(NUM_CAPPED, "# capped", what).to_metadata()]


class _Total:
    """Adds up the rows that were evaluated."""

    def __init__(self, rows: Mapping[str, int], most: int | None) -> None:
        self._rows = rows
        self._most = most
        self._seen: Counter[str] = Counter()

    def add(self, summary: Counter[str]) -> None:
        self._seen.update(summary)

    def to_stats(self) -> list[Stat]:
        """Return what was capped of each split; the log is told."""
        total = sum(self._rows.values())
        if self._most is None or self._most >= total:
            return []
        hlog(f"{sum(self._seen.values())} of {total} rows: -m {self._most}")
        capped = {split: number - self._seen[split] for split, number in self._rows.items()}
        return [Stat(MetricName(NUM_CAPPED, split=split)).add(number) for split, number in capped.items() if number]


def describe_cap(stats: Mapping[str, float]) -> str:
    """Return "100 of 300 rows" for the stats of a split by name; "" where no cap took any away."""
    if not stats.get(NUM_CAPPED):
        return ""
    evaluated = round(stats.get("num_instances", 0) + stats.get("num_left_out", 0))
    return f"{evaluated:,} of {evaluated + round(stats[NUM_CAPPED]):,} rows"
