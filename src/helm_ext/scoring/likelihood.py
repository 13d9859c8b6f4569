"""The metric of UltraEval's PPL tasks: which option makes the whole string likeliest (docs/ultraeval.md).

HELM's own metric for one request an option looks at the last N tokens, N being the number of tokens of " " + option,
and divides by N: other strings, other winners. Here the score of an option is the negative log-likelihood of
prompt + option without the first token, which no model predicts.

Stats of a row, beside HELM's usual ones (tokens, time, truncation):

    ppl_accuracy, ppl_norm_accuracy, mc2, mc2_norm    the rule's own: what the leaderboard shows
    predicted_index       the winner, by which helm-server shows the chosen option
    acc                   1 if the likeliest string is a right option
    ppl_norm_undefined    1 if an option has no tokens of its own, so that it has no mean (ppl_norm, mc2_norm)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.efficiency_metrics import EfficiencyMetric
from helm.benchmark.metrics.metric import MetricMetadata
from helm.common.hierarchical_logger import hwarn

from helm_ext.adaptation.wrap import LogprobsMissingError, explain_missing
from helm_ext.errors import RunEntryError, did_you_mean, show
from helm_ext.evalset import row_extra
from helm_ext.scoring.basic.metrics import FastReferenceMetric, InstanceCountMetric
from helm_ext.scoring.completeness import REPORT_STATS, LeftOutTotal, count_left_out, find_run_facts, take_scored
from helm_ext.scoring.folding import FoldingMetric, JoinedTotal, Measured, RunFacts
from helm_ext.scoring.score import StatInfo
from helm_ext.scoring.scores.likelihoods import (
    MAIN_STATS,
    MEANS,
    RULES,
    SCORES,
    argmin,
    common_prefix,
    mc2,
    ppl,
    ppl_norm,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.scenarios.scenario import Instance
    from helm.benchmark.window_services.window_service import WindowService
    from helm.common.request import Token

    from helm_ext.scoring.basic.requests import Values

UNDEFINED = "ppl_norm_undefined"


class Option(NamedTuple):
    """One option of a row with the prompt before it, as the model saw it."""

    tokens: tuple[str, ...]
    """All but the first."""
    logprobs: tuple[float, ...]
    """Their log-probabilities."""


def require_logprobs(state: RequestState) -> Option:
    """Return the option that a request state asked for.

    Raises LogprobsMissingError if its result has no tokens, or 0.0 for all of them: several of HELM's clients return
    that where they know nothing, and all options would tie.
    """
    request, result = state.request, state.result
    if result is None or not result.completions or state.reference_index is None:
        raise LogprobsMissingError(f"{state.instance.id}: {explain_missing(request.model_deployment)}")
    tokens = result.completions[0].tokens
    scored = tokens[1:]
    if not tokens or (scored and all(token.logprob == 0.0 for token in scored)) or not _covers(tokens, request.prompt):
        raise LogprobsMissingError(f"{state.instance.id}: {explain_missing(request.model_deployment)}")
    return Option(
        tuple(token.text for token in scored),
        tuple(math.nan if token.logprob is None else float(token.logprob) for token in scored),
    )


def _covers(tokens: Sequence[Token], prompt: str) -> bool:
    """Return whether the tokens can be those of the prompt, not of an answer to it.

    Tokenizers may drop spaces and split characters, so only the length without white space is compared, generously.
    """
    spelled = sum(len("".join(token.text.split())) for token in tokens)
    if not any(token.text for token in tokens):  # recorded without texts (UltraEval's own logs)
        return True
    return 2 * spelled >= len("".join(prompt.split()))


def score_row(options: Sequence[Option], worth: Sequence[float], right: Sequence[bool], rule: str) -> dict[str, float]:
    """Return the stats of one row: its options in order, what each is worth, and which are right."""
    logprobs = [option.logprobs for option in options]
    tokens = [option.tokens for option in options] if any(any(option.tokens) for option in options) else None
    whole = ppl(logprobs)
    values: dict[str, float] = {}
    compared = ppl_norm(logprobs, tokens) if rule in MEANS else whole
    winner = argmin(compared)
    if rule.startswith("mc2"):
        values[MAIN_STATS[rule]] = mc2(compared, worth)
    else:
        values[MAIN_STATS[rule]] = worth[winner] if winner is not None else 0.0
    if rule in MEANS:
        prefix = common_prefix(logprobs, tokens)
        values[UNDEFINED] = float(any(len(option) == prefix for option in logprobs))
    if winner is not None:
        values["predicted_index"] = winner
    likeliest = argmin(whole)
    values["acc"] = float(likeliest is not None and right[likeliest])
    return values


class SentenceLikelihoodMetric(FoldingMetric):
    """Scores a PPL run; `rule` is one of `helm_ext.scoring.scores.likelihoods.RULES`. The class path is public API."""

    def __init__(self, rule: str = "ppl") -> None:
        if rule not in RULES:
            raise RunEntryError(f"rule={rule}: unknown\n  hint: {did_you_mean(rule, RULES) or ', '.join(RULES)}")
        self.rule = rule

    def find_facts(self, scenario_state: ScenarioState) -> RunFacts:
        """Return what batches must know of the whole run."""
        return find_run_facts(scenario_state)

    def begin(
        self, adapter_spec: AdapterSpec, service: MetricService, facts: RunFacts
    ) -> Callable[[ScenarioState], Measured]:
        """Return what scores the rows of a batch, but those that were left out, which are counted.

        It raises LogprobsMissingError.
        """
        count = InstanceCountMetric().begin(adapter_spec, service, facts)
        score = _RowMetric(self.rule, facts.unmeasured).begin(adapter_spec, service, facts)

        def measure(state: ScenarioState) -> Measured:
            scored = take_scored(state)
            rows = score(scored)
            return Measured(rows.segments, (count(scored).summary, rows.summary, count_left_out(state.instances)))

        return measure

    def make_total(self, adapter_spec: AdapterSpec, facts: RunFacts) -> JoinedTotal:
        metrics = InstanceCountMetric(), _RowMetric(self.rule, facts.unmeasured)
        return JoinedTotal([*[metric.make_total(adapter_spec, facts) for metric in metrics], LeftOutTotal()])

    def get_metadata(self) -> list[MetricMetadata]:
        """Describe every stat for `helm-summarize --auto-generate-schema`; touches no file."""
        from helm.benchmark.metrics.basic_metrics import get_request_state_metrics_metadata  # slow

        return [
            *(stat.to_metadata() for stat in (_MAIN[self.rule], *_OF_ROWS)),
            *([_UNDEFINED.to_metadata()] if self.rule in MEANS else []),
            *get_request_state_metrics_metadata(EfficiencyMetric()),
            *InstanceCountMetric().get_metadata(),
            *(stat.to_metadata() for stat in REPORT_STATS if stat.name in _LEFT_OUT),
        ]


class _RowMetric(FastReferenceMetric):
    """The stats of a row: HELM's of its requests, and ours of which option wins."""

    def __init__(self, rule: str, unmeasured: frozenset[str]) -> None:
        super().__init__(unmeasured)
        self.rule = rule

    def select(self, scenario_state: ScenarioState, trial: int, instance: Instance) -> list[RequestState]:
        """Return one request state for each of the row's options. Raises LogprobsMissingError where one has none."""
        states = super().select(scenario_state, trial, instance)
        return _one_per_option(states, len(instance.references)) if states else []

    def choose(
        self,
        adapter_spec: AdapterSpec,
        window: WindowService,  # noqa: ARG002 - one interface
    ) -> Callable[[Sequence[RequestState]], Values]:
        """Return what scores the options. It raises LogprobsMissingError."""

        def choose(states: Sequence[RequestState]) -> Values:
            instance = states[0].instance
            options = [require_logprobs(state) for state in states]
            if not any(option.tokens for option in options):  # one token each: nothing was predicted, all would tie
                raise LogprobsMissingError(f"{instance.id}: {explain_missing(adapter_spec.model_deployment)}")
            _warn_of_additions(states[0])
            right = [reference.is_correct for reference in instance.references]
            return score_row(options, _worth_of(instance), right, self.rule)

        return choose


