"""`helm-ext judge check`: is this judge any good, for whom, and how many more labels would say it better."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from helm_ext.cli.console import Console
from helm_ext.cli.options import JsonLines, read_folders
from helm_ext.cli.output import echo, without_output
from helm_ext.errors import count

if TYPE_CHECKING:
    from helm_ext.analysis.judge_check import JudgeCheck, ModelCheck
    from helm_ext.scoring.statistics.corrected import Corrected, Refused
    from helm_ext.scoring.statistics.intervals import Interval

_GOOD, _FAIR = 0.8, 0.6
"""Gwet's AC1 above which a judge agrees well with people, and above which it agrees fairly (Landis and Koch 1977)."""


def check(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs, of one model each, or of suites.")
    ],
    criterion: Annotated[str | None, typer.Option(help="Check judges by this criterion alone.")] = None,
    as_json: JsonLines = False,
) -> None:
    """Say whether judges are any good, whom they favour, and how many more labels are needed.

    People's labels of the same answers tell it: `helm-ext judge sheet` draws answers to label.
    """
    from helm_ext.analysis.judge_check import check_judges

    found = read_folders(runs)
    with without_output():
        checks = check_judges(found, criterion)
    console = Console(highlight=False)
    for number, one in enumerate(checks):
        if as_json:
            echo(json.dumps(to_json(one)))
            continue
        rubric = f", rubric {one.rubric[:12]}" if one.rubric else ""
        console.print(
            ("\n" if number else "") + f"[bold]{escape(f'{one.criterion}, judged by {one.judge}{rubric}')}[/bold]"
        )
        for said in describe(one):
            console.print(escape(said), soft_wrap=True)
        console.print(_make_table(one))


def describe(one: JudgeCheck) -> list[str]:
    """Return in words whether the judge is good, for whom, and what is missing: the answer first."""
    from helm_ext.scoring.statistics.corrected import Refused

    score, said = one.whole.score, []
    found = score.corrected
    if isinstance(found, Refused):
        said.append(f"Nobody knows how good this judge is: {found.reason}.")
        said.append(_offer_sheet(score.undesigned))
    else:
        said.append(_describe_worth(one))
        labels, raw = count(score.labels, "label"), _percent(score.raw)
        said.append(f"It says {raw}; corrected by {labels}: {_percent(found.interval)}.")
    said += _describe_favour(one.models)
    if score.agreement is not None:
        named = (("kappa", score.agreement.kappa), ("AC1", score.agreement.ac1), ("alpha", score.agreement.alpha))
        shown = ", ".join(f"{name} {_number(value)}" for name, value in named)
        base = f"; the judge passes {score.raw.mean:.0%} of all answers" if one.whole.sensitivity else ""
        said.append(f"Agreement with people: on {score.agreement.observed:.1%} of the answers; {shown}{base}.")
    if score.raters is not None:
        said.append(f"People among themselves: alpha {_number(score.raters)}.")
    if one.length is not None:
        how = "kinder" if one.length.mean > 0 else "harsher"
        sure = "" if _holds_zero(one.length) else f": it is {how} to long ones"
        said.append(f"Overrates the longer half of the answers by {_points(one.length)} more than the shorter{sure}.")
    if one.swapped is not None:
        said.append(
            f"With both answers swapped it stays by its verdict in {_percent(one.swapped.consistency)} of the pairs; "
            f"the first model wins {_percent(one.swapped.win_rate)}."
        )
    if score.set_aside:
        said.append(f"Labels of {score.set_aside:,} rows were drawn in another way, earlier, and are set aside.")
    if one.statuses:
        numbers = (f"{number:,} {status}" for status, number in sorted(one.statuses.items()))
        said.append(f"No part of this: {', '.join(numbers)}.")
    return [*said, *_describe_needed(one)]


def _describe_worth(one: JudgeCheck) -> str:
    from helm_ext.scoring.statistics.corrected import Refused

    agreement, bias = one.whole.score.agreement, one.whole.bias
    coefficient = None if agreement is None else agreement.ac1 if one.whole.sensitivity else agreement.alpha
    word = "It cannot be told whether this judge agrees with people"
    if coefficient is not None and math.isfinite(coefficient.low):
        low, high = coefficient.low, coefficient.high
        word = (
            "This judge agrees well with people" if low >= _GOOD
            else "This judge agrees poorly with people" if high < _FAIR
            else "This judge agrees fairly with people" if low >= _FAIR
            else "This judge may agree well with people, or poorly"
        )  # fmt: skip
    if isinstance(bias, Refused):
        return f"{word}."
    if _holds_zero(bias.interval):
        return f"{word}, and is not seen to be kinder or harsher ({_points(bias.interval)})."
    how = "too kind" if bias.interval.mean > 0 else "too harsh"
    return f"{word}, and is {how}: by {_points(bias.interval)}."


