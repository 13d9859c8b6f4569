"""What `EvalSetMetric` makes of a batch of request states, and how batches add up to a run's stats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from helm.benchmark.scenarios.scenario import TRAIN_SPLIT

from helm_ext.scoring.basic.metrics import InstanceCountMetric
from helm_ext.scoring.breakdown import BreakdownMeasure, BreakdownSummary, BreakdownTotal, without_sub_splits
from helm_ext.scoring.completeness import LeftOutTotal, count_left_out, take_scored
from helm_ext.scoring.folding import FoldingMetric, Measured, RunFacts
from helm_ext.scoring.judgements import Judges, JudgesTotal
from helm_ext.scoring.source_scores import SourceMeasure, SourceSummary, SourceTotal, find_left_out
from helm_ext.scoring.stat_names import list_judge_stats
from helm_ext.scoring.thinking import find_thinking, move_thinking
from helm_ext.scoring.uncertainty import IntervalSummary, IntervalTotal, measure_uncertainty

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.metrics.metric import PerInstanceStats
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.metrics.statistic import Stat
    from helm.benchmark.scenarios.scenario import Instance


@dataclass(frozen=True)
class Pieces:
    """What the metric of one run consists of."""

    helms: tuple[FoldingMetric, FoldingMetric]
    """HELM's metrics of texts and of options, on what we read and compare."""
    main_metric: str
    moves_thinking: bool
    """Whether what a model thinks is moved out of its completions (`scoring.thinking`)."""
    is_repeated: bool
    """Whether a row's score is made of several answers."""
    has_attributes: bool
    """Whether the main metric is reported for values of attributes too."""
    source: SourceMeasure | None
    """What compares our scores with those of the tool that wrote the file, where one did."""
    judges: Judges | None
    """What scores the rows that were judged, where any was."""
    arguments: Mapping[str, Any]
    """Those of the metric that say where scores of others lie: `source`, `judged`."""
    summarize: Callable[[Sequence[Stat]], list[Stat]]
    """Returns the stats of scores that are of all rows together."""

    @property
    def with_interval(self) -> list[str]:
        """The stats that have an interval: the main metric, and what judges say."""
        judges = self.judges
        judged = () if judges is None else (*list_judge_stats(judges.judged), *(one.name for one in judges.unclear))
        return list(dict.fromkeys([self.main_metric, *judged]))


class _Summary(NamedTuple):
    """What a batch says. `parts`: of the metrics of `make_parts`, None where no row is theirs."""

    counts: Any
    parts: tuple[Any, ...]
    source: SourceSummary | None
    breakdown: BreakdownSummary
    intervals: tuple[IntervalSummary, ...]
    left_out: Any
    judges: Any


class BatchMeasure:
    """Scores the request states of a batch. Rows that are left out are counted, and are no part of a score."""

    def __init__(self, pieces: Pieces, adapter_spec: AdapterSpec, service: MetricService, facts: RunFacts) -> None:
        self.pieces = pieces
        self.count = InstanceCountMetric().begin(adapter_spec, service, facts)
        self.parts = [_LatePart(part, adapter_spec, service, facts) for part in pieces.helms]
        self.breakdown = BreakdownMeasure(pieces.main_metric)

    def __call__(self, state: ScenarioState) -> Measured:
        if self.pieces.moves_thinking:
            for request_state in state.request_states:
                move_thinking(request_state)
        instances = state.instances
        plain = without_sub_splits(state)
        scored = take_scored(plain)
        asked = [state.reference_index is not None for state in scored.request_states]
        measured = [
            part.measure(scored, is_needed=is_needed)
            for part, is_needed in zip(self.parts, (not all(asked), any(asked)), strict=True)
        ]
        segments = [segment for one in measured for segment in one.segments]
        if self.pieces.source is not None:
            segments.append(find_left_out(plain.instances))
        judges = self.pieces.judges
        if judges is not None:
            segments.append([*judges.score_left_out(plain.request_states)])
        rows = in_order(segments, instances)
        unscored = None if judges is None else judges.add_unclear(rows)
        summary = _Summary(
            self.count(scored).summary,
            tuple(one.summary for one in measured),
            self.pieces.source.measure(rows, plain.instances) if self.pieces.source is not None else None,
            self.breakdown.measure(rows, instances) if self.pieces.has_attributes else {},
            tuple(self._measure_interval(name, rows, instances) for name in self.pieces.with_interval),
            count_left_out(plain.instances, find_thinking(scored)),
            None if judges is None or unscored is None else judges.measure(rows, plain.request_states, unscored),
        )
        return Measured(segments, summary)

    def _measure_interval(
        self, name: str, rows: Sequence[PerInstanceStats], instances: Sequence[Instance]
    ) -> IntervalSummary:
        found = measure_uncertainty(name, rows, instances, is_repeated=self.pieces.is_repeated)
        if name == self.pieces.main_metric:
            return found
        return {group: values for group, values in found.items() if group[0] == name}  # attributes are the main one's


