"""What live runs may cost: prices and limits that the user sets, and what is foreseen before the first request.

    # prod_env/prices.yaml, or the file that HELM_EXT_PRICES names: what a million tokens cost, in any one currency
    local/my-model: {in: 0.15, out: 0.60, cached: 0.075}

    HELM_EXT_MAX_COST=5 HELM_EXT_MAX_TOKENS=2000000 helm-run ...

The limits are those of all runs of one helm-run together. Requests that are in flight when one is met are answered,
kept and paid for.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm.benchmark.model_deployment_registry import ModelDeploymentNotFoundError, get_model_deployment
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.object_spec import get_class_by_name
from helm.common.optional_dependencies import OptionalDependencyNotInstalled

from helm_ext.adaptation.recorded import is_recorded
from helm_ext.clients.asking import AsyncClient
from helm_ext.clients.estimate import MAX_COST_ENV, MAX_TOKENS_ENV, Estimate, Prices, format_cost, read_prices
from helm_ext.errors import RunEntryError, count, show
from helm_ext.running.progress import Budget

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec
    from helm.common.request import Request

__all__ = ["MAX_COST_ENV", "MAX_TOKENS_ENV", "PRICES_ENV", "Spending", "read_limits"]

PRICES_ENV = "HELM_EXT_PRICES"
PRICES_FILE = "prices.yaml"

COUNTED = 200
"""Prompts whose tokens are counted for an estimate; those of the others are foreseen from their lengths."""


@dataclass
class Spending:
    """Prices by deployment, and the budget of this process."""

    prices: Mapping[str, Prices] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)

    @classmethod
    def read(cls, local_path: Path) -> Spending:
        """Read the prices and the limits. Raises RunEntryError."""
        named = os.environ.get(PRICES_ENV)
        path = Path(named) if named else local_path / PRICES_FILE
        prices = read_prices(path) if named or path.exists() else {}
        return cls(prices, Budget(*read_limits()))

    def prices_of(self, deployments: Collection[str]) -> Prices | None:
        """Return the prices of the one deployment that a run asks; None where they are not known."""
        return self.prices.get(next(iter(deployments))) if len(deployments) == 1 else None

    def require_keepable(self, run_specs: Iterable[RunSpec]) -> None:
        """Raise RunEntryError, before anything is asked, where what a run asks of models is not counted.

        Clients are not made: a model of this machine takes its memory when its turn comes.
        """
        if not self.budget.is_limited:
            return
        reasons: dict[str, None] = {}
        for run_spec in run_specs:
            try:
                self._require_run(run_spec)
            except RunEntryError as error:
                reasons[str(error)] = None
        if reasons:
            raise RunEntryError("\n".join(reasons))

    def _require_run(self, run_spec: RunSpec) -> None:
        """Raise RunEntryError for a client that does not count, and for an annotator that asks a model."""
        deployment = run_spec.adapter_spec.model_deployment
        try:
            client = _find_class(get_model_deployment(deployment).client_spec.class_name)
        except ModelDeploymentNotFoundError:
            return
        if client is not None and not is_recorded(deployment):
            self._require_counted(deployment, counts_tokens=issubclass(client, AsyncClient))
        limit = next(name for name, limit in self._limits() if limit is not None)
        for spec in run_spec.annotators or ():
            annotator = _find_class(spec.class_name)
            if annotator is not None and "auto_client" in inspect.signature(annotator).parameters:
                raise RunEntryError(
                    f"{limit}={os.environ.get(limit)}: the limit cannot be kept: {run_spec.name} has an annotator that "
                    f"asks a model, {spec.class_name}, and what that costs nobody counts\n"
                    f"  hint: without {limit} nothing is limited"
                )

    def require_kept(self, deployment: str, client: Any) -> None:
        """Raise RunEntryError for a limit that could not be kept, and LimitReached where nothing is left."""
        self._require_counted(deployment, counts_tokens=isinstance(client, AsyncClient))
        self.budget.require_left()

    def _require_counted(self, deployment: str, *, counts_tokens: bool) -> None:
        prices = self.prices.get(deployment)
        if self.budget.cost is not None and prices is None:
            raise RunEntryError(
                f"{MAX_COST_ENV}={self.budget.cost:g}: what {deployment} costs is not known\n"
                f"  hint: `{deployment}: {{in: 0.15, out: 0.60}}` in prod_env/{PRICES_FILE}"
            )
        is_free = prices is not None and not any((prices.prompt, prices.completion, prices.cached))
        limits = [name for name, limit in self._limits() if limit is not None]
        if limits and not counts_tokens and not (is_free and limits == [MAX_COST_ENV]):
            raise RunEntryError(
                f"{limits[0]}: the client of {deployment} does not say how many tokens it asked for\n"
                "  hint: helm_ext.clients.OpenAICompatibleClient does, with the streaming runner"
            )

    def announce(
        self, deployment: str, requests: Iterable[Request], count_tokens: Callable[[str], int] | None
    ) -> Estimate:
        """Log what the requests that are about to be sent will be, in tokens and in money; return it."""
        estimate, number = Estimate(count_tokens, most_counted=COUNTED), 0
        for request in requests:
            estimate.add(request)
            number += 1
        said = f"{deployment}: {count(number, 'request')}, {estimate}"
        prices = self.prices.get(deployment)
        if prices is not None:
            least, most = (prices.cost(estimate.prompt_tokens, out) for out in (0, estimate.completion_tokens))
            said += f"; cost: {format_cost(least)} for what goes in, at most {format_cost(most)} in all"
            left = None if self.budget.cost is None else self.budget.cost - self.budget.spent_cost
            if left is not None and least > left:
                hwarn(f"{deployment}: what goes in alone will cost more than is left of {MAX_COST_ENV}: {left:g}")
        hlog(said)
        return estimate

    def _limits(self) -> tuple[tuple[str, float | None], ...]:
        return ((MAX_COST_ENV, self.budget.cost), (MAX_TOKENS_ENV, self.budget.tokens))


def _find_class(name: str) -> type | None:
    """Return the class of a path; None where it cannot be imported, which is for its run to say."""
    try:
        found: type = get_class_by_name(name)
    except (ImportError, AttributeError, OptionalDependencyNotInstalled):
        return None
    return found


def read_limits() -> tuple[float | None, int | None]:
    """Return what may be spent, in money and in tokens; None: any. Raises RunEntryError for what is no limit."""
    cost, tokens = _read_limit(MAX_COST_ENV), _read_limit(MAX_TOKENS_ENV, whole=True)
    return cost, None if tokens is None else int(tokens)


def _read_limit(name: str, *, whole: bool = False) -> float | None:
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf or (whole and not number.is_integer()):
        kind = "a whole number of tokens" if whole else "a number, in the currency of the prices,"
        raise RunEntryError(f"{name}={show(text)}: expected {kind} from 0 on\n  hint: unset it for no limit")
    return number
