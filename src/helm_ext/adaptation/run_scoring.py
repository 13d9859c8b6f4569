"""How a run scores its rows stands in what it writes, so that its `scenario_state.json` can be scored again alike.

HELM's ScenarioState has no place for it, so the first row of the run carries it (`RowExtra.scoring`). Which row that is
is known when request states are made: until then all rows share one object.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from helm_ext.evalset import EXTRA_KEY, RunScoring, row_extra

if TYPE_CHECKING:
    from helm.benchmark.metrics.metric import MetricSpec
    from helm.benchmark.scenarios.scenario import Instance

_STATE_KEYS = ("num_train_instances", "prompt_truncated")
"""Of HELM's request states: also the names of the stats that are made of them."""


def make_run_scoring(metric: MetricSpec, main_metric: str) -> RunScoring:
    """Return how a run with this metric scores its rows."""
    return {"class_name": metric.class_name, "args": metric.args, "main_metric": main_metric, "unmeasured": []}


def with_unmeasured(scoring: RunScoring, unmeasured: Collection[str]) -> RunScoring:
    """Return how a run scores its rows, and what of their requests nobody recorded, by the names of its stats."""
    return {**scoring, "unmeasured": [key for key in _STATE_KEYS if key in unmeasured]}


def share_scoring(row: Instance, scoring: RunScoring) -> None:
    """Let a row of a dataset know how its run is scored, until requests are made."""
    if row.extra_data is not None and EXTRA_KEY in row.extra_data:
        row.extra_data[EXTRA_KEY]["scoring"] = scoring


def tell_scoring(first: Instance, scoring: RunScoring, unmeasured: Collection[str] = ()) -> None:
    """Let the first row of a run tell how all are scored. `unmeasured`: names of stats that nobody measured."""
    # Extras may be shared with other rows; request states of the row share the instance.
    extra = {**row_extra(first), "scoring": with_unmeasured(scoring, unmeasured)}
    vars(first)["extra_data"] = {**(first.extra_data or {}), EXTRA_KEY: extra}
