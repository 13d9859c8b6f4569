"""Requests, their results and golds joined into rows, in the order of the requests."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helm_ext.clients.openai_replies import ReplyError
from helm_ext.clients.outputs import OutputError, parse_output
from helm_ext.errors import DatasetIntegrityError, DatasetSchemaError, Location, Problems, count, raise_for, show
from helm_ext.evalset import Source
from helm_ext.files import LineSource, iter_json_lines
from helm_ext.formats.imported.gold import GoldKind, to_options
from helm_ext.formats.imported.gold_column import GoldColumn
from helm_ext.formats.imported.row import Likelihood, Opened, Row
from helm_ext.formats.openai_batch.files import Batch, find_input, find_results, read_first
from helm_ext.formats.openai_batch.golds import Golds, read_golds
from helm_ext.formats.openai_batch.options import Question, find_starts, group, score_option
from helm_ext.formats.openai_batch.replies import Result, parse_result
from helm_ext.formats.openai_batch.requests import LineError, Request, parse_request

__all__ = ["open_batch", "read_model"]

NO_GOLD = "no gold in the table"


@dataclass(slots=True)
class _Asked:
    """A request, and where it stands."""

    request: Request
    line: int


@dataclass
class _Results:
    """What came back, by custom_id."""

    by_id: dict[str, Result] = field(default_factory=dict)
    places: dict[str, tuple[Path, int]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    models: set[str] = field(default_factory=set)
    digests: list[str] = field(default_factory=list)


def read_model(path: Path, given: str | None) -> str:
    """Return the model that the first request asks. Raises DatasetError."""
    requests = find_input(path, given)
    try:
        return parse_request(read_first(requests)).model
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
    first = next(iter(asked.values())).request
    golds.read_lists(gold_kind, has_options=first.is_scored)
    results = _read_results(batch, asked)
    counts = Counter({"lines": len(asked)} | dict(results.counts))
    source = Source(
        tool="openai_batch",
        model=first.model,
        task=_name(requests),
        settings=_settings(asked, results.models),
        counts=counts,
    )
    notes = [f"results are read from {', '.join(each.name for each in batch.found)}"] if batch.found else []
    if first.is_scored:
        rows = _ScoredRows(asked, results, golds, gold_kind, index_base, option_start, requests, counts)
        iterate: Any = rows.rows
    else:
        known = GoldColumn(gold_kind=gold_kind, index_base=index_base, path=str(golds.path))
        iterate = _WrittenRows(asked, results, golds, known, counts).rows
    source.notes = notes
    digests = [("requests", digest), *(("results", one) for one in results.digests), ("gold", golds.digest)]
    text = "".join(f"{role}:{sha}\n" for role, sha in digests)
    return Opened(
        path=str(requests),
        source=source,
        rows=iterate,
        digest=lambda: hashlib.sha256(text.encode()).hexdigest(),
        adapter_spec={"method": "chat"} if first.endpoint in ("chat", "responses") else {},
    )


def _name(path: Path) -> str:
    name = path.name
    for ending in (".gz", ".zst", ".jsonl", ".ndjson"):
        name = name.removesuffix(ending)
    return name


def _read_requests(path: Path) -> tuple[dict[str, _Asked], str]:
    """Return the requests by id, and the digest of their file. Raises DatasetError with all problems."""
    problems = Problems(str(path))
    asked: dict[str, _Asked] = {}
    first: Request | None = None
    with LineSource(path) as lines:
        for number, value in iter_json_lines(lines, str(path), problems):
            try:
                request = parse_request(value)
                first = first or request
                _require_alike(request, first, asked)
            except LineError as error:
                place = Location(str(path), number, error.place)
                problems.add(place, str(error), error.hint, code=error.code, kind=DatasetSchemaError)
                continue
            asked[request.custom_id] = _Asked(request, number)
        digest = lines.digest
    if not asked and not problems.errors:
        problems.add((), "there are no requests", code="no-rows")
    raise_for(problems.finish())
    return asked, digest


def _require_alike(request: Request, first: Request, asked: dict[str, _Asked]) -> None:
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


def _settings(asked: dict[str, _Asked], models: set[str]) -> dict[str, Any]:
    """Return the decoding parameters that all requests share, which ones vary, and the models that answered."""
    every = [one.request.settings for one in asked.values()]
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


def _read_results(batch: Batch, asked: dict[str, _Asked]) -> _Results:
    """Return what came back for each request. Raises DatasetError with all problems."""
    results = _Results()
    for path in batch.results:
        problems = Problems(str(path))
        with LineSource(path) as lines:
            for number, value in iter_json_lines(lines, str(path), problems):
                _take_result(value, path, number, asked, results, problems)
            results.digests.append(lines.digest)
        raise_for(problems.finish())
    return results


def _take_result(
    value: Any, path: Path, line: int, asked: dict[str, _Asked], results: _Results, problems: Problems
) -> None:
    place = Location(str(path), line)
    try:
        outcome = parse_output(value)
    except OutputError as error:
        problems.add(place, str(error), code="output", kind=DatasetSchemaError)
        return
    one = asked.get(outcome.custom_id)
    if one is None:
        message = f"{show(outcome.custom_id)} is no request of this batch"
        hint = "name the files that belong together: output=FILE, errors=FILE"
        problems.add(place, message, hint, code="unknown-id", kind=DatasetIntegrityError)
        return
    try:
        result = parse_result(outcome, one.request)
    except ReplyError as error:
        result = Result(failed=f"the reply is of no use: {error}")
    known = results.by_id.get(outcome.custom_id)
    if known is not None:
        if known == result:
            results.counts["duplicates"] += 1
            return
        first, at = results.places[outcome.custom_id]
        message = f"another result for {show(outcome.custom_id)} stands in {first.name}:{at}"
        hint = "name the files that count: output=FILE, errors=FILE"
        problems.add(place, message, hint, code="two-results", kind=DatasetIntegrityError)
        return
    results.places[outcome.custom_id] = path, line
    results.by_id[outcome.custom_id] = result
    if result.model:
        results.models.add(result.model)
    if result.calls_tools:
        results.counts["tool_calls"] += 1
    if any(answer.finish_reason == "content_filter" for answer in result.answers):
        results.counts["filtered"] += 1


class _WrittenRows:
    """Rows of requests that were answered in words."""

    def __init__(
        self, asked: dict[str, _Asked], results: _Results, golds: Golds, column: GoldColumn, counts: Counter[str]
    ) -> None:
        self._asked = asked
        self._results = results
        self._golds = golds
        self._counts = counts
        there = [custom_id for custom_id in asked if custom_id in golds.values]
        if not there:
            raise DatasetIntegrityError.at(
                golds.path, f"none of {count(len(asked), 'request')} has a gold here", code="no-gold"
            )
        for custom_id in there:
            column.see(golds.values[custom_id], None, golds.lines[custom_id])
        self._kind = column.decide()
        self._unused = len(golds.values) - len(there)

    def rows(self) -> Iterator[Row]:
        """Yield them in the order of the requests."""
        if self._unused:
            self._counts["unused_golds"] = self._unused
        for custom_id, one in self._asked.items():
            result = self._results.by_id.get(custom_id) or Result(is_not_run=True)
            has_answers = not result.is_not_run and not result.failed
            has_gold = custom_id in self._golds.values
            yield Row(
                line=one.line,
                id=custom_id,
                question=one.request.question,
                options=self._kind.options,
                gold=self._kind.read(self._golds.values[custom_id]) if has_gold else (),
                answers=result.answers if has_answers else None,
                failed=result.failed,
                unscored="" if has_gold or not has_answers else NO_GOLD,
            )


class _ScoredRows:
    """Rows of requests about options."""

    def __init__(
        self,
        asked: dict[str, _Asked],
        results: _Results,
        golds: Golds,
        gold_kind: Any,
        index_base: int | None,
        option_start: str | None,
        path: Path,
        counts: Counter[str],
    ) -> None:
        self._results = results
        self._golds = golds
        self._counts = counts
        prompts = {custom_id: (str(one.request.question), one.line) for custom_id, one in asked.items()}
        try:
            self._questions = group(prompts)
            find_starts(self._questions, option_start)
        except ValueError as error:
            hint = "requests about the options of one question have ids that end in 0, 1, 2, ..."
            raise DatasetIntegrityError.at(path, str(error), hint, code="options") from error
        self._kind = self._decide(gold_kind, index_base)

    def _decide(self, gold_kind: Any, index_base: int | None) -> GoldKind:
        column = GoldColumn(gold_kind=gold_kind, index_base=index_base, path=str(self._golds.path))
        there = [question for question in self._questions if question.id in self._golds.values]
        if not there:
            raise DatasetIntegrityError.at(self._golds.path, "none of the questions has a gold here", code="no-gold")
        for question in there:
            column.see(self._golds.values[question.id], self._options(question), self._golds.lines[question.id])
        return column.decide()

    def _options(self, question: Question) -> dict[str, str]:
        return to_options([question.option(at) for at in range(len(question.ids))])

    def rows(self) -> Iterator[Row]:
        """Yield the questions."""
        for question in self._questions:
            found = [self._results.by_id.get(custom_id, Result(is_not_run=True)) for custom_id in question.ids]
            failed = next((result.failed for result in found if result.failed), "")
            is_run = not failed and not any(result.is_not_run for result in found)
            likelihoods: list[Likelihood] = []
            if is_run:
                try:
                    likelihoods = [self._score(question, at, result) for at, result in enumerate(found)]
                except ReplyError as error:
                    failed, likelihoods = f"the reply is of no use: {error}", []
            options, has_gold = self._options(question), question.id in self._golds.values
            yield Row(
                line=question.lines[0],
                id=question.id,
                question=question.text,
                options=options,
                gold=self._kind.read(self._golds.values[question.id], options) if has_gold else (),
                likelihoods=likelihoods,
                failed=failed,
                unscored="" if has_gold or not likelihoods else NO_GOLD,
            )

    def _score(self, question: Question, at: int, result: Result) -> Likelihood:
        likelihood, crosses = score_option(question, at, result.tokens)
        self._counts["crossing_tokens"] += crosses
        if not self._counts["crossing_tokens"]:
            del self._counts["crossing_tokens"]
        return likelihood
