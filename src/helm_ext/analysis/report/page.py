"""Reports and comparisons, each one HTML file that needs no network, no other file and no library in the browser."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from markupsafe import Markup

from helm_ext.analysis.comparing import Flip, PairResult, show_p
from helm_ext.analysis.gates import show_minute
from helm_ext.analysis.report.charts import draw_calibration, draw_intervals, draw_series
from helm_ext.analysis.report.gathering import DatasetFacts
from helm_ext.files.writing import open_part


def write_report(datasets: Sequence[DatasetFacts], notes: Sequence[str], target: Path, title: str) -> int:
    """Write the page, all or nothing, and return its size in bytes. Raises OSError."""
    current = [(dataset, run) for dataset in datasets for run in dataset.runs if not run.scores.is_stale]
    return _write(
        target,
        "report.html.jinja",
        title=title,
        version=version("helm-ext"),
        script=_read("report.js"),
        datasets=datasets,
        num_datasets=len({id(dataset) for dataset, _ in current}),
        num_stale=sum(len(dataset.runs) for dataset in datasets) - len(current),
        num_models=len({run.scores.model for _, run in current}),
        notes=notes,
        rows=_to_script([_to_rows(dataset) for dataset in datasets]),
        draw_intervals=_as_markup(draw_intervals),
        draw_series=_as_markup(draw_series),
        draw_calibration=_as_markup(draw_calibration),
    )


def write_comparison(
    results: Sequence[PairResult], flips: Mapping[int, Sequence[Flip]], said: Mapping[int, str], target: Path
) -> None:
    """Write the tables of `helm-ext compare`, and the rows that differ, as one page, all or nothing.

    `flips` and `said` (in words, which model is better) are by place in `results`. Raises OSError.
    """
    groups = [
        {
            "whole": one,
            "said": said[place],
            "results": [one, *(other for other in results if other.slice and (other.a, other.b) == (one.a, one.b))],
            "flips": flips.get(place, ()),
        }
        for place, one in enumerate(results)
        if not one.slice
    ]
    _write(target, "compare.html.jinja", groups=groups)


def _write(target: Path, template: str, **shown: Any) -> int:
    """Write a page. What a dataset or a model says is text in it, never markup or script."""
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(number=_number, p=show_p, minute=show_minute)
    data = environment.from_string(_read(template)).render(style=_read("report.css"), **shown).encode()
    with open_part(target) as part:
        part.file.write(data)
        part.replace()
    return len(data)


def _read(name: str) -> Markup:
    """Return a file of ours, beside this one."""
    return Markup((resources.files(__package__) / name).read_text(encoding="utf-8"))  # noqa: S704


def _as_markup(draw: Callable[..., str]) -> Callable[..., Markup]:
    return lambda *given: Markup(draw(*given))  # noqa: S704 - made by matplotlib


def _to_rows(dataset: DatasetFacts) -> dict[str, Any]:
    """Return the rows to browse: of each the question, what is right, and each model's answer and score."""
    rows = []
    for key in dict.fromkeys(key for run in dataset.runs for key in run.sample):
        seen = [run.sample.get(key) for run in dataset.runs]
        first = next(row for row in seen if row is not None)
        answers = [row and row["answer"] for row in seen]
        rows.append({**{name: value for name, value in first.items() if name != "answer"}, "answers": answers})
    models = [run.scores.model for run in dataset.runs]
    return {"title": dataset.title, "models": models, "total": dataset.rows, "rows": rows}


def _to_script(value: Any) -> Markup:
    """Return JSON that cannot end the script element it stands in, whatever texts it holds."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return Markup(written)  # noqa: S704 - escaped


def _number(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:.3f}"
