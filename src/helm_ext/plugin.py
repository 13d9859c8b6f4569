"""Entry point of group `helm`: registers what `helm-run` finds by name.

`helm-run` imports this module for every user of the environment, and turns an exception here into one warning and an
"Unknown run spec name" later. So: nothing heavy is imported, nothing can fail, the work is imported when asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helm.benchmark.run_spec import RunSpec, discover_run_spec_functions, run_spec_function
from helm.common.hierarchical_logger import hwarn

from helm_ext import adaptation
from helm_ext.errors import say_plainly
from helm_ext.formats import registry
from helm_ext.planning import expanders


def _get_run_spec(entry: str, arguments: Mapping[str, Any]) -> RunSpec:
    if (pending := expanders.find_pending(entry, arguments)) is not None:
        return pending
    from helm_ext.planning.run_specs import get_run_spec

    return get_run_spec(entry, arguments)


def _register(entry: str) -> None:
    """Register the run entry of a format: `NAME:path=FILE,model=...`."""

    def get_run_spec(**arguments: Any) -> RunSpec:
        return _get_run_spec(entry, arguments)

    try:
        run_spec_function(entry)(get_run_spec)
    except ValueError as error:  # HELM, or another plugin, has a run entry of that name
        hwarn(f"the format {entry!r} has no run entry: {error}")


def install() -> None:
    """Register the run entries of all formats, recorded deployments, and what requests need."""
    say_plainly()
    adaptation.install()
    names = registry.format_names()
    if not all(map(registry.is_ours, names)):
        # HELM's own functions first: it could not import its modules any more if another format had taken their names.
        discover_run_spec_functions()
    for name in names:
        _register(name)
    expanders.install(_get_run_spec)


install()
