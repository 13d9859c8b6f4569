"""HELM's basic metrics in one pass: the same stats, names and values as BasicGenerationMetric and BasicReferenceMetric.

What is done once a run instead of once a row: the window service, the ROUGE scorers (and only those asked for), the
look-ups in HELM's efficiency tables, the normal form of repeated texts. The row functions restate
`compute_request_state_metrics`, `compute_reference_metrics`, `compute_language_modeling_metrics` and
`evaluate_references` of helm/benchmark/metrics; tests/contract/test_runner_sources.py fails when HELM changes them.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy
from helm.benchmark.adaptation.adapter_spec import (
    ADAPT_MULTIPLE_CHOICE_SEPARATE_CALIBRATED,
    ADAPT_MULTIPLE_CHOICE_SEPARATE_ORIGINAL,
    ADAPT_RANKING_BINARY,
    AdapterSpec,
)
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics import efficiency_metrics, evaluate_reference_metrics
from helm.benchmark.metrics.basic_metrics import (
    BasicGenerationMetric,
    BasicReferenceMetric,
    compute_calibration_metrics,
    compute_perplexity_metrics,
    get_num_bytes,
)
from helm.benchmark.metrics.efficiency_metrics import EfficiencyMetric
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Instance
from helm.benchmark.window_services.window_service_factory import WindowServiceFactory
from helm.common.general import singleton
from helm.common.hierarchical_logger import hwarn
from nltk.metrics.scores import f_measure

from helm_ext.one_pass import Context, OnePassMetric, Parts, Row

if TYPE_CHECKING:
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.metrics.metric import MetricMetadata
    from helm.benchmark.metrics.metric_name import MetricName
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.metrics.statistic import Stat
    from helm.benchmark.window_services.window_service import WindowService

__all__ = ["FastGenerationMetric", "FastReferenceMetric", "Rewrite"]

Rewrite = Callable[[RequestState], tuple[RequestState, Mapping[str, float]]]
"""From a request state to the one that is scored in its place, and further values of the row by stat name."""
Values = list[tuple[str, float | None]]

_KNOWN_REASONS = ("length", "stop", "endoftext")
_BEFORE = ("num_references", "num_train_trials", "num_prompt_tokens", "num_completion_tokens", "num_output_tokens")
_COSTS = ("training_co2_cost", "training_energy_cost")
_AFTER = (
    "batch_size",
    "finish_reason_length",
    "finish_reason_stop",
    "finish_reason_endoftext",
    "finish_reason_unknown",
    "num_train_instances",
    "prompt_truncated",
)
_TOKENS = ("num_perplexity_tokens", "num_bytes")
_CALIBRATION = frozenset({"logprob", "max_prob", "exact_match"})
"""The stats that `compute_calibration_metrics` reads."""


# Scores of a pair (gold, prediction)

_WITHOUT_PUNCTUATION = {ord(character): None for character in string.punctuation}
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@lru_cache(maxsize=4096)
def normalize_text(text: str) -> str:
    """Return HELM's normal form (`evaluate_reference_metrics.normalize_text`), ten times faster."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def _quasi_exact_match(gold: str, prediction: str | None) -> float:
    return int(bool(prediction) and normalize_text(gold) == normalize_text(prediction or ""))


def _quasi_prefix_exact_match(gold: str, prediction: str | None) -> float:
    return int(bool(prediction) and normalize_text(prediction or "").startswith(normalize_text(gold)))


def _f1_score(gold: str, prediction: str) -> float:
    score = f_measure(set(normalize_text(gold).split()), set(normalize_text(prediction).split()))
    return 0.0 if score is None else score


_FASTER: dict[str, Callable[[str, str], float]] = {
    "quasi_exact_match": _quasi_exact_match,
    "quasi_prefix_exact_match": _quasi_prefix_exact_match,
    "f1_score": _f1_score,
}

