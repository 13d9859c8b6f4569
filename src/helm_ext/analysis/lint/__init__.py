"""What is odd about the rows of a dataset, of any format, though each of them is well formed.

    EvalSet ──rows──▶ Row ──equal, near──▶ the same question twice: contradictions, duplicates, leaks
                          ──positions────▶ one position holds the right option far too often
                          ──answers──────▶ prompts that hold their answer
                          ──marred───────▶ texts that are empty, wrongly decoded, truncated, unfinished

The rows are gone through twice, since what a row's words are worth depends on all others. Between the two, a rule keeps
numbers of each row: `see`, `settle`, `see_again`, `report`.

All but what is empty are warnings: whether a row is wrong, only its author knows. docs/how-to/lint.md has the rules and
what they find and miss, counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath

from helm_ext import files
from helm_ext.analysis.lint.answers import AnswersInPrompts
from helm_ext.analysis.lint.equal import EqualRows
from helm_ext.analysis.lint.marred import MarredRows
from helm_ext.analysis.lint.near import NearRows
from helm_ext.analysis.lint.positions import Positions
from helm_ext.analysis.lint.rows import Rows
from helm_ext.engines.progress import Measured, Progress
from helm_ext.errors import Path, Problem, Problems
from helm_ext.evalset import EvalSet

__all__ = ["lint", "str"]

TURNS = 2
"""How often all rows are gone through; once more for each rule that has found rows to name, in a large file."""


def lint(evalset: EvalSet, path: str, *, demonstrations: EvalSet | None = None) -> list[Problem]:
    """Return what is odd about the rows of a dataset, in the order of the file.

    `path` is the file that messages name where a row's own place is not known. `demonstrations` are rows of the train
    split that the EvalSet does not hold, as `Format.load_demonstrations` returns them.
    """
    rows = Rows(evalset, path, demonstrations=demonstrations)
    problems = Problems(evalset.places.path if evalset.places is not None else path)
    equal, near, positions, answers = EqualRows(), NearRows(), Positions(), AnswersInPrompts()
    marred = MarredRows()
    with Progress(
        None,
        title=f"linting {FilePath(path).name}, all rows twice",
        measure=lambda: Measured(rows.seen, max(TURNS, rows.turns) * len(rows)),
    ):
        for row in rows:
            marred.see(row)
            if row.is_empty:
                continue
            if equal.see(row):
                near.see(row)
            positions.see(row)
            answers.see(row)
        for rule in (equal, near, answers):
            rule.settle()
        for row in rows:
            if row.is_empty:
                continue
            if equal.see_again(row):
                near.see_again(row)
            answers.see_again(row)
        equal.report(rows, problems)
        near.report(rows, equal.group_of, problems)
        positions.report(problems, path)
        answers.report(rows, problems)
        marred.report(rows, problems)
    return problems.finish(lambda paths: _find_lines(problems.path, paths))


def _find_lines(path: str, paths: Sequence[Path]) -> Mapping[Path, int]:
    """Return the lines of places in a document."""
    text = files.read_source(path).data.removeprefix(files.BOM).decode("utf-8", "replace")
    return files.locate(text, paths)
