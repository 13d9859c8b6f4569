"""What models said of the answers, as scores: `judge_CRITERION`, of a jury (`judging.judgement`) or of its only judge.

Of several judges each has a stat of its own, `judge_CRITERION[BY]`. A judgement is no score unless it is `ok` and of
just this question, answer and rubric; of the others there are numbers, by judge: `judge_correct_unparsed`,
`judge_correct[gpt]_stale`. `judge_CRITERION_unscored` are the answered rows without a value.
What a judge says of unclear rows alone also makes a score of all rows (`scoring.unclear`).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats, add_context
from helm.benchmark.metrics.metric_name import MetricContext, MetricName
from helm.benchmark.metrics.statistic import Stat

from helm_ext.evalset import row_extra
from helm_ext.judging.judgement import (
    NOT_OK,
    REPLACED,
    Judgement,
    judge_values,
    jury_value,
    question_text,
    take_judgements,
)
from helm_ext.scoring.corrected_stats import CorrectedRow, CorrectedTotal, describe_corrected, find_corrected
from helm_ext.scoring.source_scores import to_stat
from helm_ext.scoring.stat_names import UNCLEAR, UNSCORED, judge_stat, list_judge_stats
from helm_ext.scoring.unclear import find_judged_unclear


class JudgesSummary(NamedTuple):
    """What a batch says."""

    values: dict[MetricName, array[float]]
    """Of the rows, those included that are left out of other scores."""
    numbers: Counter[MetricName]
    """How many judgements are not ok, and rows without a value, by the names of their stats."""
    rows: list[CorrectedRow]
    """What the corrected scores are made of."""


class Judges:
    """Scores the rows of a run by what was said of them."""

    def __init__(
        self,
        judged: Mapping[str, Mapping[str, Any]],
        reduce: Callable[[Sequence[float]], float | None] | None,
        metrics: Sequence[str],
        main_metric: str,
    ) -> None:
        """`judged`: `EvalSet.judged`. `reduce`: makes one value of those of several completions; None: the first's.

        `metrics`, `main_metric`: the run's own.
        """
        self.judged = judged
        self.stats = frozenset(list_judge_stats(judged))
        """The names of the scores."""
        self.unclear = find_judged_unclear(judged, metrics, main_metric) if reduce is None else []
        """What makes scores of all rows of what was said of unclear ones."""
        self._reduce = reduce

    def score(self, state: RequestState) -> dict[str, list[float]]:
        """Return the row's values by stat, one for each completion that has one."""
        found: dict[str, list[float]] = {}
        by_answer: dict[tuple[str, int], list[Judgement]] = {}
        for one in _take(state):
            by_answer.setdefault((one.criterion, one.completion), []).append(one)
        for (criterion, completion), judgements in sorted(by_answer.items(), key=lambda item: item[0]):
            told = self.judged.get(criterion)
            if told is None or (completion and self._reduce is None):
                continue
            values = judge_values(judgements)
            stats = {judge_stat(criterion): jury_value([*values.values()], is_binary=judgements[0].is_binary)}
            if len(told["judges"]) > 1:
                stats |= {judge_stat(criterion, by): value for by, value in values.items()}
            for name, value in stats.items():
                if value is not None:
                    found.setdefault(name, []).append(value)
        return found

    def reduce(self, values: Mapping[str, Sequence[float]]) -> dict[str, float]:
        """Return the row's value of each stat."""
        made = {name: several[0] if self._reduce is None else self._reduce(several) for name, several in values.items()}
        return {name: value for name, value in made.items() if value is not None}

    def add_unclear(self, rows: Sequence[PerInstanceStats]) -> Counter[MetricName]:
        """Give rows the scores of which a judge read the unclear ones; returns how many of these have no verdict."""
        numbers = Counter[MetricName]()
        for one in self.unclear:
            numbers.update(one.add_to(rows))
        return numbers

    def measure(
        self, rows: Iterable[PerInstanceStats], states: Iterable[RequestState], unscored: Counter[MetricName]
    ) -> JudgesSummary:
        """Take the values of the rows of a batch, count what is no score, and take what corrected scores need.

        Rows of several answers have none: people label the first answer. `unscored`: what `add_unclear` counted.
        """
        states, summary = list(states), Counter(unscored)
        for state in states:
            if state.reference_index is not None:
                continue
            context = MetricContext.from_instance(state.instance)
            names = []
            for one in _take(state):
                told = self.judged.get(one.criterion)
                if told is not None and one.kind == "model" and one.status in NOT_OK:
                    by = one.by if len(told["judges"]) > 1 else ""
                    names.append(f"{judge_stat(one.criterion, by)}_{one.status}")
            if row_extra(state.instance).get("left_out", "unscored") == "unscored":
                scored = self.reduce(self.score(state))
                stats = (judge_stat(criterion) for criterion in self.judged if criterion not in UNCLEAR)
                names += [f"{stat}{UNSCORED}" for stat in stats if stat not in scored]
            summary.update(add_context(Stat(MetricName(name)), context).name for name in names)
        values: dict[MetricName, array[float]] = {}
        names_of_all = self.stats | {one.name for one in self.unclear}
        for stat in chain.from_iterable(row.stats for row in rows):
            if stat.name.name in names_of_all and stat.mean is not None:
                values.setdefault(stat.name, array("d")).append(stat.mean)
        return JudgesSummary(
            values, summary, find_corrected(states, _take, self.judged) if self._reduce is None else []
        )

    def score_left_out(self, states: Iterable[RequestState]) -> Iterator[PerInstanceStats]:
        """Yield what was said of answers that cannot be scored here: rows without a gold, say."""
        for state in states:
            instance = state.instance
            if row_extra(instance).get("left_out") == "unscored":
                context = MetricContext.from_instance(instance)
                scores = self.reduce(self.score(state))
                stats = [add_context(Stat(MetricName(name)).add(value), context) for name, value in scores.items()]
                if stats:
                    yield PerInstanceStats(str(instance.id), instance.perturbation, state.train_trial_index, stats)


