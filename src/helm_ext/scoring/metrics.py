"""The metric of our runs: read completions as answers, score those with HELM's metrics, add ours.

HELM's metrics compare the completion's text with the references. Here every completion is first read as the answer it
means (extraction, label reading, postprocessing), and the references as what it is compared with (`answers`);
HELM's score functions then compare those texts (`basic.metrics.Reading`). Score functions of our own stand beside
them only where HELM has none (`registry`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from helm.benchmark.adaptation.adapter_spec import (
    ADAPT_MULTIPLE_CHOICE_SEPARATE_METHODS,
    ADAPT_RANKING_BINARY,
    AdapterSpec,
)
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.metric_service import MetricService
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import CORRECT_TAG, TRAIN_SPLIT, Instance

from helm_ext import parsing
from helm_ext.evalset import Scoring, row_data, row_extra
from helm_ext.scoring.answers import (
    Answer,
    AnswerReader,
    Question,
    find_thinking,
    get_options,
    move_thinking,
    take_answers,
)
from helm_ext.scoring.basic.metrics import FastGenerationMetric, FastReferenceMetric, InstanceCountMetric, Reading
from helm_ext.scoring.basic.row_stats import find_mean
from helm_ext.scoring.breakdown import (
    IntervalTotal,
    describe_breakdown,
    describe_interval,
    measure_intervals,
    without_sub_splits,
)
from helm_ext.scoring.completeness import (
    REPORT_STATS,
    LeftOutTotal,
    collapse_reference,
    count_left_out,
    find_run_facts,
    take_scored,
)
from helm_ext.scoring.folding import FoldingMetric, Measured, RunFacts, Total
from helm_ext.scoring.judgements import Judges, JudgesTotal
from helm_ext.scoring.reducers import FIRST, find_noise, find_reducer
from helm_ext.scoring.registry import get_scores, load_tokenizer
from helm_ext.scoring.score import ANSWERS, NOISE, Score, Value
from helm_ext.scoring.scores.texts import EXACT, holds
from helm_ext.scoring.source_scores import SourceMeasure, SourceTotal, describe_source_scores, find_left_out


class EvalSetMetric(FoldingMetric):
    """Scores a run of an EvalSet. The arguments are those of `Scoring`; the class path is public API.

    A format that treats completions in its own way derives from it: `get_postprocess`, `find_scores`, `score_row`.
    """

    def __init__(
        self,
        metrics: Sequence[str],
        attributes: Mapping[str, Sequence[str]] | None = None,
        source: Mapping[str, Any] | None = None,
        judged: Mapping[str, Any] | None = None,
        recorded_decoding: Mapping[str, float | None] | None = None,  # noqa: ARG002 - stands in the run's spec for reports
        **scoring: Any,
    ) -> None:
        self.scoring = Scoring(metrics=tuple(metrics), **scoring)
        self.attributes = attributes or {}
        """`EvalSet.attributes`: the main metric is also reported for each of their values."""
        self.source = source
        """`Source.to_args()`, for files that another tool wrote."""
        self.is_list = self.scoring.output_format == "list"
        reduces = self.scoring.completions != FIRST
        self.reducer = find_reducer(self.scoring.completions) if reduces else None
        """What makes one score of those of a row's completions, where not only the first one counts."""
        self.judges = Judges(judged, self.reducer, metrics, self.scoring.main_metric) if judged else None
        """`EvalSet.judged`: who judged the answers."""
        if reduces and self.reducer is None:
            raise ValueError(f"completions={self.scoring.completions}: no such reducer")
        known = self.find_scores()
        ours = [known[name] for name in metrics if name in known and known[name].kind != "helm"]
        self.list_scores = [score for score in ours if score.kind == "list"]
        self.scores = [score for score in ours if score.kind != "list"]
        self.likelihood_scores = [score for score in self.scores if score.kind == "likelihoods"]
        self.other_scores = [score for score in self.scores if score.kind != "likelihoods"]
        named = {score.name for score in ours}
        self.helm_metrics = [name for name in metrics if name not in named]
        self.source_measure: SourceMeasure | None = None
        """What compares our scores with those of the tool that wrote the file, where one did."""
        if source:
            own = self.scoring.main_metric if self.scoring.own_metric is None else self.scoring.own_metric
            same = [score.name for score in self.likelihood_scores]  # computed as lm-eval does
            measured = [*self.helm_metrics, *(score.name for score in self.scores)]
            self.source_measure = SourceMeasure(source, own, same=same, measured=measured)
        of_judges = () if self.judges is None else self.judges.with_interval
        self.with_interval = list(dict.fromkeys([self.scoring.main_metric, *of_judges]))
        """The stats that have an interval: the main metric, and what judges say."""

    def find_facts(self, scenario_state: ScenarioState) -> RunFacts:
        """Return what batches must know of the whole run."""
        return find_run_facts(scenario_state)

    def begin(
        self, adapter_spec: AdapterSpec, service: MetricService, facts: RunFacts
    ) -> Callable[[ScenarioState], Measured]:
        """Return what scores the request states of a batch, but those of rows that are left out, which are counted."""
        count = InstanceCountMetric().begin(adapter_spec, service, facts)
        helms = self._find_helms(adapter_spec, facts).begin(adapter_spec, service, facts)
        reader = AnswerReader(self.scoring, multi_label=adapter_spec.multi_label)
        source = self.source_measure

        def measure(state: ScenarioState) -> Measured:
            if self.scoring.thinking == "move":
                for request_state in state.request_states:
                    move_thinking(request_state)
            plain = without_sub_splits(state)
            scored = take_scored(plain)
            measured = helms(scored)
            segments = [*measured.segments]
            if source is not None:
                segments.append(find_left_out(plain.instances))
            if self.judges is not None:
                segments.append([*self.judges.score_left_out(plain.request_states)])
            rows = in_order(segments, state.instances)
            judged = None if self.judges is None else self.judges.measure(rows, plain.request_states)
            summaries = (  # for the totals of `_Total`
                count(scored).summary,
                measured.summary,
                None if source is None else source.measure(rows, plain.instances),
                measure_intervals(self.with_interval, rows, state.instances, is_repeated=self.reducer is not None),
                judged,
                count_left_out(
                    plain.instances,
                    {
                        "thinking": find_thinking(scored),
                        "wrong_with_gold": self._find_wrong_with_gold(rows, scored.request_states, reader),
                    },
                ),
            )
            return Measured(segments, summaries)

        return measure

    def make_total(self, adapter_spec: AdapterSpec, facts: RunFacts) -> _Total:
        metrics = (InstanceCountMetric(), self._find_helms(adapter_spec, facts))
        return _Total(self, [metric.make_total(adapter_spec, facts) for metric in metrics])

    def _find_helms(self, adapter_spec: AdapterSpec, facts: RunFacts) -> FoldingMetric:
        """Return HELM's metric of texts, or of options that were asked for one by one, on what we read and compare."""
        if adapter_spec.method in (*ADAPT_MULTIPLE_CHOICE_SEPARATE_METHODS, ADAPT_RANKING_BINARY):
            return FastReferenceMetric(facts.unmeasured, lambda state: collapse_reference(state, adapter_spec))
        return FastGenerationMetric(self.helm_metrics, facts.unmeasured, self._get_reader(adapter_spec))

    def get_metadata(self) -> list[MetricMetadata]:
        """Describe every stat for `helm-summarize --auto-generate-schema`; touches no file."""
        from helm.benchmark.metrics.basic_metrics import BasicGenerationMetric, BasicReferenceMetric  # slow

        helms = BasicGenerationMetric(names=self.helm_metrics), BasicReferenceMetric(), InstanceCountMetric()
        described = {metadata.name: metadata for metric in helms for metadata in metric.get_metadata()}
        if "quasi_exact_match" in described:
            # HELM calls both this and exact_match "EM"; they differ.
            described["quasi_exact_match"] = replace(described["quasi_exact_match"], short_display_name="Quasi EM")
        ours = [
            *(stat for score in (*self.list_scores, *self.scores) for stat in (*score.over_all, *score.stats)),
            *REPORT_STATS,
            *(describe_source_scores(self.source) if self.source else ()),
            *(self.judges.describe() if self.judges else ()),
        ]
        described.update((stat.name, stat.to_metadata()) for stat in ours)
        described.update((m.name, m) for m in describe_interval(described, self.scoring.main_metric))
        described.update((m.name, m) for m in describe_breakdown(described, self.scoring.main_metric, self.attributes))
        return list(described.values())

    def find_scores(self) -> Mapping[str, Score]:
        """Return the scores that may be named. A format's own metric may have more; this touches no file."""
        return get_scores(self.scoring.output_format)

    def get_postprocess(self) -> Callable[[str], str] | None:
        """Return what a completion goes through before it is read; None for nothing. A format's own metric has some."""
        return None

    def _get_reader(self, adapter_spec: AdapterSpec) -> Callable[[RequestState], Reading]:
        """Return what reads a request state: the answers that its completions mean, and our own stats of it."""
        post = self.get_postprocess()
        reader = AnswerReader(self.scoring, adapter_spec.output_mapping_pattern, multi_label=adapter_spec.multi_label)
        is_list, reducer = self.is_list, self.reducer
        num_outputs = adapter_spec.num_outputs

        def read(state: RequestState) -> Reading:
            assert state.result is not None
            completions = state.result.completions
            if reader.is_exact and len(completions) > 1:
                # HELM's own runs are re-scored to HELM's values; elsewhere the first one counts.
                completions = sorted(completions, key=lambda completion: -completion.logprob)
            options = get_options(state)
            question = Question(state.instance, options, reader)
            known = take_answers(state, reader, options)
            answers: list[Answer] = []
            predictions: list[str] = []
            for completion in completions:
                text = completion.text if post is None else post(completion.text)
                cut = parsing.is_cut_off(completion.finish_reason)
                answer = known.get((text, cut)) or reader.read(text, options, is_cut_off=cut)
                answers.append(answer)
                predictions.append(question.to_prediction(answer).strip())
            if is_list:
                predictions[0] = question.to_list_prediction(answers).strip()
            own = self._compute_row_stats(question, answers) | row_extra(state.instance).get("source_scores", {})
            if self.judges is not None:
                judged = self.judges.score(state)
                own |= self.judges.reduce(judged)
                for name, values in judged.items():
                    own |= self._say_noise(name, values)
            if num_outputs != 1:
                own |= self._best_of_all(question, answers, num_outputs)
            # An option that is compared by its log-probability is right, or not; of texts something must be (`checks`).
            golds = question.golds
            none_right = not golds and "likelihoods" in row_extra(state.instance)
            return Reading(golds, predictions, completions[0].logprob, own, reducer, none_right, self._say_noise)

        return read

    def _find_wrong_with_gold(
        self, rows: Sequence[PerInstanceStats], states: Sequence[RequestState], reader: AnswerReader
    ) -> Iterator[Instance]:
        """Yield the rows of free text that score 0 by an exact match though the (first) answer holds a right one."""
        main = self.scoring.main_metric
        if self.is_list or main not in EXACT:
            return
        free = [state for state in states if state.reference_index is None and get_options(state) is None]
        firsts = [row for row in rows if free and not (row.train_trial_index or row.perturbation)]
        means = [(row, find_mean(row.stats, main)) for row in firsts]
        wrong = {row.instance_id for row, mean in means if mean is not None and not mean[1]}
        post = self.get_postprocess()
        for state in free:
            instance, result = state.instance, state.result
            if str(instance.id) not in wrong or state.train_trial_index or instance.perturbation or result is None:
                continue
            text = result.completions[0].text if post is None else post(result.completions[0].text)
            said = reader.read(text, None).text
            if any(holds(gold, said) for gold in Question(instance, None, reader).golds):
                yield instance

    def _compute_row_stats(self, question: Question, answers: Sequence[Answer]) -> dict[str, float]:
        """Return the stats of one row that HELM does not have: of the first completion, or what the reducer makes."""
        if self.reducer is None:
            return self.compute_own_stats(question, answers)
        each = [self.compute_own_stats(question, [answer]) for answer in answers]
        stats: dict[str, float] = {}
        for name in each[0]:
            values = [one[name] for one in each]
            value = self._reduce(name, values)
            if value is not None:
                stats |= {name: value, **self._say_noise(name, values)}
        return stats

    def _say_noise(self, name: str, values: Sequence[float]) -> Mapping[str, float]:
        """Return of how many answers a row's main metric is made, and its variance were they drawn again."""
        if name != self.scoring.main_metric or len(values) < 2:
            return {}
        noise = find_noise(self.scoring.completions)(values)
        return {f"{name}{ANSWERS}": len(values)} | ({} if noise is None else {f"{name}{NOISE}": noise})

    def _reduce(self, name: str, values: Sequence[float]) -> float | None:
        """Return a row's value of a stat. How many completions hold no answer is a share, however scores are made."""
        assert self.reducer is not None
        return sum(values) / len(values) if name == "unmapped" else self.reducer(values)

    def compute_own_stats(self, question: Question, answers: Sequence[Answer]) -> dict[str, float]:
        """Return the stats of one row that HELM does not have."""
        stats: dict[str, float] = {}
        counted = answers if self.is_list else answers[:1]
        if question.options is not None:
            stats["unmapped"] = 0.0 if any(answer.labels for answer in counted) else 1.0
        elif self.scoring.extract is not None:
            may_be_empty = "" in question.golds
            stats["unmapped"] = float(all(answer.unmatched or not (answer.text or may_be_empty) for answer in counted))
        if not question.texts:
            return stats | self._score_wrong(question)
        if self.list_scores:
            unmatched = all(answer.unmatched for answer in answers)
            strict, forgiving = question.to_list(answers), question.to_list_of_any_form(answers)
            for score in self.list_scores:
                function = score.list_function
                assert function is not None
                predicted = forgiving if score.reads_any_list else strict
                best = best_stats(score, [function(gold, predicted) for gold in question.gold_lists])
                stats |= {**best, score.stats[0].name: 0.0} if unmatched else best
        if self.likelihood_scores:
            stats |= score_likelihoods(self.likelihood_scores, question)
        for score in self.other_scores:
            if score.row_function is not None:
                stats |= score.to_stats(self.score_row(score, question, answers))
            else:
                stats |= score_texts(score, question, answers[:1])
        return stats

    def _score_wrong(self, question: Question) -> dict[str, float]:
        """Return the stats of a row of which no option is right; {} for one without golds that has no options."""
        if "likelihoods" not in row_extra(question.instance):
            return {}
        scores = [score for score in (*self.list_scores, *self.other_scores) if not score.lower_is_better]
        wrong = {score.stats[0].name: 0.0 for score in scores}
        return {**wrong, **(score_likelihoods(self.likelihood_scores, question) if self.likelihood_scores else {})}

    def _best_of_all(self, question: Question, answers: Sequence[Answer], num_outputs: int) -> dict[str, float]:
        """Return the best of all completions by each score of texts, as HELM does for its own."""
        texts = [score for score in self.scores if score.kind == "text" and question.texts]
        best = [score_texts(score, question, answers) for score in texts]
        return {f"{name}@{num_outputs}": value for stats in best for name, value in stats.items()}

    def score_row(self, score: Score, question: Question, answers: Sequence[Answer]) -> Value:
        """Return the value of a score that looks at the whole row (it has a `row_function`): of the first answer."""
        assert score.row_function is not None
        extra = row_extra(question.instance)
        golds = extra.get("gold", question.texts if len(question.texts) > 1 else question.texts[0])
        given = (row_data(question.instance), golds, answers[0].text)
        if not score.needs_tokenizer:
            return score.row_function(*given)
        assert self.scoring.score_tokenizer is not None
        return score.row_function(*given, load_tokenizer(self.scoring.score_tokenizer))


