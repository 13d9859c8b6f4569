r"""The rows of a data file, and the questions that a task makes of them, exactly as upstream does (docs/ultraeval.md).

A data file has one JSON object a line. Keys differ from row to row, so rows are never read as a table: that would
invent keys. A question's prompt is

    description + "\\n\\n"            if there is one
    input + output + "\\n\\n"         each demonstration
    input                           the question

Nothing else is added and nothing is stripped. For each question, n + 1 rows are drawn from the whole file, rows equal
to the question's are dropped, and n are kept. Upstream's generator has no seed; ours has, and is used in the same
order: what is drawn for a question depends on the seed and the rows before it, never on how many rows are run.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.adapter_spec import (
    ADAPT_GENERATION,
    ADAPT_MULTIPLE_CHOICE_SEPARATE_ORIGINAL,
    AdapterSpec,
)
from helm.benchmark.scenarios.scenario import CORRECT_TAG, TEST_SPLIT, Input, Instance, Output, Reference

from helm_ext.errors import DatasetIntegrityError, DatasetSchemaError, Location, Problem, raise_for, show
from helm_ext.evalset import EXTRA_KEY, RowExtra
from helm_ext.files import LineSource, iter_json_lines
from helm_ext.formats.ultraeval.config import Method, Sampling
from helm_ext.formats.ultraeval.script import Script, Transformed, TransformProblem

if TYPE_CHECKING:
    from helm_ext.formats.ultraeval.task import Task

Row = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """A data file, read once."""

    path: Path
    sha256: str
    """SHA-256 of the bytes on disk, lower-case hex."""
    rows: tuple[Row, ...]
    lines: tuple[int, ...]
    """Line number of each row, from 1."""


def read_rows(path: Path, *, allow_nan: bool = False) -> Rows:
    """Read a JSON Lines file, plain or compressed. Raises DatasetError with every line that is no JSON object.

    `allow_nan`: NaN and Infinity are numbers, as Python writes them.
    """
    problems: list[Problem] = []
    with LineSource(path) as source:
        found = list(iter_objects(source, path, problems, allow_nan=allow_nan))
        digest = source.digest
    if not found and not problems:
        problems.append(no_rows(path))
    raise_for(problems)
    return Rows(path, digest, tuple(row for _, row in found), tuple(line for line, _ in found))


def iter_objects(
    source: LineSource, path: Path, problems: list[Problem], *, allow_nan: bool = False
) -> Iterator[tuple[int, Row]]:
    """Yield (line, object) of a JSON Lines file; a line that is no object is a problem."""
    for number, row in iter_json_lines(source, str(path), problems, blank="error", allow_nan=allow_nan):
        if isinstance(row, dict):
            yield number, row
        else:
            message = f"expected a JSON object, got {show(row)}"
            problems.append(DatasetSchemaError.problem_at(path, message, line=number, code="not-object"))


def no_rows(path: Path) -> Problem:
    """Return the problem of a file without rows."""
    return DatasetSchemaError.problem_at(path, "the file holds no rows", code="no-rows")


@dataclass(frozen=True)
class Question:
    """A row, ready to be asked."""

    index: int
    """Index of the row in its file, from 0."""
    parts: tuple[str, ...]
    """[head, demonstration, ..., question]: joined, they are the prompt."""
    transformed: Transformed


@dataclass(frozen=True)
class Failure:
    """A row that the script could not transform."""

    index: int
    is_demonstration: bool
    """The row is one of the file of demonstrations, not of the data."""
    problem: TransformProblem


def draw(rng: random.Random, pool: Sequence[Any], row: Any, count: int, *, is_own_file: bool) -> list[int]:
    """Return the indices in `pool` of at most `count` demonstrations for `row`.

    The pool must hold count + 1 rows, or `count` where it is another file, so that the row need not be among them.
    """
    wanted = count + 1 if is_own_file else min(count + 1, len(pool))
    drawn = rng.sample(range(len(pool)), wanted)
    return [index for index in drawn if pool[index] != row][:count]


def row_seed(seed: int, index: int) -> int:
    """Return what the global generators are seeded with for a row, whether it is asked or shown."""
    return abs(seed) * 1_000_003 + index


def make_questions(
    script: Script,
    task: Task,
    rows: Sequence[Any],
    *,
    seed: int = 0,
    limit: int | None = None,
    demos: Sequence[Any] | None = None,
) -> Iterator[Question | Failure]:
    """Yield each of the first `limit` rows as a question, or the failures that kept it from being one."""
    head = f"{task.description}\n\n" if task.description else ""
    shots = task.fewshot
    rng = random.Random(seed)  # noqa: S311 - sampling, not secrets
    pool = rows if demos is None else demos
    with script.running():
        for index, row in enumerate(rows[:limit]):
            parts = [head]
            failures: list[Failure] = []
            drawn = draw(rng, pool, row, shots, is_own_file=demos is None) if shots else []
            state = rng.getstate()
            for position in drawn:
                try:
                    shown = script.transform(pool[position], shots, rng, task.name, seed=row_seed(seed, position))
                except TransformProblem as problem:
                    failures.append(Failure(position, demos is not None, problem))
                else:
                    parts.append(f"{shown.input}{shown.output}\n\n")
                # A script may use the generator: each demonstration gets it as it was, so that none disturbs the next.
                rng.setstate(state)
            try:
                asked = script.transform(row, shots, rng, task.name, seed=row_seed(seed, index))
            except TransformProblem as problem:
                failures.append(Failure(index, is_demonstration=False, problem=problem))
            if failures:
                yield from failures
            else:
                yield Question(index, (*parts, asked.input), asked)


def to_gen_instance(
    index: int, parts: Sequence[str], gold: str | list[str], *, sampling: Sampling, row: Mapping[str, Any] | None
) -> Instance:
    """Return a GEN row: every gold is an accepted answer; `row` and `gold` travel along where a metric needs them."""
    extra = RowExtra(prompt=list(parts))
    if sampling.decoding:
        extra["decoding"] = sampling.decoding
    if row is not None:
        extra["data"] = dict(row)
        extra["gold"] = gold
    texts = [gold] if isinstance(gold, str) else gold
    references = [Reference(Output(text=text), tags=[CORRECT_TAG]) for text in texts]
    return _instance(index, parts, references, extra)


def to_ppl_instance(index: int, parts: Sequence[str], options: Mapping[str, float]) -> Instance:
    """Return a PPL row: one reference an option, in order; the right ones are those of the highest worth above 0."""
    best = max(options.values())
    references = [
        Reference(Output(text=option), tags=[CORRECT_TAG] if worth == best and worth > 0 else [])
        for option, worth in options.items()
    ]
    worths = {option: float(worth) for option, worth in options.items()}
    return _instance(index, parts, references, RowExtra(prompt=list(parts), score=worths))


def to_instance(question: Question, row: Mapping[str, Any], task: Task) -> Instance:
    """Return a transformed row as HELM's Instance."""
    if task.method == "ppl":
        return to_ppl_instance(question.index, question.parts, row["target_scores"])
    gold = question.transformed.processed_output
    needed = row if task.metrics.need_row else None
    return to_gen_instance(question.index, question.parts, gold, sampling=task.sampling, row=needed)