def _take(state: RequestState) -> list[Judgement]:
    """Return the judgements of a state's row; those of an earlier time are not among them."""
    extra = row_extra(state.instance)
    given = extra.get("judgements")
    if not given:
        return []
    asked = state.instance.input
    completions = state.result.completions if state.result is not None and "left_out" not in extra else ()
    answers = None if extra.get("left_out") == "unscored" else [completion.text for completion in completions]
    found = take_judgements(given, question_text(asked.text, asked.messages), answers)
    return [one for one in found if one.status != REPLACED]


class JudgesTotal:
    """Adds up the batches."""

    def __init__(self) -> None:
        self._values: dict[MetricName, array[float]] = {}
        self._numbers, self._corrected = Counter[MetricName](), CorrectedTotal()

    def add(self, summary: JudgesSummary) -> None:
        """Add a batch."""
        for name, values in summary.values.items():
            self._values.setdefault(name, array("d")).extend(values)
        self._numbers.update(summary.numbers)
        self._corrected.add(summary.rows)

    def to_stats(self) -> list[Stat]:
        """Return the scores, the numbers of what is none, and the corrected scores."""
        scores = (to_stat(name, values) for name, values in self._values.items())
        numbers = (Stat(name).add(number) for name, number in self._numbers.items())
        return [*scores, *numbers, *self._corrected.to_stats()]


def describe_judges(judged: Mapping[str, Mapping[str, Any]]) -> list[MetricMetadata]:
    """Return the metadata of the scores of judges, and of the numbers beside them."""
    described = []
    for criterion, told in judged.items():
        judges = told["judges"]
        who = judges[0] if len(judges) == 1 else f"a jury of {len(judges)}: {', '.join(judges)}"
        for by in ("", *(judges if len(judges) > 1 else ())):
            name = judge_stat(criterion, by)
            described.append(
                MetricMetadata(
                    name=name,
                    display_name=f"Judge, raw: {criterion}" + (f" ({by})" if by else ""),
                    description=f"{criterion}, as {by or who} judged the answers. Raw: not corrected by human labels.",
                    lower_is_better=False,
                    group="judges",
                )
            )
            numbers = {status: f"Judgements of {criterion} that are {status.replace('_', ' ')}" for status in NOT_OK}
            if not by:
                numbers["unscored"] = f"Answered rows without a value of {name}"
            described += [
                MetricMetadata(
                    name=f"{name}_{status}",
                    display_name=f"# {status.replace('_', ' ')}: {name}",
                    description=f"{text}: no part of its mean.",
                    lower_is_better=True,
                    group="general_information",
                )
                for status, text in numbers.items()
            ]
    return [*described, *describe_corrected(judged)]