class _LatePart:
    """One of HELM's metrics, begun when there is a row for it: a tokenizer may be needed only then."""

    def __init__(
        self, metric: FoldingMetric, adapter_spec: AdapterSpec, service: MetricService, facts: RunFacts
    ) -> None:
        self._begin = partial(metric.begin, adapter_spec, service, facts)
        self._nothing = Measured([[]] * adapter_spec.num_train_trials, None)
        self._measure: Callable[[ScenarioState], Measured] | None = None

    def measure(self, state: ScenarioState, *, is_needed: bool) -> Measured:
        if not is_needed:
            return self._nothing
        if self._measure is None:
            self._measure = self._begin()
        return self._measure(state)


class BatchTotal:
    """Adds up what batches say."""

    def __init__(self, pieces: Pieces, adapter_spec: AdapterSpec, facts: RunFacts) -> None:
        self.pieces = pieces
        self.counts = InstanceCountMetric().make_total(adapter_spec, facts)
        self.parts = [part.make_total(adapter_spec, facts) for part in pieces.helms]
        self.source, self.breakdown, self.judges = SourceTotal(), BreakdownTotal(), JudgesTotal()
        self.intervals = [IntervalTotal() for _ in pieces.with_interval]
        self.left_out = LeftOutTotal()
        self.used = [False for _ in self.parts]

    def add(self, summary: _Summary) -> None:
        """Add a batch."""
        self.counts.add(summary.counts)
        for number, of_part in enumerate(summary.parts):
            if of_part is not None:
                self.parts[number].add(of_part)
                self.used[number] = True
        if summary.source is not None:
            self.source.add(summary.source)
        self.breakdown.add(summary.breakdown)
        for interval, of_batch in zip(self.intervals, summary.intervals, strict=True):
            interval.add(of_batch)
        if summary.judges is not None:
            self.judges.add(summary.judges)
        self.left_out.add(summary.left_out)

    def to_stats(self) -> list[Stat]:
        """Return the stats of the run."""
        parts = [part for part, used in zip(self.parts, self.used, strict=True) if used]
        stats = [stat for total in (self.counts, *parts) for stat in total.to_stats()]
        if self.pieces.judges is not None:
            stats = [stat for stat in stats if stat.name.name not in self.pieces.judges.stats]
        if self.pieces.source is not None:
            theirs = self.pieces.source
            splits = dict.fromkeys(split for split, *_ in self.left_out.places if split != TRAIN_SPLIT)
            stats = [stat for stat in stats if stat.name.name not in theirs.partners]
            stats += self.source.to_stats(theirs.reported, splits)
        return [
            *stats,
            *self.pieces.summarize(stats),
            *self.breakdown.to_stats(),
            *(stat for interval in self.intervals for stat in interval.to_stats(self.pieces.arguments)),
            *self.judges.to_stats(),
            *self.left_out.to_stats(),
        ]


def in_order(
    segments: Sequence[Sequence[PerInstanceStats]], instances: Sequence[Instance]
) -> Sequence[PerInstanceStats]:
    """Return the rows of all segments in the order of the instances, however many of them a batch has."""
    filled = [segment for segment in segments if segment]
    if len(filled) < 2:
        return filled[0] if filled else []
    place = {(str(instance.id), instance.perturbation): number for number, instance in enumerate(instances)}
    return sorted(chain.from_iterable(filled), key=lambda row: place[row.instance_id, row.perturbation])
