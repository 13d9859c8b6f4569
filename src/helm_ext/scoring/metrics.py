"""The metric of our runs: read completions as answers, score those with HELM's metrics, add ours.

HELM's metrics compare the completion's text with the references. Here every completion is first read as the answer it
means (extraction, label reading, postprocessing), and the references as what it is compared with (`answers`);
HELM's score functions then compare those texts (`fast_stats.Reading`). Score functions of our own stand beside
them only where HELM has none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.basic_metrics import BasicGenerationMetric, BasicReferenceMetric, InstancesPerSplitMetric
from helm.benchmark.metrics.metric import MetricInterface, MetricMetadata, MetricResult, add_context
from helm.benchmark.metrics.metric_name import MetricContext, MetricName
from helm.benchmark.metrics.metric_service import MetricService
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.common.request import GeneratedOutput, Token

from helm_ext.adaptation.recorded import is_recorded
from helm_ext.evalset import Scoring, row_extra
from helm_ext.evalset.copying import copy_with
from helm_ext.fast.fast_stats import FastGenerationMetric, FastReferenceMetric, Reading
from helm_ext.scoring.answers import Answer, AnswerReader, Question, get_options
from helm_ext.scoring.breakdown import break_down, describe_breakdown
from helm_ext.scoring.scores import Score, get_scores, lists

__all__ = ["EvalSetMetric"]

LIST_METRICS: dict[str, Callable[[Sequence[str], Sequence[str]], float]] = {
    "exact_match": lists.exact_match,
    "set_exact_match": lists.set_exact_match,
    "list_f1": lists.list_f1,
}
"""Stats of `output_format: list` (formats.md, section 1). `exact_match` replaces HELM's stat of that name."""

_LOGPROB_STATS = frozenset(
    {"max_prob", "logprob", "num_perplexity_tokens", "num_bytes", "perplexity", "bits_per_byte", "logprob_per_byte"}
)
_TOKEN_STATS = frozenset({"num_prompt_tokens"})


