"""`helm-ext compare --over`: several runs of one model, in order."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from helm_ext.cli.console import Console
from helm_ext.cli.output import echo

if TYPE_CHECKING:
    from helm_ext.analysis.drift import Series


def print_series(found: Sequence[Series], *, as_json: bool) -> None:
    """Print each series: a table, and whether the model got worse; or one JSON object a run, each on a line."""
    if as_json:
        for one in found:
            for point in one.to_json():
                echo(json.dumps(point))
        return
    console = Console()
    for one in found:
        console.print(f"\n[bold]{escape(f'{one.model} on {one.title}: {one.metric}')}[/bold]")
        console.print(_make_table(one))
        console.print(escape(one.describe()))


def _make_table(series: Series) -> Table:
    from helm_ext.analysis.drift import show_minute
    from helm_ext.analysis.pairs import show_p

    table = Table(box=None, pad_edge=False)
    for heading in ("suite", "finished (UTC)"):
        table.add_column(heading)
    for heading in ("mean", "95 % interval", "gain on the first", "p worse", "p (Holm)"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for point in series.points:
        interval, gate = point.interval, point.gate
        ends = f"{interval.low:.3g} to {interval.high:.3g}" if math.isfinite(interval.low) else "not known"
        compared = ["", "", "", ""]
        if gate is not None:
            known = [show_p(p) if p is not None else "not known" for p in (gate.test.p_worse, gate.p_holm)]
            said = {"fail": "worse for certain", "pass": "not worse", "cannot tell": "cannot tell"}[gate.outcome]
            own = "" if gate.result.metric == series.metric else " corrected"  # beside means that are not
            compared = [f"{gate.test.gain:+.4g}{' raw' if gate.result.refusal else own}", *known, said]
        table.add_row(escape(point.run.run.suite), show_minute(point.time), f"{interval.mean:.4g}", ends, *compared)
    return table
