"""What live runs cost: prices and limits that the user sets, what is foreseen, how far a run is and when it stops.

    # prod_env/prices.yaml, or the file that HELM_EXT_PRICES names: what a million tokens cost, in any one currency
    local/my-model: {in: 0.15, out: 0.60, cached: 0.075}

    HELM_EXT_MAX_COST=5 HELM_EXT_MAX_TOKENS=2000000 helm-run ...

The limits are those of all runs of one helm-run together. Requests that are in flight when one is met are answered,
kept and paid for. What is drawn of a run, and when: `helm_ext.engines.progress`.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from helm.benchmark.model_deployment_registry import ModelDeploymentNotFoundError, get_model_deployment
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.object_spec import get_class_by_name
from helm.common.optional_dependencies import OptionalDependencyNotInstalled

from helm_ext.adaptation.recorded import is_recorded
from helm_ext.clients.client import MAX_COST_ENV, MAX_TOKENS_ENV, AsyncClient
from helm_ext.clients.openai_requests import is_scored
from helm_ext.engines.progress import Progress, format_cost
from helm_ext.errors import HelmExtError, RunEntryError, count, read_number, show

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec
    from helm.common.request import Request


BYTES_PER_TOKEN = 4
"""Where no tokenizer is known: about what English has, and Chinese (three bytes a character) has not much less."""


Amount = Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"prompt": "in", "completion": "out"}):
    """What a million tokens cost, in any currency."""

    prompt: Amount
    completion: Amount
    cached: Amount | None = None
    """Prompt tokens that the provider had cached from an earlier request; None: they cost as much as the others."""

    @classmethod
    def parse(cls, text: str) -> Prices:
        """Read `IN,OUT`. Raises RunEntryError."""
        try:
            prompt, completion = map(float, text.split(","))
            return msgspec.convert({"in": prompt, "out": completion}, cls)
        except (ValueError, msgspec.ValidationError) as error:
            raise RunEntryError(
                f"--prices {text}: expected IN,OUT, what a million tokens cost\n  hint: --prices 0.15,0.60"
            ) from error

    def cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return what these tokens cost. `prompt_tokens` includes the cached ones, as in OpenAI's `usage`."""
        cached = self.prompt if self.cached is None else self.cached
        fresh = prompt_tokens - cached_tokens
        return (fresh * self.prompt + cached_tokens * cached + completion_tokens * self.completion) / 1_000_000


