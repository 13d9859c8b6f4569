"""The stats that every request has, whatever was asked: counts, costs, times, reasons, tokens.

`compute_request_state_metrics` and `compute_language_modeling_metrics` of helm/benchmark/metrics/basic_metrics.py,
restated; tests/contract/test_runner_sources.py fails when HELM changes them. What HELM does once a row and is done
once a run here: the look-ups in the efficiency tables and the window service.

What requests agree in becomes Stats once (`_Repeated`). Plain equivalent: `context.stats(self.get(state))`. Saves 7 %
of a recorded run. Held equal by tests/unit/scoring/test_basic_metrics.py, test_generation_equals_helm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from helm.benchmark.metrics import efficiency_metrics
from helm.common.hierarchical_logger import hwarn

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.metrics.efficiency_metrics import EfficiencyMetric
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.window_services.window_service import WindowService
    from helm.common.request import Token

    from helm_ext.scoring.basic.one_pass import Context, Stats

Values = list[tuple[str, float | None]]

_REASONS = ("length", "stop", "endoftext", "unknown")
_TOKENS = ("num_perplexity_tokens", "num_bytes")


class _Repeated(NamedTuple):
    """What many requests agree in, in HELM's order; the times stand before `batch_size`."""

    num_references: int
    num_train_trials: int
    num_prompt_tokens: int
    num_completion_tokens: int
    num_output_tokens: int
    training_co2_cost: float | None
    training_energy_cost: float | None
    batch_size: int | None
    """None where it is not known, or stands among the times."""
    finish_reason: str
    num_train_instances: int
    prompt_truncated: bool

    def before(self) -> Values:
        """Return the values before the times, by name."""
        return list(zip(self._fields[:7], self[:7], strict=True))

    def after(self) -> Values:
        """Return the values behind the times, by name."""
        return [
            *([] if self.batch_size is None else [("batch_size", self.batch_size)]),
            *[(f"finish_reason_{reason}", int(reason == self.finish_reason)) for reason in _REASONS],
            ("num_train_instances", self.num_train_instances),
            ("prompt_truncated", int(self.prompt_truncated)),
        ]


class RequestValues:
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
        counts = self.token_counts
        counted = counts.get((hash(text), len(text))) if counts else None
        return self.window.get_num_tokens(text) if counted is None else counted

    def get_stats(self, state: RequestState, context: Context) -> Stats:
        """Return the values as Stats of one value each."""
        repeated, times = self._get(state)
        before, after = context.once(
            "requests", repeated, lambda: (context.stats(repeated.before()), context.stats(repeated.after()))
        )
        return [*before, *(context.single(*time) for time in times if time[0] not in context.left_out), *after]

    def get(self, state: RequestState) -> Values:
        """Return the values as (name, value)."""
        repeated, times = self._get(state)
        return [*repeated.before(), *times, *repeated.after()]

    def _get(self, state: RequestState) -> tuple[_Repeated, list[tuple[str, float]]]:
        """Return what is the same for many requests, and the times."""
        request, result = state.request, state.result
        if result is None:
            raise ValueError(f"the request of instance {state.instance.id!r} has no result: it was never executed")
        completions = result.completions
        runtime: float | None = result.request_time
        batch_size: int | None = None if runtime is None else 1
        if result.batch_request_time is not None and result.batch_size is not None:
            runtime, batch_size = result.batch_request_time, result.batch_size
        prompt = request.prompt if request.multimodal_prompt is None else request.multimodal_prompt.text
        num_prompt_tokens = self.count_tokens(prompt)
        num_completion_tokens = sum([len(completion.tokens) for completion in completions])
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
        times: list[tuple[str, float]] = []
        if runtime is not None:
            times.append(("inference_runtime", runtime))
        if has_table or result.batch_size is not None:
            behind = self._get_estimates(state, runtime, num_prompt_tokens, num_output_tokens)
            if behind:  # batch_size stands before them
                times += [] if batch_size is None else [("batch_size", batch_size)]
                times += behind
                batch_size = None
        finish_reason = completions[0].finish_reason
        reason = "unknown" if finish_reason is None else finish_reason["reason"]
        repeated = _Repeated(
            len(state.instance.references), self.num_train_trials, num_prompt_tokens, num_completion_tokens,
            num_output_tokens, co2, energy, batch_size, reason if reason in _REASONS else "unknown",
            state.num_train_instances, state.prompt_truncated,
        )  # fmt: skip
        return repeated, times

    def _get_estimates(
        self, state: RequestState, runtime: float | None, num_prompt_tokens: int, num_output_tokens: int
    ) -> list[tuple[str, float]]:
        """Return the estimated runtimes that there are."""
        estimate = efficiency_metrics._compute_estimated_time_from_prompt_size_and_num_output_tokens  # noqa: SLF001
        idealized, denoised = (
            estimate(state, table, num_prompt_tokens, num_output_tokens)
            for table in (
                self.efficiency.inference_idealized_runtimes_dict,
                self.efficiency.inference_denoised_runtimes_dict,
            )
        )
        assert state.result is not None
        if runtime is not None and state.result.batch_size is not None:
            denoised = runtime / state.result.batch_size
        found = (("inference_denoised_runtime", denoised), ("inference_idealized_runtime", idealized))
        return [(name, value) for name, value in found if value is not None]

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


def language_modeling_stats(state: RequestState, context: Context) -> Stats:
    """Restate `compute_language_modeling_metrics`."""
    tokens = state.result.completions[0].tokens
    skipped = state.num_conditioning_tokens
    if skipped > 0:
        if tokens[0].text == "":
            tokens = tokens[1:]
        tokens = tokens[skipped:]
    counts = (len(tokens), _count_bytes(tokens)) if tokens else (0, 0)
    shared = context.once("tokens", counts, lambda: context.stats(zip(_TOKENS, counts, strict=True)))
    if "logprob" in context.left_out:
        return shared
    return [context.single("logprob", sum([token.logprob for token in tokens])), *shared]


def _count_bytes(tokens: Sequence[Token]) -> int:
    """Restate `get_num_bytes`: tokens that are bytes are written as such, in hexadecimal digits."""
    texts = [token.text for token in tokens]
    return sum([text.count("\\x") if text.startswith("bytes:") else len(text.encode()) for text in texts])
