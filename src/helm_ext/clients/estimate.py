"""How many tokens some requests are, and what they cost, before they are sent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helm_ext.clients.openai_requests import is_scored
from helm_ext.errors import RunEntryError

if TYPE_CHECKING:
    from helm.common.request import Request

__all__ = ["Estimate", "Prices", "format_cost"]

BYTES_PER_TOKEN = 4
"""Where no tokenizer is known: about what English has, and Chinese (three bytes a character) has not much less."""


@dataclass(frozen=True)
class Prices:
    """What a million tokens cost, in any currency."""

    prompt: float
    completion: float
    cached: float | None = None
    """Prompt tokens that the provider had kept from an earlier request; None: as the others."""

    @classmethod
    def parse(cls, text: str) -> Prices:
        """Read `IN,OUT`. Raises RunEntryError."""
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if len(numbers) != 2 or not all(0 <= number < math.inf for number in numbers):
            raise RunEntryError(
                f"--prices {text}: expected IN,OUT, what a million tokens cost\n  hint: --prices 0.15,0.60"
            )
        return cls(*numbers)

    def cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return what so many tokens cost. The prompt's hold the cached ones, as in OpenAI's `usage`."""
        kept = self.prompt if self.cached is None else self.cached
        fresh = prompt_tokens - cached_tokens
        return (fresh * self.prompt + cached_tokens * kept + completion_tokens * self.completion) / 1_000_000


@dataclass
class Estimate:
    """Tokens of requests: those of the prompts, and the most that the answers can have."""

    count_tokens: Callable[[str], int] | None
    """The tokenizer's count; None where none is known."""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, request: Request) -> None:
        """Count a request."""
        texts = [request.prompt, *(str(message.get("content", "")) for message in request.messages or ())]
        self.prompt_tokens += sum(self._count(text) for text in texts if text)
        if not is_scored(request):
            self.completion_tokens += request.num_completions * request.max_tokens

    def _count(self, text: str) -> int:
        if self.count_tokens is not None:
            return self.count_tokens(text)
        return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def format_cost(cost: float) -> str:
    """Write an amount of money: two places from 1 on, else two digits."""
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.2g}"
