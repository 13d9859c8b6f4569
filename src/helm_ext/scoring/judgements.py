"""What models said of the answers, as scores: `judge_CRITERION`, of a jury (`judging.judgement`) or of its only judge.

Of several judges each has a stat of its own, `judge_CRITERION[BY]`. A judgement is no score unless it is `ok` and of
just this question, answer and rubric; of the others there are numbers, by judge: `judge_correct_unparsed`,
`judge_correct[gpt]_stale`. `judge_CRITERION_unscored` are the answered rows without a value.

*Corrected by people's labels* (`corrected_scores`), beside the raw score: `judge_correct_corrected` and the ends of its
interval, also of each value of the rows' attributes (`judge_correct_corrected@subject=law`). What cannot be corrected
has none. `judge_correct_labels` is the number of rows with a label that says how it was drawn,
`judge_correct_undesigned` that of labels that do not.

*Unclear rows*: scores of which a judge read what our own reading could not, `exact_match_judged`,
`refusal_match_judged`. A row that was read clearly counts as the strict score has it. An unclear one (no option, no
match of `extract`, a reply of which `refusal_match` cannot tell whether it refuses) counts what the judge's verdict
makes of it (`judge_unclear_choice`, ...); without a verdict it stays as the strict score has it, and is counted:
`exact_match_judged_unscored`. The strict score is as ever, and stays the main metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
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
from helm_ext.scoring.basic.row_stats import find_mean, select
from helm_ext.scoring.basic.tally import Column, Totals, to_columns
from helm_ext.scoring.breakdown import attributes_of, describe_ends
from helm_ext.scoring.corrected_scores import JudgedRows, Seen, see
from helm_ext.scoring.folding import make_row, name_in
from helm_ext.scoring.score import (
    CORRECTED,
    ENDS,
    JUDGED,
    LABELS,
    UNCLEAR,
    UNDESIGNED,
    UNSCORED,
    StatInfo,
    describe_count,
    find_strict,
    judge_stat,
    list_judge_stats,
)
from helm_ext.scoring.statistics.corrected import Corrected


class _Labelled(NamedTuple):
    """What was said of an answer by one criterion, and the groups that the row is in."""

    criterion: str
    split: str | None
    seen: Seen
    cluster: str
    """What the row belongs to, be it to itself alone: its trials do."""
    groups: tuple[str, ...]
    """"" for all rows, and each attribute with its value."""


class JudgesSummary(NamedTuple):
    """What a batch says."""

    scores: Sequence[Column]
    """Of the rows, those included that are left out of other scores."""
    numbers: Counter[MetricName]
    """How many judgements are not ok, and rows without a value, by the names of their stats."""
    rows: list[_Labelled]
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
        self.stats = list_judge_stats(judged)
        """The names of the scores."""
        self._reduce = reduce
        self._unclear: dict[str, str] = {}
        """The strict score to the criterion by which its unclear rows were judged."""
        for criterion in judged if reduce is None else ():
            strict = find_strict(criterion, metrics, main_metric) if criterion in UNCLEAR else None
            if strict is not None:
                self._unclear.setdefault(strict, criterion)
        self.with_interval = [*self.stats, *map(_judged_stat, self._unclear)]
        """The stats that have an interval."""

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

    def measure(self, rows: Sequence[PerInstanceStats], states: Sequence[RequestState]) -> JudgesSummary:
        """Take the values of a batch, count what is no score, and take what corrected scores need.

        Rows get the scores of which a judge read the unclear ones. Rows of several answers have no corrected score:
        people label the first answer.
        """
        numbers = Counter[MetricName]()
        for strict, criterion in self._unclear.items():
            numbers.update(_add_judged(rows, strict, criterion))
        for state in states:
            if state.reference_index is None:
                numbers.update(name_in(state.instance, name) for name in self._list_no_scores(state))
        names: dict[MetricName, MetricName] = {}  # one object each, so that values are added in the rows' order
        scores = to_columns(
            [replace(one, name=names.setdefault(one.name, one.name)) for one in select(row.stats, self.with_interval)]
            for row in rows
        )
        labelled = chain.from_iterable(map(self._find_labelled, states)) if self._reduce is None else ()
        return JudgesSummary(scores, numbers, [*labelled])

    def _list_no_scores(self, state: RequestState) -> Iterator[str]:
        """Yield the stats that count a row's judgements that are not ok, and its criteria without a value."""
        for one in _take(state):
            told = self.judged.get(one.criterion)
            if told is not None and one.kind == "model" and one.status in NOT_OK:
                yield f"{judge_stat(one.criterion, one.by if len(told['judges']) > 1 else '')}_{one.status}"
        if row_extra(state.instance).get("left_out", "unscored") == "unscored":
            scored = self.reduce(self.score(state))
            stats = (judge_stat(criterion) for criterion in self.judged if criterion not in UNCLEAR)
            yield from (f"{stat}{UNSCORED}" for stat in stats if stat not in scored)

    def _find_labelled(self, state: RequestState) -> Iterator[_Labelled]:
        """Yield what a row brings to the corrected scores."""
        instance = state.instance
        if instance.perturbation is not None or instance.split == "train" or state.reference_index:
            return
        by_criterion: dict[str, list[Judgement]] = {}
        for one in _take(state):
            if one.criterion in self.judged:
                by_criterion.setdefault(one.criterion, []).append(one)
        for criterion, judgements in by_criterion.items():
            seen, cluster = see(judgements), row_extra(instance).get("cluster")
            if seen is not None:
                name = str(instance.id) if cluster is None else f"\0{cluster}"
                groups = "", *(f"@{key}={value}" for key, value in attributes_of(instance).items())
                yield _Labelled(criterion, instance.split, seen, name, groups)

    def score_left_out(self, states: Iterable[RequestState]) -> Iterator[PerInstanceStats]:
        """Yield what was said of answers that cannot be scored here: rows without a gold, say."""
        for state in states:
            if row_extra(state.instance).get("left_out") == "unscored":
                scores = self.reduce(self.score(state))
                if scores:
                    yield make_row(state.instance, scores, state.train_trial_index)

    def describe(self) -> list[StatInfo]:
        """Return how reports present the scores of judges, and the numbers beside them."""
        described: list[StatInfo] = []
        for criterion, told in self.judged.items():
            judges = told["judges"]
            who = judges[0] if len(judges) == 1 else f"a jury of {len(judges)}: {', '.join(judges)}"
            for by in ("", *(judges if len(judges) > 1 else ())):
                described += _describe_judge(criterion, by, who)
        for criterion in self.judged:
            name = judge_stat(criterion)
            corrected, title = f"{name}{CORRECTED}", f"Judge, corrected: {criterion}"
            described += [
                StatInfo(corrected, title, f"{criterion}, as people would have judged all answers: the judge's "
                         "verdicts, corrected by human labels of some.", group="judges"),
                *describe_ends(corrected, title, criterion, "judges"),
                describe_count(f"{name}{LABELS}", f"# labels: {name}",
                               f"Answers that people labelled by {criterion}, whose design is recorded.",
                               lower_is_better=None),
                describe_count(f"{name}{UNDESIGNED}", f"# labels without a design: {name}",
                               "Labels that do not say how their rows were drawn: they correct nothing."),
            ]  # fmt: skip
        for strict in self._unclear:
            name = _judged_stat(strict)
            described += [
                StatInfo(name, f"{strict}, unclear rows judged", f"{strict} where the answer could be read; elsewhere "
                         "what a judge read in it.", group="judges"),
                describe_count(f"{name}{UNSCORED}", f"# unscored: {name}",
                               f"Unclear rows without a verdict of the judge: in {name} as {strict} has them."),
            ]  # fmt: skip
        return described


