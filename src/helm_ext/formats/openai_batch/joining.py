"""Requests, their results and golds joined into rows, in the order of the requests.

Golds stand in a table joined on custom_id: a JSON object, or rows in JSON, JSON Lines or CSV.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from helm_ext.clients.openai_replies import ReplyError
from helm_ext.errors import DatasetError, DatasetIntegrityError, count, did_you_mean, show
from helm_ext.evalset import Source
from helm_ext.formats.format import look
from helm_ext.formats.imported.gold import GoldColumn, GoldKind
from helm_ext.formats.imported.row import Opened, Row, RowError
from helm_ext.formats.imported.tables import DelimitedTable, JsonTable, Table
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
    golds, table = read_golds(Path(gold), gold_column)
    first = next(iter(asked.values()))
    results = Results(asked)
    for each in dict.fromkeys([*([path] if path != requests else []), *named, *found]):
        results.read(each)
    try:
        questions = find_questions(asked, option_start)
    except ValueError as error:
        hint = "requests about the options of one question have ids that end in 0, 1, 2, ..."
        raise DatasetIntegrityError.at(requests, str(error), hint, code="options") from error
    there = [question for question in questions if question.id in golds]
    if not there:
        message = f"none of {count(len(questions), 'question')} has a gold here"
        raise DatasetIntegrityError.at(gold, message, code="no-gold")
    column = GoldColumn(gold_kind=gold_kind, index_base=index_base, are_cells=table.is_text, path=gold)
    for question in there:
        line, value = golds[question.id]
        try:
            column.see(value, question.options, line)
        except RowError as error:
            raise DatasetIntegrityError.at(gold, str(error), error.hint, line, code="gold") from error
    kind = column.decide()
    source = Source(
        tool="openai_batch",
        model=first.model,
        task=re.sub(r"(\.jsonl|\.ndjson)?(\.gz|\.zst)?$", "", requests.name),
        settings=_settings(asked, {one.model for one in results.values() if one.model}),
        counts=results.counts,
        beside=[each.name for each in found],
    )
    digests = [("requests", digest), *(("results", one) for one in results.digests), ("gold", table.digest)]
    text = "".join(f"{role}:{sha}\n" for role, sha in digests)
    return Opened(
        path=str(requests),
        source=source,
        rows=lambda: _make_rows(questions, results, golds, kind),
        digest=hashlib.sha256(text.encode()).hexdigest(),
        adapter_spec={"method": "chat"} if first.endpoint in ("chat", "responses") else {},
    )


def _settings(asked: dict[str, Request], models: set[str]) -> dict[str, Any]:
    """Return the decoding parameters that all requests share, which ones vary, and the models that answered."""
    every = [one.settings for one in asked.values()]
    keys = dict.fromkeys(key for settings in every for key in settings)
    varying = sorted(key for key in keys if any(one.get(key) != every[0].get(key) for one in every))
    said = {key: every[0][key] for key in keys if key not in varying}
    return said | ({"varying": varying} if varying else {}) | ({"answered_by": sorted(models)} if models else {})


def _make_rows(
    questions: Sequence[Question], results: Results, golds: Mapping[str, tuple[int, Any]], kind: GoldKind
) -> Iterator[Row]:
    """Yield the questions in the order of their requests."""
    unused = len(golds.keys() - {question.id for question in questions})
    if unused:
        results.counts["unused_golds"] = unused
    for question in questions:
        found = [results.get(custom_id) or Result(is_not_run=True) for custom_id in question.ids]
        options, has_gold = question.options, question.id in golds
        row = Row(
            line=question.line,
            id=question.id,
            question=question.asked,
            options=options or kind.options,
            gold=kind.read(golds[question.id][1], options) if has_gold else (),
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


def read_golds(path: Path, column: str | None = None) -> tuple[dict[str, tuple[int, Any]], Table]:
    """Return the lines and the golds by custom_id of a table, where they stand in `column` if it is named; and it.

    Raises DatasetError.
    """
    are_cells = not look(path).is_like_json()
    table: Table = DelimitedTable(str(path)) if are_cells else JsonTable(str(path), takes_object=True)
    rows = [(line, row) for line, row, _ in table.read()]
    if len(rows) == 1 and not (are_cells or rows[0][1].keys() >= {ID, column or GOLD}):
        rows = [(at, {ID: name, column or GOLD: gold}) for at, (name, gold) in enumerate(rows[0][1].items(), 1)]
    golds: dict[str, tuple[int, Any]] = {}

    def refuse(message: str, line: int, hint: str = "") -> DatasetError:
        return DatasetIntegrityError.at(path, message, hint, line, code="gold")

    for line, row in rows:
        if ID not in row:
            raise refuse(f"expected an object with {ID} and {GOLD}, got {show(row)}", line)
        custom_id, others = row[ID], [key for key in row if key != ID]
        key = column or (GOLD if GOLD in row else others[0] if len(others) == 1 else "")
        if key not in others:
            said = ", ".join(map(show, others)) or "there is none"
            what = f"there is no {show(key)} beside {ID}" if key else "which column is the gold cannot be told"
            raise refuse(f"{what}: {said}", line, did_you_mean(key, others) or "gold_column=NAME names it")
        if not isinstance(custom_id, str) or not custom_id:
            raise refuse(f"{ID}: expected a text, got {show(custom_id)}", line)
        if custom_id in golds:
            raise refuse(f"{show(custom_id)} stands on line {golds[custom_id][0]} already", line)
        golds[custom_id] = line, row[key]
    if not golds:
        raise DatasetIntegrityError.at(path, "there are no golds", code="gold")
    return golds, table
