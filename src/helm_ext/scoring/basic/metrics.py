"""HELM's basic metrics in one pass: the same stats, names and values as BasicGenerationMetric and BasicReferenceMetric.

What is done once a run instead of once a row: the window service, the ROUGE scorers (and only those asked for), and the
look-ups in HELM's efficiency tables. The row functions restate `compute_reference_metrics` and `evaluate_references` of
helm/benchmark/metrics, `requests` and `scores` the rest; tests/contract/test_runner_sources.py fails when HELM changes
them.

Plain equivalent: HELM's metrics. Held equal, bit for bit, by tests/unit/scoring/test_basic_metrics.py.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from helm.benchmark.adaptation.adapter_spec import (
    ADAPT_MULTIPLE_CHOICE_SEPARATE_CALIBRATED,
    ADAPT_MULTIPLE_CHOICE_SEPARATE_ORIGINAL,
    ADAPT_RANKING_BINARY,
    AdapterSpec,
)
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.efficiency_metrics import EfficiencyMetric
from helm.benchmark.metrics.metric import MetricMetadata, get_unique_stat_by_name
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat, merge_stat
from helm.benchmark.scenarios.scenario import CORRECT_TAG
from helm.benchmark.window_services.window_service_factory import WindowServiceFactory
from helm.common.general import singleton
from helm.common.hierarchical_logger import hlog

from helm_ext.errors import HelmExtError
from helm_ext.scoring.basic.calibration import compute_calibration
from helm_ext.scoring.basic.one_pass import Context, OnePassMetric, Stats
from helm_ext.scoring.basic.requests import RequestValues, Values, get_language_modeling_values
from helm_ext.scoring.bounded import limit_pattern
from helm_ext.scoring.folding import FoldingMetric, Measured, Place, RunFacts, place_of
from helm_ext.scoring.scores.helm import get_score

if TYPE_CHECKING:
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.scenarios.scenario import Instance
    from helm.benchmark.window_services.window_service import WindowService


class Reading(NamedTuple):
    """What a request state says, and what is right."""

    golds: Sequence[str]
    """The texts any of which is right."""
    predictions: Sequence[str | None]
    """The first one counts; the others in stats such as `exact_match@5`. None for what is mapped to nothing."""
    logprob: float
    """Of the completion of the first prediction."""
    more: Mapping[str, float]
    """Further values of the row, by stat name."""
    reduce: Callable[[Sequence[float]], float | None] | None = None
    """Where the scores of all predictions count: what makes one score of them. None where there are too few."""
    none_right: bool = False
    """Whether there are no golds because nothing is right: all scores are 0."""
    say_noise: Callable[[str, Sequence[float]], Mapping[str, float]] = lambda name, scores: {}  # noqa: ARG005
    """Returns what is said of a stat beside its value, given its name and the scores of all predictions."""


class FastGenerationMetric(OnePassMetric):
    """BasicGenerationMetric in one pass.

    `names`: as HELM's. `left_out`: names of stats that nobody measured, such as the prompt tokens of a deployment
    without a tokenizer, which HELM counts as 1; they appear nowhere. `read`: how a state is read, if not as HELM does;
    its further values are summed like the rest and stand behind them.
    """

    def __init__(
        self,
        names: Sequence[str],
        left_out: frozenset[str] = frozenset(),
        read: Callable[[RequestState], Reading] | None = None,
    ) -> None:
        self.names = list(names)
        self.left_out = left_out
        self.read = read
        self.efficiency_metric = EfficiencyMetric()

    def __repr__(self) -> str:
        return f"BasicMetric({','.join(self.names)})"  # HELM's log says the same

    def get_metadata(self) -> list[MetricMetadata]:
        from helm.benchmark.metrics.basic_metrics import BasicGenerationMetric  # slow: see fast_scores

        return BasicGenerationMetric(self.names).get_metadata()

    def select(self, scenario_state: ScenarioState, trial: int, instance: Instance) -> list[RequestState]:
        return scenario_state.get_request_states(trial, instance, None)

    def prepare(
        self, adapter_spec: AdapterSpec, metric_service: MetricService
    ) -> Callable[[Sequence[RequestState], Context], Stats]:
        window = WindowServiceFactory.get_window_service(adapter_spec.model_deployment, metric_service)
        common = RequestValues(self.efficiency_metric, adapter_spec, metric_service, window)
        scores = [(name, get_score(name)) for name in dict.fromkeys(self.names)]
        read = self.read or (lambda state: read_as_helm(state, adapter_spec))

        def compute_row(states: Sequence[RequestState], context: Context) -> Stats:
            state = singleton(list(states))
            values = common.get(state)
            reading = read(state)
            scored: Values = {}
            if state.instance.references:
                values["max_prob"] = float(np.exp(reading.logprob)) if reading.logprob else 1.0
                scored = _score(state, reading, scores, adapter_spec.num_outputs)
            return context.make_row(values, scored, get_language_modeling_values(state), reading.more)

        return compute_row

    def derive(self, stats: dict[MetricName, Stat]) -> list[Stat]:
        return _derive_perplexity(stats)

    @property
    def kept(self) -> tuple[str, ...]:
        return () if "logprob" in self.left_out else ("max_prob", "exact_match")

    def derive_from_kept(self, stats: dict[MetricName, Stat], kept: Sequence[array[float]]) -> list[Stat]:
        lowest = next((stat.min for name, stat in stats.items() if name.name == "logprob"), None)
        if lowest is None or lowest >= 0:
            hlog("Skipping computing calibration metrics because logprobs were not available.")  # HELM's words
            return []
        if not kept:
            return []
        try:
            return compute_calibration(*kept)
        except ImportError as error:
            raise HelmExtError(
                f"the calibration stats cannot be computed: a module cannot be loaded: {error}\n"
                "  hint: too little memory (ulimit -v), or a broken installation"
            ) from error


def _derive_perplexity(stats: Mapping[MetricName, Stat]) -> list[Stat]:
    """Restate `compute_perplexity_metrics`."""
    logprob, tokens, size = (
        get_unique_stat_by_name(stats.values(), name) for name in ("logprob", "num_perplexity_tokens", "num_bytes")
    )
    derived: list[Stat] = []
    if logprob is None:
        return derived
    if tokens is not None and tokens.sum > 0:
        derived.append(Stat(MetricName("perplexity")).add(math.e ** (-logprob.sum / tokens.sum)))
    if size is not None and size.sum > 0:
        derived.append(Stat(MetricName("bits_per_byte")).add(-logprob.sum / size.sum / math.log(2)))
        derived.append(Stat(MetricName("logprob_per_byte")).add(logprob.sum / size.sum))
    return derived


def read_as_helm(state: RequestState, adapter_spec: AdapterSpec) -> Reading:
    """Restate the first half of `compute_reference_metrics`: golds, and predictions by falling log-probability."""
    completions = state.result.completions
    if len(completions) > 1:
        completions = sorted(completions, key=lambda completion: -completion.logprob)
    predictions: list[Any] = [completion.text.strip() for completion in completions]
    if state.output_mapping is not None:
        pattern = adapter_spec.output_mapping_pattern
        if pattern:
            from helm.benchmark.metrics import evaluate_reference_metrics

            apply = evaluate_reference_metrics._apply_output_mapping_pattern  # noqa: SLF001
            for index, prediction in enumerate(predictions):
                with limit_pattern(pattern, prediction):
                    predictions[index] = apply(pattern, prediction)
        predictions = [state.output_mapping.get(prediction) for prediction in predictions]
    golds = [reference.output.text for reference in state.instance.references if CORRECT_TAG in reference.tags]
    return Reading(golds, predictions, completions[0].logprob if completions else 0.0, {})


def _score(
    state: RequestState, reading: Reading, scores: Sequence[tuple[str, Callable[[Any, Any], float]]], num_outputs: int
) -> Values:
    """Restate its second half: the best score over all golds, of the first and of all predictions."""
    golds, predictions = reading.golds, reading.predictions
    if reading.none_right:
        ends = ("", f"@{num_outputs}")[: 1 + (num_outputs != 1)]
        wrong: Values = {f"{name}{end}": 0.0 for name, _ in scores for end in ends}
        if reading.reduce is not None:
            for name, _ in scores:
                wrong.update(reading.say_noise(name, [0.0] * len(predictions)))
        return wrong
    if not golds and scores:  # none are made of rows that their source alone can score
        raise ValueError(f"instance {state.instance.id!r} has references, but none is tagged {CORRECT_TAG!r}")
    first = predictions[0]
    values: Values = {}
    for name, score in scores:
        texts: Sequence[Any] = golds
        if name in ("pass", "code_eval_acc"):  # their references have test cases
            texts = [(r.output.text, r.test_cases) for r in state.instance.references if CORRECT_TAG in r.tags]
        best_of_all: float | None = None
        if name == "pass":  # HumanEval: pass@k
            from helm.benchmark.metrics import evaluate_reference_metrics

            results = [score(text, prediction) for text in texts for prediction in predictions]
            n, passed = len(results), int(sum(results))
            best = evaluate_reference_metrics.pass_at_k_estimator(n, passed, 1)
            best_of_all = evaluate_reference_metrics.pass_at_k_estimator(n, passed, num_outputs)
        elif reading.reduce is not None:
            each = [max([score(text, one) for text in texts]) for one in predictions]
            reduced = reading.reduce(each)
            if reduced is None:
                continue
            best = reduced
            values.update(reading.say_noise(name, each))
        else:
            best = score(texts[0], first) if len(texts) == 1 else max([score(text, first) for text in texts])
        if name != "pass" and num_outputs != 1:
            best_of_all = max([score(text, prediction) for text in texts for prediction in predictions])
        values[name] = best
        if num_outputs != 1:
            values[f"{name}@{num_outputs}"] = best_of_all
    return values


class FastReferenceMetric(OnePassMetric):
    """BasicReferenceMetric in one pass: one request for each reference, the likeliest wins.

    `left_out` as above; `rewrite`: what to compare in a state's place.
    """

    def __init__(
        self,
        left_out: frozenset[str] = frozenset(),
        rewrite: Callable[[RequestState], RequestState] = lambda state: state,
    ) -> None:
        self.left_out = left_out
        self.rewrite = rewrite
        self.efficiency_metric = EfficiencyMetric()

    def __repr__(self) -> str:
        return "BasicReferenceMetric"

    def get_metadata(self) -> list[MetricMetadata]:
        from helm.benchmark.metrics.basic_metrics import BasicReferenceMetric

        return BasicReferenceMetric().get_metadata()

    def select(self, scenario_state: ScenarioState, trial: int, instance: Instance) -> list[RequestState]:
        return [
            state
            for index in range(len(instance.references))
            for state in scenario_state.get_request_states(trial, instance, index)
        ]

    def prepare(
        self, adapter_spec: AdapterSpec, metric_service: MetricService
    ) -> Callable[[Sequence[RequestState], Context], Stats]:
        window = WindowServiceFactory.get_window_service(adapter_spec.model_deployment, metric_service)
        common = RequestValues(self.efficiency_metric, adapter_spec, metric_service, window)
        choose, rewrite = self.choose(adapter_spec, window), self.rewrite

        def compute_row(states: Sequence[RequestState], context: Context) -> Stats:
            choice = choose([rewrite(state) for state in states])
            several: dict[str, list[float | None]] = {}
            for state in states:
                for name, value in common.get(state).items():
                    several.setdefault(name, []).append(value)
            row = [*several.items(), *((name, [value]) for name, value in choice.items())]
            return [context.stat(name, *values) for name, values in row if name not in context.left_out]

        return compute_row

    def choose(self, adapter_spec: AdapterSpec, window: WindowService) -> Callable[[Sequence[RequestState]], Values]:
        """Return what says which reference of a row wins, and what that is worth."""
        count_tokens = lru_cache(maxsize=1024)(lambda reference: len(window.tokenize(f" {reference}")))
        return lambda states: _choice_values(states, adapter_spec.method, count_tokens)


def _choice_values(states: Sequence[RequestState], method: str, count_tokens: Callable[[str], int]) -> Values:
    """Restate `evaluate_references`: which reference has the highest log-probability, and is it right?"""
    references = states[0].instance.references
    logprobs: dict[tuple[int | None, str | None], tuple[float, int]] = {}
    for state in states:
        completion = singleton(state.result.completions)
        count = count_tokens(references[state.reference_index].output.text)
        logprob = sum(token.logprob for token in completion.tokens[-count:])
        if math.isnan(logprob):
            raise ValueError(f"instance {state.instance.id!r}: the log-probability of a reference is not a number")
        logprobs[state.reference_index, state.request_mode] = (logprob, count)
    choices = range(len(references))
    if method in (ADAPT_MULTIPLE_CHOICE_SEPARATE_ORIGINAL, ADAPT_RANKING_BINARY):
        scores = [logprobs[i, "original"][0] / logprobs[i, "original"][1] for i in choices]
    elif method == ADAPT_MULTIPLE_CHOICE_SEPARATE_CALIBRATED:
        scores = [logprobs[i, "original"][0] - logprobs[i, "calibration"][0] for i in choices]
    else:
        raise ValueError(f"Unknown adapter method: {method}")
    highest = max(scores)
    best = [index for index, score in enumerate(scores) if score >= highest]
    right = sum(CORRECT_TAG in references[index].tags for index in best)
    return {
        "max_prob": float(1 / np.exp(np.asarray(scores) - highest).sum()),  # the greatest of scipy's softmax
        "exact_match": right / len(best),
        "predicted_index": best[0],
    }


Counts = Counter[Place]


class _CountTotal:
    """Adds up the counts of batches, by trial."""

    def __init__(self, trials: int) -> None:
        self.trials = [Counts() for _ in range(trials)]

    def add(self, summary: Sequence[Counts]) -> None:
        for trial, counts in zip(self.trials, summary, strict=True):
            trial.update(counts)

    def to_stats(self) -> list[Stat]:
        means: dict[MetricName, Stat] = {}
        for place, count in (counted for counts in self.trials for counted in counts.items()):
            merge_stat(means, Stat(MetricName("num_instances", *place)).add(float(count)))
        return list(means.values())


class InstanceCountMetric(FoldingMetric):
    """HELM's InstancesPerSplitMetric: the number of instances in each MetricContext, as the mean over the trials."""

    def begin(self, adapter_spec: AdapterSpec, *_: Any, **__: Any) -> Callable[[ScenarioState], Measured]:
        """Return what counts; there are no stats of single instances."""
        trials = range(adapter_spec.num_train_trials)

        def measure(scenario_state: ScenarioState) -> Measured:
            found: list[dict[Instance, None]] = [{} for _ in trials]
            for state in scenario_state.request_states:
                if state.train_trial_index in trials:
                    found[state.train_trial_index][state.instance] = None
            return Measured([], [Counts(map(place_of, instances)) for instances in found])

        return measure

    def make_total(self, adapter_spec: AdapterSpec, facts: RunFacts) -> _CountTotal:  # noqa: ARG002
        return _CountTotal(adapter_spec.num_train_trials)

    def get_metadata(self) -> list[MetricMetadata]:
        """Describe `num_instances` in HELM's words."""
        return [MetricMetadata("num_instances", "# eval", description="Number of evaluation instances.")]
