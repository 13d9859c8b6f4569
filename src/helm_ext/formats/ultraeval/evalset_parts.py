"""What the EvalSets of task sets and of finished runs are made of alike."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from helm_ext.errors import RunEntryError
from helm_ext.evalset import Scoring
from helm_ext.formats.ultraeval.rows import Rows
from helm_ext.formats.ultraeval.task import Method
from helm_ext.scoring.likelihood_rules import MAIN_STATS
from helm_ext.scoring.registry import get_scores
from helm_ext.scoring.scores.ultraeval import EXECUTING

__all__ = ["FORMAT", "make_digest", "make_scoring", "make_tags", "needs_row", "require_allowed"]

FORMAT = "ultraeval"


def needs_row(metrics: Sequence[str]) -> bool:
    """Whether a metric reads the row itself."""
    scores = get_scores()
    return any(name in scores and scores[name].kind == "row" for name in metrics)


def make_scoring(method: Method, metrics: tuple[str, ...]) -> Scoring:
    """Return how outputs become scores; of PPL the likelihoods do."""
    return Scoring(metrics=metrics if method == "gen" else (), main_metric=metrics[0])


def require_allowed(metrics: Sequence[str], *, allow_code: bool) -> None:
    """Raise RunEntryError for metrics that run a model's code, unless that was allowed."""
    executing = EXECUTING.intersection(metrics)
    if executing and not allow_code:
        raise RunEntryError(
            f"metric={', '.join(sorted(executing))}: it runs the code that the model writes, on this machine\n"
            "  hint: allow_code=true permits it; run it only where nothing can be lost"
        )


def make_tags(
    method: Method, dataset: str, script: tuple[str, str], rows: Rows, metrics: Sequence[str], postprocess: str,
    root: Path | None,
) -> tuple[str, ...]:  # fmt: skip
    """Return what tells one dataset from another, `key=value` each."""
    tags = {
        "method": method,
        "dataset": dataset,
        "script": script[0],
        "script_sha": script[1],
        "data_sha": rows.sha256[:12],
    }
    if method == "ppl":
        tags["rule"] = next(rule for rule, stat in MAIN_STATS.items() if stat == metrics[0])
    elif postprocess:
        tags["postprocess"] = postprocess
        if root is not None:
            tags["root"] = str(root)
    return tuple(f"{key}={value}" for key, value in tags.items())


def make_digest(parts: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 of what an EvalSet was made of: (role, SHA-256) of each."""
    text = "".join(f"{role}:{sha256}\n" for role, sha256 in parts)
    return hashlib.sha256(text.encode()).hexdigest()
