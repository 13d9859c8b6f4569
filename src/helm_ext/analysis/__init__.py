"""What came out of finished runs: HELM's files, row by row, for people and for other tools."""

from helm_ext.analysis.predictions import Prediction
from helm_ext.analysis.runs import FinishedRun, find_runs, read_run

__all__ = ["FinishedRun", "Prediction", "find_runs", "read_run"]
