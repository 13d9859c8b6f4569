"""The rows that a finished run got wrong: what was asked, what is right, what came back, and how that was read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from helm_ext.analysis.run_files import RunFiles
from helm_ext.analysis.run_scores import is_wrong, open_scores


@dataclass(frozen=True, slots=True)
class WrongRow:
    """One row that the main metric calls wrong, in its first trial."""

    instance_id: str
    score: float
    question: str
    options: dict[str, str] | None
    """Label to text, where completions are read as labels."""
    gold: list[str]
    answer: str | None
    """The first completion; None where there is none."""
    read: str | None
    """What it was scored as; None where nothing was read in it."""

    def to_json(self) -> dict[str, Any]:
        """Return the row, for programs."""
        return asdict(self)


def find_wrong(run: RunFiles, most: int) -> tuple[list[WrongRow], int]:
    """Return the first `most` wrong rows of the run's main split, in file order, and how many there are.

    Wrong: a score below 0.5, above it where lower is better. Rows without a score are none of them. Raises
    RunEntryError for a run without a main metric, DatasetError for broken files.
    """
    scores = open_scores(run)
    found: list[WrongRow] = []
    total = 0
    for row in run.predictions():
        score = row.score(scores.metric)
        if row.trial or not scores.see(row) or score is None:
            continue
        if is_wrong(score, lower_is_better=scores.lower_is_better):
            total += 1
            if len(found) < most:
                answer = str(row.completions[0]["text"]) if row.completions else None
                found.append(
                    WrongRow(row.instance_id, score, row.question, row.options, row.gold, answer, row.read.text)
                )
    return found, total