_RENAMED = {
    "math_equiv": "is_equiv",
    "math_equiv_chain_of_thought": "is_equiv_chain_of_thought",
    "pass": "code_eval",
    "code_eval_acc": "code_eval",
}
_SAME_NAME = (  # noqa: SIM905 - a table of names reads better as words
    "exact_match quasi_leave_articles_exact_match prefix_exact_match exact_match_indicator final_number_exact_match "
    "exact_set_match iou_set_match f1_set_match cider bleu_1 bleu_4 chinese_bleu_1 cleva_math_result_match "
    "absolute_value_difference wer_score mer_score wip_score cer_score chinese_wer_score chinese_mer_score "
    "chinese_wip_score chinese_cer_score"
).split()
_ROUGE = {
    "rouge_1": ("get_rouge_function", "rouge1"),
    "rouge_2": ("get_rouge_function", "rouge2"),
    "rouge_l": ("get_rouge_function", "rougeL"),
    "chinese_rouge_1": ("get_chinese_rouge_function", "rouge1"),
    "chinese_rouge_2": ("get_chinese_rouge_function", "rouge2"),
}
SCORE_NAMES = frozenset([*_FASTER, *_RENAMED, *_SAME_NAME, *_ROUGE])
"""The metric names that BasicGenerationMetric knows."""
_INTEGER_SCORES = frozenset(
    {
        "exact_match",
        "quasi_exact_match",
        "quasi_leave_articles_exact_match",
        "prefix_exact_match",
        "quasi_prefix_exact_match",
        "exact_match_indicator",
        "final_number_exact_match",
    }
)
"""Scores that are the integers 0 and 1, never floats."""


def get_score(name: str) -> Callable[[Any, Any], float]:
    """Return the function of a metric name. Raises NameError, as HELM does, for a name that it does not know."""
    if name in _FASTER:
        return _FASTER[name]
    if name in _ROUGE:
        maker, kind = _ROUGE[name]
        return getattr(evaluate_reference_metrics, maker)(kind)
    if name not in SCORE_NAMES:
        raise NameError(f"{name} is not in the list of metric functions.")
    return getattr(evaluate_reference_metrics, _RENAMED.get(name, name))


# What every request has


class _Common(NamedTuple):
    """The values of `compute_request_state_metrics`, in its order, integers apart from the rest."""

    before: tuple[int, ...]
    costs: tuple[float | None, float | None]
    times: list[tuple[str, float]]
    after: tuple[int | None, ...]

    def to_parts(self, context: Context) -> Parts:
        """Return them as Stats of one value each."""
        parts: Parts
        if self.costs == (None, None):
            parts = [context.shared(_BEFORE + _COSTS, self.before + self.costs)]
        else:
            parts = [context.shared(_BEFORE, self.before), context.stats(zip(_COSTS, self.costs, strict=True))]
        if self.times:
            left_out = context.left_out
            parts.append([context.single(name, value) for name, value in self.times if name not in left_out])
        first = self.after[0] is None
        parts.append(context.shared(_AFTER[first:], self.after[first:]))
        return parts

    def items(self) -> Values:
        """Return them as (name, value)."""
        batch_size, *after = self.after
        return [
            *zip(_BEFORE, self.before, strict=True),
            *zip(_COSTS, self.costs, strict=True),
            *self.times,
            *([] if batch_size is None else [("batch_size", batch_size)]),
            *zip(_AFTER[1:], after, strict=True),
        ]