def _instance(index: int, parts: Sequence[str], references: list[Reference], extra: RowExtra) -> Instance:
    return Instance(
        input=Input(text=parts[-1]),
        references=references,
        split=TEST_SPLIT,
        id=f"id{index}",
        extra_data={EXTRA_KEY: extra},
    )


def to_adapter_spec(method: Method, sampling: Sampling) -> AdapterSpec:
    """Return the AdapterSpec: every prefix and suffix is empty, the prompt is made here."""
    is_gen = method == "gen"
    return AdapterSpec(
        method=ADAPT_GENERATION if is_gen else ADAPT_MULTIPLE_CHOICE_SEPARATE_ORIGINAL,
        instructions="", input_prefix="", input_suffix="", reference_prefix="", reference_suffix="",
        output_prefix="", output_suffix="", instance_prefix="", max_train_instances=0,
        num_outputs=sampling.num_outputs if is_gen else 1,
        temperature=sampling.temperature if is_gen else 0.0,
        max_tokens=sampling.max_tokens if is_gen else 0,
        stop_sequences=list(sampling.stop) if is_gen else [],
    )  # fmt: skip


def check_options(row: Mapping[str, Any], path: str, line: int) -> list[Problem]:
    """Return what keeps a row from PPL: it needs `target_scores`, a dict of at least one option with its number."""
    options = row.get("target_scores")
    place = Location(path, line, "target_scores")
    if not isinstance(options, dict) or not options:
        said = "missing" if "target_scores" not in row else f"expected options with numbers, got {show(options)}"
        hint = "PPL compares the options of a row; free-form answers are scored with method=gen"
        return [DatasetIntegrityError.problem_at(place, said, hint, code="no-options")]
    return [
        DatasetIntegrityError.problem_at(
            place, f"{show(option)}: expected a finite number, got {show(worth)}", code="not-a-number"
        )
        for option, worth in options.items()
        if not _is_finite(worth)
    ]


def _is_finite(worth: Any) -> bool:
    try:
        return isinstance(worth, int | float) and math.isfinite(worth)
    except OverflowError:  # a whole number that no float holds
        return False
