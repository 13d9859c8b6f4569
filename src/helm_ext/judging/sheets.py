"""Sheets on which people judge answers without knowing whose they are, and what a judge said of them.

A sheet is a CSV file and a page with the same rows. Beside them stands `NAME.draw.json`: how the rows were drawn, and
which answer each is. Labels count only with it, or with `--design`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from helm_ext.errors import (
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSchemaError,
    DatasetSyntaxError,
    Location,
    Problem,
    Problems,
    raise_for,
    show,
)
from helm_ext.files import MAX_LINE_BYTES, read_source
from helm_ext.files.writing import no_formula

COLUMNS = ("item", "question", "reference", "answer", "label")
DRAW_ENDING = ".draw.json"
_FORMAT = "helm-ext draw 1"
RATERS = "ABCDEFGHIJ"
"""Who labels: the letter stands behind each item of their sheet."""

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


class Draw(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How the rows of a sheet were drawn."""

    format: str = _FORMAT
    sheet: str
    criterion: str
    rubric_sha256: str | None
    scale: list[float]
    is_range: bool
    design: str
    seed: int
    strata: dict[str, int]
    """How many answers each has."""
    rows: list[DrawnRow]
    answers: int = 0
    """How many answers the run had that can be labelled, with a verdict or without; 0 of two runs."""


class Label(msgspec.Struct):
    """What a person said of an answer."""

    item: str
    """As the draw has it."""
    rater: str
    value: float
    line: int


def write_csv(path: Path, rows: Sequence[Sequence[str]], columns: Sequence[str] = COLUMNS) -> None:
    """Write a sheet. With a byte order mark, without which spreadsheets take UTF-8 for something else."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([no_formula(value) for value in row] for row in rows)
    path.write_bytes(text.getvalue().encode("utf-8-sig", "replace"))


def write_sheet(draw: Draw, rows: Sequence[Sequence[str]], target: Path) -> list[Path]:
    """Write a CSV file and a page with the same rows; `target`: without an ending. Returns both. Raises OSError."""
    table, page = target.with_name(f"{target.name}.csv"), target.with_name(f"{target.name}.html")
    write_csv(table, [[*row, ""] for row in rows])
    page.write_text(render_page(draw, rows, table.name), encoding="utf-8")
    return [table, page]


def write_draw(path: Path, draw: Draw) -> None:
    """Write how a sheet was drawn. Raises OSError."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(draw), indent=1) + b"\n")


def render_page(draw: Draw, rows: Sequence[Sequence[str]], file: str) -> str:
    """Return the page to label in: nothing of the answers is markup in it, and it needs no other file."""
    from jinja2 import Environment
    from markupsafe import Markup

    folder = resources.files(__package__)
    values = name_values(draw)
    is_verdict = draw.scale == [0.0, 1.0] and not draw.is_range
    data = {
        "id": f"{draw.sheet} {file}", "file": file, "columns": COLUMNS, "values": values,
        "range": draw.scale if draw.is_range else None, "rows": [list(row[: len(COLUMNS) - 1]) for row in rows],
    }  # fmt: skip
    low, high = draw.scale[0], draw.scale[-1]
    legend = f"Does the answer pass? ({draw.criterion})" if is_verdict else f"{draw.criterion}, {low:g} to {high:g}"
    text = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace").decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    template = Environment(autoescape=True).from_string((folder / "sheet.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        title=f"{len(rows)} answers to label: {draw.criterion}",
        help=f"Say of each answer whether it passes: {draw.criterion}."
        if is_verdict
        else f"Give each answer a number for: {draw.criterion}.",
        legend=legend,
        data=Markup(text),  # noqa: S704 - escaped
        script=Markup((folder / "sheet.js").read_text(encoding="utf-8")),  # noqa: S704 - our own
    )


def name_values(draw: Draw) -> list[dict[str, str]]:
    """Return the labels that there are, as they stand in the CSV and on the page's buttons; [] for a number."""
    if draw.scale == [0.0, 1.0] and not draw.is_range:
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


def read_labels(path: Path, draw: Draw) -> tuple[list[Label], int]:
    """Return the labels of a sheet that was drawn here, and how many rows have none.

    Raises DatasetError with all that is wrong: unknown items, doubled ones, labels beyond the scale.
    """
    columns, rows = read_rows(path)
    if missing := [name for name in ("item", "label") if name not in columns]:
        hint = f"the sheet has the columns {', '.join(COLUMNS)}"
        raise DatasetSchemaError([Problem(f"no column {' and '.join(missing)}", Location(str(path), 1), hint)])
    problems = Problems(str(path))
    known = {row.item for row in draw.rows}
    seen: dict[str, int] = {}
    labels, empty = [], 0
    for line, row in rows:
        item, said = row.get("item", "").strip(), row.get("label", "").strip()
        place = Location(str(path), line, "item")
        name, _, rater = item.rpartition("-")
        if name not in known or rater not in RATERS or len(rater) != 1:
            hint = "the sheet's column item is not to be changed"
            problems.add(place, f"{show(item)} is no row of this sheet", hint, code="item", kind=DatasetIntegrityError)
        elif item in seen:
            message = f"{item} stands in line {seen[item]} already"
            problems.add(place, message, "keep one of the two", code="doubled", kind=DatasetIntegrityError)
        elif not said:
            empty += 1
        elif (value := read_value(said, draw.scale, is_range=draw.is_range)) is None:
            add_bad_value(problems, Location(str(path), line, "label"), said, draw.scale, is_range=draw.is_range)
        else:
            labels.append(Label(name, rater, value, line))
        seen.setdefault(item, line)
    raise_for(problems.finish())
    return labels, empty


def read_value(text: str, scale: Sequence[float], *, is_range: bool) -> float | None:
    """Return the value that a label says; None for what is no value of the scale."""
    words = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0} if list(scale) == [0.0, 1.0] else {}
    try:
        value = words.get(text.lower()) if text.lower() in words else float(text.replace(",", "."))
    except ValueError:
        return None
    is_value = value is not None and (scale[0] <= value <= scale[-1] if is_range else value in scale)
    return value if is_value else None


def add_bad_value(problems: Problems, place: Location, said: Any, scale: Sequence[float], *, is_range: bool) -> None:
    """Add that a label is no value of the scale."""
    known = f"a number from {scale[0]:g} to {scale[-1]:g}" if is_range else " or ".join(f"{one:g}" for one in scale)
    hint = "leave it empty where nothing can be said"
    problems.add(place, f"expected {known}, got {show(said)}", hint, code="label", kind=DatasetIntegrityError)
