"""The order in which rows are handed to HELM, so that `--max-eval-instances` takes those that a live run can use.

Some rows of a recorded file take part only in recorded runs (`RowExtra.only`): they are demonstrations of a live run,
or beyond the file's own cap. HELM samples before an adapter could tell it so (`downsample_eval_instances`), and of ten
rows none might be left. Its choice is always the same: numpy's generator seeded with 0 orders the positions of all eval
rows, and the first m are taken. So the rows of live runs are put at those positions that come first. Then a live run of
-m rows has min(m, rows of live runs), a recorded one has m, and up to the number of live rows both are about the same
rows. A test runs HELM's own function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from helm_ext.evalset import row_extra

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

__all__ = ["order_for_sampling"]


def order_for_sampling(instances: Sequence[Instance], eval_splits: Sequence[str]) -> list[Instance]:
    """Return the instances with those eval rows moved that HELM's sampling would take in the wrong order.

    Rows of live runs keep their order among themselves, and so do the others; train rows stay where they are. Nothing
    moves where all eval rows take part in live runs. `eval_splits`: the splits that HELM samples from.
    """
    places = [place for place, instance in enumerate(instances) if instance.split in eval_splits]
    live = [instances[place] for place in places if row_extra(instances[place]).get("only") != "recorded"]
    if len(live) == len(places):
        return list(instances)
    from numpy.random import RandomState

    taken = RandomState(0).permutation(len(places))
    first = set(taken[: len(live)].tolist())
    waiting = iter(live)
    others = iter([instances[place] for place in places if row_extra(instances[place]).get("only") == "recorded"])
    ordered = list(instances)
    for position, place in enumerate(places):
        ordered[place] = next(waiting if position in first else others)
    return ordered
