"""The report's pictures, drawn by matplotlib as SVG that takes its colours from the page: light, dark and print."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from helm_ext.analysis.drift import Series
    from helm_ext.analysis.report.gathering import Bin
    from helm_ext.scoring.statistics import Interval

_INK = "#010203"
"""Stands for the page's colour of text, which matplotlib does not know."""
_ACCENT = "#040506"
_FAINT = "#070809"
_COLOURS = {_INK: "currentColor", _ACCENT: "var(--accent)", _FAINT: "var(--faint)"}
_SHOWN_NAME = 32
_UPRIGHT = 5
"""Names below an axis, above which they are slanted."""


def draw_intervals(rows: Sequence[tuple[str, Interval]], title: str, metric: str) -> str:
    """Draw means with their 95 % intervals, one line each, the first at the top. Returns an `<svg>` element."""
    with _style():
        figure, axes = _start(len(rows) * 0.34 + 0.7)
        _draw_lines(axes, rows, metric)
    said = "; ".join(f"{name} {interval.mean:.3f}" for name, interval in rows[:20])
    return _finish(figure, f"{title}: {said}")


def _draw_lines(axes: Axes, rows: Sequence[tuple[str, Interval]], metric: str) -> None:
    for place, (_, interval) in enumerate(rows):
        low, high = max(interval.low, _floor(rows)), min(interval.high, _ceiling(rows))
        axes.plot([low, high], [place, place], color=_ACCENT, linewidth=2)
        axes.plot([interval.mean], [place], "o", color=_ACCENT, markersize=5)
    axes.set_yticks(range(len(rows)), [_shorten(name) for name, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(_floor(rows), _ceiling(rows))
    axes.set_xlabel(metric)


def draw_calibration(bins: Sequence[Bin], title: str) -> str:
    """Draw how often answers of a probability are right, against the diagonal. Returns an `<svg>` element."""
    with _style():
        figure, axes = _start(3.0, width=3.2)
        _draw_bins(axes, bins)
    return _finish(figure, title)


def _draw_bins(axes: Axes, bins: Sequence[Bin]) -> None:
    there = [one for one in bins if one.count]
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


def draw_series(series: Series) -> str:
    """Draw the scores of one model's runs in order, with their 95 % intervals. Returns an `<svg>` element."""
    points = [(point.run.run.suite, point.interval) for point in series.points]
    with _style():
        figure, axes = _start(2.6)
        places = range(len(points))
        axes.plot(places, [interval.mean for _, interval in points], "o-", color=_ACCENT, markersize=5, linewidth=1)
        for place, (_, interval) in enumerate(points):
            low, high = max(interval.low, _floor(points)), min(interval.high, _ceiling(points))
            axes.plot([place, place], [low, high], color=_ACCENT, linewidth=2)
        axes.axhline(points[0][1].mean, color=_FAINT, linewidth=1)
        axes.set_xticks(places, [_shorten(name) for name, _ in points])
        axes.tick_params(axis="x", rotation=30 if len(points) > _UPRIGHT else 0)
        axes.set_ylabel(series.metric)
    said = "; ".join(f"{name} {interval.mean:.3f}" for name, interval in points[:20])
    return _finish(figure, f"{series.model} on {series.title} over time: {said}")


def _style() -> AbstractContextManager[None]:
    """Return the settings that all parts of a figure are made with. Text stays text, also "$", TeX to matplotlib."""
    import matplotlib as mpl

    return mpl.rc_context({"font.size": 9, "axes.edgecolor": _FAINT, "text.color": _INK, "axes.labelcolor": _INK,
                           "xtick.color": _INK, "ytick.color": _INK, "axes.spines.top": False,
                           "axes.spines.right": False, "text.parse_math": False})  # fmt: skip


def _start(height: float, width: float = 6.4) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    return figure, axes


def _finish(figure: Figure, label: str) -> str:
    """Return the figure as an element whose ids no other has, and which says in words what it shows."""
    import matplotlib as mpl
    from markupsafe import escape

    written = io.StringIO()
    # Text stays text, and the same rows give the same bytes. Which glyphs matplotlib's font lacks is no matter.
    with _style(), mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": label}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(written, format="svg", metadata={"Date": None})
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for stand_in, colour in _COLOURS.items():
        svg = svg.replace(stand_in, colour)
    prefix = f"c{abs(hash_of(label)):x}-"
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}\1"', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\1{prefix}", svg)
    svg = re.sub(r"\bfont: ?([^;\"]*?)'[^']*'[^;\"]*", r"font: \1sans-serif", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" class="chart" ', 1)


def hash_of(text: str) -> int:
    """Return a number for a text, the same in every process."""
    import zlib

    return zlib.crc32(text.encode("utf-8", "replace"))


def _floor(rows: Sequence[tuple[str, Interval]]) -> float:
    return 0.0 if _is_share(rows) else min(min(i.mean, i.low if i.low > -1e300 else i.mean) for _, i in rows)


def _ceiling(rows: Sequence[tuple[str, Interval]]) -> float:
    if _is_share(rows):
        return 1.0
    top = max(max(i.mean, i.high if i.high < 1e300 else i.mean) for _, i in rows)
    return top if top > _floor(rows) else top + 1.0


def _is_share(rows: Sequence[tuple[str, Interval]]) -> bool:
    return all(0 <= interval.mean <= 1 for _, interval in rows)


def _shorten(name: str) -> str:
    return name if len(name) <= _SHOWN_NAME else f"{name[: _SHOWN_NAME - 1]}…"