def score_likelihoods(scores: Sequence[Score], question: Question) -> Mapping[str, float]:
    """Return the stats of scores of log-probabilities; none of those that are not defined for the row."""
    options = row_extra(question.instance).get("likelihoods")
    if not options:
        return {}
    right = [CORRECT_TAG in reference.tags for reference in question.instance.references]
    values = {score.name: score.likelihood_function(options, right) for score in scores if score.likelihood_function}
    return {name: value for name, value in values.items() if value is not None}


def score_texts(score: Score, question: Question, answers: Sequence[Answer]) -> Mapping[str, float]:
    """Return the stats of a score of texts: the best over all golds and answers. What is unmapped scores 0."""
    function = score.function
    assert function is not None
    matched = [answer for answer in answers if not answer.unmatched]
    predictions = [question.to_prediction(answer) for answer in matched or answers]
    best = best_stats(score, [function(gold, prediction) for gold in question.golds for prediction in predictions])
    return best if matched else {**best, score.main_stat: 0.0}


def best_stats(score: Score, values: Sequence[Value]) -> Mapping[str, float]:
    """Return the stats of the best of some values: by the main stat, the first of equals."""
    if len(values) == 1:
        return score.to_stats(values[0])
    main = score.stats[0]
    best = min if main.lower_is_better else max
    return best(map(score.to_stats, values), key=lambda stats: stats[main.name])