def _one_per_option(states: Sequence[RequestState], count: int) -> list[RequestState]:
    """Return one state for each of the row's `count` options, in order; with `num_trials` all trials are alike.

    Raises LogprobsMissingError where an option has none: the others would be compared without it.
    """
    by_option: dict[int | None, RequestState] = {}
    for state in states:
        by_option.setdefault(state.reference_index, state)
    missing = [index for index in range(count) if index not in by_option]
    if missing:
        numbers = ", ".join(str(index + 1) for index in missing)
        raise LogprobsMissingError(f"{states[0].instance.id}: no result for option {numbers} of {count}")
    return [by_option[index] for index in range(count)]


def _worth_of(instance: Instance) -> list[float]:
    """Return what each option is worth: its number, else 1 for a right one.

    Perturbed options have other texts than those that the numbers were given for: they are taken in their order.
    """
    scores = row_extra(instance).get("score", {})
    if instance.perturbation is not None and len(scores) == len(instance.references):
        return list(scores.values())
    return [scores.get(reference.output.text, float(reference.is_correct)) for reference in instance.references]


_warned: set[str] = set()


def _warn_of_additions(state: RequestState) -> None:
    """Warn, once a deployment, where more was scored than the prompt: most often a chat template around it."""
    deployment, prompt = state.request.model_deployment, state.request.prompt
    text = state.result.completions[0].text if state.result else ""
    _, found, after = text.rpartition(prompt)
    if found and prompt and after.strip() and deployment not in _warned:
        _warned.add(deployment)
        hwarn(
            f"{deployment} scored text that is not in the prompt: {show(after)} after it. If that is a chat template, "
            "set apply_chat_template: false in the deployment's client_spec.args"
        )


_LEFT_OUT = ("num_left_out", "num_not_run", "num_failed", "num_too_long")

_MAIN = {
    rule: StatInfo(MAIN_STATS[rule], title, description, short)
    for rule, title, short, description in (
        ("ppl", "PPL accuracy", "PPL acc",
         "Worth of the option that makes the whole string likeliest (UltraEval's log_prob)."),
        ("ppl_norm", "PPL accuracy (normalised)", "PPL acc (norm)",
         "Worth of the option whose own tokens are likeliest on average (UltraEval's general_torch_ppl_norm)."),
        ("mc2", "MC2", None,
         "Share of the probability of all options that lies on the right ones (UltraEval's log_prob_mc2)."),
        ("mc2_norm", "MC2 (normalised)", None,
         "MC2 of the options' own tokens, each by its mean (UltraEval's general_torch_ppl_norm and log_prob_mc2)."),
    )
}  # fmt: skip

_UNDEFINED = StatInfo(
    UNDEFINED,
    "Rows with an undefined option",
    "Fraction of rows with an option that has no tokens beyond the common prefix, so that it has no mean "
    "and cannot win (UltraEval divides by zero).",
    "Undefined",
    lower_is_better=True,
)

_OF_ROWS = (
    StatInfo(
        "predicted_index", "Predicted index", "Index of the option that won, from 0.", lower_is_better=None, group=None
    ),
    *(stat for score in SCORES if score.name == "acc" for stat in score.stats),
)
