"""The report as one HTML file that needs nothing else: no network, no other file, no library in the browser."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from helm_ext.analysis.drift import show_minute
from helm_ext.analysis.pairs import PairResult, show_p
from helm_ext.analysis.report.charts import draw_calibration, draw_intervals, draw_series
from helm_ext.analysis.report.gathering import DatasetFacts, RunFacts, SampledRow
from helm_ext.files.writing import open_part

_LEFT_OUT = ("not_run", "failed", "unscored", "too_long")
_OTHER_COUNTS = ("unmapped", "cut", "prompt truncated")


def write_report(datasets: Sequence[DatasetFacts], notes: Sequence[str], target: Path, title: str) -> int:
    """Write the page, all or nothing, and return its size in bytes. Raises OSError."""
    data = render(datasets, notes, title).encode()
    with open_part(target) as part:
        part.file.write(data)
        part.replace()
    return len(data)


def render(datasets: Sequence[DatasetFacts], notes: Sequence[str], title: str) -> str:
    """Return the page. What a dataset or a model says is text in it, never markup or script."""
    from jinja2 import Environment
    from markupsafe import Markup

    folder = resources.files(__package__)
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(number=_number, p=show_p, minute=show_minute)
    current = [(dataset, run) for dataset in datasets for run in dataset.runs if not run.scores.is_stale]
    template = environment.from_string((folder / "report.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        title=title,
        version=version("helm-ext"),
        style=Markup((folder / "report.css").read_text(encoding="utf-8")),  # noqa: S704 - our own
        script=Markup((folder / "report.js").read_text(encoding="utf-8")),  # noqa: S704
        datasets=[_to_view(dataset) for dataset in datasets],
        num_datasets=len({id(dataset) for dataset, _ in current}),
        num_stale=sum(len(dataset.runs) for dataset in datasets) - len(current),
        num_models=len({run.scores.model for _, run in current}),
        notes=notes,
        rows=Markup(_to_script([_to_rows(dataset) for dataset in datasets])),  # noqa: S704 - escaped
    )


def _to_view(dataset: DatasetFacts) -> dict[str, Any]:
    """Return what the template shows of a dataset."""
    from markupsafe import Markup

    named = [(run.scores.model, run.interval) for run in dataset.runs]
    return {
        "facts": dataset,
        "chart": Markup(draw_intervals(named, dataset.title, dataset.headline)),  # noqa: S704 - made by matplotlib
        "repeated": any(run.these_rows is not None for run in dataset.runs),
        "runs": [_to_run(dataset, run) for run in dataset.runs],
        "series": [
            {"facts": one, "chart": Markup(draw_series(one))}  # noqa: S704 - made by matplotlib
            for one in dataset.series
        ],
        "judged": [(run.scores.model, one) for run in dataset.runs for one in run.judged],
        "slices": _to_slices(dataset),
        "matrix": _to_matrix(dataset),
        "slice_pairs": sum(bool(pair.slice) for pair in dataset.pairs),
        "told_apart": [pair for pair in dataset.pairs if pair.slice and pair.verdict != "undecided"],
    }


def _to_run(dataset: DatasetFacts, run: RunFacts) -> dict[str, Any]:
    from markupsafe import Markup

    calibration = None
    if run.bins:
        label = f"{run.scores.model} on {dataset.title}: how often answers of a probability are right"
        calibration = Markup(draw_calibration(run.bins, label))  # noqa: S704 - made by matplotlib
    return {
        "model": run.scores.model,
        "interval": run.interval,
        "known": math.isfinite(run.interval.low),
        "left_out": {name: run.counts[name] for name in _LEFT_OUT if run.counts[name]},
        "counts": {name: run.counts[name] if name in run.recorded else None for name in _OTHER_COUNTS},
        "these_rows": run.these_rows,
        "finished": run.finished,
        "scored": len(run.scores.rows),
        "calibration": calibration,
        "error": run.calibration_error,
        "baselines": run.baselines,
        "provenance": run.provenance,
    }


def _to_slices(dataset: DatasetFacts) -> list[dict[str, Any]]:
    """Return for each attribute a table: a line for each value, a column for each model."""
    names = sorted({name for run in dataset.runs for name in run.slices})
    tables = []
    for name in names:
        values = sorted({value for run in dataset.runs for value in run.slices.get(name, {})})
        lines = [(value, [run.slices.get(name, {}).get(value) for run in dataset.runs]) for value in values]
        tables.append({"name": name, "lines": lines})
    return tables


def _to_matrix(dataset: DatasetFacts) -> list[tuple[str, list[tuple[PairResult, int] | None]]]:
    """Return for each model its comparison with each other one: how much better the model of the line is."""
    whole = {(pair.a.model, pair.b.model): pair for pair in dataset.pairs if not pair.slice}
    models = [run.scores.model for run in dataset.runs]
    if not whole:
        return []
    lines = []
    for one in models:
        cells: list[tuple[PairResult, int] | None] = []
        for other in models:
            if (other, one) in whole:
                cells.append((whole[other, one], 1))
            elif (one, other) in whole:
                cells.append((whole[one, other], -1))
            else:
                cells.append(None)
        lines.append((one, cells))
    return lines


def _to_rows(dataset: DatasetFacts) -> dict[str, Any]:
    """Return the rows to browse: of each the question, what is right, and each model's answer and score."""
    ids = dict.fromkeys(key for run in dataset.runs for key in run.sample)
    rows = []
    for key in ids:
        seen = [run.sample.get(key) for run in dataset.runs]
        first = next(row for row in seen if row is not None)
        rows.append(
            {
                "id": key,
                "question": first.question,
                "gold": first.gold,
                "options": first.options,
                "answers": [row and _to_answer(row) for row in seen],
            }
        )  # fmt: skip
    models = [run.scores.model for run in dataset.runs]
    return {"title": dataset.title, "models": models, "total": dataset.rows, "rows": rows}


def _to_answer(row: SampledRow) -> dict[str, Any]:
    return {"text": row.answer, "read": row.read, "chosen": row.chosen, "score": row.score, "flags": row.flags}


def _to_script(value: Any) -> str:
    """Return JSON that cannot end the script element it stands in, whatever texts it holds."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return written.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _number(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:.3f}"
