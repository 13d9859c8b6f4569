"""How stats are called that stand beside another one. Imports little: whoever reads a run's files needs the names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DIFFERS = "_differs"
"""Ends the name of the stat that says on which part of the rows a source's score and ours differ."""

UNSCORED = "_unscored"
"""Ends the name of the stat that says how many rows a source could not score: judgements that it could not read."""

ENDS = ("@ci_low", "@ci_high")
"""End the names of the stats that hold the lower and the upper end of a metric's interval."""

THESE_ROWS = ("@these_rows_low", "@these_rows_high")
"""The same of the interval that knows the noise of the answers alone: what the model scores on exactly these rows."""

ANSWERS = "@answers"
"""Ends the name of a row's stat that says of how many answers to the row the score is made."""

NOISE = "@noise"
"""Ends the name of a row's stat: the variance of its score, were the row answered as often again."""

CORRECTED = "_corrected"
"""Ends the name of a judge's score that people's labels correct: `judge_correct_corrected`."""

LABELS, UNDESIGNED = "_labels", "_undesigned"
"""End the names of the stats that say how many rows have a label whose design is recorded, and how many labels none."""

JUDGED = "_judged"
"""Ends the name of a score of which a judge read what our own reading could not: `exact_match_judged`."""

BESIDE = (*ENDS, *THESE_ROWS, ANSWERS, NOISE)
"""The endings of stats that describe a score and are not scores themselves."""


CHOICE, ANSWER, REFUSAL = "unclear_choice", "unclear_answer", "unclear_refusal"
"""The criteria of rows that our own reading cannot tell: which option an answer chooses; whether an answer, of which
`extract` found nothing, is right; whether a reply refuses. The value of each says whether the row is right."""

UNCLEAR = {CHOICE: "unmapped", ANSWER: "unmapped", REFUSAL: "refusal_unclear"}
"""By criterion the row's stat that is 1 where our own reading cannot tell."""


def judge_stat(criterion: str, by: str = "") -> str:
    """Return the stat of what a jury said, or one judge of several: `judge_correct`, `judge_correct[gpt]`."""
    return f"judge_{criterion}[{by}]" if by else f"judge_{criterion}"


def find_strict(criterion: str, metrics: Sequence[str], main_metric: str) -> str | None:
    """Return the stat beside which a criterion's score of unclear rows stands; None where the run has none."""
    if criterion == REFUSAL:
        return "refusal_match_low" if "refusal_match" in metrics else None
    strict = ("exact_match", "quasi_exact_match")  # which say right or wrong of an answer
    return next((name for name in (main_metric, *strict) if name in strict and name in metrics), None)


def list_judge_stats(judged: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the scores of judges: of each criterion, and where there are several of each judge.

    `judged`: `EvalSet.judged`.
    """
    return [
        judge_stat(criterion, by)
        for criterion, told in judged.items()
        for by in ("", *(told["judges"] if len(told["judges"]) > 1 else ()))
    ]
