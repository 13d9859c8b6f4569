"""`helm-ext score --fail-under METRIC=X`: the least values that a pipeline accepts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from helm_ext.cli.run_scores import find_headline, find_judged, read_stats
from helm_ext.errors import RunEntryError, did_you_mean
from helm_ext.scoring.stat_names import list_judge_stats

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec

_MAIN = re.compile(r"main(@.*)?")
"""Each run's main metric, or another stat of it: `main@ci_low`."""


def parse_thresholds(given: Sequence[str]) -> dict[str, float]:
    """Return METRIC to the least value that is accepted. Raises RunEntryError."""
    least: dict[str, float] = {}
    for one in given:
        name, _, value = one.rpartition("=")
        try:
            least[name] = float(value)
        except ValueError:
            name = ""
        if not name or math.isnan(least[name]):
            raise RunEntryError(f"--fail-under {one}: expected METRIC=NUMBER, for example main=0.8")
    return least


def find_below(run_spec: RunSpec, folder: Path, least: Mapping[str, float]) -> list[str]:
    """Return in words which metrics of a run are below their least value, each line beginning with "below".

    A metric that no row has is below any, and so is one of which a lower value is better: a least value says nothing.
    A judge's own number that is not below is named too: nobody shall take it for a corrected one.
    """
    if not least:
        return []
    from helm_ext.analysis.scores import is_lower_better

    stats = read_stats(run_spec, folder)
    main = find_headline(run_spec, stats)
    named = {given: main + given.removeprefix("main") if _MAIN.fullmatch(given) else given for given in least}
    spec = json.loads((folder / "run_spec.json").read_bytes())
    raw = list_judge_stats(find_judged(run_spec))
    below = []
    for given, value in least.items():
        name = named[given]
        said = f"{name}, the judge's own number, uncorrected," if name.partition("@")[0] in raw else name
        if name not in stats:
            near = did_you_mean(name, stats)
            below.append(f"below: {run_spec.name}: no row has a value for {name}" + (f": {near}" if near else ""))
        elif is_lower_better(spec, name):
            below.append(
                f"below: {run_spec.name}: a lower {name} is better, so --fail-under {given} says nothing of it"
            )
        elif not stats[name]["mean"] >= value:
            below.append(f"below: {run_spec.name}: {said} is {stats[name]['mean']:.4g}, less than {value:g}")
        elif said != name:
            below.append(f"note: {run_spec.name}: {said} is {stats[name]['mean']:.4g}, not below {value:g}")
    return below