class _RequestValues:
    """The values of `compute_request_state_metrics`, in its order."""

    def __init__(
        self,
        efficiency: EfficiencyMetric,
        adapter_spec: AdapterSpec,
        metric_service: MetricService,
        window: WindowService,
    ) -> None:
        self.num_train_trials = adapter_spec.num_train_trials
        self.efficiency = efficiency
        self.window = window
        self.token_counts: dict[Any, int] = getattr(metric_service, "token_counts", {})
        """Counted while the prompts were fitted to the window; filled by the streaming runner."""
        self.costs: dict[str, tuple[Any, Any, bool]] = {}

    def count_tokens(self, text: str) -> int:
        counted = self.token_counts.get((hash(text), len(text)))
        return self.window.get_num_tokens(text) if counted is None else counted

    def get(self, state: RequestState) -> _Common:
        request, result = state.request, state.result
        if result is None:
            raise ValueError(f"the request of instance {state.instance.id!r} has no result: it was never executed")
        runtime: float | None = result.request_time
        batch_size: int | None = None if runtime is None else 1
        if result.batch_request_time is not None and result.batch_size is not None:
            runtime, batch_size = result.batch_request_time, result.batch_size
        prompt = request.prompt if request.multimodal_prompt is None else request.multimodal_prompt.text
        num_prompt_tokens = self.count_tokens(prompt)
        num_completion_tokens = sum([len(completion.tokens) for completion in result.completions])
        num_output_tokens = num_completion_tokens
        if request.echo_prompt:
            if num_prompt_tokens <= num_output_tokens:
                num_output_tokens -= num_prompt_tokens
            else:
                hwarn(
                    f"num_prompt_tokens ({num_prompt_tokens}) > num_output_tokens ({num_output_tokens}) "
                    f"for prompt: {prompt}"
                )
                num_output_tokens = 0
        co2, energy, has_table = self.get_costs(request.model_deployment)
        idealized: float | None = None
        denoised: float | None = None
        if has_table:
            estimate = efficiency_metrics._compute_estimated_time_from_prompt_size_and_num_output_tokens  # noqa: SLF001
            idealized, denoised = (
                estimate(state, table, num_prompt_tokens, num_output_tokens)
                for table in (
                    self.efficiency.inference_idealized_runtimes_dict,
                    self.efficiency.inference_denoised_runtimes_dict,
                )
            )
        if runtime is not None and result.batch_size is not None:
            denoised = runtime / result.batch_size

        finish_reason = result.completions[0].finish_reason
        reason = "unknown" if finish_reason is None else finish_reason["reason"]
        times: list[tuple[str, float]] = []
        if runtime is not None:
            times.append(("inference_runtime", runtime))
        if denoised is not None or idealized is not None:  # batch_size stands before them
            behind = (
                ("batch_size", batch_size),
                ("inference_denoised_runtime", denoised),
                ("inference_idealized_runtime", idealized),
            )
            times += [(name, value) for name, value in behind if value is not None]
            batch_size = None
        return _Common(
            before=(
                len(state.instance.references),
                self.num_train_trials,
                num_prompt_tokens,
                num_completion_tokens,
                num_output_tokens,
            ),
            costs=(co2, energy),
            times=times,
            after=(
                batch_size,
                int(reason == "length"),
                int(reason == "stop"),
                int(reason == "endoftext"),
                int(reason not in _KNOWN_REASONS),
                state.num_train_instances,
                int(state.prompt_truncated),
            ),
        )

    def get_costs(self, deployment: str) -> tuple[Any, Any, bool]:
        """Return CO2 and energy of the training, and whether HELM has runtime tables for this deployment."""
        costs = self.costs.get(deployment)
        if costs is None:
            efficiency = self.efficiency
            carbon, energy = (
                efficiency.training_efficiency_dict[kind].get(deployment, {}).get("value")
                for kind in ("carbon", "energy")
            )
            has_table = (
                deployment in efficiency.inference_idealized_runtimes_dict
                or deployment in efficiency.inference_denoised_runtimes_dict
            )
            costs = self.costs[deployment] = (carbon, energy, has_table)
        return costs


def _language_modeling_parts(state: RequestState, context: Context) -> Parts:
    """Restate `compute_language_modeling_metrics`."""
    tokens = state.result.completions[0].tokens
    skipped = state.num_conditioning_tokens
    if skipped > 0:
        if tokens[0].text == "":
            tokens = tokens[1:]
        tokens = tokens[skipped:]
    if not tokens:
        return [context.shared(("logprob", *_TOKENS), (0, 0, 0))]
    counts = context.shared(_TOKENS, (len(tokens), get_num_bytes(tokens)))
    if "logprob" in context.left_out:
        return [counts]
    return [[context.single("logprob", sum(token.logprob for token in tokens))], counts]


