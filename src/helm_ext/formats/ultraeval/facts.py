"""What the run spec function and reports need to know of a task, beside its EvalSet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from helm_ext.formats.ultraeval.metric_names import MetricChoice
from helm_ext.scoring.likelihood_rules import MAIN_STATS

if TYPE_CHECKING:
    from helm.benchmark.metrics.metric import MetricSpec

    from helm_ext.evalset import Scoring

__all__ = ["TaskFacts"]


@dataclass(frozen=True)
class TaskFacts:
    """The value of `EvalSet.details` of an UltraEval task, or of a finished run."""

    method: Literal["gen", "ppl"]
    dataset: str
    script: str
    """The transform script's version; of a finished run, its file's name."""
    script_sha: str
    data_sha: str
    metrics: MetricChoice
    postprocess: str = ""
    root: str | None = None
    """The checkout, where its code postprocesses completions or scores them."""

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
