"""What is not part of a score, and is said: rows that were left out or capped, and stats that nobody measured.

And what HELM would measure wrongly without a tokenizer: the log-probabilities of options (`collapse_reference`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.adapter_spec import ADAPT_MULTIPLE_CHOICE_SEPARATE_CALIBRATED, AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.common.hierarchical_logger import hlog
from helm.common.request import GeneratedOutput, Token

from helm_ext.adaptation.recorded import is_recorded
from helm_ext.errors import RecordedError, show
from helm_ext.evalset import row_extra
from helm_ext.scoring.folding import FoldingMetric, Measured, Place, RunFacts, find_perturbations, place_of
from helm_ext.scoring.score import StatInfo, describe_count
from helm_ext.scoring.scores.likelihoods import count_reference_tokens

if TYPE_CHECKING:
    from helm.benchmark.metrics.metric import MetricMetadata
    from helm.benchmark.scenarios.scenario import Instance

LOGPROB_STATS = frozenset(
    {"max_prob", "logprob", "num_perplexity_tokens", "num_bytes", "perplexity", "bits_per_byte", "logprob_per_byte"}
)
_TOKEN_STATS = frozenset({"num_prompt_tokens"})


def take_scored(scenario_state: ScenarioState) -> ScenarioState:
    """Return the request states of rows of which none was left out: options are compared, all of a row or none."""
    states = scenario_state.request_states
    left_out = {_row_key(state) for state in states if "left_out" in row_extra(state.instance)}
    if not left_out:
        return scenario_state
    scored = [state for state in states if _row_key(state) not in left_out]
    return ScenarioState(adapter_spec=scenario_state.adapter_spec, request_states=scored)


def _row_key(state: RequestState) -> tuple[object, ...]:
    return state.instance.id, state.instance.perturbation, state.train_trial_index


def find_run_facts(scenario_state: ScenarioState) -> RunFacts:
    """Return what batches must know of a run that is there as a whole, of the rows that were not left out."""
    scored = take_scored(scenario_state)
    return RunFacts(
        unmeasured=find_unmeasured(scored.adapter_spec, scored.request_states),
        has_perturbations=find_perturbations(scored.instances),
    )


def find_unmeasured(adapter_spec: AdapterSpec, states: Sequence[RequestState]) -> frozenset[str]:
    """Return the names of HELM's stats that would be made up in this run, so that no report shows them.

    HELM counts one prompt token where there is no tokenizer, and takes a log-probability of 0 for a probability of 1.
    """
    names = set().union(*{getattr(state.request, "unmeasured", frozenset()) for state in states})
    if not is_recorded(adapter_spec.model_deployment) and lacks_tokenizer(adapter_spec.model_deployment):
        names |= _TOKEN_STATS
    generated = [state.result for state in states if state.reference_index is None]
    if not all(_has_logprobs(result.completions) for result in generated if result is not None):
        names |= LOGPROB_STATS
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


def collapse_reference(state: RequestState, adapter_spec: AdapterSpec) -> RequestState:
    """Make HELM's BasicReferenceMetric right for a deployment without a tokenizer.

    It sums the last N tokens, N being the number of tokens of " " + reference, and divides by N where the method is
    not calibrated. Without a tokenizer N is 1 and the score is that of the last token. So the tokens that spell the
    reference are found in the recorded ones and replaced by one, with the same score.

    Raises RecordedError where the tokens do not end with it; formats leave such a recording out before (`not_run`).
    """
    if state.result is None or state.reference_index is None or not lacks_tokenizer(adapter_spec.model_deployment):
        return state
    completion = state.result.completions[0]
    reference = state.instance.references[state.reference_index].output.text
    tokens = [token.text for token in completion.tokens]
    count = count_reference_tokens(tokens, reference)
    if count is None:
        raise RecordedError(
            f"row {state.instance.id}: the recorded tokens end with {show(''.join(tokens)[-40:])}, which is not the "
            f"option {show(reference)}: its log-probability cannot be told"
        )
    logprob = sum(token.logprob for token in completion.tokens[len(completion.tokens) - count :])
    if adapter_spec.method != ADAPT_MULTIPLE_CHOICE_SEPARATE_CALIBRATED:
        logprob /= count
    collapsed = replace(completion, tokens=[Token(text=reference, logprob=logprob)])
    return replace(state, result=replace(state.result, completions=[collapsed]))


def lacks_tokenizer(model_deployment: str) -> bool:
    """Whether a deployment names no tokenizer: HELM then counts one token for any text."""
    return get_model_deployment(model_deployment).tokenizer_name is None


def count_left_out(
    instances: Iterable[Instance], others: Mapping[str, Iterable[Instance]] = MappingProxyType({})
) -> dict[Place, Counter[str]]:
    """Return how many instances of a batch are left out, and why, by place; 0 for places where none is.

    `others`: instances that something else is counted of, by its name; there is no count of 0.
    """
    reasons: dict[Place, Counter[str]] = {}
    seen: set[tuple[str | None, Place]] = set()
    for instance in instances:
        place = place_of(instance)
        if place not in reasons:
            reasons[place] = Counter({"left_out": 0})
        reason = row_extra(instance).get("left_out")
        if reason and (instance.id, place) not in seen:  # a row counts once, however many of its states
            seen.add((instance.id, place))
            reasons[place].update(("left_out", reason))
    for name, found in others.items():
        for instance in found:
            reasons[place_of(instance)][name] += 1
    return reasons


class LeftOutTotal:
    """Adds up the batches: `num_left_out`, and one stat for each reason that occurred, per split; the other counts.

    `num_left_out` is always there: 0 is a statement.
    """

    def __init__(self) -> None:
        self._reasons: dict[Place, Counter[str]] = {}

    @property
    def places(self) -> Iterable[Place]:
        """Where instances stand: split, sub-split, perturbation."""
        return self._reasons.keys()

    def add(self, summary: dict[Place, Counter[str]]) -> None:
        for place, counts in summary.items():
            self._reasons.setdefault(place, Counter()).update(counts)

    def to_stats(self) -> list[Stat]:
        return [
            Stat(MetricName(f"num_{reason}", *place)).add(count)
            for place, counts in self._reasons.items()
            for reason, count in sorted(counts.items())
        ]


WRONG_WITH_GOLD = "num_wrong_with_gold"
"""The stat of rows that score 0 by an exact match though their answer holds the gold: "The answer is Paris."."""
_FEWEST_WRONG, _LEAST_SHARE = 2, 0.1
"""Of fewer such rows, or a smaller share of those that were scored, nobody is warned."""

REPORT_STATS = (
    StatInfo(
        "unmapped",
        "Unmapped answers",
        "Fraction of rows whose completion holds no answer (no option, no match of extract): wrong ones.",
        short_display_name="Unmapped",
        lower_is_better=True,
    ),
    *(
        describe_count(f"num_{name}", f"# {title}", description, lower_is_better=lower)
        for name, title, lower, description in (
            ("left_out", "left out", True, "Number of rows that are not part of any score of this run."),
            ("thinking", "with thinking", None,
             "Number of rows whose model thought before it answered; its thinking is no part of the answer."),
            ("wrong_with_gold", "wrong, gold inside", True,
             "Rows of free text that score 0 by an exact match, though the answer holds the gold as whole words."),
            ("not_run", "not run", True, "Rows left out because no completion is recorded for them."),
            ("failed", "failed", True, "Rows left out because their request failed."),
            ("unscored", "unscored", True,
             "Rows left out because no score could be made of their answer, as the file says."),
            ("too_long", "too long", True,
             "Rows left out because the question alone does not fit the model's context window."),
        )
    ),
)  # fmt: skip
"""What reports say of rows beside their scores."""


def describe_wrong_with_gold(stats: Mapping[str, float]) -> str:
    """Return "7 of 12 rows score 0 though ..." for the stats of a split by name; "" where these are few."""
    wrong, scored = round(stats.get(WRONG_WITH_GOLD, 0)), round(stats.get("num_instances", 0))
    if wrong < max(_FEWEST_WRONG, _LEAST_SHARE * scored):
        return ""
    return f"{wrong:,} of {scored:,} rows score 0 though the answer holds the gold"


HINT_WRONG_WITH_GOLD = (
    "extract=REGEX takes the answer out of what is said around it, main_metric=expected_contains takes any answer that "
    "holds the gold for right"
)
"""What helps then."""


# ---- What a cap on the rows of a run (`-m`) takes away. HELM draws the rows before anybody is told how many there are

NUM_CAPPED = "num_capped"


class CappedRowsMetric(FoldingMetric):
    """Counts the rows that `--max-eval-instances` keeps out of a run, `num_capped`; nothing where it keeps none out."""

    def __init__(self, rows: Mapping[str, int], live_rows: Mapping[str, int] | None = None) -> None:
        """`rows`: how many rows of each split a recorded run evaluates, `live_rows` a live one where that differs."""
        self.rows = rows
        self.live_rows = rows if live_rows is None else live_rows

    def begin(self, *_: Any, **__: Any) -> Callable[[ScenarioState], Measured]:
        """Return what counts the rows of each split in a batch, by their first trial."""

        def measure(scenario_state: ScenarioState) -> Measured:
            rows = {
                (state.instance.id, state.instance.split)
                for state in scenario_state.request_states
                if state.train_trial_index == 0 and state.instance.perturbation is None
            }
            return Measured([], Counter(split for _, split in rows))

        return measure

    def make_total(self, adapter_spec: AdapterSpec, facts: RunFacts) -> _CappedTotal:  # noqa: ARG002
        rows = self.rows if is_recorded(adapter_spec.model_deployment) else self.live_rows
        return _CappedTotal(rows, adapter_spec.max_eval_instances)

    def get_metadata(self) -> list[MetricMetadata]:
        what = "Rows that are no part of the run, because --max-eval-instances is smaller than the file."
        return [describe_count(NUM_CAPPED, "# capped", what).to_metadata()]


class _CappedTotal:
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


def describe_left_out(stats: Mapping[str, float]) -> str:
    """Return "2 of 6 rows left out" for the stats of a split by name; "" where none was."""
    left_out = round(stats.get("num_left_out", 0))
    return f"{left_out:,} of {round(stats.get('num_instances', 0)) + left_out:,} rows left out" if left_out else ""
