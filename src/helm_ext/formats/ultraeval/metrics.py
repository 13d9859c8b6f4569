"""The metric of UltraEval's GEN tasks: completions are postprocessed as the task says, then scored by upstream's rules.

What it adds to `EvalSetMetric`: the task's postprocessing, `rouge` with arguments, metrics of the user's checkout, and
several samples of one row for metrics that run code: the row's value is the share of samples that pass, upstream's
pass@1, and `ultraeval_pass@K` stands beside it for each K of upstream's aggregator that there are samples for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from helm.benchmark.metrics.metric import MetricMetadata

from helm_ext.evalset import row_extra
from helm_ext.formats.ultraeval.checkout import get_postprocess, open_root
from helm_ext.formats.ultraeval.scoring import CheckoutMetric, load_metric
from helm_ext.scoring.answers import Answer, Question
from helm_ext.scoring.metrics import EvalSetMetric
from helm_ext.scoring.registry import get_scores
from helm_ext.scoring.score import Score, StatInfo, Value
from helm_ext.scoring.scores.ultraeval import EXECUTING, PREFIX, make_rouge

PASS_AT = (2, 10, 25, 50, 100)
"""Upstream's K, but 1 (metrics/aggregator.py, PassK)."""


class UltraEvalMetric(EvalSetMetric):
    """Scores a run of a GEN task. The class path is public API.

    `postprocess`: the name of the task's. `root`: the checkout that has it, or a metric. `definitions`: upstream's
    `evaluation` of metrics that the registry of scores does not hold as such. The rest are arguments of `Scoring`.
    """

    def __init__(
        self,
        metrics: Sequence[str],
        postprocess: str = "",
        root: str | None = None,
        definitions: Mapping[str, Mapping[str, Any]] | None = None,
        **scoring: Any,
    ) -> None:
        self.postprocess = postprocess
        self.root = root
        self.definitions = definitions or {}
        super().__init__(metrics, **scoring)

    def find_scores(self) -> Mapping[str, Score]:
        """Return all scores, those of `definitions` included."""
        return {**get_scores(), **{stat: _make_score(stat, made) for stat, made in self.definitions.items()}}

    def get_postprocess(self) -> Callable[[str], str] | None:
        """Return the task's postprocessing. Raises RunEntryError, TransformError."""
        return get_postprocess(self.postprocess, self.root) if self.postprocess else None

    def compute_own_stats(self, question: Question, answers: Sequence[Answer]) -> dict[str, float]:
        """Return the stats of one row that HELM does not have, pass@K of several samples among them."""
        stats = super().compute_own_stats(question, answers)
        for name in EXECUTING & stats.keys():
            passed = round(stats[name] * len(answers))
            stats |= {f"{PREFIX}pass@{k}": pass_at(k, len(answers), passed) for k in PASS_AT if k <= len(answers)}
        return stats

    def score_row(self, score: Score, question: Question, answers: Sequence[Answer]) -> Value:
        """Return the value of a score that looks at the whole row."""
        if score.name in self._checkout_metrics:
            extra = row_extra(question.instance)
            texts = [answer.text for answer in answers]
            return self._checkout_metrics[score.name](extra["data"], extra["gold"], texts)
        if score.name in EXECUTING:
            score_one = super().score_row
            passed = [score.to_stats(score_one(score, question, [answer]))[score.name] for answer in answers]
            return sum(passed) / len(passed)
        return super().score_row(score, question, answers)

    def get_metadata(self) -> list[MetricMetadata]:
        """Describe every stat for `helm-summarize --auto-generate-schema`; touches no file."""
        executes = any(score.name in EXECUTING for score in self.scores)
        return super().get_metadata() + [
            StatInfo(
                f"{PREFIX}pass@{k}",
                f"pass@{k} (UltraEval)",
                f"How likely one of {k} samples passes the row's tests, where at least {k} were taken.",
            ).to_metadata()
            for k in PASS_AT
            if executes
        ]

    @cached_property
    def _checkout_metrics(self) -> dict[str, CheckoutMetric]:
        own = {stat: made for stat, made in self.definitions.items() if made["type"] != "rouge"}
        return {stat: load_metric(made, open_root(self.root)) for stat, made in own.items()}


def pass_at(k: int, samples: int, passed: int) -> float:
    """Return how likely one of `k` samples passes, of `samples` of which `passed` do: 1 - C(n - c, k) / C(n, k)."""
    return 1.0 - math.comb(samples - passed, k) / math.comb(samples, k)


def _make_score(stat: str, definition: Mapping[str, Any]) -> Score:
    """Return how a metric is presented and, of `rouge`, computed; a checkout's is computed by `score_row`."""
    arguments = {key: value for key, value in definition.items() if key != "type"}
    if definition["type"] == "rouge":
        return make_rouge(**arguments)
    return Score(
        name=stat,
        display_name=f"{stat.removeprefix(PREFIX)} (checkout)",
        description=f"The metric {definition['type']} of the user's UltraEval checkout.",
        row_function=_score_by_checkout,
    )


def _score_by_checkout(*_: Any) -> float:
    raise ValueError("a checkout's metric is called with all answers: UltraEvalMetric.score_row")