def summarize(scores: Sequence[Score], stats: Sequence[Stat]) -> list[Stat]:
    """Return the stats of scores that are of all rows together: one for each split, sub-split and perturbation."""
    made: list[Stat] = []
    for score in scores:
        if score.summarize is None:
            continue
        names = {stat.name for stat in score.stats}
        groups: dict[MetricName, dict[str, float]] = {}
        for stat in stats:
            if stat.name.name in names and stat.mean is not None:
                groups.setdefault(replace(stat.name, name=score.name), {})[stat.name.name] = stat.mean
        for name, means in groups.items():
            made += [Stat(replace(name, name=one)).add(value) for one, value in score.summarize(means).items()]
    return made


# ---- Batches of rows


class _Total:
    """Adds up what batches say."""

    def __init__(self, metric: EvalSetMetric, helms: Sequence[Total]) -> None:
        self.metric, self.helms = metric, helms
        self.source = SourceTotal(metric.source_measure) if metric.source_measure is not None else None
        self.judges = JudgesTotal() if metric.judges is not None else None
        self.intervals, self.left_out = IntervalTotal(metric.with_interval), LeftOutTotal()

    def add(self, summaries: Sequence[Any]) -> None:
        """Add a batch: what each total adds, None for nothing."""
        totals = (*self.helms, self.source, self.intervals, self.judges, self.left_out)
        for total, summary in zip(totals, summaries, strict=True):
            if total is not None and summary is not None:
                total.add(summary)

    def to_stats(self) -> list[Stat]:
        metric = self.metric
        source, judges = metric.source_measure, metric.judges
        apart = {*(source.partners if source else ()), *(judges.stats if judges else ())}
        stats = [stat for total in self.helms for stat in total.to_stats() if stat.name.name not in apart]
        if self.source is not None:
            splits = dict.fromkeys(split for split, *_ in self.left_out.places if split != TRAIN_SPLIT)
            stats += self.source.to_stats(splits)
        return [
            *stats,
            *summarize([*metric.list_scores, *metric.other_scores], stats),
            *(self.intervals.break_down() if metric.attributes else ()),
            *self.intervals.to_stats({"source": metric.source, "judged": judges and judges.judged}),
            *(self.judges.to_stats() if self.judges is not None else ()),
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
