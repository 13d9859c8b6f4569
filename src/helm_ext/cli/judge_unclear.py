"""`--judge-unclear`: what a judge is asked about rows whose own score could not be read.

The judge says what an answer chooses, or whether it refuses; which of that is right it is not told, and we decide.
Only where `extract` found nothing in an answer without options it compares with the reference, as `correct` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from helm_ext.analysis.labelling import question_of
from helm_ext.analysis.runs import RunFiles
from helm_ext.cli.output import echo
from helm_ext.errors import RunEntryError, count
from helm_ext.judging.rubrics import load_rubric
from helm_ext.judging.verdicts import Reading
from helm_ext.scoring.reducers import FIRST
from helm_ext.scoring.scores.refusal import find_expected
from helm_ext.scoring.stat_names import ANSWER, CHOICE, REFUSAL, UNCLEAR
from helm_ext.scoring.unclear import find_strict

if TYPE_CHECKING:
    from helm_ext.analysis.predictions import Prediction
    from helm_ext.judging.rubrics import Rubric

_NONE = 0.0
"""The value of a reply that names no option."""


def find_unclear(folder: Path) -> Rubric | None:
    """Return the rubric for a run's unclear rows; None, which is said, where all were read.

    Raises RunEntryError for a run whose unclear rows cannot be judged.
    """
    run = RunFiles(folder)
    arguments = run.metric_arguments
    metrics = arguments.get("metrics", [])
    if arguments.get("output_format") == "list" or run.adapter_spec.get("multi_label"):
        raise RunEntryError("--judge-unclear: rows with several right answers at once are not judged")
    if arguments.get("completions", FIRST) != FIRST:
        raise RunEntryError("--judge-unclear: rows that are scored by several completions are not judged")
    unclear, criterion = 0, REFUSAL if "refusal_match" in metrics else ANSWER
    for row in run.predictions():
        if row.options:
            criterion = CHOICE
        unclear += any(row.score(flag) for flag in {*UNCLEAR.values()})
    if find_strict(criterion, metrics, str(arguments.get("main_metric"))) is None:
        raise RunEntryError(
            f"{folder}: no score that rows can be unclear for\n  hint: exact_match or quasi_exact_match, of options or "
            "with extract=; or refusal_match"
        )
    if not unclear:
        echo("nothing is unclear: no judge is asked")
        return None
    echo(f"{count(unclear, 'row')} that could not be read: judged by {criterion}")
    if criterion == ANSWER:
        return msgspec.structs.replace(load_rubric("correct"), criterion=ANSWER)
    return load_rubric(criterion)


def why_not_unclear(row: Prediction, rubric: Rubric) -> str:
    """Return why a row is not asked about; "" for one that is."""
    if not row.score(UNCLEAR[rubric.criterion]):
        return "that could be read"
    if rubric.criterion != ANSWER and not _find_right(row, rubric):
        return "without a right option" if rubric.criterion == CHOICE else "whose expected text is unclear itself"
    return ""


def ask_unclear(row: Prediction, rubric: Rubric) -> tuple[str, Reading, frozenset[float]]:
    """Return the question as the judge sees it, what reads the reply, and the values of replies that are right."""
    question, reading = question_of(row), rubric.reading
    if rubric.criterion == CHOICE:
        shown = (label if label == text else f"{label}. {text}" for label, text in (row.options or {}).items())
        question = "\n".join([row.question, *shown])
        none = {word: _NONE for word, value in (rubric.values or {}).items() if value == _NONE}
        reading = Reading(rubric.keys, {**none, **_number_options(row.options or {})})
    return question, reading, _find_right(row, rubric)


def _number_options(options: Mapping[str, str]) -> dict[str, float]:
    return {label: float(number) for number, label in enumerate(options, 1)}


def _find_right(row: Prediction, rubric: Rubric) -> frozenset[float]:
    if rubric.criterion == ANSWER:
        return frozenset({1.0})
    if rubric.criterion == REFUSAL:
        expected = find_expected(row.data, row.gold)
        return frozenset() if "unclear" in expected else frozenset(float(one == "refused") for one in expected)
    numbers, gold = _number_options(row.options or {}), set(row.gold)
    return frozenset(numbers[label] for label, text in (row.options or {}).items() if text in gold)
