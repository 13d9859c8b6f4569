"""How sure a number is, which of two models is better, what a judge is worth. Pure: arrays in, numbers out."""

from helm_ext.scoring.statistics.intervals import LEVEL, Interval, answers_interval, mean_interval, trials_interval
from helm_ext.scoring.statistics.paired import (
    Comparison,
    MarginTest,
    compare_rows,
    discordant_share,
    holm,
    judge_margin,
    rows_needed,
    rows_to_narrow,
)

__all__ = [
    "LEVEL",
    "Comparison",
    "Interval",
    "MarginTest",
    "answers_interval",
    "compare_rows",
    "discordant_share",
    "holm",
    "judge_margin",
    "mean_interval",
    "rows_needed",
    "rows_to_narrow",
    "trials_interval",
]
