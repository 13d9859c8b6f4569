"""The names of files and folders that HELM makes of a run."""

from helm.benchmark.presentation.schema import RunGroup
from helm.benchmark.presentation.summarize import get_scenario_name

from helm_ext.planning.names import ADDED_BY_HELM, MAX_FILE_NAME

SUFFIX = ",model=" + "m" * (ADDED_BY_HELM - len(",model="))
"""The longest that HELM may add to a run's name."""


def files_of(run_spec):
    """Return the run's folder, the table of its scenario, and the parts of the path of cached instances."""
    group = run_spec.groups[0]
    of_arguments = f"{group}_{get_scenario_name(RunGroup(name=group, display_name=group), run_spec.scenario_spec)}.json"
    cached = ",".join(f"{key}={value}" for key, value in sorted(run_spec.scenario_spec.args.items()))
    return [run_spec.name + SUFFIX, of_arguments, group, *f"{group}:{cached}".split("/")]


def require_writable(run_spec):
    """Assert that each of them is short enough."""
    for name in files_of(run_spec):
        assert len(name.encode()) <= MAX_FILE_NAME, name
