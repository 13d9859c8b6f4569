"""Sheets on which people judge answers without knowing whose they are, and what a judge said of them.

A sheet is a CSV file and a page with the same rows. Beside them stands `NAME.draw.json`: how the rows were drawn, and
which answer each is. Labels count only with it, or with `--design`.

random          every answer has one chance
by_verdict      equal numbers of each verdict of the judge
disagreements   equal numbers of each pair of verdicts, of two judges or of two models on one question

In each stratum (all answers with one verdict) the draw is simple random sampling: answers stand in the order of a hash
of the seed and what they are, and the first ones are taken. The order of a file and its other rows make no difference.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Hashable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TypeVar

import msgspec

from helm_ext.errors import DatasetNotFoundError, DatasetSchemaError, DatasetSyntaxError, Location, Problem
from helm_ext.files import MAX_LINE_BYTES, read_source
from helm_ext.files.writing import no_formula

DESIGNS = ("random", "by_verdict", "disagreements")
_COLUMNS = ("item", "question", "reference", "answer", "label")
DRAW_ENDING = ".draw.json"
_FORMAT = "helm-ext draw 1"
RATERS = "ABCDEFGHIJ"
"""Who labels: the letter stands behind each item of their sheet."""

_OVERLAP = 0.2
"""Of the answers, those that all raters label."""
_BUTTONS = 9
"""A scale with more values is labelled by typing a number."""


class DrawnRow(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An answer on a sheet."""

    item: str
    """What the sheet calls it: says nothing of the model."""
    run: str
    instance: str
    trial: int
    perturbation: str
    binding: str
    """Digest of what is labelled: question, answer and rubric."""
    stratum: str
    p: float
    """The chance that it had to be drawn."""