def _describe_favour(models: list[ModelCheck]) -> list[str]:
    """Say whether the judge overrates one model more than another: the limits of the two that differ most, by MOVER."""
    from helm_ext.scoring.statistics.corrected import Corrected

    known = [(one.bias.interval, one.model) for one in models if isinstance(one.bias, Corrected)]
    if len(known) < 2:
        return []
    least, most = min(known, key=lambda one: one[0].mean), max(known, key=lambda one: one[0].mean)
    apart = most[0].mean - least[0].mean
    low = apart - math.hypot(most[0].mean - most[0].low, least[0].high - least[0].mean)
    high = apart + math.hypot(most[0].high - most[0].mean, least[0].mean - least[0].low)
    size = f"{100 * apart:.1f} points more than {least[1]} (95 %: {100 * low:+.1f} to {100 * high:+.1f})"
    if low > 0:
        return [f"It favours {most[1]}: it overrates it by {size}."]
    return [f"It is not seen to favour a model: it overrates {most[1]} by {size}."]


def _describe_needed(one: JudgeCheck) -> list[str]:
    from helm_ext.scoring.statistics.corrected import Refused

    score = one.whole.score
    if isinstance(score.corrected, Refused) or not score.corrected.cells:
        return []
    if one.needed is None:
        return [f"No number of labels makes the interval ± 0.03: {count(score.raw.count, 'row')} are too few."]
    total = sum(one.needed.values())
    if not total:
        return ["Its interval is ± 0.03 or shorter: no more labels are needed for that."]
    each = ", ".join(f"{number} with the verdict {cell}" for cell, number in one.needed.items() if number)
    return [f"{count(total, 'more label')} would make the interval ± 0.03: {each}."]


def _offer_sheet(undesigned: int) -> str:
    sheet = (
        "To find out: helm-ext judge sheet RUN -n 100 --design by_verdict; label it; helm-ext judge labels SHEET.csv."
    )
    own = " If their rows were drawn at random: helm-ext judge labels FILE --design random." if undesigned else ""
    return sheet + own


def _make_table(one: JudgeCheck) -> Table:
    table = Table(box=None, pad_edge=False)
    for place, heading in enumerate(
        ("model", "rows", "labels", "judge says", "corrected", "overrated by", "passes right", "fails wrong")
    ):
        table.add_column(heading, justify="right" if place else "left")
    for model in [one.whole, *(one.models if len(one.models) > 1 else [])]:
        score = model.score
        sides = (_of_interval(model.sensitivity), _of_interval(model.specificity))
        cells = (f"{score.raw.count:,}", f"{score.labels:,}", f"{score.raw.mean:.2f}", _of(score.corrected))
        table.add_row(escape(model.model), *cells, _of(model.bias, sign="+"), *sides)
    return table


def _of(found: Corrected | Refused, sign: str = "") -> str:
    interval = getattr(found, "interval", None)
    return "not known" if interval is None else _of_interval(interval, sign)


def _of_interval(interval: Interval | None, sign: str = "") -> str:
    if interval is None:
        return ""
    return f"{interval.mean:{sign}.2f} ({interval.low:{sign}.2f} to {interval.high:{sign}.2f})"


def _percent(interval: Interval) -> str:
    if interval.low < 0 or interval.high > 1:  # grades
        return f"{interval.mean:.3g} ({interval.low:.3g} to {interval.high:.3g})"
    return f"{interval.mean:.1%} ({interval.low:.1%} to {interval.high:.1%})"


def _points(interval: Interval) -> str:
    return f"{interval.mean:+.3f} (95 %: {interval.low:+.3f} to {interval.high:+.3f})"


def _number(interval: Interval | None) -> str:
    if interval is None:
        return "not defined (all say the same)"
    return f"{interval.mean:.2f}" + (
        f" ({interval.low:.2f} to {interval.high:.2f})" if math.isfinite(interval.low) else ""
    )


def _holds_zero(interval: Interval) -> bool:
    return interval.low <= 0 <= interval.high


def to_json(one: JudgeCheck) -> dict[str, Any]:
    """Return a check for programs; null is what is not known."""
    agreement, needed = one.whole.score.agreement, one.needed
    return {
        "criterion": one.criterion,
        "judge": one.judge,
        "rubric_sha256": one.rubric or None,
        **_model_json(one.whole),
        "models": [{"model": model.model, **_model_json(model)} for model in one.models],
        "observed_agreement": None if agreement is None else agreement.observed,
        **{name: _json(agreement and getattr(agreement, name)) for name in ("kappa", "ac1", "alpha")},
        "raters_alpha": _json(one.whole.score.raters),
        "longer_half": _json(one.length),
        "consistency": _json(one.swapped and one.swapped.consistency),
        "win_rate": _json(one.swapped and one.swapped.win_rate),
        "labels_needed": needed,
        "not_counted": dict(one.statuses),
    }


def _model_json(model: ModelCheck) -> dict[str, Any]:
    score = model.score
    return {
        "rows": score.raw.count,
        "labels": score.labels,
        "undesigned_labels": score.undesigned,
        "set_aside": score.set_aside,
        "raw": _json(score.raw),
        "corrected": _json(getattr(score.corrected, "interval", None)),
        "refused": getattr(score.corrected, "reason", None),
        "overrated": _json(getattr(model.bias, "interval", None)),
        "sensitivity": _json(model.sensitivity),
        "specificity": _json(model.specificity),
    }


def _json(interval: Interval | None) -> dict[str, float | None] | None:
    if interval is None:
        return None
    ends = {"low": interval.low, "high": interval.high}
    return {"mean": interval.mean, **{name: end if math.isfinite(end) else None for name, end in ends.items()}}