class EvalSetMetric(MetricInterface):
    """Scores a run of an EvalSet. The arguments are those of `Scoring`; the class path is public API."""

    def __init__(
        self,
        metrics: Sequence[str],
        postprocess: dict[str, Any] | None = None,
        attributes: Mapping[str, Sequence[str]] | None = None,
        **scoring: Any,
    ) -> None:
        self.scoring = Scoring(metrics=tuple(metrics), **scoring)
        self.postprocess = postprocess
        """Arguments of `helm_ext.formats.ultraeval.get_postprocess`, for tasks that name one."""
        self.attributes = attributes or {}
        """`EvalSet.attributes`: the main metric is also reported for each of their values."""
        self.is_list = self.scoring.output_format == "list"
        ours = get_scores()
        self.scores = [ours[name] for name in metrics if name in ours]
        self.list_metrics = [name for name in metrics if self.is_list and name in LIST_METRICS]
        self.helm_metrics = [name for name in metrics if name not in ours and name not in self.list_metrics]

    def evaluate(
        self, scenario_state: ScenarioState, metric_service: MetricService, eval_cache_path: str, parallelism: int
    ) -> MetricResult:
        """Score every request state but those of rows that were left out, which are counted."""
        state = take_scored(scenario_state)
        scored = state.request_states
        unmeasured = find_unmeasured(state.adapter_spec, scored)
        metrics: list[MetricInterface] = [InstancesPerSplitMetric()]
        if any(s.reference_index is None for s in scored):
            metrics.append(FastGenerationMetric(self.helm_metrics, unmeasured, self._get_reader(state.adapter_spec)))
        if any(s.reference_index is not None for s in scored):
            metrics.append(FastReferenceMetric(unmeasured, lambda s: collapse_reference(s, state.adapter_spec)))
        results = [m.evaluate(state, metric_service, eval_cache_path, parallelism) for m in metrics]
        rows = [row for r in results for row in r.per_instance_stats]
        return MetricResult(
            aggregated_stats=[
                *(s for r in results for s in r.aggregated_stats),
                *break_down(self.scoring.main_metric, self.attributes, rows, state.instances),
                *count_left_out(scenario_state),
            ],
            per_instance_stats=rows,
        )

    def get_metadata(self) -> list[MetricMetadata]:
        """Describe every stat for `helm-summarize --auto-generate-schema`; touches no file."""
        described = {
            metadata.name: metadata
            for metric in (
                BasicGenerationMetric(names=self.helm_metrics),
                BasicReferenceMetric(),
                InstancesPerSplitMetric(),
            )
            for metadata in metric.get_metadata()
        }
        if "quasi_exact_match" in described:
            # HELM calls both this and exact_match "EM"; they differ.
            described["quasi_exact_match"] = replace(described["quasi_exact_match"], short_display_name="Quasi EM")
        described.update((name, _LIST_METADATA[name]) for name in self.list_metrics)
        described.update((score.name, _score_metadata(score)) for score in self.scores)
        described.update((metadata.name, metadata) for metadata in REPORT_METADATA)
        described.update((m.name, m) for m in describe_breakdown(described, self.scoring.main_metric, self.attributes))
        return list(described.values())

    def _get_postprocess(self) -> Callable[[str], str] | None:
        if self.postprocess is None:
            return None
        from helm_ext.formats import ultraeval

        return ultraeval.get_postprocess(**self.postprocess)

    def _get_reader(self, adapter_spec: AdapterSpec) -> Callable[[RequestState], Reading]:
        """Return what reads a request state: the answers that its completions mean, and our own stats of it."""
        post = self._get_postprocess()
        reader = AnswerReader(self.scoring, adapter_spec.output_mapping_pattern, multi_label=adapter_spec.multi_label)
        is_list = self.is_list

        def read(state: RequestState) -> Reading:
            assert state.result is not None
            completions = state.result.completions
            if reader.is_exact and len(completions) > 1:
                # HELM's own runs are re-scored to HELM's values; elsewhere the first one counts (formats.md).
                completions = sorted(completions, key=lambda completion: -completion.logprob)
            options = get_options(state)
            question = Question(state.instance, options, reader)
            answers: list[Answer] = []
            predictions: list[str] = []
            for completion in completions:
                answer = reader.read(completion.text if post is None else post(completion.text), options)
                answers.append(answer)
                predictions.append(question.to_prediction(answer).strip())
            if is_list:
                predictions[0] = question.to_list_prediction(answers).strip()
            return Reading(question.golds, predictions, completions[0].logprob, self._own_stats(question, answers))

        return read

    def _own_stats(self, question: Question, answers: Sequence[Answer]) -> dict[str, float]:
        """Return the stats of one row that HELM does not have."""
        stats: dict[str, float] = {}
        if question.options is not None:
            is_read = any(answer.labels for answer in answers) if self.is_list else answers[0].labels
            stats["unmapped"] = 0.0 if is_read else 1.0
        if not question.texts or not (self.list_metrics or self.scores):
            return stats
        golds = question.golds
        if self.list_metrics:
            predicted = question.to_list(answers)
            for name in self.list_metrics:
                stats[name] = max(LIST_METRICS[name](gold, predicted) for gold in question.gold_lists)
        for score in self.scores:
            if score.row_function is not None:
                row = row_extra(question.instance).get("data", {})
                stats[score.name] = score.row_function(row, question.texts, answers[0].text)
            else:
                prediction = question.to_prediction(answers[0])
                stats[score.name] = max(score.function(gold, prediction) for gold in golds)
        return stats


def take_scored(scenario_state: ScenarioState) -> ScenarioState:
    """Return the request states without those of rows that were left out."""
    if not any("left_out" in row_extra(instance) for instance in scenario_state.instances):
        return scenario_state
    scored = [s for s in scenario_state.request_states if "left_out" not in row_extra(s.instance)]
    return ScenarioState(adapter_spec=scenario_state.adapter_spec, request_states=scored)


def collapse_reference(state: RequestState, adapter_spec: AdapterSpec) -> RequestState:
    """Make HELM's BasicReferenceMetric right for a deployment without a tokenizer.

    It sums the last N tokens, N being the number of tokens of " " + reference, and divides by N where the method is
    not calibrated. Without a tokenizer N is 1 and the score is that of the last token. So the tokens that spell the
    reference are found in the recorded ones and replaced by one, with the same score.
    """
    if state.result is None or state.reference_index is None or not _lacks_tokenizer(adapter_spec.model_deployment):
        return state
    completion = state.result.completions[0]
    reference = state.instance.references[state.reference_index].output.text
    count = count_reference_tokens([token.text for token in completion.tokens], reference)
    logprob = sum(token.logprob for token in completion.tokens[len(completion.tokens) - count :])
    if not adapter_spec.method.endswith("calibrated"):
        logprob /= count
    collapsed = copy_with(completion, tokens=[Token(text=reference, logprob=logprob)])
    return copy_with(state, result=copy_with(state.result, completions=[collapsed]))