class FastGenerationMetric(OnePassMetric):
    """BasicGenerationMetric in one pass.

    `names`: as HELM's. `left_out`: names of stats that nobody measured, such as the prompt tokens of a deployment
    without a tokenizer, which HELM counts as 1; they appear nowhere. `rewrite`: what to score in a state's place, and
    further values, which are summed like the rest and stand behind them.
    """

    def __init__(
        self, names: Sequence[str], left_out: frozenset[str] = frozenset(), rewrite: Rewrite | None = None
    ) -> None:
        self.names = list(names)
        self.left_out = left_out
        self.rewrite = rewrite
        self.efficiency_metric = EfficiencyMetric()

    def __repr__(self) -> str:
        return f"BasicMetric({','.join(self.names)})"  # HELM's log says the same

    def get_metadata(self) -> list[MetricMetadata]:
        return BasicGenerationMetric(self.names).get_metadata()

    def select(self, scenario_state: ScenarioState, trial: int, instance: Instance) -> list[RequestState]:
        return scenario_state.get_request_states(trial, instance, None)

    def prepare(
        self, adapter_spec: AdapterSpec, metric_service: MetricService
    ) -> Callable[[Sequence[RequestState], Context], Parts]:
        window = WindowServiceFactory.get_window_service(adapter_spec.model_deployment, metric_service)
        common = _RequestValues(self.efficiency_metric, adapter_spec, metric_service, window)
        scores = [(name, get_score(name)) for name in dict.fromkeys(self.names)]
        integer_scores = adapter_spec.num_outputs == 1 and _INTEGER_SCORES.issuperset(self.names)
        score_names = tuple(name for name, _ in scores)
        left_out, rewrite = self.left_out, self.rewrite
        checked: set[str] = set()

        def compute_row(states: Sequence[RequestState], context: Context) -> Parts:
            state = singleton(list(states))
            more: Mapping[str, float] = {}
            if rewrite is not None:
                state, more = rewrite(state)
            parts = common.get(state).to_parts(context)
            if state.instance.references:
                max_prob, values = _reference_values(state, adapter_spec, scores)
                if "max_prob" not in left_out:
                    parts.append([context.stat("max_prob", max_prob)])
                if integer_scores:
                    parts.append(context.shared(score_names, tuple(value for _, value in values)))  # type: ignore[misc]
                else:
                    parts.append(context.stats(values))
            parts += _language_modeling_parts(state, context)
            if more:
                values = context.stats(more.items())
                if more.keys() != checked:  # nearly always those of the row before
                    _refuse_repeats(parts, values)
                    checked.clear()
                    checked.update(more)
                parts.append(values)
            return parts

        return compute_row

    def derive(self, stats: dict[MetricName, Stat]) -> list[Stat]:
        return compute_perplexity_metrics(stats)

    def derive_from_rows(self, stats: dict[MetricName, Stat], rows: dict[Instance, Row]) -> list[Stat]:
        lowest = next((stat.min for name, stat in stats.items() if name.name == "logprob"), None)
        if lowest is None or lowest >= 0:  # HELM's function would look through all rows for a negative one
            return compute_calibration_metrics({})
        return compute_calibration_metrics(
            {instance: [stat for stat in row if stat.name.name in _CALIBRATION] for instance, row in rows.items()}
        )


def _refuse_repeats(parts: Parts, more: Row) -> None:
    known = {id(stat.name) for part in parts for stat in part}
    repeated = sorted(stat.name.name for stat in more if id(stat.name) in known)
    if repeated:
        raise ValueError(f"these stats are computed already: {', '.join(repeated)}")


