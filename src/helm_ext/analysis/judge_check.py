"""Whether a judge is any good, for whom, and how many more labels would say it better: of finished runs' judgements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from helm_ext.analysis.judged import read_judged
from helm_ext.analysis.runs import RunFiles
from helm_ext.errors import DatasetIntegrityError, did_you_mean
from helm_ext.scoring.corrected_scores import (
    JudgedScore,
    Seen,
    choose_labels,
    measure_bias,
    measure_judged,
    see,
    to_right,
)
from helm_ext.scoring.statistics.agreement import Swapped, compare_halves, compare_orders
from helm_ext.scoring.statistics.corrected import Corrected, Refused, labels_needed, share_of
from helm_ext.scoring.statistics.intervals import Interval

if TYPE_CHECKING:
    from helm_ext.judging.judgement import Judgement

JURY = "all judges together"


_Key = tuple[str, str, str]
"""Criterion, judge and digest of the rubric."""


class _Row(NamedTuple):
    model: str
    seen: Seen
    length: int
    cluster: str
    orders: tuple[float | None, float | None]
    """The verdict where the row's own answer was shown first, and where second."""


@dataclass(frozen=True, kw_only=True)
class ModelCheck:
    """A judge's verdicts of one model's answers."""

    model: str
    score: JudgedScore
    bias: Corrected | Refused
    """By how much the judge overrates the model."""
    sensitivity: Interval | None
    """Of the answers that people call right, the share that the judge passes; None for grades, and without labels."""
    specificity: Interval | None
    """Of the answers that people call wrong, the share that it fails."""


@dataclass(frozen=True, kw_only=True)
class JudgeCheck:
    """One judge, by one version of a rubric, or all of them together."""

    criterion: str
    judge: str
    rubric: str
    """Digest; "" for a jury, and where it is not known."""
    whole: ModelCheck
    models: list[ModelCheck]
    length: Interval | None
    """By how much more the judge overrates the longer half of the answers; None where that cannot be told."""
    swapped: Swapped | None
    """None where no pair was judged in both orders."""
    needed: dict[str, int] | None
    """Labels more of each verdict for +- 0.03; None where no number makes that, or nothing is corrected."""
    statuses: Counter[str] = field(default_factory=Counter)
    """How many judgements do not count."""


def check_judges(runs: Iterable[RunFiles], criterion: str | None = None) -> list[JudgeCheck]:
    """Return the checks of each criterion (of this one alone): of all judges together first, then of each.

    Raises DatasetIntegrityError where nothing was judged, or nothing by that criterion.
    """
    rows: dict[_Key, list[_Row]] = {}
    statuses: dict[_Key, Counter[str]] = {}
    for run in runs:
        model = str(run.adapter_spec.get("model", "")).removeprefix("recorded/")
        for row in read_judged(run):
            if row.row.perturbation or row.row.split == "train":
                continue
            for name in {*row.judgements, *row.other}:
                said = row.list_said(name)
                people = [one for one in said if one.kind == "human"]
                by_judge: dict[_Key, list[Judgement]] = {}
                for one in said:
                    for key in ((name, JURY, ""), (name, one.by, one.rubric_sha256 or "")):
                        if one.kind == "model":
                            by_judge.setdefault(key, [*people]).append(one)
                        if one.status != "ok":
                            statuses.setdefault(key, Counter())[one.status] += 1
                for key, judgements in by_judge.items():
                    seen = see(judgements)
                    if seen is not None and seen.verdict is not None:
                        length = len(row.answers[0]) if row.answers else 0
                        cluster = row.row.cluster or f"\0{row.row.instance_id}"
                        orders = {one.order: one.value for one in judgements if one.kind == "model"}
                        made = _Row(model, seen, length, cluster, (orders.get("given"), orders.get("swapped")))
                        rows.setdefault(key, []).append(made)
    known = sorted({name for name, _, _ in rows})
    if not known:
        raise DatasetIntegrityError(
            "no row has a verdict of a judge\n  hint: helm-ext judge out RUN --rubric correct --judge ORG/NAME"
        )
    if criterion is not None and criterion not in known:
        hint = did_you_mean(criterion, known) or f"judged: {', '.join(known)}"
        raise DatasetIntegrityError(f"--criterion {criterion}: nothing was judged by it\n  hint: {hint}")
    found = []
    for name in known if criterion is None else [criterion]:
        alone = sorted(key for key in rows if key[0] == name and key[1] != JURY)
        judges = [(name, JURY, ""), *alone] if len(alone) > 1 else alone
        found += [_check(key, rows[key], statuses.get(key, Counter())) for key in judges]
    return found


