"""What live runs may cost: prices and limits that the user sets, and what is foreseen before the first request.

    # prod_env/prices.yaml, or the file that HELM_EXT_PRICES names: what a million tokens cost, in any one currency
    local/my-model: {in: 0.15, out: 0.60, cached: 0.075}

    HELM_EXT_MAX_COST=5 HELM_EXT_MAX_TOKENS=2000000 helm-run ...

The limits are those of all runs of one helm-run together. Requests that are in flight when one is met are answered,
kept and paid for.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm.common.hierarchical_logger import hlog, hwarn

from helm_ext.clients.asking import AsyncClient
from helm_ext.clients.estimate import MAX_COST_ENV, MAX_TOKENS_ENV, Estimate, Prices, format_cost, read_prices
from helm_ext.errors import RunEntryError, count
from helm_ext.running.progress import Budget

if TYPE_CHECKING:
    from helm.common.request import Request

__all__ = ["MAX_COST_ENV", "MAX_TOKENS_ENV", "PRICES_ENV", "Spending"]

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
        tokens = _read_limit(MAX_TOKENS_ENV)
        return cls(prices, Budget(_read_limit(MAX_COST_ENV), None if tokens is None else int(tokens)))

    def prices_of(self, deployments: Collection[str]) -> Prices | None:
        """Return the prices of the one deployment that a run asks; None where they are not known."""
        return self.prices.get(next(iter(deployments))) if len(deployments) == 1 else None

    def require_kept(self, deployment: str, client: Any) -> None:
        """Raise RunEntryError for a limit that could not be kept, and LimitReached where nothing is left."""
        prices = self.prices.get(deployment)
        if self.budget.cost is not None and prices is None:
            raise RunEntryError(
                f"{MAX_COST_ENV}={self.budget.cost:g}: what {deployment} costs is not known\n"
                f"  hint: `{deployment}: {{in: 0.15, out: 0.60}}` in prod_env/{PRICES_FILE}"
            )
        is_free = prices is not None and not any((prices.prompt, prices.completion, prices.cached))
        limits = [name for name, limit in self._limits() if limit is not None]
        if limits and not isinstance(client, AsyncClient) and not (is_free and limits == [MAX_COST_ENV]):
            raise RunEntryError(
                f"{limits[0]}: the client of {deployment} does not say how many tokens it asked for\n"
                "  hint: helm_ext.clients.OpenAICompatibleClient does, with the streaming runner"
            )
        self.budget.require_left()

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


def _read_limit(name: str) -> float | None:
    """Return the number that an environment variable holds. Raises RunEntryError."""
    text = os.environ.get(name)
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise RunEntryError(f"{name}={text}: expected a number from 0 on")
    return number
