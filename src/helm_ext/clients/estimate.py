"""How many tokens some requests are, and what they cost, before they are sent."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from helm_ext.clients.openai_requests import is_scored
from helm_ext.errors import RunEntryError, show

if TYPE_CHECKING:
    from helm.common.request import Request

MAX_COST_ENV, MAX_TOKENS_ENV = "HELM_EXT_MAX_COST", "HELM_EXT_MAX_TOKENS"

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


def find_unenforced_limit(*, is_local: bool = False) -> str:
    """Return why a request that HELM's own code sends may not be sent; "" where the user set no limit.

    The streaming runner counts what is spent. HELM's runner counts nothing, nor do its annotators, which ask a judge:
    they would spend beyond the limit without a word. `is_local`: a model of this machine's costs no money.
    """
    names = (MAX_TOKENS_ENV,) if is_local else (MAX_COST_ENV, MAX_TOKENS_ENV)
    name = next((name for name in names if os.environ.get(name)), None)
    if name is None:
        return ""
    return (
        f"{name}={os.environ[name]}: the limit cannot be kept: this request is one of HELM's own runner, or of an "
        "annotator, which count nothing\n"
        "  hint: --runner-class-name helm_ext.running.StreamingRunner keeps limits of the model that is evaluated; "
        f"without {name} nothing is limited"
    )


def read_prices(path: Path) -> dict[str, Prices]:
    """Read a YAML file of prices, by deployment: `local/my-model: {in: 0.15, out: 0.60, cached: 0.075}`.

    `cached`, for prompt tokens that the provider had cached, may be absent. Raises RunEntryError.
    """
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


def parse_yaml(text: str, path: Path) -> Any:
    """Return what the text of a YAML file says. Raises RunEntryError with the line."""
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        said = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RunEntryError(f"{place}: not YAML: {said}") from error


def format_cost(cost: float) -> str:
    """Write an amount of money: two places from 1 on, else two digits."""
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.2g}"
