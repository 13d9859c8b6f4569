"""What came out of finished runs: HELM's files, row by row, for people and for other tools."""

from helm_ext.analysis.predictions import Prediction
from helm_ext.analysis.runs import FinishedRun, find_runs, read_run
from helm_ext.analysis.suite import Suite, read_suite

__all__ = ["FinishedRun", "Prediction", "Suite", "find_runs", "read_run", "read_suite"]
