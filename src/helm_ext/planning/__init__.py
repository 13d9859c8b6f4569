"""From a run entry to a RunSpec."""

RUN_ARGUMENTS = "helm_ext.planning.names.RunArguments"
"""Class path of the metric that holds a run's arguments in full, where they are shortened elsewhere."""
