"""A report as one HTML file that needs no network, no other file and no library in the browser.

Charts are drawn by matplotlib, as SVG that takes its colours from the page: light, dark and print.
"""

from __future__ import annotations

import io
import json
import math
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from helm_ext.analysis.comparing import show_p
from helm_ext.analysis.gates import show_minute
from helm_ext.analysis.report.gathering import Bin, DatasetFacts
from helm_ext.files.writing import open_part

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from helm_ext.scoring.statistics import Interval

_INK = "#010203"
"""Stands for the page's colour of text, which matplotlib does not know."""
_ACCENT = "#040506"
_FAINT = "#070809"
_COLOURS = {_INK: "currentColor", _ACCENT: "var(--accent)", _FAINT: "var(--faint)"}
_SHOWN_NAME = 32
_FAR = 1e300


def write_report(datasets: Sequence[DatasetFacts], notes: Sequence[str], target: Path, title: str) -> int:
    """Write the page, all or nothing, and return its size in bytes. Raises OSError.

    What a dataset or a model says is text in it, never markup or script.
    """
    from jinja2 import Environment

    current = [(dataset, run) for dataset in datasets for run in dataset.runs if not run.scores.is_stale]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(number=_number, p=show_p, minute=show_minute)
    page = environment.from_string(_read("report.html.jinja")).render(
        title=title,
        version=version("helm-ext"),
        style=_read("report.css"),
        script=_read("report.js"),
        datasets=datasets,
        num_datasets=len({id(dataset) for dataset, _ in current}),
        num_stale=sum(len(dataset.runs) for dataset in datasets) - len(current),
        num_models=len({run.scores.model for _, run in current}),
        notes=notes,
        rows=_to_script([_to_rows(dataset) for dataset in datasets]),
        draw_scores=lambda one: _draw_intervals(
            [(run.scores.model, run.interval) for run in one.runs], one.title, one.headline
        ),
        draw_series=lambda one: _draw_intervals(
            [(point.run.run.suite, point.interval) for point in one.points],
            f"{one.model} on {one.title} over time",
            one.metric,
            one.points[0].interval.mean,
        ),
        draw_calibration=_draw_calibration,
    )
    with open_part(target) as part:
        part.file.write(data := page.encode())
        part.replace()
    return len(data)


def _read(name: str) -> Markup:
    """Return a file of ours, beside this one."""
    return Markup((resources.files(__package__) / name).read_text(encoding="utf-8"))  # noqa: S704


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


def _draw_intervals(rows: Sequence[tuple[str, Interval]], title: str, metric: str, mark: float | None = None) -> Markup:
    """Draw means with their 95 % intervals, one line each, the first at the top, and where they are compared with one
    number a line at it. Returns an `<svg>` element.
    """
    ends = [end for _, one in rows for end in (one.mean, one.low, one.high) if abs(end) < _FAR]
    bounds = min(ends), max(ends) if max(ends) > min(ends) else min(ends) + 1
    if all(0 <= one.mean <= 1 for _, one in rows):
        bounds = 0, 1
    with _start(len(rows) * 0.34 + 0.7) as (figure, axes):
        for place, (_, interval) in enumerate(rows):
            known = [max(interval.low, bounds[0]), min(interval.high, bounds[1])]
            axes.plot(known, [place, place], color=_ACCENT, linewidth=2)
            axes.plot([interval.mean], [place], "o", color=_ACCENT, markersize=5)
        if mark is not None:
            axes.axvline(mark, color=_FAINT, linewidth=1)
        axes.set_yticks(range(len(rows)), [_shorten(name) for name, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(*bounds)
        axes.set_xlabel(metric)
        said = "; ".join(f"{name} {interval.mean:.3f}" for name, interval in rows[:20])
        return _finish(figure, f"{title}: {said}")


def _draw_calibration(bins: Sequence[Bin], title: str) -> Markup:
    """Draw how often answers of a probability are right, against the diagonal. Returns an `<svg>` element."""
    there = [one for one in bins if one.count]
    with _start(3.0, width=3.2) as (figure, axes):
        axes.plot([0, 1], [0, 1], color=_FAINT, linewidth=1)
        axes.plot(
            [one.probability / one.count for one in there],
            [one.score / one.count for one in there],
            "o-", color=_ACCENT, markersize=4,
        )  # fmt: skip
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel("probability of the answer")
        axes.set_ylabel("share that is right")
        return _finish(figure, title)


@contextmanager
def _start(height: float, width: float = 6.4) -> Iterator[tuple[Figure, Axes]]:
    """Yield a figure, with the settings that all parts of it are made with. Text stays text, also "$", TeX to
    matplotlib.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style = {"font.size": 9, "axes.edgecolor": _FAINT, "text.color": _INK, "axes.labelcolor": _INK,
             "xtick.color": _INK, "ytick.color": _INK, "axes.spines.top": False, "axes.spines.right": False,
             "text.parse_math": False, "svg.fonttype": "none"}  # fmt: skip
    with mpl.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        yield figure, axes


def _finish(figure: Figure, label: str) -> Markup:
    """Return the figure as an element whose ids no other has, and which says in words what it shows."""
    import matplotlib as mpl

    written = io.StringIO()
    # The same rows give the same bytes. Which glyphs matplotlib's font lacks is no matter.
    with mpl.rc_context({"svg.hashsalt": label}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(written, format="svg", metadata={"Date": None})
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for stand_in, colour in _COLOURS.items():
        svg = svg.replace(stand_in, colour)
    prefix = f"c{zlib.crc32(label.encode('utf-8', 'replace')):x}-"
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}\1"', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\1{prefix}", svg)
    svg = re.sub(r"\bfont: ?([^;\"]*?)'[^']*'[^;\"]*", r"font: \1sans-serif", svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" class="chart" ', 1)
    return Markup(svg)  # noqa: S704 - made by matplotlib


def _shorten(name: str) -> str:
    return name if len(name) <= _SHOWN_NAME else f"{name[: _SHOWN_NAME - 1]}…"
