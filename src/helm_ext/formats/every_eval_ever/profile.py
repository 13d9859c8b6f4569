"""One evaluation of one record: the profile of its samples, which are read once and kept, ready to be made rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from helm_ext.errors import DatasetError, DatasetIntegrityError, Problems, count, raise_for
from helm_ext.evalset import Source, SourceScore
from helm_ext.files.store import RowStore
from helm_ext.formats.every_eval_ever.record import (
    KEPT,
    Aggregate,
    Record,
    Sample,
    choose,
    find_records,
    name_scores,
    open_samples,
    read_conversation,
    read_gold,
    read_list,
    read_options,
    read_samples,
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
        names = [None] if evaluation is not None else _list_evaluations(each)
        tasks += [chosen | ({"evaluation": name} if name is not None else {}) for name in names]
    return tasks or [{}]


def _list_evaluations(record: Record) -> list[str | None]:
    """Return the tasks of a record; [None] where there is one, or where opening it will say what is wrong."""
    try:
        aggregate = Aggregate(record.aggregate) if record.aggregate else None
        if record.samples is None or (aggregate and len({one.evaluation for one in aggregate.results}) == 1):
            return [None]
        tasks = list(Profile(record.samples, aggregate).tasks)
    except DatasetError:
        return [None]
    return [None] if len(tasks) == 1 else [*tasks]


def read_model(path: Path, record: str | None) -> str:
    """Return the model of a record; its samples are read for it only where they stand alone. Raises DatasetError."""
    chosen = choose(path, record)
    if chosen.aggregate is not None:
        return Aggregate(chosen.aggregate).model
    assert chosen.samples is not None  # one of the two is there
    problems = Problems(str(chosen.samples))
    first = next(read_samples(open_samples(chosen.samples, problems), chosen.samples, None, problems), None)
    return first.model_id if first else ""


def open_evaluation(
    path: Path,
    *,
    record: str | None = None,
    evaluation: str | None = None,
    gold_kind: Any = None,
    index_base: int | None = None,
    prediction: str = "raw",
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
    found = Profile(chosen.samples, aggregate, gold_kind, index_base)
    aliases = {one: name for name, task in found.tasks.items() for one in task.names}
    name = choose_part(chosen.samples, [*found.tasks], aliases.get(evaluation or "", evaluation), "evaluation")
    task = found.tasks[name]
    has_references = task.counts["referenced"] > 0
    are_lists = gold_kind == "list"
    if gold_kind is None and aggregate is not None and aggregate.is_of_lm_eval:  # its converter writes several so
        are_lists = 0 < task.counts["free"] == task.counts["lists"]
    golds = task.column.decide() if task.has_choices and has_references else None
    maker = RowMaker(
        path=str(chosen.samples),
        aggregate=aggregate,
        golds=golds,
        are_lists=are_lists,
        takes_extracted=prediction == "extracted",
        needs_gold=has_references,
    )
    source = Source(
        tool="every_eval_ever",
        version=aggregate.version if aggregate else found.version,
        model=aggregate.model if aggregate else found.model,
        task=name,
        settings={KEPT: aggregate.kept} if aggregate else {},
        scores=found.scores(task),
        counts=maker.counts,
        notes=list(_notes(found, task, aggregate, are_lists=are_lists)),
    )
    source.main = next(iter(source.scores))
    if len(source.scores) > 1:
        source.main_reason = "the first of the record" if aggregate else "the first in the samples"
    both = f"{aggregate.digest if aggregate else ''}{found.digest}"
    spec: dict[str, Any] = {"method": "chat"} if task.counts["chat"] else {}
    said = aggregate.said if aggregate else {}
    is_of_inspect = aggregate is not None and aggregate.is_of_inspect
    if golds is not None and (said.get("multi_label") == "true" or (is_of_inspect and golds.several)):
        spec["multi_label"] = True
    reducer = said.get("completions") or ("mean" if len(task.repeats) > 1 or task.counts["means"] else "")
    return Opened(
        path=str(chosen.samples),
        source=source,
        rows=lambda: maker.rows(found.questions(task)),
        digest=sha256(both.encode()).hexdigest(),
        adapter_spec=spec,
        scoring={"completions": reducer} if reducer else {},
        cluster="cluster" if task.counts["clustered"] else "",
        is_measured=has_references,
    )


@dataclass
class Evaluation:
    """What the samples of one `evaluation_name` have in common, or of several that score the same answers."""

    names: list[str]
    column: GoldColumn
    numbers: dict[str, list[int]] = field(default_factory=dict)
    """By sample id, of its lines: their numbers in the store."""
    contents: dict[str, bytes] = field(default_factory=dict)
    """By sample id, where there are several evaluations: a digest of question and answer."""
    has_choices: bool = False
    sums: dict[str, tuple[float, int, int]] = field(default_factory=dict)
    """By name of score: the sum over the lines that were scored, their number, and the number of all lines."""
    counts: Counter[str] = field(default_factory=Counter)
    """Lines: `chat`, conversations; `free`, without choices; `lists`, of these with the text of a Python list for
    reference; `referenced`, that say what is right; `perturbed`; `unnamed`, whose score may be of several results;
    `clustered`, that say what they belong to; `means`, whose score must be the mean of several answers.
    """
    repeats: set[str] = field(default_factory=set)
    """Names of the times that questions were asked."""

    def see(self, sample: Sample, aggregate: Aggregate | None) -> None:
        """Take one more line."""
        references, options = sample.input.reference, read_options(sample)
        if options is not None:
            self.has_choices = True
            self.column.see(read_gold(sample, options, aggregate), options, sample.line)
        if sample.repeat is not None:
            self.repeats.add(sample.repeat)
        scores, is_told = name_scores(sample, aggregate)
        for name, score in scores.items():
            total, scored, lines = self.sums.get(name, (0.0, 0, 0))
            is_scored = sample.is_scored
            self.sums[name] = (total + score, scored + 1, lines + 1) if is_scored else (total, scored, lines + 1)
        is_chat = sample.messages is not None or read_conversation(sample.input.formatted) is not None
        self.counts["chat"] += is_chat
        self.counts["free"] += options is None
        self.counts["lists"] += options is None and len(references) == 1 and read_list(references[0]) is not None
        self.counts["referenced"] += bool(references)
        self.counts["clustered"] += "cluster" in sample.details
        self.counts["perturbed"] += "perturbation" in sample.details
        self.counts["unnamed"] += not is_told
        texts, score = sample.output.raw if sample.output else (), sample.evaluation.score
        self.counts["means"] += len(texts) > 1 and 0 < score < 1 and (score * len(texts)).is_integer()

    def has_same_answers(self, other: Evaluation) -> bool:
        """Whether both are of the same questions and answers, as far as they share ids."""
        shared = self.contents.keys() & other.contents.keys()
        return bool(shared) and all(self.contents[one] == other.contents[one] for one in shared)

    def merge(self, other: Evaluation) -> None:
        """Add the lines of another evaluation."""
        self.names += other.names
        for sample_id, found in other.numbers.items():
            self.numbers[sample_id] = sorted([*self.numbers.get(sample_id, ()), *found])
        self.sums |= other.sums
        self.counts += other.counts
        self.repeats |= other.repeats


class Profile:
    """What all samples of a file have in common. Its samples are kept, to be made rows of."""

    def __init__(
        self, path: Path, aggregate: Aggregate | None, gold_kind: Any = None, index_base: int | None = None
    ) -> None:
        """Read all lines. Raises DatasetError with all that is wrong with them."""
        self._aggregate = aggregate
        self._store = RowStore(Sample, KEPT_ROWS)
        self.lines = 0
        self.version = self.model = ""
        problems = Problems(str(path))
        evaluations: dict[str, Evaluation] = {}
        several = aggregate is None or len({result.evaluation for result in aggregate.results}) > 1
        is_said = index_base is not None
        if not is_said and gold_kind is None and aggregate is not None and aggregate.is_of_lm_eval:
            index_base = 0
        lines = open_samples(path, problems)
        for sample in read_samples(lines, path, aggregate, problems):
            self.version, self.model = self.version or sample.schema_version, self.model or sample.model_id
            name = sample.evaluation_name
            if name not in evaluations:
                column = GoldColumn(
                    gold_kind=gold_kind, index_base=index_base, is_said=is_said, allow_hidden=True, path=str(path),
                    name="input.reference",
                )  # fmt: skip
                evaluations[name] = Evaluation([name], column)
            found = evaluations[name]
            self.lines += 1
            found.numbers.setdefault(sample.sample_id, []).append(len(self._store))
            self._store.add(sample)
            found.see(sample, aggregate)
            if several:
                found.contents[sample.sample_id] = sample.content
        self._store.finish()
        if not evaluations and not problems.errors:
            problems.add((), "there are no samples", code="no-rows")
        raise_for(problems.finish())
        self.digest = lines.digest
        self.tasks: dict[str, Evaluation] = {}
        """By the name of the first of their evaluations: those that score the same answers are one task."""
        for name, found in evaluations.items():
            same = next((task for task in self.tasks.values() if task.has_same_answers(found)), None)
            if same is None:
                self.tasks[name] = found
            else:
                same.merge(found)

    def questions(self, task: Evaluation) -> Iterator[list[Sample]]:
        """Yield the samples of each question of a task, in the order in which their last lines come."""
        groups = sorted(task.numbers.values(), key=lambda numbers: numbers[-1])
        samples = self._store.read(number for group in groups for number in group)
        for group in groups:
            yield list(islice(samples, len(group)))

    def scores(self, task: Evaluation) -> dict[str, SourceScore]:
        """Return the scores of a task, those that the record reports first and in its order.

        What it reports is the mean of the samples, but for two: what no sample has, and where another mean comes out of
        all of them. A record that counts lines without an answer as 0 reports their mean too. Where samples name none
        of its results, their score is the first of them if it has its mean.
        """
        sums = task.sums
        is_whole = self._aggregate is None or self._aggregate.total_rows in (None, self.lines)
        found: dict[str, SourceScore] = {}
        results = self._aggregate.results if self._aggregate else []
        mine = [result for result in results if result.name in sums or result.evaluation in task.names]
        for position, result in enumerate(mine or (results if self.names_no_result else ())):
            name, why = result.name, "no sample has a score of that name"
            if not (mine or position) and self.has_mean(task, next(iter(sums)), result.score):
                (name,) = sums
            if name in sums:
                is_mean = not is_whole or self.has_mean(task, name, result.score)
                why = "" if is_mean else "the mean of the samples is another"
            is_lower_better = bool(result.config.get("lower_is_better"))
            found[name] = SourceScore(result.score, is_lower_better, why, result.bounds(result.score))
        return found | {name: SourceScore() for name in sums if name not in found}

    def has_mean(self, task: Evaluation, name: str, reported: float) -> bool:
        """Whether what is reported is the mean of a score over the samples that were scored, or over all, or over rows,
        of which each has the mean of its repeats.
        """
        total, scored, lines = task.sums[name]
        if any(scored and abs(total / number - reported) <= _CLOSE for number in (scored, lines)):
            return True
        if not scored or len(task.repeats) < 2:
            return False
        named = (
            [name_scores(sample, self._aggregate)[0].get(name) for sample in group if sample.is_scored]
            for group in self.questions(task)
        )
        rows = [fmean(found) for given in named if (found := [score for score in given if score is not None])]
        return abs(fmean(rows) - reported) <= _CLOSE

    @property
    def names_no_result(self) -> bool:
        """Whether the samples, all of one evaluation, name no result of the record: as upstream's converter of
        inspect_ai's logs writes them, whose results are named "accuracy on TASK for scorer SCORER".
        """
        results = self._aggregate.results if self._aggregate else ()
        (task, *others) = self.tasks.values()
        return (
            len(task.sums) == 1
            and not others
            and not any(one.name in task.sums or one.evaluation in task.names for one in results)
        )


def _notes(found: Profile, task: Evaluation, aggregate: Aggregate | None, *, are_lists: bool) -> Iterator[str]:
    """Yield what a reader of the score must know, in words."""
    if aggregate is None:
        yield "no aggregate file beside the samples: what the record reports, and of whom, is not known"
        return
    if aggregate.total_rows is not None and aggregate.total_rows != found.lines:
        there = f"{found.lines:,} of {aggregate.total_rows:,} samples"
        yield f"{there} are in the file: its scores are not those of the record"
    elif aggregate.checksum is not None and aggregate.checksum != found.digest:
        yield "the samples were changed after the record was made: their SHA-256 is another one"
    if len(task.names) > 1:
        yield f"evaluations of the same answers, read as one: {', '.join(task.names)}"
    if not task.counts["referenced"]:
        yield "no sample says what is right: the record's own score is the main one"
    if are_lists:
        yield "references are Python lists, as lm-eval's converter writes several: any of their texts is right"
    if found.names_no_result:
        is_first = found.has_mean(task, next(iter(task.sums)), aggregate.results[0].score)
        read = "it is read as the first, whose mean it has" if is_first else "it has another mean than the first"
        if len(aggregate.results) > 1 or not is_first:
            yield f"samples do not say which result of the record their score is: {read}"
    unnamed = task.counts["unnamed"]
    if unnamed:
        yield f"{unnamed:,} samples do not say which of several results their score is: it has the evaluation's name"
    if task.counts["perturbed"]:
        yield "questions that HELM changed (perturbations) are rows of their own, and part of the score"
    reported = {result.name: result.score for result in aggregate.results}
    for name, (total, scored, lines) in task.sums.items():
        if name not in reported or not scored or abs(total / scored - reported[name]) <= _CLOSE:
            continue
        said = f"{name}: the record reports {reported[name]:.6g}, the mean of its samples is {total / scored:.6g}"
        if scored < lines and abs(total / lines - reported[name]) <= _CLOSE:
            said += f": it counts {count(lines - scored, 'line')} without an answer as 0"
        yield said
