"""Requests, their results and golds joined into rows, in the order of the requests."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from helm_ext.clients.openai_replies import ReplyError, parse_output
from helm_ext.errors import DatasetIntegrityError, DatasetSchemaError, Location, Problems, count, raise_for, show
from helm_ext.evalset import Source
from helm_ext.files import LineSource, iter_json_lines
from helm_ext.formats.imported.gold import GoldKind
from helm_ext.formats.imported.gold_column import GoldColumn
from helm_ext.formats.imported.row import Opened, Row
from helm_ext.formats.openai_batch.files import find_input, find_results, read_first
from helm_ext.formats.openai_batch.golds import Golds, read_golds
from helm_ext.formats.openai_batch.options import Question, find_starts, group, score_option
from helm_ext.formats.openai_batch.replies import Result, parse_result
from helm_ext.formats.openai_batch.requests import LineError, Request, parse_request

NO_GOLD = "no gold in the table"


def read_model(path: Path, given: str | None) -> str:
    """Return the model that the first request asks. Raises DatasetError."""
    requests = find_input(path, given)
    try:
        return parse_request(read_first(requests), 1).model
    except LineError as error:
        raise DatasetIntegrityError.at(requests, f"{error.place}: {error}", error.hint, 1, code=error.code) from error


def open_batch(
    path: Path,
    *,
    output: Sequence[str] = (),
    errors: Sequence[str] = (),
    input: str | None = None,  # noqa: A002 - the run entry's argument
    gold: str | None = None,
    gold_kind: Any = None,
    index_base: int | None = None,
    option_start: str | None = None,
) -> Opened:
    """Open requests and results; the arguments are those of the run entry. Raises DatasetError."""
    requests = find_input(path, input)
    asked, digest = _read_requests(requests)
    batch = find_results(path, requests, [*output, *errors], asked)
    if gold is None:
        hint = 'gold=FILE: a JSON object {"CUSTOM_ID": [accepted answers]}, or a table of custom_id and gold'
        raise DatasetIntegrityError.at(requests, "a batch does not say what is right", hint, code="no-gold")
    golds = read_golds(Path(gold))
    first = next(iter(asked.values()))
    golds.read_lists(gold_kind, has_options=first.is_scored)
    results = _Results(asked)
    for each in batch.results:
        results.read(each)
    questions = _find_questions(requests, asked, option_start)
    column = GoldColumn(gold_kind=gold_kind, index_base=index_base, path=str(golds.path))
    kind = _decide(questions, golds, column)
    source = Source(
        tool="openai_batch",
        model=first.model,
        task=_name(requests),
        settings=_settings(asked, results.models),
        counts=results.counts,
        notes=[f"results are read from {', '.join(each.name for each in batch.found)}"] if batch.found else [],
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


def _name(path: Path) -> str:
    name = path.name
    for ending in (".gz", ".zst", ".jsonl", ".ndjson"):
        name = name.removesuffix(ending)
    return name


def _read_requests(path: Path) -> tuple[dict[str, Request], str]:
    """Return the requests by id, and the digest of their file. Raises DatasetError with all problems."""
    problems = Problems(str(path))
    asked: dict[str, Request] = {}
    with LineSource(path) as lines:
        for number, value in iter_json_lines(lines, str(path), problems):
            try:
                request = parse_request(value, number)
                _require_alike(request, asked)
            except LineError as error:
                place = Location(str(path), number, error.place)
                problems.add(place, str(error), error.hint, code=error.code, kind=DatasetSchemaError)
                continue
            asked[request.custom_id] = request
        digest = lines.digest
    if not asked and not problems.errors:
        problems.add((), "there are no requests", code="no-rows")
    raise_for(problems.finish())
    return asked, digest


def _require_alike(request: Request, asked: dict[str, Request]) -> None:
    first = next(iter(asked.values()), request)
    known = asked.get(request.custom_id)
    if known is not None:
        message = f"{show(request.custom_id)} stands on line {known.line} already: results cannot be told apart"
        raise LineError("custom_id", message, code="repeated-id")
    if request.model != first.model:
        message = f"{show(request.model)}, and requests before ask {show(first.model)}"
        raise LineError("body.model", message, "write a file for each model", code="several-models")
    if request.endpoint != first.endpoint or request.is_scored != first.is_scored:
        message = "requests before are of another kind (endpoint, or log-probabilities of the prompt)"
        raise LineError("url", message, "write a file for each kind", code="several-kinds")


def _settings(asked: dict[str, Request], models: set[str]) -> dict[str, Any]:
    """Return the decoding parameters that all requests share, which ones vary, and the models that answered."""
    every = [one.settings for one in asked.values()]
    shared = dict(every[0])
    varying: set[str] = set()
    for settings in every[1:]:
        if settings != every[0]:
            varying |= {key for key in {*settings, *shared} if settings.get(key) != every[0].get(key)}
    said: dict[str, Any] = {key: value for key, value in shared.items() if key not in varying}
    if varying:
        said["varying"] = sorted(varying)
    if models:
        said["answered_by"] = sorted(models)
    return said


class _Results:
    """What came back for requests."""

    def __init__(self, asked: Mapping[str, Request]) -> None:
        self._asked = asked
        self._by_id: dict[str, Result] = {}
        self._places: dict[str, Location] = {}
        self.counts = Counter({"lines": len(asked)})
        self.models: set[str] = set()
        self.digests: list[str] = []

    def of(self, question: Question) -> list[Result]:
        """Return the results of the requests of a question."""
        return [self._by_id.get(custom_id, Result(is_not_run=True)) for custom_id in question.ids]

    def read(self, path: Path) -> None:
        """Take the results of a file. Raises DatasetError with all problems."""
        problems = Problems(str(path))
        with LineSource(path) as lines:
            for number, value in iter_json_lines(lines, str(path), problems):
                self._take(value, Location(str(path), number), problems)
            self.digests.append(lines.digest)
        raise_for(problems.finish())

    def _take(self, value: Any, place: Location, problems: Problems) -> None:
        try:
            outcome = parse_output(value)
        except ReplyError as error:
            problems.add(place, str(error), code="output", kind=DatasetSchemaError)
            return
        custom_id, hint = outcome.custom_id, "output=FILE, errors=FILE"
        request = self._asked.get(custom_id)
        if request is None:
            message, hint = (
                f"{show(custom_id)} is no request of this batch",
                f"name the files that belong together: {hint}",
            )
            problems.add(place, message, hint, code="unknown-id", kind=DatasetIntegrityError)
            return
        try:
            result = parse_result(outcome, request)
        except ReplyError as error:
            result = Result(failed=f"the reply is of no use: {error}")
        if custom_id in self._by_id:
            if self._by_id[custom_id] == result:
                self.counts["duplicates"] += 1
                return
            first = self._places[custom_id]
            message = f"another result for {show(custom_id)} stands in {Path(first.path).name}:{first.line}"
            hint = f"name the files that count: {hint}"
            problems.add(place, message, hint, code="two-results", kind=DatasetIntegrityError)
            return
        self._places[custom_id] = place
        self._by_id[custom_id] = result
        if result.model:
            self.models.add(result.model)
        if result.calls_tools:
            self.counts["tool_calls"] += 1
        if any(answer.finish_reason == "content_filter" for answer in result.answers):
            self.counts["filtered"] += 1


def _find_questions(path: Path, asked: Mapping[str, Request], option_start: str | None) -> list[Question]:
    """Return what is asked: by each request, or by those about the options of one question together."""
    if not next(iter(asked.values())).is_scored:
        return [Question(one.custom_id, [one.custom_id], [one.question], [one.line]) for one in asked.values()]
    try:
        questions = group({custom_id: (str(one.question), one.line) for custom_id, one in asked.items()})
        find_starts(questions, option_start)
    except ValueError as error:
        hint = "requests about the options of one question have ids that end in 0, 1, 2, ..."
        raise DatasetIntegrityError.at(path, str(error), hint, code="options") from error
    return questions


def _decide(questions: Sequence[Question], golds: Golds, column: GoldColumn) -> GoldKind:
    """Return how golds are read. Raises DatasetError where that cannot be told."""
    there = [question for question in questions if question.id in golds.values]
    if not there:
        message = f"none of {count(len(questions), 'question')} has a gold here"
        raise DatasetIntegrityError.at(golds.path, message, code="no-gold")
    for question in there:
        column.see(golds.values[question.id], question.options, golds.lines[question.id])
    return column.decide()


def _make_rows(questions: Sequence[Question], results: _Results, golds: Golds, kind: GoldKind) -> Iterator[Row]:
    """Yield the questions in the order of their requests."""
    unused = len(golds.values.keys() - {question.id for question in questions})
    if unused:
        results.counts["unused_golds"] = unused
    for question in questions:
        found, options, has_gold = results.of(question), question.options, question.id in golds.values
        row = Row(
            line=question.lines[0],
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
            row.unscored = NO_GOLD
        yield row
