"""What is odd about the rows of a dataset, of any format, though each of them is well formed.

    EvalSet ──rows──▶ Rows ──repeats, alike──▶ the same question twice: contradictions, duplicates, leaks
                           ──texts───────────▶ the right answer gives itself away: in the prompt, by its position;
                                               texts that are empty, wrongly decoded, truncated, unfinished

All but what is empty are warnings: whether a row is wrong, only its author knows. docs/how-to/lint.md has the rules and
what they find and miss, counted.
"""

from __future__ import annotations

from helm_ext import files
from helm_ext.analysis.lint.repeats import report_equal, report_near
from helm_ext.analysis.lint.rows import Shared, read_rows
from helm_ext.analysis.lint.texts import report_answers, report_marred, report_positions
from helm_ext.errors import Problem, Problems
from helm_ext.evalset import EvalSet

__all__ = ["lint"]


def lint(evalset: EvalSet, path: str, *, demonstrations: EvalSet | None = None) -> list[Problem]:
    """Return what is odd about the rows of a dataset, in the order of the file.

    `path` is the file that messages name where a row's own place is not known. `demonstrations` are rows of the train
    split that the EvalSet does not hold, as `Format.load_demonstrations` returns them.
    """
    problems = Problems(evalset.places.path if evalset.places is not None else path)
    rows = read_rows(evalset, path, demonstrations)
    asked = [row for row in rows if not row.is_empty]
    shared = Shared(asked)
    report_equal(shared, problems)
    report_near(shared, problems)
    report_positions(asked, problems, path)
    report_answers(asked, shared, problems)
    report_marred(rows, problems)

    def read() -> str:
        return files.read_source(problems.path).data.removeprefix(files.BOM).decode("utf-8", "replace")

    return problems.finish(lambda paths: files.locate(read(), paths))
