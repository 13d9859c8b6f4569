"""The corrected scores of a run, as stats beside the raw ones: `judge_correct_corrected`, and the ends of its interval.

And of each value of the rows' attributes: `judge_correct_corrected@subject=law`. What cannot be corrected has none.
`judge_correct_labels` is the number of rows with a label that says how it was drawn, `judge_correct_undesigned` that of
labels that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from helm.benchmark.metrics.metric import MetricMetadata
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat

from helm_ext.evalset import row_extra
from helm_ext.scoring.breakdown import attributes_of
from helm_ext.scoring.corrected_scores import JudgedScore, Seen, measure_judged, see
from helm_ext.scoring.stat_names import CORRECTED, ENDS, LABELS, UNDESIGNED, judge_stat
from helm_ext.scoring.statistics.corrected import Corrected
from helm_ext.scoring.uncertainty import END_WORDS

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.scenarios.scenario import Instance

    from helm_ext.judging.judgement import Judgement

Group = tuple[str, "str | None", str]
"""Criterion, split, and attribute with its value; "" for all rows."""


class CorrectedRow(NamedTuple):
    """What was said of an answer by one criterion, and the groups that the row is in."""

    criterion: str
    split: str | None
    seen: Seen
    cluster: str
    is_alone: bool
    """Whether nothing but the row's own answers is in its cluster."""
    groups: tuple[str, ...]


def find_corrected(
    states: Iterable[RequestState], take: Callable[[RequestState], Sequence[Judgement]], judged: Iterable[str]
) -> list[CorrectedRow]:
    """Return what the rows of a batch bring. `take`: returns a state's judgements; `judged`: the criteria."""
    found, wanted = [], set(judged)
    for state in states:
        instance: Instance = state.instance
        if instance.perturbation is not None or instance.split == "train" or state.reference_index:
            continue
        by_criterion: dict[str, list[Judgement]] = {}
        for one in take(state):
            if one.criterion in wanted:
                by_criterion.setdefault(one.criterion, []).append(one)
        groups = tuple(f"@{key}={value}" for key, value in attributes_of(instance).items()) if by_criterion else ()
        for criterion, judgements in by_criterion.items():
            seen, cluster = see(judgements), row_extra(instance).get("cluster")
            if seen is not None:
                name = str(instance.id) if cluster is None else f"\0{cluster}"
                found.append(CorrectedRow(criterion, instance.split, seen, name, cluster is None, groups))
    return found


@dataclass
class CorrectedTotal:
    """Adds up the batches."""

    _rows: dict[Group, list[CorrectedRow]] = field(default_factory=dict)

    def add(self, rows: Iterable[CorrectedRow]) -> None:
        """Add a batch."""
        for row in rows:
            for group in ("", *row.groups):
                self._rows.setdefault((row.criterion, row.split, group), []).append(row)

    def to_stats(self) -> list[Stat]:
        """Return the corrected scores, those of all rows and of each attribute's values."""
        made: list[Stat] = []
        for (criterion, split, group), rows in self._rows.items():
            clusters = [row.cluster for row in rows]
            are_alone = all(row.is_alone for row in rows) and len(set(clusters)) == len(rows)  # else trials
            score = measure_judged([row.seen for row in rows], None if are_alone else clusters)
            if score is not None:
                made += _to_stats(criterion, split, group, score)
        return made


def _to_stats(criterion: str, split: str | None, group: str, score: JudgedScore) -> list[Stat]:
    name, numbers = judge_stat(criterion), {}
    if not group and score.labels:
        numbers[f"{name}{LABELS}"] = float(score.labels)
    if not group and score.undesigned:
        numbers[f"{name}{UNDESIGNED}"] = float(score.undesigned)
    if isinstance(score.corrected, Corrected):
        interval, corrected = score.corrected.interval, f"{name}{CORRECTED}{group}"
        numbers |= {
            corrected: interval.mean,
            f"{corrected}{ENDS[0]}": interval.low,
            f"{corrected}{ENDS[1]}": interval.high,
        }
    return [Stat(MetricName(one, split=split)).add(value) for one, value in numbers.items()]


def describe_corrected(judged: Mapping[str, object]) -> list[MetricMetadata]:
    """Return the metadata of corrected scores, and of the numbers of labels."""
    described = []
    for criterion in judged:
        name = judge_stat(criterion)
        described += [
            MetricMetadata(
                name=f"{name}{CORRECTED}",
                display_name=f"Judge, corrected: {criterion}",
                description=f"{criterion}, as people would have judged all answers: the judge's verdicts, corrected by "
                "human labels of some.",
                lower_is_better=False,
                group="judges",
            ),
            *(
                MetricMetadata(
                    name=f"{name}{CORRECTED}{end}",
                    display_name=f"Judge, corrected: {criterion}, {which} end of the 95 % interval",
                    short_display_name=f"{criterion} {word}",
                    description=f"The {which} end of the 95 % interval of {name}{CORRECTED}.",
                    lower_is_better=None,
                    group="judges",
                )
                for end, which, word in zip(ENDS, ("lower", "upper"), END_WORDS, strict=True)
            ),
            MetricMetadata(
                name=f"{name}{LABELS}",
                display_name=f"# labels: {name}",
                description=f"Answers that people labelled by {criterion}, whose design is recorded.",
                lower_is_better=None,
                group="general_information",
            ),
            MetricMetadata(
                name=f"{name}{UNDESIGNED}",
                display_name=f"# labels without a design: {name}",
                description="Labels that do not say how their rows were drawn: they correct nothing.",
                lower_is_better=True,
                group="general_information",
            ),
        ]
    return described
