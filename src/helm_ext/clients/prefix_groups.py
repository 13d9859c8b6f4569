"""Which token sequences of a row are computed together: those that begin alike. Pure functions.

What counts are tokens, not strings: a tokenizer may merge the last character of a prompt with the first one of an
option, and then the sequences part before the option's text begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

FORWARD_COST = 16
"""What one more forward pass costs beside its tokens, in tokens: it need not be exact, it only decides ties."""

BATCH_TOKENS = 2048
"""Tokens whose keys and values are held at once, the prefix counted for each of its copies."""

BATCH_TAILS = 160
"""Tokens beyond the prefix whose logits over the whole vocabulary are held at once."""

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
