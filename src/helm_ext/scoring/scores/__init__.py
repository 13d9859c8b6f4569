"""Score functions that HELM does not have (or has wrong), by name.

A score compares one gold text with one prediction. The row's value is the best over the accepted golds, as for
HELM's own reference metrics. Each module of this package exports `SCORES`, a tuple of `Score`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Score", "get_scores"]


@dataclass(frozen=True)
class Score:
    """A named score function and how a report presents it."""

    name: str
    function: Callable[[str, str], float]
    """(gold, prediction) to a number; pure, offline, and defined for empty strings."""
    display_name: str
    description: str
    lower_is_better: bool = False
    row_function: Callable[[Mapping[str, Any], Sequence[str], str], float] | None = None
    """(row, all golds, prediction) to a number: used instead of `function` where it is given, for rules that need the
    row (`RowExtra["data"]`) or all accepted golds at once."""


def get_scores() -> dict[str, Score]:
    """Return every score of ours by name. Imported late: some modules load tokenizers."""
    from helm_ext.scoring.scores import chat, refusal, ultraeval

    return {score.name: score for module in (chat, refusal, ultraeval) for score in module.SCORES}
