"""The stats that every request has, whatever was asked: counts, costs, times, reasons, tokens.

`compute_request_state_metrics` and `compute_language_modeling_metrics` of helm/benchmark/metrics/basic_metrics.py,
restated; tests/contract/test_runner_sources.py fails when HELM changes them. What HELM does once a row and is done
once a run here: the look-ups in the efficiency tables and the window service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from helm.benchmark.metrics import efficiency_metrics
from helm.benchmark.metrics.basic_metrics import get_num_bytes
from helm.common.hierarchical_logger import hwarn

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.metrics.efficiency_metrics import EfficiencyMetric
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.window_services.window_service import WindowService

    from helm_ext.one_pass import Context, Parts

__all__ = ["RequestValues", "Values", "language_modeling_parts"]

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


def language_modeling_parts(state: RequestState, context: Context) -> Parts:
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
