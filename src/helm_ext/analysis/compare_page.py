"""A comparison as one self-contained HTML page: the tables of `helm-ext compare`, and the rows that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from helm_ext.analysis.pairs import Flip, PairResult
from helm_ext.files.writing import open_part


def write_comparison(
    results: Sequence[PairResult], flips: Mapping[int, Sequence[Flip]], said: Mapping[int, str], target: Path
) -> None:
    """Write the page, all or nothing. `flips` and `said` (in words, which model is better) are by place in `results`.

    Raises OSError.
    """
    from jinja2 import Environment
    from markupsafe import Markup

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
    folder = resources.files("helm_ext.analysis")
    template = Environment(autoescape=True).from_string((folder / "compare.html.jinja").read_text(encoding="utf-8"))
    style = (folder / "report" / "report.css").read_text(encoding="utf-8")
    page = template.render(groups=groups, style=Markup(style))  # noqa: S704 - our own style
    with open_part(target) as part:
        part.file.write(page.encode())
        part.replace()
