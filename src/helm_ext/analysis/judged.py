"""What a finished run says of judges' scores, and what was judged of its rows as other formats have it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from helm_ext.judging.judgement import NOT_OK, REPLACED, STALE
from helm_ext.scoring.score import CORRECTED, ENDS, LABELS, UNSCORED, list_judge_stats
from helm_ext.scoring.statistics.intervals import Interval

if TYPE_CHECKING:
    from helm_ext.analysis.predictions import Prediction
    from helm_ext.analysis.runs import RunFiles


class JudgedStats(NamedTuple):
    """What a run says of a judge's score."""

    score: str
    """`judge_correct`, or of one judge of several `judge_correct[gpt]`."""
    raw: Interval
    corrected: dict[str, Interval]
    """Of all rows ("") and of attributes' values (`subject=law`); {} where labels correct nothing."""
    labels: int
    not_counted: dict[str, int]
    """Judgements, and answers, that are no part of it, by what they are."""


def list_judged(run: RunFiles, split: str | None) -> list[JudgedStats]:
    """Return the judges' scores of a run, raw and corrected, as its `stats.json` has them."""
    means = run.read_means(split)

    def read(name: str, method: str) -> Interval:
        low, high = (means.get(f"{name}{end}", sign * math.inf) for end, sign in zip(ENDS, (-1, 1), strict=True))
        return Interval(means[name], low, high, round(means.get("num_instances", 0)), method)

    found = []
    for score in list_judge_stats(run.judged):
        if score in means:
            named = [name for name in means if name.partition("@")[0] == f"{score}{CORRECTED}"]
            corrected = {name.partition("@")[2]: read(name, "corrected") for name in named if not name.endswith(ENDS)}
            labels = round(means.get(f"{score}{LABELS}", 0))
            lost = {what.replace("_", " "): number for what, number in count_lost(score, means).items()}
            found.append(JudgedStats(score, read(score, "raw"), corrected, labels, lost))
    return found


def count_lost(score: str, means: Mapping[str, float]) -> dict[str, int]:
    """Return how many judgements are no part of a judge's score, by what they are, and rows without a value.

    Rows that have no value because of just these judgements, of one judge, are not counted a second time.
    """
    numbers = {what: round(means.get(f"{score}_{what}", 0)) for what in NOT_OK}
    rows = round(means.get(f"{score}{UNSCORED}", 0))
    found = {**numbers, "unscored": 0 if rows == sum(numbers.values()) else rows}
    return {what: number for what, number in found.items() if number}


def to_portable(row: Prediction) -> list[dict[str, Any]]:
    """Return what was judged of a row, for other formats' files: what is stale stays so, the rest is bound anew there.

    There the question may be another text: the prompt as it was sent.
    """
    return [
        given if one.status == STALE else {key: value for key, value in given.items() if key != "judged_sha256"}
        for given, one in zip(row.judgements, row.said, strict=True)
        if one.status != REPLACED
    ]
