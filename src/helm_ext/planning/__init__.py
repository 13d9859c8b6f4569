"""From a run entry to a RunSpec."""

CAPPED_ROWS = "helm_ext.scoring.completeness.CappedRowsMetric"
"""Class path of the metric that knows how many rows a run without a cap evaluates."""
RUN_ARGUMENTS = "helm_ext.planning.names.RunArguments"
"""Class path of the metric that holds a run's arguments in full, where they are shortened elsewhere."""
OF_ONE_FILE = frozenset({CAPPED_ROWS, RUN_ARGUMENTS})
"""Metrics that measure no answer: they hold facts of one file and of how it was planned."""
