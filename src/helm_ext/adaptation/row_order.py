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
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from helm_ext.evalset import EXTRA_KEY, row_extra
from helm_ext.evalset.rows import RECORDED, StoredRows

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance
    from numpy.typing import NDArray


def order_for_sampling(instances: Sequence[Instance], eval_splits: Sequence[str]) -> list[Instance]:
    """Return the instances with those eval rows moved that HELM's sampling would take in the wrong order.

    Rows of live runs keep their order among themselves, and so do the others; train rows stay where they are. Nothing
    moves where all eval rows take part in live runs. `eval_splits`: the splits that HELM samples from.
    Where rows moved, each carries its place in the file (`RowExtra.position`), and `in_file_order` puts them back.
    """
    places = [place for place, instance in enumerate(instances) if instance.split in eval_splits]
    if not any(row_extra(instances[place]).get("only") == "recorded" for place in places):
        return list(instances)
    from numpy.random import RandomState

    live: list[Instance] = []
    others: list[Instance] = []
    for place in places:
        extra = row_extra(instances[place])
        # The position is noted already where a file was read that needs it.
        row = instances[place] if extra.get("position") == place else _with_position(instances[place], place)
        (others if extra.get("only") == "recorded" else live).append(row)
    taken = RandomState(0).permutation(len(places))
    last = set(taken[len(live) :].tolist())
    waiting, unwanted = iter(live), iter(others)
    ordered = list(instances)
    for position, place in enumerate(places):
        ordered[place] = next(unwanted if position in last else waiting)
    return ordered


def sample_places(rows: StoredRows, eval_splits: Sequence[str], most: int | None) -> NDArray[np.intp]:
    """Return the places of the rows that HELM's sampling leaves, in its order: the train rows, then the eval rows.

    For rows that are not in memory what `order_for_sampling` and HELM's `downsample_eval_instances` are for instances;
    tests/unit/adaptation/test_row_order.py holds both equal. `most`: `max_eval_instances`; None: all are left.
    """
    from numpy.random import RandomState

    is_eval = rows.is_of(eval_splits)
    places = np.flatnonzero(is_eval)
    apart = rows.only[places] == RECORDED
    if apart.any():
        last = np.zeros(len(places), bool)
        last[RandomState(0).permutation(len(places))[int((~apart).sum()) :]] = True
        ordered = np.empty_like(places)
        ordered[~last], ordered[last] = places[~apart], places[apart]
        places = ordered
    if most is not None and len(places) > most:
        places = RandomState(0).choice(places, most, replace=False)
    return np.concatenate([np.flatnonzero(rows.is_of(["train"])), places])


def in_file_order(instances: Sequence[Instance]) -> list[Instance]:
    """Return the instances as the file has them: `order_for_sampling` undone, for those that HELM's sampling left."""
    return sorted(instances, key=lambda instance: row_extra(instance).get("position", -1))


def _with_position(instance: Instance, position: int) -> Instance:
    extra = {**row_extra(instance), "position": position}
    return replace(instance, extra_data={**(instance.extra_data or {}), EXTRA_KEY: extra})
