"""One evaluation of one record: its samples, which are read once and kept, and what they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from helm_ext.errors import DatasetError, DatasetIntegrityError, DatasetSchemaError, Problems, count, raise_for
from helm_ext.evalset import Source, SourceScore
from helm_ext.files.store import RowStore
from helm_ext.formats.every_eval_ever.record import (
    KEPT,
    Aggregate,
    Record,
    Result,
    Sample,
    choose,
    find_contradictions,
    find_records,
    name_scores,
    open_samples,
    read_conversation,
    read_gold,
    read_list,
    read_options,
    require_version,
)
from helm_ext.formats.every_eval_ever.rows import RowMaker
from helm_ext.formats.imported.format import choose_part
from helm_ext.formats.imported.gold import GoldColumn
from helm_ext.formats.imported.row import Opened
from helm_ext.formats.request_states.loading import KEPT_ROWS

_CLOSE = 1e-9


def find_tasks(path: Path, record: str | None, evaluation: str | None) -> list[dict[str, str]]:
    """Return what chooses each evaluation of each record that a path names. Raises DatasetError."""
    records = [choose(path, record)] if record is not None else find_records(path)
    tasks = []
    for each in records:
        chosen = {"record": each.name} if len(records) > 1 else {}
        names = [] if evaluation is not None else _list_evaluations(each)
        tasks += [{**chosen, "evaluation": name} for name in names] if len(names) > 1 else [chosen]
    return tasks


def _list_evaluations(record: Record) -> list[str]:
    """Return the tasks of a record; none where opening it will say what is wrong."""
    try:
        aggregate = Aggregate(record.aggregate) if record.aggregate else None
        if record.samples is None or (aggregate and len(aggregate.evaluations) == 1):
            return []
        return [*Samples(record.samples, aggregate).tasks]
    except DatasetError:
        return []


def read_model(path: Path, record: str | None) -> str:
    """Return the model of a record; its samples are read for it only where they stand alone. Raises DatasetError."""
    chosen = choose(path, record)
    if chosen.aggregate is not None:
        return Aggregate(chosen.aggregate).model
    assert chosen.samples is not None  # one of the two is there
    return next((sample.model_id for _, _, sample in open_samples(chosen.samples, Problems())), "")


def open_evaluation(
    path: Path,
    *,
    record: str | None = None,
    evaluation: str | None = None,
    gold_kind: Any = None,
    index_base: int | None = None,
) -> Opened:
    """Open one evaluation; the arguments are those of the run entry. Raises DatasetError."""
    chosen = choose(path, record)
    aggregate = Aggregate(chosen.aggregate) if chosen.aggregate else None
    if chosen.samples is None:
        declared = aggregate is not None and aggregate.declares_samples
        beside = f"the samples that it names are not beside it: {chosen.name}_samples.jsonl"
        message = beside if declared else "an aggregate without samples: there is no answer to score"
        hint = "put both files into one folder" if declared else ""
        raise DatasetIntegrityError.at(str(chosen.aggregate), message, hint, code="no-samples")
    samples = Samples(chosen.samples, aggregate)
    aliases = {one: name for name, names in samples.tasks.items() for one in names}
    name = choose_part(chosen.samples, [*samples.tasks], aliases.get(evaluation or "", evaluation), "evaluation")
    task = Task(samples, name, gold_kind, index_base)
    has_references = task.counts["referenced"] > 0
    are_lists = gold_kind == "list"
    if gold_kind is None and aggregate is not None and aggregate.is_of_lm_eval:  # its converter writes several so
        are_lists = 0 < task.counts["free"] == task.counts["lists"]
    golds = task.column.decide() if task.counts["free"] < task.counts["lines"] and has_references else None
    maker = RowMaker(
        path=str(chosen.samples),
        aggregate=aggregate,
        golds=golds,
        are_lists=are_lists,
        needs_gold=has_references,
    )
    source = Source(
        tool="every_eval_ever",
        version=aggregate.version if aggregate else samples.version,
        model=aggregate.model if aggregate else samples.model,
        task=name,
        settings={KEPT: aggregate.kept} if aggregate else {},
        scores=task.scores(),
        counts=maker.counts,
        notes=list(task.notes(are_lists=are_lists)),
    )
    source.main = next(iter(source.scores))
    if len(source.scores) > 1:
        source.main_reason = "the first of the record" if aggregate else "the first in the samples"
    both = f"{aggregate.digest if aggregate else ''}{samples.digest}"
    spec: dict[str, Any] = {"method": "chat"} if task.counts["chat"] else {}
    said = aggregate.said if aggregate else {}
    is_of_inspect = aggregate is not None and aggregate.is_of_inspect
    if golds is not None and (said.get("multi_label") == "true" or (is_of_inspect and golds.several)):
        spec["multi_label"] = True
    reducer = said.get("completions") or ("mean" if len(task.repeats) > 1 or task.counts["means"] else "")
    return Opened(
        path=str(chosen.samples),
        source=source,
        rows=lambda: (row for lines in samples.questions(name) for row in maker.rows(lines)),
        digest=sha256(both.encode()).hexdigest(),
        adapter_spec=spec,
        scoring={"completions": reducer} if reducer else {},
        cluster="cluster" if task.counts["clustered"] else "",
        is_measured=has_references,
    )


class Samples:
    """The samples of a file, read once and kept."""

    def __init__(self, path: Path, aggregate: Aggregate | None) -> None:
        """Read all lines. Raises DatasetError with all that is wrong with them."""
        self.path, self.aggregate = str(path), aggregate
        self._store = RowStore(Sample, KEPT_ROWS)
        self.version = self.model = ""
        problems = Problems(self.path)
        numbers: dict[str, dict[str, list[int]]] = {}
        """By evaluation and sample id: the numbers of its lines in the store."""
        contents: dict[str, dict[str, bytes]] = {}
        """The same, to a digest of question and answer, where there are several evaluations."""
        lines = open_samples(path, problems)
        for number, value, sample in lines:
            wrong = [*find_contradictions(value, aggregate)]
            for key, message in wrong:
                problems.add((key,), message, line=number, code="shape", kind=DatasetSchemaError)
            if wrong:
                continue
            version = require_version(sample.schema_version, self.path, number)
            self.version, self.model = self.version or version, self.model or sample.model_id
            sample.line = number
            name, sample_id = sample.evaluation_name, sample.sample_id
            numbers.setdefault(name, {}).setdefault(sample_id, []).append(len(self._store))
            if aggregate is None or len(aggregate.evaluations) > 1:
                contents.setdefault(name, {})[sample_id] = sample.content
            self._store.add(sample)
        self._store.finish()
        if not numbers and not problems.errors:
            problems.add((), "there are no samples", code="no-rows")
        raise_for(problems.finish())
        self.digest = lines.digest
        self.tasks: dict[str, list[str]] = {}
        """By the name of the first of their evaluations: those that score the same answers are one task."""
        self._numbers: dict[str, dict[str, list[int]]] = {}
        for name, found in numbers.items():
            same = (task for task in self.tasks if _agree(contents.get(task, {}), contents.get(name, {})))
            task = next(same, name)
            self.tasks.setdefault(task, []).append(name)
            for sample_id, its in found.items():
                self._numbers.setdefault(task, {}).setdefault(sample_id, []).extend(its)

    def __len__(self) -> int:
        """Return how many lines there are."""
        return len(self._store)

    def questions(self, task: str) -> Iterator[list[Sample]]:
        """Yield the samples of each question of a task, in the order in which their last lines come."""
        groups = sorted(map(sorted, self._numbers[task].values()), key=lambda numbers: numbers[-1])
        samples = self._store.read(number for group in groups for number in group)
        for group in groups:
            yield list(islice(samples, len(group)))


def _agree(contents: Mapping[str, bytes], others: Mapping[str, bytes]) -> bool:
    """Whether both are of the same questions and answers, as far as they share ids."""
    shared = contents.keys() & others.keys()
    return bool(shared) and all(contents[one] == others[one] for one in shared)


class Task:
    """What the samples of one task have in common."""

    def __init__(self, samples: Samples, name: str, gold_kind: Any, index_base: int | None) -> None:
        """Look at all of its samples."""
        self._samples, self._aggregate, self.name = samples, samples.aggregate, name
        is_said = index_base is not None
        if not is_said and gold_kind is None and self._aggregate is not None and self._aggregate.is_of_lm_eval:
            index_base = 0
        self.column = GoldColumn(
            gold_kind=gold_kind, index_base=index_base, is_said=is_said, allow_hidden=True, path=samples.path,
            name="input.reference",
        )  # fmt: skip
        self.counts: Counter[str] = Counter()
        """Lines: all `lines`; `chat`, conversations; `free`, without choices; `lists`, of these with the text of a
        Python list for reference; `referenced`, that say what is right; `perturbed`; `unnamed`, whose score may be of
        several results; `clustered`, that say what they belong to; `means`, whose score must be the mean of several
        answers."""
        self.repeats: set[str] = set()
        """Names of the times that questions were asked."""
        self._sums: dict[str, tuple[float, int, int]] = {}
        """By name of score: the sum over the lines that were scored, their number, and the number of all lines."""
        self._rows: dict[str, list[float]] = {}
        """By name of score: of each row that was scored the mean of its repeats."""
        for lines in samples.questions(name):
            scored: dict[str, list[float]] = {}
            for sample in lines:
                self._see(sample, scored)
            for score, values in scored.items():
                self._rows.setdefault(score, []).append(fmean(values))

    def _see(self, sample: Sample, scored: dict[str, list[float]]) -> None:
        """Take one more line; `scored` are the scores of its question."""
        references, options = sample.input.reference, read_options(sample)
        if options is not None:
            self.column.see(read_gold(sample, options, self._aggregate), options, sample.line)
        if sample.repeat is not None:
            self.repeats.add(sample.repeat)
        scores, is_told = name_scores(sample, self._aggregate)
        for name, score in scores.items():
            total, number, lines = self._sums.get(name, (0.0, 0, 0))
            self._sums[name] = (total, number, lines + 1)
            if sample.is_scored:
                self._sums[name] = (total + score, number + 1, lines + 1)
                scored.setdefault(name, []).append(score)
        texts, score = sample.output.raw if sample.output else (), sample.evaluation.score
        is_free = options is None
        self.counts["lines"] += 1
        self.counts["chat"] += sample.messages is not None or read_conversation(sample.input.formatted) is not None
        self.counts["free"] += is_free
        self.counts["lists"] += is_free and len(references) == 1 and read_list(references[0]) is not None
        self.counts["referenced"] += bool(references)
        self.counts["clustered"] += "cluster" in sample.details
        self.counts["perturbed"] += "perturbation" in sample.details
        self.counts["unnamed"] += not is_told
        self.counts["means"] += len(texts) > 1 and 0 < score < 1 and (score * len(texts)).is_integer()

    def scores(self) -> dict[str, SourceScore]:
        """Return the scores of the task, those that the record reports first and in its order.

        What it reports is the mean of the samples, but for two: what no sample has, and where another mean comes out of
        all of them. A record that counts lines without an answer as 0 reports their mean too. Where samples name none
        of its results, their score is the first of them if it has its mean.
        """
        is_whole = self._aggregate is None or self._aggregate.total_rows in (None, len(self._samples))
        found: dict[str, SourceScore] = {}
        results = self._aggregate.results if self._aggregate else []
        mine = [result for result in results if self._has(result)]
        for position, result in enumerate(mine or (results if self._names_no_result else ())):
            name, why = result.name, "no sample has a score of that name"
            if not (mine or position) and self._has_mean(next(iter(self._sums)), result.score):
                (name,) = self._sums
            if name in self._sums:
                is_mean = not is_whole or self._has_mean(name, result.score)
                why = "" if is_mean else "the mean of the samples is another"
            is_lower_better = bool(result.config.get("lower_is_better"))
            found[name] = SourceScore(result.score, is_lower_better, why, result.bounds(result.score))
        return found | {name: SourceScore() for name in self._sums if name not in found}

    def _has(self, result: Result) -> bool:
        return result.name in self._sums or result.evaluation_name in self._samples.tasks[self.name]

    def _has_mean(self, name: str, reported: float) -> bool:
        """Whether what is reported is the mean of a score over the samples that were scored, or over all, or over rows,
        of which each has the mean of its repeats.
        """
        total, scored, lines = self._sums[name]
        if not scored:
            return False
        means = [total / scored, total / lines, *([fmean(self._rows[name])] if len(self.repeats) > 1 else [])]
        return any(abs(mean - reported) <= _CLOSE for mean in means)

    @property
    def _names_no_result(self) -> bool:
        """Whether the samples, all of one evaluation, name no result of the record: as upstream's converter of
        inspect_ai's logs writes them, whose results are named "accuracy on TASK for scorer SCORER".
        """
        results = self._aggregate.results if self._aggregate else ()
        return len(self._sums) == len(self._samples.tasks) == 1 and not any(map(self._has, results))

    def notes(self, *, are_lists: bool) -> Iterator[str]:
        """Yield what a reader of the score must know, in words."""
        aggregate, lines, names = self._aggregate, len(self._samples), self._samples.tasks[self.name]
        if aggregate is None:
            yield "no aggregate file beside the samples: what the record reports, and of whom, is not known"
            return
        if aggregate.total_rows is not None and aggregate.total_rows != lines:
            there = f"{lines:,} of {aggregate.total_rows:,} samples"
            yield f"{there} are in the file: its scores are not those of the record"
        elif aggregate.checksum is not None and aggregate.checksum != self._samples.digest:
            yield "the samples were changed after the record was made: their SHA-256 is another one"
        if len(names) > 1:
            yield f"evaluations of the same answers, read as one: {', '.join(names)}"
        if not self.counts["referenced"]:
            yield "no sample says what is right: the record's own score is the main one"
        if are_lists:
            yield "references are Python lists, as lm-eval's converter writes several: any of their texts is right"
        if self._names_no_result:
            is_first = self._has_mean(next(iter(self._sums)), aggregate.results[0].score)
            read = "it is read as the first, whose mean it has" if is_first else "it has another mean than the first"
            if len(aggregate.results) > 1 or not is_first:
                yield f"samples do not say which result of the record their score is: {read}"
        if unnamed := self.counts["unnamed"]:
            said = "samples do not say which of several results their score is: it has the evaluation's name"
            yield f"{unnamed:,} {said}"
        if self.counts["perturbed"]:
            yield "questions that HELM changed (perturbations) are rows of their own, and part of the score"
        reported = {result.name: result.score for result in aggregate.results}
        for name, (total, scored, all_lines) in self._sums.items():
            if name not in reported or not scored or abs(total / scored - reported[name]) <= _CLOSE:
                continue
            said = f"{name}: the record reports {reported[name]:.6g}, the mean of its samples is {total / scored:.6g}"
            if scored < all_lines and abs(total / all_lines - reported[name]) <= _CLOSE:
                said += f": it counts {count(all_lines - scored, 'line')} without an answer as 0"
            yield said
