"""Requests, their results and golds joined into rows, in the order of the requests.

Golds stand in a table joined on custom_id: a JSON object, or rows in JSON, JSON Lines or CSV.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helm_ext import files
from helm_ext.clients.openai_replies import ReplyError
from helm_ext.errors import DatasetError, DatasetIntegrityError, count, did_you_mean, show
from helm_ext.evalset import Source
from helm_ext.formats.imported.gold import GoldColumn, GoldKind
from helm_ext.formats.imported.row import NUMPY, Opened, Row, RowError, parse_list, spells_list
from helm_ext.formats.openai_batch.requests import (
    Question,
    Request,
    find_input,
    find_questions,
    find_results,
    read_requests,
    score_option,
)
from helm_ext.formats.openai_batch.results import Result, Results


def open_batch(
    path: Path,
    *,
    output: Sequence[str] = (),
    input: str | None = None,  # noqa: A002 - the run entry's argument
    gold: str | None = None,
    gold_column: str | None = None,
    gold_kind: Any = None,
    index_base: int | None = None,
    option_start: str | None = None,
) -> Opened:
    """Open requests and results; the arguments are those of the run entry. Raises DatasetError."""
    requests = find_input(path, input)
    asked, digest = read_requests(requests)
    named = [Path(each) for each in output]
    found = [] if named else find_results(path, requests, asked)
    if gold is None:
        hint = 'gold=FILE: a JSON object {"CUSTOM_ID": [accepted answers]}, or a table of custom_id and gold'
        raise DatasetIntegrityError.at(requests, "a batch does not say what is right", hint, code="no-gold")
    golds = read_golds(Path(gold), gold_column)
    first = next(iter(asked.values()))
    golds.read_lists(gold_kind, has_options=first.is_scored)
    results = Results(asked)
    for each in dict.fromkeys([*([path] if path != requests else []), *named, *found]):
        results.read(each)
    try:
        questions = find_questions(asked, option_start)
    except ValueError as error:
        hint = "requests about the options of one question have ids that end in 0, 1, 2, ..."
        raise DatasetIntegrityError.at(requests, str(error), hint, code="options") from error
    there = [question for question in questions if question.id in golds.values]
    if not there:
        message = f"none of {count(len(questions), 'question')} has a gold here"
        raise DatasetIntegrityError.at(golds.path, message, code="no-gold")
    column = GoldColumn(gold_kind=gold_kind, index_base=index_base, path=str(golds.path))
    for question in there:
        column.see(golds.values[question.id], question.options, golds.lines[question.id])
    kind = column.decide()
    source = Source(
        tool="openai_batch",
        model=first.model,
        task=re.sub(r"(\.jsonl|\.ndjson)?(\.gz|\.zst)?$", "", requests.name),
        settings=_settings(asked, {one.model for one in results.values() if one.model}),
        counts=results.counts,
        beside=[each.name for each in found],
    )
    digests = [("requests", digest), *(("results", one) for one in results.digests), ("gold", golds.digest)]
    text = "".join(f"{role}:{sha}\n" for role, sha in digests)
    return Opened(
        path=str(requests),
        source=source,
        rows=lambda: _make_rows(questions, results, golds, kind),
        digest=lambda: hashlib.sha256(text.encode()).hexdigest(),
        adapter_spec={"method": "chat"} if first.endpoint in ("chat", "responses") else {},
    )


def _settings(asked: dict[str, Request], models: set[str]) -> dict[str, Any]:
    """Return the decoding parameters that all requests share, which ones vary, and the models that answered."""
    every = [one.settings for one in asked.values()]
    keys = dict.fromkeys(key for settings in every for key in settings)
    varying = sorted(key for key in keys if any(one.get(key) != every[0].get(key) for one in every))
    said = {key: every[0][key] for key in keys if key not in varying}
    return said | ({"varying": varying} if varying else {}) | ({"answered_by": sorted(models)} if models else {})


def _make_rows(questions: Sequence[Question], results: Results, golds: Golds, kind: GoldKind) -> Iterator[Row]:
    """Yield the questions in the order of their requests."""
    unused = len(golds.values.keys() - {question.id for question in questions})
    if unused:
        results.counts["unused_golds"] = unused
    for question in questions:
        found = [results.get(custom_id) or Result(is_not_run=True) for custom_id in question.ids]
        options, has_gold = question.options, question.id in golds.values
        row = Row(
            line=question.line,
            id=question.id,
            question=question.asked,
            options=options or kind.options,
            gold=kind.read(golds.values[question.id], options) if has_gold else (),
            failed=next((result.failed for result in found if result.failed), ""),
        )
        is_run = not row.failed and not any(result.is_not_run for result in found)
        if is_run and options is None:
            row.answers = found[0].answers
        elif is_run:
            try:
                scored = [score_option(question, at, result.tokens) for at, result in enumerate(found)]
            except ReplyError as error:
                row.failed, is_run = f"the reply is of no use: {error}", False
            else:
                row.likelihoods = [likelihood for likelihood, _ in scored]
                crossing = sum(crosses for _, crosses in scored)
                if crossing:
                    results.counts["crossing_tokens"] += crossing
        if is_run and not has_gold:
            row.unscored = "no gold in the table"
        yield row


ID, GOLD = "custom_id", "gold"


@dataclass
class Golds:
    """Golds by custom_id, as the table has them."""

    path: Path
    digest: str
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    are_cells: bool = False
    """Whether they are cells of CSV or TSV, where a list is spelt as text."""

    def read_lists(self, gold_kind: str | None, *, has_options: bool) -> None:
        """Read the cells that spell lists: of accepted texts, or where there are options also of positions and flags.

        `gold_kind=text` leaves texts as they are. Raises DatasetError for a list whose parts cannot be told apart, and
        where all golds of rows without options are lists of numbers: each may be one answer.
        """
        if not self.are_cells or (gold_kind == "text" and not has_options):
            return
        lists = {
            custom_id: items
            for custom_id, gold in self.values.items()
            if spells_list(gold) and (items := self._parse(custom_id)) is not None
        }
        may_be_numbers = has_options or gold_kind == "list"
        of_numbers = [one for one in lists.values() if one and not any(isinstance(item, str) for item in one)]
        if len(of_numbers) == len(self.values) and not may_be_numbers:
            message = "every gold is a list of numbers: one answer, or several that are accepted?"
            hint = "gold_kind=text where a list is one answer, gold_kind=list where any of it is"
            raise DatasetIntegrityError.at(self.path, message, hint, code="gold")
        for custom_id, items in lists.items():
            if may_be_numbers or all(isinstance(item, str) for item in items):
                self.values[custom_id] = items

    def _parse(self, custom_id: str) -> list[Any] | None:
        """Return the list that a cell spells; None for a text that only stands in brackets."""
        try:
            value = parse_list(self.values[custom_id])
        except RowError as error:
            if error.code == NUMPY:
                raise DatasetIntegrityError.at(
                    self.path, str(error), error.hint, self.lines[custom_id], code="gold"
                ) from None
            return None
        return value if isinstance(value, list) else None


def read_golds(path: Path, column: str | None = None) -> Golds:
    """Return the golds of a table, which stand in `column` where it is named. Raises DatasetError."""
    source = files.read_source(path)
    data = source.data.removeprefix(files.BOM)
    golds = Golds(path, source.digest, are_cells=data.lstrip()[:1] not in (b"{", b"["))

    def refuse(message: str, line: int, hint: str = "") -> DatasetError:
        return DatasetIntegrityError.at(path, message, hint, line, code="gold")

    rows = _read_csv(path, files.decode(data, str(path))) if golds.are_cells else _read_json(path, data, column or GOLD)
    for line, row in rows:
        if not isinstance(row, dict) or ID not in row:
            raise refuse(f"expected an object with {ID} and {GOLD}, got {show(row)}", line)
        custom_id, others = row[ID], [key for key in row if key != ID]
        key = column or (GOLD if GOLD in row else others[0] if len(others) == 1 else "")
        if key not in others:
            said = ", ".join(map(show, others)) or "there is none"
            what = f"there is no {show(key)} beside {ID}" if key else "which column is the gold cannot be told"
            raise refuse(f"{what}: {said}", line, did_you_mean(key, others) or "gold_column=NAME names it")
        if not isinstance(custom_id, str) or not custom_id:
            raise refuse(f"{ID}: expected a text, got {show(custom_id)}", line)
        if custom_id in golds.values:
            raise refuse(f"{show(custom_id)} stands on line {golds.lines[custom_id]} already", line)
        golds.values[custom_id], golds.lines[custom_id] = row[key], line
    if not golds.values:
        raise DatasetIntegrityError.at(path, "there are no golds", code="gold")
    return golds


def _read_json(path: Path, data: bytes, column: str) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a JSON file: of a list, of an object of golds, or an object a line."""
    try:
        value = files.parse_json(data, str(path))
    except DatasetError:
        lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
        if len(lines) < 2 or lines[0][1].lstrip()[:1] != b"{":
            raise
        yield from ((number, files.parse_json(line, str(path), number)) for number, line in lines)
        return
    if isinstance(value, dict):
        is_row = {ID, column} <= value.keys()
        value = [value] if is_row else [{ID: custom_id, column: gold} for custom_id, gold in value.items()]
    yield from enumerate(value, 1)


def _read_csv(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a CSV or TSV file; cells are texts."""
    head = text.partition("\n")[0]
    records = files.iter_csv(io.StringIO(text, newline=""), str(path), max(",;\t", key=head.count))
    _, columns = next(records, (1, []))
    for line, cells in records:
        if len(cells) != len(columns):
            message = f"{len(cells)} cells, and the first line has {len(columns)}"
            raise DatasetIntegrityError.at(path, message, line=line, code="gold")
        yield line, dict(zip(columns, cells, strict=True))
