"""A few numbers of each row of a dataset that is not held in memory: what decides who takes part in a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LIVE", "RECORDED", "STATUSES", "Lacks", "Recordings", "RowColumns", "find_lacks"]

STATUSES = ("ok", "not_run", "failed", "unscored", "too_long")
"""`Recorded.status`, by code."""
BOTH, LIVE, RECORDED = 0, 1, 2
"""`RowExtra.only`, by code."""


class Lacks:
    """What a recording may not hold, as bits: stats that would be made of it are not measured."""

    TOKENS = 1
    LOGPROBS = 2
    """Log-probabilities: some that are not 0, and none that is no number."""
    TRAIN_INSTANCES = 4
    TRUNCATED = 8


def find_lacks(state: Mapping[str, Any]) -> int:
    """Return what a recording (`RecordedState`) does not hold, as bits of `Lacks`."""
    completions = state["result"]["completions"]
    return (
        (0 if all(completion.get("tokens") for completion in completions) else Lacks.TOKENS)
        | (0 if _has_logprobs(completions) else Lacks.LOGPROBS)
        | (0 if "num_train_instances" in state else Lacks.TRAIN_INSTANCES)
        | (0 if "prompt_truncated" in state else Lacks.TRUNCATED)
    )


def _has_logprobs(completions: Sequence[Mapping[str, Any]]) -> bool:
    """Of recorded completions what `scoring.completeness` finds out of HELM's."""
    measured = False
    for completion in completions:
        logprob = completion.get("logprob") or 0.0
        tokens = completion.get("tokens")
        if logprob:
            measured = True
        if not math.isfinite(logprob):
            return False
        if tokens and not math.isfinite(sum([token.get("logprob") or 0.0 for token in tokens])):
            return False
    return measured


@dataclass(frozen=True, kw_only=True)
class Recordings:
    """What is recorded of each row."""

    status: NDArray[np.uint8]
    """By STATUSES."""
    lacks: NDArray[np.uint8]
    """Bits of `Lacks`."""

    def find_lacks(self, places: NDArray[Any]) -> int:
        """Return what at least one of these rows does not hold; those that have no recording do not count."""
        usable = places[self.status[places] == 0]
        return int(np.bitwise_or.reduce(self.lacks[usable])) if len(usable) else 0


@dataclass(frozen=True, kw_only=True)
class RowColumns:
    """The columns, one number an instance each."""

    splits: tuple[str, ...]
    split: NDArray[np.uint8]
    """By `splits`."""
    only: NDArray[np.uint8]
    """Kinds of runs that it takes part in: BOTH, LIVE, RECORDED."""
    has_perturbations: bool = False
    has_labels: bool = False
    """Whether there is a row whose completion is read as one of its options."""
    recordings: Recordings | None = None
    """None where there are none."""

    def __len__(self) -> int:
        return len(self.split)

    def is_of(self, splits: Sequence[str]) -> NDArray[np.bool_]:
        """Return which instances are of one of these splits."""
        return np.isin(self.split, [code for code, split in enumerate(self.splits) if split in splits])

    def count_splits(self, kind: Literal["recorded", "live"]) -> Counter[str]:
        """Return how many instances of each split take part in runs of this kind."""
        takes_part = self.split[self.only != (LIVE if kind == "recorded" else RECORDED)]
        return Counter({self.splits[code]: int((takes_part == code).sum()) for code in np.unique(takes_part).tolist()})

    def find_splits(self) -> set[str]:
        """Return the splits that occur."""
        return {self.splits[code] for code in np.unique(self.split).tolist()}