def find_refusals(run: RunFiles, criteria: Iterable[str]) -> dict[str, str]:
    """Return by criterion why the score of a run is not corrected: half a sentence. Raises DatasetError."""
    checks = {criterion: check_judges([run], criterion)[0].whole.score.corrected for criterion in criteria}
    return {
        criterion: found.reason
        if isinstance(found, Refused)
        else "rows have several answers, and labels are of the first"
        for criterion, found in checks.items()
    }


def _check(key: _Key, rows: Sequence[_Row], statuses: Counter[str]) -> JudgeCheck:
    by_model: dict[str, list[_Row]] = {}
    for row in rows:
        by_model.setdefault(row.model, []).append(row)
    if len(by_model) > 1:  # of which labels were drawn each by itself
        rows = [row._replace(seen=_name_model(row.seen, row.model)) for row in rows]
    whole = _check_model("all", rows)
    models = [_check_model(model, of_model) for model, of_model in sorted(by_model.items())]
    pairs = [row.orders for row in rows if None not in row.orders]
    corrected = whole.score.corrected
    needed = labels_needed(corrected.cells) if isinstance(corrected, Corrected) and corrected.cells else None
    return JudgeCheck(
        criterion=key[0], judge=key[1], rubric=key[2], whole=whole, models=models, length=_check_length(rows),
        swapped=compare_orders(*zip(*pairs, strict=True)) if pairs else None,
        needed=None if needed is None else {str(cell): number for cell, number in needed.items()}, statuses=statuses,
    )  # fmt: skip


def _name_model(seen: Seen, model: str) -> Seen:
    return seen._replace(cell=f"{seen.cell} ({model})", side=seen.side and f"{seen.side} ({model})")


def _clusters(rows: Sequence[_Row]) -> list[str] | None:
    """Return what each row belongs to: answers to one question, too; None where each row is alone."""
    found = [row.cluster for row in rows]
    return found if len(set(found)) < len(found) else None


def _check_model(model: str, rows: Sequence[_Row]) -> ModelCheck:
    seen, clusters = [row.seen for row in rows], _clusters(rows)
    score = measure_judged(seen, clusters)
    assert score is not None  # each row has a verdict
    return ModelCheck(model=model, score=score, bias=measure_bias(seen, clusters), **_check_sides(seen))


def _check_sides(seen: Sequence[Seen]) -> dict[str, Interval | None]:
    """Return sensitivity and specificity, as far as labels tell them."""
    chosen = choose_labels(seen, [row.cell for row in seen])
    found: dict[str, Interval | None] = {"sensitivity": None, "specificity": None}
    if isinstance(chosen, Refused) or not all(row.is_binary for row in seen):
        return found
    gold, verdicts = (to_right(one, is_binary=True) for one in (chosen.gold, np.array([row.verdict for row in seen])))
    drawn = ~np.isnan(chosen.gold)
    weights = np.ones(len(gold)) if chosen.chances is None else 1 / np.where(drawn, chosen.chances, 1)
    for name, value in (("sensitivity", 1.0), ("specificity", 0.0)):
        inside = drawn & (gold == value)
        if inside.any():
            found[name] = share_of((verdicts[inside] == value).astype(float), weights[inside])
    return found


def _check_length(rows: Sequence[_Row]) -> Interval | None:
    seen = [row.seen for row in rows]
    chosen = choose_labels(seen, [row.cell for row in seen])
    if isinstance(chosen, Refused) or chosen.is_balanced:
        return None
    drawn = (~np.isnan(chosen.gold)).nonzero()[0].tolist()
    errors = [(seen[place].verdict or 0.0) - chosen.gold[place] for place in drawn]
    weights = None if chosen.chances is None else 1 / chosen.chances[drawn]
    clusters = _clusters(rows)
    found = compare_halves(
        errors, [rows[place].length for place in drawn], weights=weights,
        clusters=None if clusters is None else [clusters[place] for place in drawn],
    )  # fmt: skip
    return found if found is not None and math.isfinite(found.low) else None
