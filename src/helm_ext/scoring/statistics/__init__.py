"""How sure a number is, which of two models is better, what a judge is worth. Pure: arrays in, numbers out."""

from helm_ext.scoring.statistics.intervals import Interval, mean_interval
from helm_ext.scoring.statistics.paired import Comparison, MarginTest, compare_rows, holm, judge_margin
from helm_ext.scoring.statistics.repeated import answers_interval, trials_interval
from helm_ext.scoring.statistics.sample_size import discordant_share, rows_needed

__all__ = [
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
    "trials_interval",
]