@dataclass
class Estimate:
    """Tokens of requests: those of the prompts, and the most that the answers can have."""

    count_tokens: Callable[[str], int] | None
    """The tokenizer's count; None where none is known."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    most_counted: int | None = None
    """Texts that are counted; the tokens of later ones are foreseen from these. None: all are counted."""
    _counted: tuple[int, int, int] = (0, 0, 0)
    """Texts, bytes, tokens."""

    def add(self, request: Request) -> None:
        """Count a request."""
        texts = [request.prompt, *(str(message.get("content", "")) for message in request.messages or ())]
        self.prompt_tokens += sum(self._count(text) for text in texts if text)
        if not is_scored(request):
            self.completion_tokens += request.num_completions * request.max_tokens

    def _count(self, text: str) -> int:
        if self.count_tokens is None:
            return -(-_bytes(text) // BYTES_PER_TOKEN)
        if self.most_counted is None:
            return self.count_tokens(text)
        texts, size, tokens = self._counted
        if texts >= self.most_counted:
            return round(_bytes(text) * tokens / max(1, size))
        number = self.count_tokens(text)
        self._counted = (texts + 1, size + _bytes(text), tokens + number)
        return number

    def __str__(self) -> str:
        how = ""
        if self.count_tokens is None:
            how = f" (estimated: {BYTES_PER_TOKEN} bytes a token, for no tokenizer is named)"
        elif self.most_counted is not None and self._counted[0] >= self.most_counted:
            how = f" (estimated from {self.most_counted} prompts)"
        return f"tokens: {self.prompt_tokens:,} in{how}, at most {self.completion_tokens:,} out"


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def read_prices(path: Path) -> dict[str, Prices]:
    """Read a YAML file of prices, by deployment: `local/my-model: {in: 0.15, out: 0.60, cached: 0.075}`.

    `cached`, for prompt tokens that the provider had cached, may be absent. Raises RunEntryError.
    """
    from helm_ext.clients.deployments import parse_yaml

    hint = "\n  hint: local/my-model: {in: 0.15, out: 0.60, cached: 0.075}"
    try:
        found = parse_yaml(path.read_text(encoding="utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise RunEntryError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise RunEntryError(f"{path}: expected prices by deployment, got {show(found)}{hint}")
    prices = {}
    for name, value in found.items():
        try:
            prices[str(name)] = msgspec.convert(value, Prices)
        except msgspec.ValidationError as error:
            message = f"{path}: {name}: expected what a million tokens cost, got {show(value)}{hint}"
            raise RunEntryError(message) from error
    return prices


class LimitReached(HelmExtError):  # noqa: N818 - no fault: what the user asked for
    """A limit that the user set (money, tokens) is met. What was answered is in the cache."""


@dataclass
class Budget:
    """What may be spent. One for all runs of a process, which spend from it together.

    Its numbers are changed by `LiveProgress` alone, under its lock: one run at a time.
    """

    cost: float | None = None
    """In the currency of the prices."""
    tokens: int | None = None
    """In and out."""
    spent_cost: float = 0.0
    spent_tokens: int = 0

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit, so that tokens must be counted."""
        return self.cost is not None or self.tokens is not None

    def require_left(self) -> None:
        """Raise LimitReached where nothing is left."""
        if self.cost is not None and self.spent_cost >= self.cost:
            raise LimitReached(f"stopped: {self.spent_cost:.4g} spent, and the limit is {self.cost:g} ({_HINT})")
        if self.tokens is not None and self.spent_tokens >= self.tokens:
            raise LimitReached(
                f"stopped: {self.spent_tokens:,} tokens in and out, and the limit is {self.tokens:,} ({_HINT})"
            )


_HINT = "what was answered is in the cache, unless that is disabled"


class LiveProgress(Progress):
    """Rows as they are answered: a context manager. Its methods may be called by any thread."""

    delay = 0.0
    """What is asked and what it cost is said of short runs, too."""

    def __init__(
        self, total: int | None, *, prices: Prices | None = None, budget: Budget | None = None, **options: Any
    ) -> None:
        """`prices`: with them, the cost is shown and counted. `budget`: where `done` raises LimitReached.

        `options`: those of Progress. Raises RunEntryError for a mode that is none.
        """
        super().__init__(total, **options)
        self.prices = prices
        self.budget = budget
        if prices is not None:
            self._counts.cost = 0.0

    def done(
        self,
        rows: int = 1,
        cached: int = 0,
        failed: int = 0,
        tokens_in: int = 0,
        tokens_out: int = 0,
        tokens_cached: int = 0,
    ) -> None:
        """Count rows that are finished, those of them that came from the cache or failed, and tokens asked for now.

        `tokens_cached`: those of `tokens_in` that the provider had kept, and counts at a price of their own. Raises
        LimitReached where the budget is spent and rows are left.
        """
        with self._lock:
            counts = self._counts
            counts.rows += rows
            counts.cached += cached
            counts.failed += failed
            if not tokens_in and not tokens_out:
                return
            counts.tokens_in += tokens_in
            counts.tokens_out += tokens_out
            cost = 0.0
            if self.prices is not None:
                cost = self.prices.cost(tokens_in, tokens_out, tokens_cached)
                counts.cost = (counts.cost or 0.0) + cost
            if self.budget is not None:
                self.budget.spent_cost += cost
                self.budget.spent_tokens += tokens_in + tokens_out
                if counts.rows != self.total:
                    self.budget.require_left()

    def retrying(self, change: int) -> None:
        """Count requests that wait for another attempt: +1 when one begins to, -1 when it ends."""
        with self._lock:
            self._counts.retrying += change


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
    limit = partial(read_number, default=None, least=0, most=math.inf, unset="no limit", wrong=RunEntryError)
    cost = limit(MAX_COST_ENV, whole=False, kind="a number, in the currency of the prices,")
    tokens = limit(MAX_TOKENS_ENV, kind="a whole number of tokens")
    return cost, None if tokens is None else int(tokens)
