r"""Demonstrations and prompt of a question, exactly as upstream makes them (docs/ultraeval.md).

    description + "\\n\\n"            if there is one
    input + output + "\\n\\n"         each demonstration
    input                           the question

Nothing else is added and nothing is stripped. For each question, n + 1 rows are drawn from the whole file, rows equal
to the question's are dropped, and n are kept. Upstream's generator has no seed; ours has, and is used in the same
order: what is drawn for a question depends on the seed and the rows before it, never on how many rows are run.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helm_ext.formats.ultraeval.script import TransformProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from helm_ext.formats.ultraeval.script import Script, Transformed
    from helm_ext.formats.ultraeval.task import Task


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
