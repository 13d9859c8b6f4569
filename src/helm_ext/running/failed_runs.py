"""The runs of one helm-run, one after the other, and what is said of those that fail.

HELM logs a traceback of each, and ends with another one that names the runs alone. Here what a user can cause is said
in its own words, without the code that found it; and the last lines say of each run why it failed.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from helm.benchmark.runner import RunnerError
from helm.common.hierarchical_logger import hlog, htrack_block
from tqdm import tqdm

from helm_ext.errors import HelmExtError

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec


class RunsFailedError(HelmExtError, RunnerError):
    """Some of the runs failed; the others are complete. Its first line is that of HELM's RunnerError."""

    def __init__(self, reasons: Sequence[tuple[str, Exception]]) -> None:
        """`reasons`: names of the runs that failed, and why."""
        names = ", ".join(f'"{name}"' for name, _ in reasons)
        super().__init__("\n".join([f"Failed runs: [{names}]", *(f"{name}: {_say(error)}" for name, error in reasons)]))


def run_each(run_one: Callable[[RunSpec], None], run_specs: Sequence[RunSpec], *, exit_on_error: bool) -> None:
    """Restate `helm.benchmark.runner.Runner.run_all`. Raises RunsFailedError; what a run raises with `exit_on_error`.

    tests/contract/test_runner_sources.py fails when HELM changes it.
    """
    reasons: list[tuple[str, Exception]] = []
    for run_spec in tqdm(run_specs, disable=None):
        try:
            with htrack_block(f"Running {run_spec.name}"):
                run_one(run_spec)
        except Exception as error:
            if exit_on_error:
                raise
            said = _say(error) if isinstance(error, HelmExtError) else traceback.format_exc()
            hlog(f"Error when running {run_spec.name}:\n{said}")
            reasons.append((run_spec.name, error))
    if reasons:
        raise RunsFailedError(reasons)


def _say(error: Exception) -> str:
    if isinstance(error, HelmExtError):
        return str(error)
    return f"{type(error).__name__}: {error} (the traceback is above)"
