"""The rows of a finished run with what was judged of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helm_ext.judging.judgement import Judgement, take_judgements

if TYPE_CHECKING:
    from helm_ext.analysis.predictions import Prediction
    from helm_ext.analysis.run_files import RunFiles

__all__ = ["JudgedRow", "read_judged"]


@dataclass(frozen=True, kw_only=True)
class JudgedRow:
    """A row, and its judgements: also one that has none."""

    row: Prediction
    question: str
    """As judgements are bound to it."""
    answers: tuple[str, ...]
    """The row's completions."""
    judgements: Mapping[str, tuple[Judgement, ...]]
    """By criterion, those that count: `ok`, and of just this question, answer and rubric."""
    other: Mapping[str, tuple[Judgement, ...]]
    """By criterion, those that do not: unparsed, refused, failed, not run, stale, replaced. Their values are None."""

    def count(self, criterion: str) -> Counter[tuple[str, str]]:
        """Return how many judgements do not count: by judge and status."""
        return Counter((one.by, one.status) for one in self.other.get(criterion, ()))


def read_judged(run: RunFiles, rubrics: Mapping[str, str] | None = None) -> Iterator[JudgedRow]:
    """Yield the rows of a run, in its order, those that are left out included.

    `rubrics`: criterion to `Rubric.sha256`, where the rubric is known as it is now: judgements by another one are stale
    then. Raises DatasetError for a broken run.
    """
    for row in run.predictions():
        answers = tuple(one["text"] for one in row.completions)
        good: dict[str, tuple[Judgement, ...]] = {}
        other: dict[str, tuple[Judgement, ...]] = {}
        with run.blaming("scenario_state.json"):
            # A row that cannot be scored here may have been judged; its answer is not in the run's files.
            known = None if row.left_out == "unscored" else answers
            found = take_judgements(row.judgements, row.judged_question, known, rubrics)
        for one in found:
            holder = good if one.status == "ok" else other
            holder[one.criterion] = (*holder.get(one.criterion, ()), one)
        yield JudgedRow(row=row, question=row.judged_question, answers=answers, judgements=good, other=other)
