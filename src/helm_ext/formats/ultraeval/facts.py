"""What is known of a task, or of a finished run, beside its EvalSet: how it is scored, and with whose code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from helm_ext.errors import RunEntryError
from helm_ext.evalset import Scoring
from helm_ext.formats.ultraeval.checkout import Checkout, digest_metrics, require_metrics
from helm_ext.formats.ultraeval.metric_names import MetricChoice
from helm_ext.formats.ultraeval.postprocess import comes_from_checkout, get_postprocess
from helm_ext.formats.ultraeval.task_files import Method
from helm_ext.scoring.scores.likelihoods import MAIN_STATS
from helm_ext.scoring.scores.ultraeval import EXECUTING

if TYPE_CHECKING:
    from helm.benchmark.metrics.metric import MetricSpec


@dataclass(frozen=True)
class TaskFacts:
    """The value of `EvalSet.details` of an UltraEval task, or of a finished run."""

    method: Method
    dataset: str
    script: str
    """The transform script's version; of a finished run, its file's name."""
    script_sha: str
    data_sha: str
    metrics: MetricChoice
    postprocess: str = ""
    root: str | None = None
    """The checkout, where its code postprocesses completions or scores them."""

    def to_scoring(self, thinking: Literal["move", "keep"] | None) -> Scoring:
        """Return how outputs become scores; of PPL the likelihoods do."""
        names = self.metrics.names
        return Scoring(names if self.method == "gen" else (), main_metric=names[0], thinking=thinking or "move")

    def to_name_arguments(self) -> dict[str, str]:
        """Return what the run's name says beside the arguments of its entry."""
        return {"script": self.script, "script_sha": self.script_sha[:12], "data_sha": self.data_sha[:12]}

    def to_metric_spec(self, scoring: Scoring) -> MetricSpec:
        """Return HELM's MetricSpec of the task."""
        from helm.benchmark.metrics.metric import MetricSpec

        if self.method == "ppl":
            rule = next(rule for rule, stat in MAIN_STATS.items() if stat == self.metrics.names[0])
            return MetricSpec("helm_ext.scoring.likelihood.SentenceLikelihoodMetric", {"rule": rule})
        own = {
            "postprocess": self.postprocess,
            "root": self.root,
            "definitions": {stat: dict(made) for stat, made in self.metrics.definitions.items()},
        }
        args = scoring.to_args() | {key: value for key, value in own.items() if value}
        return MetricSpec("helm_ext.formats.ultraeval.metrics.UltraEvalMetric", args)


def require_allowed(metrics: MetricChoice, *, allow_code: bool) -> None:
    """Raise RunEntryError for metrics that run a model's code, unless that was allowed."""
    executing = EXECUTING.intersection(metrics.names)
    if executing and not allow_code:
        raise RunEntryError(
            f"metric={', '.join(sorted(executing))}: it runs the code that the model writes, on this machine\n"
            "  hint: allow_code=true permits it; run it only where nothing can be lost"
        )


def require_scores(
    method: Method, metrics: MetricChoice, postprocess: str, checkout: Checkout | None, *, execute: bool = True
) -> dict[str, str]:
    """Return the SHA-256 of the checkout's code that makes scores: of `postprocess` and `metrics`, where it does.

    No code of the checkout is run unless `execute`. Raises RunEntryError for an unknown metric or postprocessing,
    TransformError where the checkout's code fails.
    """
    used: dict[str, str] = {}
    if method == "gen" and execute:
        get_postprocess(postprocess, str(checkout.root) if checkout else None)
        if checkout and comes_from_checkout(postprocess, checkout):
            used["postprocess"] = checkout.digest()
    require_metrics(metrics.from_checkout.values(), checkout, execute=execute)
    if checkout and metrics.from_checkout:
        used["metrics"] = digest_metrics(checkout)
    return used


def make_digest(parts: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 of what an EvalSet was made of: (role, SHA-256) of each."""
    text = "".join(f"{role}:{sha256}\n" for role, sha256 in parts)
    return hashlib.sha256(text.encode()).hexdigest()
