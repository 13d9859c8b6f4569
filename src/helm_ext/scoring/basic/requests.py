"""The stats that every request has, whatever was asked: counts, costs, times, reasons, tokens.

`compute_request_state_metrics` and `compute_language_modeling_metrics` of helm/benchmark/metrics/basic_metrics.py,
restated; tests/contract/test_runner_sources.py fails when HELM changes them. What HELM does once a row and is done
once a run here: the look-ups in the efficiency tables and the window service.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from helm.benchmark.metrics import efficiency_metrics
from helm.common.hierarchical_logger import hwarn

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.metrics.efficiency_metrics import EfficiencyMetric
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.window_services.window_service import WindowService
    from helm.common.request import Token


Values = dict[str, Any]
"""Of each stat of a row its value; None where there is none."""

_KINDS = ("length", "stop", "endoftext", "unknown")
_REASONS: dict[str, Values] = {kind: {f"finish_reason_{one}": int(one == kind) for one in _KINDS} for kind in _KINDS}
"""By the reason that a request has, the stats of all of them."""


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

    def get(self, state: RequestState) -> Values:
        """Return the values by name."""
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
        values: Values = {
            "num_references": len(state.instance.references),
            "num_train_trials": self.num_train_trials,
            "num_prompt_tokens": num_prompt_tokens,
            "num_completion_tokens": num_completion_tokens,
            "num_output_tokens": num_output_tokens,
            "training_co2_cost": co2,
            "training_energy_cost": energy,
        }
        if runtime is not None:
            values["inference_runtime"], values["batch_size"] = runtime, batch_size
        if has_table or result.batch_size is not None:
            values.update(self._get_estimates(state, runtime, num_prompt_tokens, num_output_tokens))
        finish_reason = completions[0].finish_reason
        reason = "unknown" if finish_reason is None else finish_reason["reason"]
        values |= _REASONS.get(reason, _REASONS["unknown"])
        values["num_train_instances"] = state.num_train_instances
        values["prompt_truncated"] = int(state.prompt_truncated)
        return values

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


def get_language_modeling_values(state: RequestState) -> Values:
    """Restate `compute_language_modeling_metrics`."""
    tokens = state.result.completions[0].tokens
    skipped = state.num_conditioning_tokens
    if skipped > 0:
        if tokens[0].text == "":
            tokens = tokens[1:]
        tokens = tokens[skipped:]
    if not tokens:  # most recorded completions have none
        return {"logprob": 0, "num_perplexity_tokens": 0, "num_bytes": 0}
    return {
        "logprob": sum([token.logprob for token in tokens]),
        "num_perplexity_tokens": len(tokens),
        "num_bytes": _count_bytes(tokens),
    }


def _count_bytes(tokens: Sequence[Token]) -> int:
    """Restate `get_num_bytes`: tokens that are bytes are written as such, in hexadecimal digits."""
    texts = [token.text for token in tokens]
    return sum([text.count("\\x") if text.startswith("bytes:") else len(text.encode()) for text in texts])