def _describe_judge(criterion: str, by: str, who: str) -> Iterator[StatInfo]:
    name, title = judge_stat(criterion, by), f"Judge, raw: {criterion}" + (f" ({by})" if by else "")
    said = f"{criterion}, as {by or who} judged the answers. Raw: not corrected by human labels."
    yield StatInfo(name, title, said, group="judges")
    numbers = {status: f"Judgements of {criterion} that are {status.replace('_', ' ')}" for status in NOT_OK}
    if not by:
        numbers["unscored"] = f"Answered rows without a value of {name}"
    for status, text in numbers.items():
        title = f"# {status.replace('_', ' ')}: {name}"
        yield describe_count(f"{name}_{status}", title, f"{text}: no part of its mean.")


def _judged_stat(strict: str) -> str:
    return f"{strict.removesuffix('_low')}{JUDGED}"


def _add_judged(rows: Iterable[PerInstanceStats], strict: str, criterion: str) -> Iterator[MetricName]:
    """Give rows the score of which a judge read the unclear ones; yields a name for each of these without a verdict."""
    name = _judged_stat(strict)
    for row in rows:
        score = find_mean(row.stats, strict)
        if score is None:
            continue
        (of_score, value), flag = score, find_mean(row.stats, UNCLEAR[criterion])
        if flag is not None and flag[1]:
            verdict = find_mean(row.stats, judge_stat(criterion))
            if verdict is None:
                yield replace(of_score, name=f"{name}{UNSCORED}")
            else:
                value = verdict[1]
        row.stats.append(Stat(replace(of_score, name=name)).add(value))


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
        self._scores = Totals()
        self._numbers = Counter[MetricName]()
        self._rows: dict[tuple[str, str | None, str], list[_Labelled]] = {}
        """By criterion, split and group."""

    def add(self, summary: JudgesSummary) -> None:
        self._scores.add(summary.scores)
        self._numbers.update(summary.numbers)
        for row in summary.rows:
            for group in row.groups:
                self._rows.setdefault((row.criterion, row.split, group), []).append(row)

    def to_stats(self) -> list[Stat]:
        """Return the scores, the numbers of what is none, and the corrected scores."""
        made = self._scores.to_stats()
        made += [Stat(name).add(number) for name, number in self._numbers.items()]
        for (criterion, split, group), rows in self._rows.items():
            numbers = _correct(judge_stat(criterion), group, rows)
            made += [Stat(MetricName(one, split=split)).add(value) for one, value in numbers.items()]
        return made


def _correct(name: str, group: str, rows: Sequence[_Labelled]) -> dict[str, float]:
    """Return the corrected score of the rows of a group with the ends of its interval, and of all rows the labels."""
    score = JudgedRows([row.seen for row in rows], [row.cluster for row in rows])
    if not score.rows:
        return {}
    counted = {f"{name}{LABELS}": score.labels, f"{name}{UNDESIGNED}": score.undesigned}
    numbers = {} if group else {stat: float(number) for stat, number in counted.items() if number}
    if isinstance(score.corrected, Corrected):
        interval, corrected = score.corrected.interval, f"{name}{CORRECTED}{group}"
        ends = {f"{corrected}{ENDS[0]}": interval.low, f"{corrected}{ENDS[1]}": interval.high}
        numbers |= {corrected: interval.mean} | ends
    return numbers