class Asked(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What people are asked of each answer."""

    criterion: str
    rubric_sha256: str | None
    scale: list[float]
    """The values that there are; of a range its ends."""
    is_range: bool
    """Whether any number between the ends is a value."""

    @property
    def is_verdict(self) -> bool:
        """Whether an answer is right or wrong."""
        return self.scale == [0.0, 1.0] and not self.is_range

    def read(self, label: str) -> float | None:
        """Return the value that a label says; None for what is no value of the scale."""
        words = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0} if self.scale == [0.0, 1.0] else {}
        try:
            value = words[label.lower()] if label.lower() in words else float(label.replace(",", "."))
        except ValueError:
            return None
        return value if (self.scale[0] <= value <= self.scale[-1] if self.is_range else value in self.scale) else None


class Draw(Asked, kw_only=True, forbid_unknown_fields=True):
    """How the rows of a sheet were drawn."""

    format: str = _FORMAT
    sheet: str
    design: str
    seed: int
    strata: dict[str, int]
    """How many answers each has that may be drawn."""
    rows: list[DrawnRow]
    answers: int = 0
    """How many answers the run had that can be labelled, with a verdict or without; 0 of two runs."""
    labelled: int = 0
    """How many have labels of such a draw already, and are left out."""


T = TypeVar("T", bound=Hashable)


def order(keys: Sequence[T], seed: int, purpose: str) -> list[T]:
    """Return the keys shuffled: by a hash of each, the seed and what it is for. `repr` tells keys apart."""
    return sorted(
        keys, key=lambda key: hashlib.sha256(f"{purpose}\0{seed}\0{key!r}".encode("utf-8", "replace")).digest()
    )


def draw(strata: Mapping[str, Sequence[T]], number: int, seed: int) -> dict[T, tuple[str, float]]:
    """Return `number` keys, or all where there are fewer: equally many of each stratum, as far as it has them.

    Each with its stratum, and the chance that it had.
    """
    sizes = allocate({name: len(keys) for name, keys in strata.items()}, number)
    return {
        key: (name, sizes[name] / len(keys))
        for name, keys in sorted(strata.items())
        for key in order(keys, seed, "draw")[: sizes[name]]
    }


def allocate(sizes: Mapping[str, int], number: int) -> dict[str, int]:
    """Return how many of each stratum: equal numbers, and what small ones lack is shared by the others.

    Of what cannot be shared equally, larger strata get one more.
    """
    taken = dict.fromkeys(sizes, 0)
    left = min(number, sum(sizes.values()))
    while left:
        able = sorted((name for name in sizes if taken[name] < sizes[name]), key=lambda name: (-sizes[name], name))
        share = max(1, left // len(able))
        for name in able:
            more = min(share, sizes[name] - taken[name], left)
            taken[name] += more
            left -= more
    return taken


def write_sheets(made: Draw, cells: Mapping[str, tuple[str, str, str]], target: Path, raters: int) -> list[Path]:
    """Write a CSV file and a page for each rater, and how they were drawn. Returns the files. Raises OSError.

    `cells`: question, reference and answer of each item. Several raters share one answer in five, and have different
    ones beside. The CSV has a byte order mark, without which spreadsheets take UTF-8 for something else.
    """
    names = [row.item for row in made.rows]
    shared = names[: max(1, round(len(names) * _OVERLAP))] if raters > 1 else []
    own = names[len(shared) :]
    written = []
    for rater in range(raters):
        chosen = {*shared, *own[rater::raters]}
        rows = [(f"{item}-{RATERS[rater]}", *cells[item]) for item in names if item in chosen]
        stem = f"{target.name}-{rater + 1}" if raters > 1 else target.name
        table, page = target.with_name(f"{stem}.csv"), target.with_name(f"{stem}.html")
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(_COLUMNS)
        writer.writerows([no_formula(value) for value in (*row, "")] for row in rows)
        table.write_bytes(text.getvalue().encode("utf-8-sig", "replace"))
        page.write_text(_render_page(made, rows, table.name), encoding="utf-8")
        written += [table, page]
    path = target.with_name(f"{target.name}{DRAW_ENDING}")
    path.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")
    return [*written, path]


def _render_page(draw: Draw, rows: Sequence[Sequence[str]], file: str) -> str:
    """Return the page to label in: nothing of the answers is markup in it, and it needs no other file."""
    from jinja2 import Environment
    from markupsafe import Markup

    folder = resources.files(__package__)
    data = {
        "id": f"{draw.sheet} {file}", "file": file, "columns": _COLUMNS, "values": _name_values(draw),
        "range": draw.scale if draw.is_range else None, "rows": [list(row[: len(_COLUMNS) - 1]) for row in rows],
    }  # fmt: skip
    criterion = draw.criterion
    about, legend = f"Say of each answer whether it passes: {criterion}.", f"Does the answer pass? ({criterion})"
    if not draw.is_verdict:
        about = f"Give each answer a number for: {criterion}."
        legend = f"{criterion}, {draw.scale[0]:g} to {draw.scale[-1]:g}"
    text = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace").decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    template = Environment(autoescape=True).from_string((folder / "sheet.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        title=f"{len(rows)} answers to label: {criterion}", help=about, legend=legend,
        data=Markup(text),  # noqa: S704 - escaped
        script=Markup((folder / "sheet.js").read_text(encoding="utf-8")),  # noqa: S704 - our own
    )  # fmt: skip


def _name_values(draw: Draw) -> list[dict[str, str]]:
    """Return the labels that there are, as they stand in the CSV and on the page's buttons; [] for a number."""
    if draw.is_verdict:
        return [{"label": "1", "text": "yes"}, {"label": "0", "text": "no"}]
    values = draw.scale
    if draw.is_range:
        low, high = draw.scale
        is_whole = low.is_integer() and high.is_integer() and high - low < _BUTTONS
        values = [low + step for step in range(int(high - low) + 1)] if is_whole else []
    return [{"label": f"{value:g}", "text": f"{value:g}"} for value in values]


def find_draw(sheet: Path, items: Sequence[str]) -> Draw | None:
    """Return how a sheet was drawn: from a file in its folder, or here, that knows its items; None where none does.

    Raises DatasetError for such a file that cannot be read.
    """
    prefixes = {item.partition("-")[0] for item in items}
    for folder in dict.fromkeys((sheet.parent.resolve(), Path.cwd())):
        for path in sorted(folder.glob(f"*{DRAW_ENDING}")):
            draw = _read_draw(path)
            if draw.sheet in prefixes:
                return draw
    return None


def _read_draw(path: Path) -> Draw:
    try:
        draw = msgspec.json.decode(read_source(path).data, type=Draw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DatasetSchemaError([Problem(f"no record of a draw: {error}", Location(str(path)))]) from error
    if draw.format != _FORMAT:
        hint = "read it with the version of helm-ext that wrote it"
        raise DatasetSchemaError([Problem(f"expected {_FORMAT!r}, got {draw.format!r}", Location(str(path)), hint)])
    return draw


def read_rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Return the columns and the rows of a CSV file, each with its line. Raises DatasetError."""
    if not path.exists():
        raise DatasetNotFoundError([Problem("no such file", Location(str(path)))])
    data = read_source(path).data
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        hint = "save it as CSV UTF-8"
        raise DatasetSyntaxError([Problem("not UTF-8", Location(str(path), line), hint)]) from error
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)  # spreadsheets write what their country's are
    before = csv.field_size_limit(MAX_LINE_BYTES)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        columns = [name.strip().lower() for name in next(reader, [])]
        rows, line = [], reader.line_num + 1
        for values in reader:
            if any(value.strip() for value in values):
                rows.append((line, dict(zip(columns, values, strict=False))))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DatasetSyntaxError([Problem(f"not CSV: {error}", Location(str(path)))]) from error
    finally:
        csv.field_size_limit(before)
    return columns, rows
