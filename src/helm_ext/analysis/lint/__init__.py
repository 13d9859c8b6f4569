"""What is odd about the rows of a dataset, of any format, though each of them is well formed.

    EvalSet ──rows──▶ Row ──repeats──────▶ the same question twice: contradictions, duplicates, leaks
                          ──answers──────▶ the right answer gives itself away: in the prompt, by its position
                          ──marred───────▶ texts that are empty, wrongly decoded, truncated, unfinished

The rows are gone through twice, since what a row's words are worth depends on all others (`rows.Shared`).

All but what is empty are warnings: whether a row is wrong, only its author knows. docs/how-to/lint.md has the rules and
what they find and miss, counted.
"""

from __future__ import annotations

from pathlib import Path as FilePath

from helm_ext import files
from helm_ext.analysis.lint.answers import AnswersInPrompts, Positions
from helm_ext.analysis.lint.marred import MarredRows
from helm_ext.analysis.lint.repeats import EqualRows, NearRows
from helm_ext.analysis.lint.rows import Rows, Shared
from helm_ext.engines.progress import Measured, Progress
from helm_ext.errors import Problem, Problems
from helm_ext.evalset import EvalSet

__all__ = ["lint"]

_TURNS = 2
"""How often all rows are gone through; once more for each rule that has found rows to name, in a large file."""


def lint(evalset: EvalSet, path: str, *, demonstrations: EvalSet | None = None) -> list[Problem]:
    """Return what is odd about the rows of a dataset, in the order of the file.

    `path` is the file that messages name where a row's own place is not known. `demonstrations` are rows of the train
    split that the EvalSet does not hold, as `Format.load_demonstrations` returns them.
    """
    rows = Rows(evalset, path, demonstrations)
    problems = Problems(evalset.places.path if evalset.places is not None else path)
    marred, positions, shared = MarredRows(), Positions(), Shared()
    with Progress(
        None,
        title=f"linting {FilePath(path).name}, all rows twice",
        measure=lambda: Measured(rows.seen, max(_TURNS, rows.turns) * len(rows)),
    ):
        for row in rows:
            marred.see(row)
            if not row.is_empty:
                positions.see(row)
                shared.see(row)
        shared.settle()
        equal, near, answers = EqualRows(shared), NearRows(shared), AnswersInPrompts(shared)
        for row in rows:
            if not row.is_empty:
                if equal.see(row):
                    near.see(row)
                answers.see(row)
        equal.report(rows, problems)
        near.report(rows, equal.find_groups(), problems)
        positions.report(problems, path)
        answers.report(rows, problems)
        marred.report(rows, problems)

    def read() -> str:
        return files.read_source(problems.path).data.removeprefix(files.BOM).decode("utf-8", "replace")

    return problems.finish(lambda paths: files.locate(read(), paths))
