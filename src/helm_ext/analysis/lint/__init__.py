"""What is odd about the rows of a dataset, of any format, though each of them is well formed.

    EvalSet ──rows──▶ Row ──equal, near──▶ the same question twice: contradictions, duplicates, leaks
                          ──positions────▶ one position holds the right option far too often
                          ──answers──────▶ prompts that hold their answer

All are warnings: whether a row is wrong, only its author knows. docs/how-to/lint.md has the rules and what they find
and miss, counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from helm_ext import files
from helm_ext.analysis.lint.answers import find_answers
from helm_ext.analysis.lint.codes import LintCode
from helm_ext.analysis.lint.equal import find_equal
from helm_ext.analysis.lint.near import find_near
from helm_ext.analysis.lint.positions import find_position_bias
from helm_ext.analysis.lint.rows import Row, to_rows
from helm_ext.errors import Path, Problem, Problems
from helm_ext.evalset import EvalSet

__all__ = ["LintCode", "lint"]


def lint(evalset: EvalSet, path: str, *, demonstrations: EvalSet | None = None) -> list[Problem]:
    """Return what is odd about the rows of a dataset, as warnings, in the order of the file.

    `path` is the file that messages name where a row's own place is not known. `demonstrations` are rows of the train
    split that the EvalSet does not hold, as `Format.load_demonstrations` returns them.
    """
    rows: list[Row] = []
    if demonstrations is not None:
        rows += to_rows(demonstrations, path, split="train")
    rows += to_rows(evalset, path, start=len(rows))
    problems = Problems(evalset.places.path if evalset.places is not None else path)
    groups = find_equal(rows, problems)
    find_near(groups, problems)
    find_position_bias(rows, problems, path)
    find_answers(rows, problems)
    return problems.finish(lambda paths: _find_lines(problems.path, paths))


def _find_lines(path: str, paths: Sequence[Path]) -> Mapping[Path, int]:
    """Return the lines of places in a document."""
    text = files.read_source(path).data.removeprefix(files.BOM).decode("utf-8", "replace")
    return files.locate(text, paths)
