"""A StreamingRunner whose models are asked, and whose recordings are scored, by Ray actors, here or on a cluster.

    helm-run --runner-class-name helm_ext.running.RayRunner ...

Same arguments, same files; `--num-threads` is for each actor. What helm-run has no argument for is in the environment
(docs/how-to/many_rows.md). Only this module and those that it imports need Ray.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from helm_ext.engines.ray_engine import RayEngine
from helm_ext.running.kept import KeptAnswers
from helm_ext.running.ray_live import RayExecutor
from helm_ext.running.runner import StreamingRunner

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.run_spec import RunSpec


class RayRunner(StreamingRunner):
    """See the module's docstring."""

    executor_class = RayExecutor
    executor: RayExecutor
    shares_disk = False
    """Rows of recorded runs are sent to the actors, and the parts of the run's files come back."""
    _engine: RayEngine | None = None

    def run_all(self, run_specs: list[RunSpec]) -> None:
        """Run all, and let the actors go."""
        try:
            super().run_all(run_specs)
        finally:
            if self._engine is not None:
                self._engine.disconnect()
            self.executor.close()

    def make_engine(self) -> RayEngine:
        """Return the actors that score the rows of recorded runs."""
        if self._engine is None:
            self._engine = RayEngine()
        return self._engine

    def run_one(self, run_spec: RunSpec) -> None:
        """Run as StreamingRunner does. Answers that were kept are removed when all files are there."""
        self.executor.folder = None
        super().run_one(run_spec)
        if self.executor.folder is not None:
            KeptAnswers(self.executor.folder).remove()

    def _execute(self, run_spec: RunSpec, states: list[RequestState]) -> ScenarioState:
        if not (self.dry_run or self.skip_instances):
            self.executor.folder = Path(self._get_run_path(run_spec))
        return super()._execute(run_spec, states)
