"""The profile of a file of samples: which evaluations there are, what golds mean, which scores came along."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from helm_ext.errors import Problems, raise_for
from helm_ext.evalset import SourceScore
from helm_ext.files.store import RowStore
from helm_ext.formats.every_eval_ever.record import Aggregate
from helm_ext.formats.every_eval_ever.samples import Sample, SampleFile
from helm_ext.formats.imported.gold import GoldKind, to_options
from helm_ext.formats.imported.gold_column import GoldColumn
from helm_ext.formats.imported.row import Message, is_finite_number
from helm_ext.formats.request_states.loading import KEPT_ROWS

_CLOSE = 1e-9

LABELS = "option_labels"
"""The key of `metadata` under which our export keeps the labels of options, as a JSON list."""
_LM_EVAL_METRICS = "lm_eval_metrics"
"""The key of `metadata` under which upstream's converter keeps lm-eval's scores of a sample, as a JSON object."""


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
    reference; `referenced`, that say what is right; `perturbed`; `unnamed`, whose score may be of several results.
    """
    repeats: set[str] = field(default_factory=set)
    """Names of the times that questions were asked."""

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

    def decide(self) -> GoldKind | None:
        """Return how references of rows with choices are read; None where no row has any. Raises DatasetError."""
        return self.column.decide() if self.has_choices and self.counts["referenced"] else None


class Profile:
    """What all samples of a file have in common. Its samples are kept, to be made rows of."""

    def __init__(
        self, path: Path, aggregate: Aggregate | None, gold_kind: Any = None, index_base: int | None = None
    ) -> None:
        """Read all lines. Raises DatasetError with all that is wrong with them."""
        self._aggregate = aggregate
        self._store: RowStore[Sample] = RowStore(Sample.pack, lambda record: Sample(*record), KEPT_ROWS)
        self.lines = 0
        self.version = self.model = ""
        problems = Problems(str(path))
        evaluations: dict[str, Evaluation] = {}
        several = aggregate is None or len({result.evaluation for result in aggregate.results}) > 1
        file = SampleFile(path, aggregate, problems)
        for sample in file:
            self.version = self.version or str(sample.value["schema_version"])
            self.model = self.model or str(sample.value["model_id"])
            found = evaluations.get(sample.evaluation)
            if found is None:
                column = _column(path, aggregate, gold_kind, index_base)
                found = evaluations[sample.evaluation] = Evaluation([sample.evaluation], column)
            self.lines += 1
            found.numbers.setdefault(sample.id, []).append(len(self._store))
            self._store.add(sample)
            _see(found, sample, aggregate)
            if several:
                found.contents[sample.id] = sample.content
        self._store.finish()
        if not evaluations and not problems.errors:
            problems.add((), "there are no samples", code="no-rows")
        raise_for(problems.finish())
        self.digest = file.digest
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
        all of them. A record that counts lines without an answer as 0 reports their mean too.
        """
        sums = task.sums
        found: dict[str, SourceScore] = {}
        for result in self._aggregate.results if self._aggregate else ():
            if result.name not in sums and result.evaluation not in task.names:
                continue
            why = "no sample has a score of that name"
            if result.name in sums:
                total, scored, lines = sums[result.name]
                means = [total / scored, total / lines] if scored else []
                differs = not any(abs(mean - result.score) <= _CLOSE for mean in means)
                why = "the mean of the samples is another" if differs and self._is_whole() else ""
            found[result.name] = SourceScore(result.score, result.lower_is_better, why, result.bounds)
        return found | {name: SourceScore() for name in sums if name not in found}

    def _is_whole(self) -> bool:
        """Whether all samples of the record are there."""
        return self._aggregate is None or self._aggregate.total_rows in (None, self.lines)


def read_options(sample: Sample) -> dict[str, str] | None:
    """Return the options of a sample, by label: its own labels where it has some, else A, B, C, ..."""
    choices = sample.value["input"].get("choices")
    if not choices:
        return None
    labels = _read_json(sample.metadata.get(LABELS))
    if isinstance(labels, list) and len(labels) == len(choices) == len({*map(str, labels)}):
        return dict(zip(map(str, labels), choices, strict=True))
    if len(choices) > 26:
        return {str(number): text for number, text in enumerate(choices, 1)}
    return to_options(choices)


def name_scores(sample: Sample, aggregate: Aggregate | None) -> tuple[dict[str, float], bool]:
    """Return the scores of a sample by the names of their results, and whether its result can be told."""
    score = float(sample.value["evaluation"]["score"])
    own = sample.result_id or sample.evaluation
    results = aggregate.find(sample.result_id, sample.evaluation) if aggregate else []
    if len(results) == 1:
        return {results[0].name: score}, True
    metrics = _read_json(sample.metadata.get(_LM_EVAL_METRICS))
    if isinstance(metrics, dict):
        by_name = {
            result.name: float(value)
            for result in results
            for metric, value in metrics.items()
            if is_finite_number(value) and (result.described == metric or result.described.startswith(f"{metric} ("))
        }
        if by_name:
            return by_name, True
    return {own: score}, not results


def read_list(text: str) -> list[str] | None:
    """Return the texts of a Python list of texts, None for any other text. No code is run."""
    if not text.startswith("["):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) and value and all(isinstance(one, str) for one in value) else None


def _column(path: Path, aggregate: Aggregate | None, gold_kind: Any, index_base: int | None) -> GoldColumn:
    base = index_base
    if base is None and gold_kind is None and aggregate is not None and aggregate.is_of_lm_eval:
        base = 0
    return GoldColumn(
        gold_kind=gold_kind, index_base=base, is_said=index_base is not None, allow_hidden=True, path=str(path),
        name="input.reference",
    )  # fmt: skip


def _see(found: Evaluation, sample: Sample, aggregate: Aggregate | None) -> None:
    value = sample.value
    options, references = read_options(sample), value["input"]["reference"]
    if options is not None:
        found.has_choices = True
        found.column.see(references[0] if len(references) == 1 else references, options, sample.line)
    is_turn = value["interaction_type"] == "single_turn" and read_conversation(value["input"].get("formatted")) is None
    if sample.repeat is not None:
        found.repeats.add(sample.repeat)
    scores, is_told = name_scores(sample, aggregate)
    is_scored = sample.is_scored
    for name, score in scores.items():
        total, scored, lines = found.sums.get(name, (0.0, 0, 0))
        found.sums[name] = (total + score, scored + 1, lines + 1) if is_scored else (total, scored, lines + 1)
    for what, is_so in (
        ("chat", not is_turn),
        ("free", options is None),
        ("lists", options is None and len(references) == 1 and read_list(references[0]) is not None),
        ("referenced", bool(references)),
        ("perturbed", "perturbation" in sample.metadata),
        ("unnamed", not is_told),
    ):
        found.counts[what] += is_so


def read_conversation(formatted: str | None) -> list[Message] | None:
    """Return the messages of a prompt that is written as a JSON list of them; None for any other prompt."""
    if not formatted or not formatted.startswith('[{"role": '):
        return None
    turns = _read_json(formatted)
    if not isinstance(turns, list):
        return None
    fits = all(isinstance(t, dict) and t.keys() == {"role", "content"} and isinstance(t["content"], str) for t in turns)
    return turns if fits else None


def _read_json(text: Any) -> Any:
    """Return the value of a JSON text; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