def _reference_values(
    state: RequestState, adapter_spec: AdapterSpec, scores: Sequence[tuple[str, Callable[[Any, Any], float]]]
) -> tuple[float, Values]:
    """Restate `compute_reference_metrics`: the best score over all golds, of the first and of all predictions.

    Returns `max_prob` and the scores.
    """
    golds = [reference for reference in state.instance.references if CORRECT_TAG in reference.tags]
    if not golds:
        raise ValueError(f"instance {state.instance.id!r} has references, but none is tagged {CORRECT_TAG!r}")
    completions = state.result.completions
    if len(completions) > 1:
        completions = sorted(completions, key=lambda completion: -completion.logprob)
    predictions: list[Any] = [completion.text.strip() for completion in completions]
    if state.output_mapping is not None:
        pattern = adapter_spec.output_mapping_pattern
        if pattern:
            apply = evaluate_reference_metrics._apply_output_mapping_pattern  # noqa: SLF001
            predictions = [apply(pattern, prediction) for prediction in predictions]
        predictions = [state.output_mapping.get(prediction) for prediction in predictions]
    logprob = completions[0].logprob
    max_prob = float(np.exp(logprob)) if logprob else 1.0
    values: Values = []
    num_outputs = adapter_spec.num_outputs
    first = predictions[0]
    gold_texts = [gold.output.text for gold in golds]
    for name, score in scores:
        best_of_all: float | None = None
        if name == "pass":  # HumanEval: pass@k
            results = [score((gold.output.text, gold.test_cases), text) for gold in golds for text in predictions]
            n, passed = len(results), int(sum(results))
            best = evaluate_reference_metrics.pass_at_k_estimator(n, passed, 1)
            best_of_all = evaluate_reference_metrics.pass_at_k_estimator(n, passed, num_outputs)
        else:
            texts = [(gold.output.text, gold.test_cases) for gold in golds] if name == "code_eval_acc" else gold_texts
            best = score(texts[0], first) if len(texts) == 1 else max([score(text, first) for text in texts])
            if num_outputs != 1:
                best_of_all = max([score(text, prediction) for text in texts for prediction in predictions])
        values.append((name, best))
        if num_outputs != 1:
            values.append((f"{name}@{num_outputs}", best_of_all))
    return max_prob, values


class FastReferenceMetric(OnePassMetric):
    """BasicReferenceMetric in one pass: one request for each reference, the likeliest wins.

    `left_out` as above; `rewrite`: what to score in a state's place.
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
        return BasicReferenceMetric().get_metadata()

    def select(self, scenario_state: ScenarioState, trial: int, instance: Instance) -> list[RequestState]:
        return [
            state
            for index in range(len(instance.references))
            for state in scenario_state.get_request_states(trial, instance, index)
        ]

    def prepare(
        self, adapter_spec: AdapterSpec, metric_service: MetricService
    ) -> Callable[[Sequence[RequestState], Context], Parts]:
        window = WindowServiceFactory.get_window_service(adapter_spec.model_deployment, metric_service)
        common = _RequestValues(self.efficiency_metric, adapter_spec, metric_service, window)
        count_tokens = lru_cache(maxsize=1024)(lambda reference: len(window.tokenize(f" {reference}")))
        left_out, rewrite = self.left_out, self.rewrite

        def compute_row(states: Sequence[RequestState], context: Context) -> Parts:
            states = [rewrite(state) for state in states]
            several: dict[str, list[float | None]] = {}
            for state in states:
                for name, value in common.get(state).items():
                    several.setdefault(name, []).append(value)
            row = [
                context.stat_of_many(name, tuple(values)) for name, values in several.items() if name not in left_out
            ]
            return [row, context.stats(_choice_values(states, adapter_spec.method, count_tokens))]

        return compute_row


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
    return [
        ("max_prob", float(np.max(scipy.special.softmax(scores)))),
        ("exact_match", right / len(best)),
        ("predicted_index", best[0]),
    ]