def count_reference_tokens(tokens: Sequence[str], reference: str) -> int:
    """Return how many of the last tokens spell `reference` (the space before it belongs to its first token).

    Raises ValueError when the tokens do not end with it: the log-probability of this option is then unknown.
    """
    wanted = reference.strip()
    tail = ""
    for count, token in enumerate(reversed(tokens), start=1):
        # SentencePiece writes its word boundary as U+2581.
        tail = token.replace("▁", " ") + tail
        if tail.strip() == wanted:
            return count
        if len(tail.strip()) > len(wanted):
            break
    raise ValueError(
        f"the recorded tokens end with {''.join(tokens)[-40:]!r}, which is not the option {reference!r}: "
        "its log-probability cannot be told"
    )


def find_unmeasured(adapter_spec: AdapterSpec, states: Sequence[RequestState]) -> frozenset[str]:
    """Return the names of HELM's stats that would be made up in this run, so that no report shows them.

    HELM counts one prompt token where there is no tokenizer, and takes a log-probability of 0 for a probability of 1.
    """
    names = set().union(*{getattr(state.request, "unmeasured", frozenset()) for state in states})
    if not is_recorded(adapter_spec.model_deployment) and _lacks_tokenizer(adapter_spec.model_deployment):
        names |= _TOKEN_STATS
    generated = [state.result for state in states if state.reference_index is None]
    if not all(_has_logprobs(result.completions) for result in generated if result is not None):
        names |= _LOGPROB_STATS
    return frozenset(names)


def _has_logprobs(completions: Sequence[GeneratedOutput]) -> bool:
    """Tell whether log-probabilities were measured: some that are not 0, and none that is no number."""
    measured = False
    for completion in completions:
        if completion.logprob:
            measured = True
        if not math.isfinite(completion.logprob) or not math.isfinite(sum([t.logprob for t in completion.tokens])):
            return False
    return measured


def _lacks_tokenizer(model_deployment: str) -> bool:
    return get_model_deployment(model_deployment).tokenizer_name is None


def count_left_out(scenario_state: ScenarioState) -> list[Stat]:
    """Return `num_left_out`, and one stat for each reason that occurred, per split. Always there: 0 is a statement."""
    instances = scenario_state.instances
    examples = {_place(instance): instance for instance in instances}
    reasons = {place: Counter({"left_out": 0}) for place in examples}
    # A row counts once, however many of its states.
    left_out = {(i.id, _place(i)): reason for i in instances if (reason := row_extra(i).get("left_out"))}
    for (_, place), reason in left_out.items():
        reasons[place].update(("left_out", reason))
    return [
        add_context(Stat(MetricName(f"num_{reason}")).add(count), MetricContext.from_instance(examples[place]))
        for place, counts in reasons.items()
        for reason, count in sorted(counts.items())
    ]


_place = attrgetter("split", "sub_split", "perturbation")
"""What stats of instances are told apart by (HELM: MetricContext)."""


def _score_metadata(score: Score) -> MetricMetadata:
    return MetricMetadata(
        name=score.name,
        display_name=score.display_name,
        description=score.description,
        lower_is_better=score.lower_is_better,
        group="accuracy",
    )


_LIST_METADATA = {
    "exact_match": MetricMetadata(
        name="exact_match",
        display_name="Exact match",
        short_display_name="EM",
        description="Fraction of rows whose list of segments equals the gold list, in order.",
        lower_is_better=False,
        group="accuracy",
    ),
    "set_exact_match": MetricMetadata(
        name="set_exact_match",
        display_name="Set exact match",
        short_display_name="Set EM",
        description="Fraction of rows whose segments are the gold segments, in any order.",
        lower_is_better=False,
        group="accuracy",
    ),
    "list_f1": MetricMetadata(
        name="list_f1",
        display_name="List F1",
        description="F1 over an optimal one-to-one matching of segments; a pair counts by its token F1.",
        lower_is_better=False,
        group="accuracy",
    ),
}

REPORT_METADATA = [
    MetricMetadata(
        name="unmapped",
        display_name="Unmapped answers",
        short_display_name="Unmapped",
        description="Fraction of multiple-choice rows whose completion names none of the options; they count as wrong.",
        lower_is_better=True,
        group="accuracy",
    ),
    MetricMetadata(
        name="num_left_out",
        display_name="# left out",
        description="Number of rows that are not part of any score of this run.",
        lower_is_better=True,
        group="general_information",
    ),
    MetricMetadata(
        name="num_not_run",
        display_name="# not run",
        description="Rows left out because no completion is recorded for them.",
        lower_is_better=True,
        group="general_information",
    ),
    MetricMetadata(
        name="num_failed",
        display_name="# failed",
        description="Rows left out because the recorded request failed.",
        lower_is_better=True,
        group="general_information",
    ),
    MetricMetadata(
        name="num_too_long",
        display_name="# too long",
        description="Rows left out because the question alone does not fit the model's context window.",
        lower_is_better=True,
        group="general_information",
    ),
]
