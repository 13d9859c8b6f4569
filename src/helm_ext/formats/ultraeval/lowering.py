"""From a task's rows to HELM's Instances and AdapterSpec (docs/ultraeval.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from helm.benchmark.adaptation.adapter_spec import (
    ADAPT_GENERATION,
    ADAPT_MULTIPLE_CHOICE_SEPARATE_ORIGINAL,
    AdapterSpec,
)
from helm.benchmark.scenarios.scenario import CORRECT_TAG, TEST_SPLIT, Input, Instance, Output, Reference

from helm_ext.errors import DatasetIntegrityError, Location, Problem, show
from helm_ext.evalset import EXTRA_KEY, RowExtra

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from helm_ext.formats.ultraeval.prompt import Question
    from helm_ext.formats.ultraeval.sampling import Sampling
    from helm_ext.formats.ultraeval.task import Task


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


def to_adapter_spec(method: Literal["gen", "ppl"], sampling: Sampling) -> AdapterSpec:
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
