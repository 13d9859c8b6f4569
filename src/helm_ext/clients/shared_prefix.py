"""Log-probabilities of sequences that begin alike: the beginning is computed once.

    prefix   one forward pass, which leaves the keys and values of its tokens in a cache
    tails    a second pass over what follows, on copies of that cache, padded at the end

A token's log-probability is told by the tokens before it, so padding after the end of a sequence changes nothing, and
no mask is needed. What counts are tokens, not strings: a tokenizer may merge the last character of a prompt with the
first one of an option, and then the sequences part before the option's text begins.

The vocabulary's logits, most of the work and of the memory of a small model, are computed only where values are asked
for.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache

FORWARD_COST = 16
"""What one more forward pass costs beside its tokens, in tokens: it need not be exact, it only decides ties."""

BATCH_TOKENS = 2048
"""Tokens whose keys and values are held at once, the prefix counted for each of its copies."""

BATCH_TAILS = 160
"""Tokens beyond the prefix whose logits over the whole vocabulary are held at once."""

SOFTMAX_VALUES = 2**18
"""Logits whose log-softmax is computed at once: a copy of all of them would double the memory, and fit no cache."""

PROBE_PREFIX, PROBE_TAILS = 24, (5, 2)
"""Tokens of the sequences by which a model is asked whether its cache can be shared."""

PROBE_WINDOW = 256
"""Sliding windows up to this many tokens are filled by them."""


Tokens = list[int]


@dataclass(frozen=True)
class Group:
    """Sequences that are computed together, by their places in the row."""

    members: tuple[int, ...]
    shared: int
    """How many tokens all of them begin with."""


def group_by_prefix(sequences: Sequence[Tokens]) -> list[Group]:
    """Return the groups in which the fewest tokens are computed, in the order of their first members.

    Each sequence has one token or more. A calibrated row has two groups: prompts with the question and prompts without.
    Long sequences that share nothing, or no more than a token that begins every text, are computed one by one.
    """
    groups = _divide(sequences, tuple(range(len(sequences))))[1] if sequences else []
    return sorted(groups, key=lambda group: group.members)


def _divide(sequences: Sequence[Tokens], members: tuple[int, ...]) -> tuple[float, list[Group]]:
    """Return the cheapest groups of these sequences and what they cost."""
    # What the first and the last one in alphabetical order begin with, all between them do.
    lowest, highest = (pick(sequences[member] for member in members) for pick in (min, max))
    shared = next(
        (at for at, (one, other) in enumerate(zip(lowest, highest, strict=False)) if one != other), len(lowest)
    )
    branches: dict[int | None, list[int]] = {}
    for member in members:
        sequence = sequences[member]
        branches.setdefault(sequence[shared] if len(sequence) > shared else None, []).append(member)
    together = [Group(members, shared)]
    if len(branches) == 1:  # all alike
        return FORWARD_COST + shared, together
    tails = {tuple(sequences[member][shared:]) for member in members}
    batches = list(cut_tails(tails, shared))
    cost = FORWARD_COST + shared + sum(FORWARD_COST + len(batch) * len(batch[0]) for batch in batches)
    parts = [_divide(sequences, tuple(branch)) for branch in branches.values()]
    cost_apart = sum(part[0] for part in parts)
    if shared == 0 or cost_apart <= cost:
        return cost_apart, [group for part in parts for group in part[1]]
    return cost, together


def cut_tails(tails: set[tuple[int, ...]], shared: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield what follows the shared tokens in batches, in which the longest tail stands first.

    A tail's first token is told by the prefix and its last one tells nothing, so one of a single token is in no batch.
    """
    rest = sorted((tail for tail in tails if len(tail) > 1), key=lambda tail: (-len(tail), tail))
    while rest:
        longest = len(rest[0])
        size = max(1, min(BATCH_TOKENS // (shared + longest), BATCH_TAILS // longest))
        yield rest[:size]
        rest = rest[size:]


class PrefixModel:
    """A causal language model of transformers that scores sequences. Nothing is sampled, nothing is kept."""

    def __init__(self, model: Any, device: Any) -> None:
        """Take a model and the device that its input goes to, and ask it whether its cache can be shared."""
        self.model = model
        self.device = device
        self._slices = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._longest = _find_longest(model.config.get_text_config())
        self.obstacle = ""
        """Why the cache of this model is not shared, "" if it is."""
        try:
            self.obstacle = self._find_obstacle()
        except Exception as error:  # noqa: BLE001 - what a model's code raises is an answer too
            self.obstacle = f"asked with a cache, it failed: {error}"

    def shares(self, sequences: Sequence[Tokens]) -> bool:
        """Whether `score` computes the beginning of these sequences once."""
        return not self.obstacle and max(map(len, sequences)) <= self._longest

    def score(self, sequences: Sequence[Tokens], shared: int) -> list[list[float]]:
        """Return for each sequence the log-probability of each of its tokens.

        `shared`: how many tokens all sequences begin with. A sequence's first token gets 0.0, as in HELM: nothing
        tells it.
        """
        with torch.inference_mode():
            if not self.shares(sequences):
                return [self._score_whole(sequence) for sequence in sequences]
            tails = {tuple(sequence[shared:]) for sequence in sequences}
            values = [0.0]
            found: dict[tuple[int, ...], list[float]] = {(): []}
            self._score(sequences[0][:shared], tails, values, found)
        return [values + found[tuple(sequence[shared:])] for sequence in sequences]

    def _score_whole(self, sequence: Tokens) -> list[float]:
        """Return the values of one sequence in the way of HELM's client, which reads all of it at once."""
        return [0.0, *_pick(self.model(torch.tensor([sequence], device=self.device)).logits[0], sequence[1:])]

    def _score(
        self,
        prefix: Tokens,
        tails: set[tuple[int, ...]],
        values: list[float],
        found: dict[tuple[int, ...], list[float]],
    ) -> None:
        """Append the values of the prefix's tokens to `values`, put those of the tails into `found`."""
        batches = list(cut_tails(tails, len(prefix)))
        begins = sorted(tail[0] for tail in tails if tail)
        # The last token tells what follows it: it is not read where nothing follows.
        read = prefix if begins else prefix[:-1]
        told = prefix[1:]
        if len(told) + bool(begins) == 0:
            return
        output = self._forward([read], keep=len(told) + bool(begins), use_cache=bool(batches))
        logits = output.logits[0]
        values += _pick(logits, told)
        if not begins:
            return
        ahead = dict(zip(begins, _pick(logits[-1:].expand(len(begins), -1), begins), strict=True))
        found.update((tail, [ahead[tail[0]]]) for tail in tails if tail)
        cache: Any = output.past_key_values if batches else None
        del output, logits
        for number, batch in enumerate(batches):
            # A forward pass adds to the cache, so each but the last one gets a copy.
            own = cache if number == len(batches) - 1 else copy.deepcopy(cache)
            if len(batch) > 1:
                own.batch_repeat_interleave(len(batch))
            longest = len(batch[0]) - 1
            padded = [list(tail[:-1]) + [tail[0]] * (longest - len(tail) + 1) for tail in batch]
            logits = self._forward(padded, keep=longest, use_cache=True, past_key_values=own).logits
            told = [token for tail in batch for token in (*tail[1:], *tail[:1] * (longest - len(tail) + 1))]
            picked = _pick(logits.flatten(0, 1), told)
            for place, tail in enumerate(batch):
                start = place * longest
                found[tail] = [ahead[tail[0]], *picked[start : start + len(tail) - 1]]

    def _forward(self, rows: list[list[int]], *, keep: int, **arguments: Any) -> Any:
        """Run the model. The output's logits are those of the last `keep` positions."""
        if self._slices:
            arguments["logits_to_keep"] = keep
        output = self.model(torch.tensor(rows, device=self.device), **arguments)
        if not self._slices:
            output.logits = output.logits[:, -keep:]
        return output

    def _find_obstacle(self) -> str:
        """Ask the model, once, by a few sequences: do they get the same values with a shared cache and without?"""
        if not {"past_key_values", "use_cache"} <= set(inspect.signature(self.model.forward).parameters):
            return "it takes no cache"
        config = self.model.config.get_text_config()
        window = getattr(config, "sliding_window", None) or 0
        length = window + PROBE_PREFIX if 0 < window <= PROBE_WINDOW else PROBE_PREFIX
        length = int(max(1, min(length, _find_positions(config) - max(PROBE_TAILS), self._longest - max(PROBE_TAILS))))
        prefix = [number % config.vocab_size for number in range(length)]
        sequences = [prefix + [(7 * n + 3) % config.vocab_size for n in range(count)] for count in PROBE_TAILS]
        with torch.inference_mode():
            cache = getattr(self._forward([prefix], keep=1, use_cache=True), "past_key_values", None)
            layers = cache.layers if isinstance(cache, Cache) else []
            odd = {type(layer).__name__ for layer in layers} - {"DynamicLayer", "DynamicSlidingWindowLayer"}
            if odd or not layers:
                return f"its cache holds {', '.join(sorted(odd)) or type(cache).__name__}"
            alone = [self._score_whole(sequence) for sequence in sequences]
        tolerance = 1e-3 if self.model.dtype in (torch.float32, torch.float64) else 0.1
        differs = any(
            not math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
            for row, other_row in zip(self.score(sequences, length), alone, strict=True)
            for one, other in zip(row, other_row, strict=True)
        )
        return "a shared cache changes its values" if differs else ""


def _find_positions(config: Any) -> float:
    """Return how many tokens the model was made for."""
    return getattr(config, "max_position_embeddings", None) or math.inf


def _find_longest(config: Any) -> float:
    """Return how long a sequence may be whose beginning is read without knowing the rest.

    Some models scale the positions of all tokens by the length of the whole (`rope_type` dynamic and longrope) where
    that is beyond a limit; beside their parameters stands the limit, or it is that of positions.
    """
    parameters = getattr(config, "rope_parameters", None) or {}
    by_layer = [value for value in parameters.values() if isinstance(value, dict)]
    limits = [
        one.get("original_max_position_embeddings") or _find_positions(config)
        for one in (parameters, *by_layer)
        if one.get("rope_type") in ("dynamic", "longrope")
    ]
    return min([math.inf, *limits])


def _pick(logits: torch.Tensor, tokens: Sequence[int]) -> list[float]:
    """Return the log-probability of each token by the logits of its own row, in the model's precision as HELM's."""
    picked: list[float] = []
    size = max(1, SOFTMAX_VALUES // logits.shape[-1])
    for start in range(0, len(tokens), size):
        part = tokens[start : start + size]
        rows = torch.log_softmax(logits[start : start + len(part)], dim=-1)
        index = torch.tensor(part, device=rows.device)[:, None]
        picked += rows.gather(1, index)[:, 0].tolist()
    return picked
