"""What the EvalSets of task sets and of finished runs are made of alike."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal

from helm_ext.errors import RunEntryError
from helm_ext.evalset import Scoring
from helm_ext.formats.ultraeval.metric_names import MetricChoice
from helm_ext.formats.ultraeval.task_files import Method
from helm_ext.scoring.registry import get_scores
from helm_ext.scoring.scores.ultraeval import EXECUTING

__all__ = ["FORMAT", "make_digest", "make_scoring", "needs_row", "require_allowed"]

FORMAT = "ultraeval"


def needs_row(metrics: MetricChoice) -> bool:
    """Whether a metric reads the row itself."""
    scores = get_scores()
    with_row = any(name in scores and scores[name].kind == "row" for name in metrics.names)
    return bool(metrics.definitions) or with_row


def make_scoring(method: Method, metrics: tuple[str, ...], thinking: Literal["move", "keep"] | None) -> Scoring:
    """Return how outputs become scores; of PPL the likelihoods do."""
    return Scoring(metrics=metrics if method == "gen" else (), main_metric=metrics[0], thinking=thinking or "move")


def require_allowed(metrics: Sequence[str], *, allow_code: bool) -> None:
    """Raise RunEntryError for metrics that run a model's code, unless that was allowed."""
    executing = EXECUTING.intersection(metrics)
    if executing and not allow_code:
        raise RunEntryError(
            f"metric={', '.join(sorted(executing))}: it runs the code that the model writes, on this machine\n"
            "  hint: allow_code=true permits it; run it only where nothing can be lost"
        )


def make_digest(parts: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 of what an EvalSet was made of: (role, SHA-256) of each."""
    text = "".join(f"{role}:{sha256}\n" for role, sha256 in parts)
    return hashlib.sha256(text.encode()).hexdigest()
