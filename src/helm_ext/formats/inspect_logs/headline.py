"""Which of its scores a log is headed by.

The rule is inspect_ai's (`log/_headline.py`): `results.headline`, which is written when a log is scored, else what the
task declared, `eval.headline_metric`. Each field that is set narrows the scores, in the order reducer, scorer, score;
then the metric is the named one, of the first score that has it. A declaration that names nothing is abandoned whole.
Without one, or where it was abandoned: the first metric of the first score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_SELECTORS = (("reducer", "reducer"), ("scorer", "scorer"), ("score", "name"))
"""Fields of a declaration, and what each selects a score by."""


class Headline(NamedTuple):
    """One metric of one score."""

    score: int
    """Position in `results.scores`."""
    metric: str
    """Key of its `metrics`."""
    reason: str
    """Why this one, in words."""


def find_headline(scores: Sequence[Mapping[str, Any]], headline: Any, declared: Any) -> Headline | None:
    """Return what a log is headed by, None where it reports nothing.

    `headline`: `results.headline`. `declared`: `eval.headline_metric`.
    """
    said, reason = (
        (headline, "the log's headline") if headline is not None else (declared, "the task's headline_metric")
    )
    if not scores:
        return None
    if isinstance(said, Mapping):
        found = _resolve(scores, said)
        if found is not None:
            return Headline(*found, reason)
        reason = f"the first metric of the log's first score, as {reason} names none that is there"
    else:
        reason = "the first metric of the log's first score"
    first = _first_metric(scores[0])
    return None if first is None else Headline(0, first, reason)


def _resolve(scores: Sequence[Mapping[str, Any]], declared: Mapping[str, Any]) -> tuple[int, str] | None:
    places = list(range(len(scores)))
    for field, selects in _SELECTORS:
        if declared.get(field) is not None:
            places = [place for place in places if scores[place].get(selects) == declared[field]]
    if not places:
        return None
    metric = declared.get("metric")
    if metric is not None:
        return next(((place, metric) for place in places if metric in _metrics(scores[place])), None)
    first = _first_metric(scores[places[0]])
    return None if first is None else (places[0], first)


def _first_metric(score: Mapping[str, Any]) -> str | None:
    """Return the key of a score's first metric; "" may be one."""
    return next(iter(_metrics(score)), None)


def _metrics(score: Mapping[str, Any]) -> Mapping[str, Any]:
    metrics = score.get("metrics")
    return metrics if isinstance(metrics, Mapping) else {}
