"""Sheets of answers that people judge, and the labels that come back."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from helm_ext.analysis.judged import JudgedRow
from helm_ext.analysis.predictions import Prediction
from helm_ext.analysis.row_stats import RowKey, row_key
from helm_ext.errors import (
    DatasetIntegrityError,
    DatasetSchemaError,
    HelmExtError,
    Location,
    Problem,
    Problems,
    RunEntryError,
    raise_for,
    show,
)
from helm_ext.judging.drawing import draw, order
from helm_ext.judging.judgement import HowDrawn, Judgement, Scale, bind, judged_digest
from helm_ext.judging.rubrics import Rubric
from helm_ext.judging.sheets import (
    DRAW_ENDING,
    RATERS,
    Draw,
    DrawnRow,
    add_bad_value,
    find_draw,
    read_labels,
    read_rows,
    read_value,
    write_draw,
    write_sheet,
)
from helm_ext.parsing import split_thinking
from helm_ext.scoring.corrected_scores import see

NO_VERDICT = "none"
"""The stratum of answers without a verdict: a jury that lacks one judge's may have none."""

_DIGEST = re.compile(r"digest=[0-9a-f]+,?")

_OVERLAP = 0.2
"""Of the answers, those that all raters label."""


@dataclass(frozen=True)
class Asked:
    """What people are asked of each answer."""

    criterion: str
    scale: tuple[float, ...] | Scale
    rubric_sha256: str | None
    shows_reference: bool = True


def to_time(seconds: float) -> str:
    """Return seconds since 1970 as a judgement has them."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def key_of(row: Prediction) -> RowKey:
    """Return what tells the rows of a run apart."""
    return row_key(row.instance_id, row.perturbation, row.trial)


def question_of(row: Prediction) -> str:
    """Return the question as who judges sees it: with its options."""
    options = [f"{label}. {text}" for label, text in (row.options or {}).items() if label != text]
    return "\n".join([row.question, *options])


def answer_of(row: Prediction) -> str:
    """Return the answer that is judged: the first completion, without what the model thought."""
    text: str = row.completions[0]["text"]
    parts = split_thinking(text)
    return text if parts is None else parts[1]


def find_asked(runs: Sequence[Sequence[JudgedRow]], criterion: str | None, rubric: Rubric | None) -> Asked:
    """Return what is labelled: by the rubric, else what judges were asked. Raises RunEntryError where it is unclear."""
    if rubric is not None:
        return Asked(rubric.criterion, rubric.to_scale(), rubric.sha256, "reference" in rubric.contents)
    said = [
        one
        for rows in runs
        for row in rows
        for name in row.judgements
        if criterion in (None, name)
        for one in row.judgements[name]
    ]
    criteria = sorted({one.criterion for one in said})
    if len(criteria) != 1:
        known = f"judged so far: {', '.join(criteria)}" if criteria else "nothing is judged so far"
        raise RunEntryError(
            f"--criterion{f' {criterion}' if criterion else ''}: which one is not clear; {known}\n"
            "  hint: --criterion NAME, or --rubric FILE says what people are asked"
        )
    if any(one.order for one in said):
        raise RunEntryError(f"--criterion {criteria[0]}: it compares two answers, and sheets hold one a row")
    facts = {(one.scale, one.rubric_sha256) for one in said}
    if len({scale for scale, _ in facts}) > 1:
        raise RunEntryError(f"--criterion {criteria[0]}: judged on several scales\n  hint: --rubric FILE names one")
    digests = {digest for _, digest in facts}
    return Asked(criteria[0], said[0].scale, next(iter(digests)) if len(digests) == 1 else None)


def name_stratum(row: JudgedRow, criterion: str) -> str:
    """Return what judges said of an answer, as labels correct it: the verdict, of a jury the sum of its verdicts."""
    seen = see([*row.judgements.get(criterion, ()), *row.other.get(criterion, ())])
    return NO_VERDICT if seen is None or seen.verdict is None else seen.cell


def can_be_labelled(row: JudgedRow) -> bool:
    """Whether there is a text to look at."""
    completions = row.row.completions
    is_text = bool(completions) and completions[0]["reference_index"] is None and not row.row.likelihoods
    return is_text and not row.row.left_out and not row.row.media and len(row.row.requests) == 1


def draw_sheet(
    runs: Mapping[str, Sequence[JudgedRow]], asked: Asked, design: str, number: int, seed: int
) -> tuple[Draw, dict[str, JudgedRow]]:
    """Return a draw of so many answers of one or two runs, and the row of each item. Raises HelmExtError.

    Where there are verdicts, answers without one are not drawn. `disagreements` of two runs draws questions that both
    have answered: both answers are labelled.
    """
    names = list(runs)
    rows = {name: {key_of(row.row): row for row in runs[name] if can_be_labelled(row)} for name in names}
    is_judged = any(asked.criterion in row.judgements for judged in runs.values() for row in judged)
    keys: list[RowKey] = [
        key
        for key in rows[names[0]]
        if all(key in rows[name] for name in names)
        # Labels of what the judge said nothing of correct nothing of what it said.
        and not (is_judged and any(name_stratum(rows[name][key], asked.criterion) == NO_VERDICT for name in names))
    ]
    if not keys:
        raise HelmExtError(f"{' and '.join(names)}: no answer to label")
    said = [one for row in rows[names[0]].values() for one in row.judgements.get(asked.criterion, ())]
    judges = sorted({one.by for one in said if one.kind == "model"})
    strata: dict[str, list[RowKey]] = {}
    for key in keys:
        if design == "random":
            stratum = "all"
        elif design == "by_verdict":
            stratum = name_stratum(rows[names[0]][key], asked.criterion)
        else:
            stratum = _name_pair([rows[name][key] for name in names], asked.criterion, judges)
        strata.setdefault(stratum, []).append(key)
    if design != "random" and len(strata) == 1:
        raise RunEntryError(f"--design {design}: all answers have one verdict, {next(iter(strata))}\n  hint: random")
    drawn = draw(strata, max(1, number // len(names)), seed)
    told = hashlib.sha256(repr((names, asked, design, number, seed, keys)).encode("utf-8", "replace")).hexdigest()[:6]
    places = order([(name, one.key) for name in names for one in drawn], seed, "place")
    chances = {one.key: one for one in drawn}
    found, items = [], {}
    for place, (name, key) in enumerate(places, 1):
        item, row = f"{told}-{place:04}", rows[name][key]
        items[item] = row
        found.append(
            DrawnRow(
                item=item, run=name, instance=key[0], trial=key[2], perturbation=key[1],
                binding=judged_digest(row.question, row.answers[0], asked.rubric_sha256),
                stratum=chances[key].stratum, p=chances[key].p,
            )
        )  # fmt: skip
    made = Draw(
        sheet=told, criterion=asked.criterion, rubric_sha256=asked.rubric_sha256, scale=_ends(asked.scale),
        is_range=isinstance(asked.scale, Scale), design=design, seed=seed,
        strata={name: len(inside) for name, inside in sorted(strata.items())}, rows=found,
        answers=len(rows[names[0]]) if len(names) == 1 else 0,
    )  # fmt: skip
    return made, items


def _name_pair(pair: Sequence[JudgedRow], criterion: str, judges: Sequence[str]) -> str:
    """Return both verdicts: of two models' answers, or of the judges of one answer."""
    if len(pair) == 2:
        return ", ".join(name_stratum(row, criterion) for row in pair)
    said = {one.by: f"{one.value:g}" for one in pair[0].judgements.get(criterion, ()) if one.kind == "model"}
    return ", ".join(said.get(by, NO_VERDICT) for by in judges)


def _ends(scale: tuple[float, ...] | Scale) -> list[float]:
    return [scale.min, scale.max] if isinstance(scale, Scale) else list(scale)


def write_sheets(
    made: Draw, items: Mapping[str, JudgedRow], target: Path, raters: int, *, references: bool
) -> list[Path]:
    """Write a CSV file and a page for each rater, and how they were drawn. Returns the files. Raises OSError.

    Several raters share one in five answers, and have different ones beside.
    """
    names = [row.item for row in made.rows]
    shared = names[: max(1, round(len(names) * _OVERLAP))] if raters > 1 else []
    own = names[len(shared) :]
    written = []
    for rater in range(raters):
        chosen = set(shared) | set(own[rater::raters])
        letter = RATERS[rater]
        rows = [
            (f"{item}-{letter}", *_to_cells(items[item], references=references)) for item in names if item in chosen
        ]
        stem = f"{target.name}-{rater + 1}" if raters > 1 else target.name
        written += write_sheet(made, rows, target.with_name(stem))
    path = target.with_name(f"{target.name}{DRAW_ENDING}")
    write_draw(path, made)
    return [*written, path]


def _to_cells(row: JudgedRow, *, references: bool) -> tuple[str, ...]:
    reference = "\n".join(row.row.gold) if references else ""
    return question_of(row.row), reference, answer_of(row.row)


# Labels that come back


def take_labels(
    path: Path, rater: str | None, runs: Mapping[str, Mapping[RowKey, JudgedRow]], at: str
) -> tuple[dict[str, dict[RowKey, list[Judgement]]], Counter[str]] | None:
    """Return the labels of a sheet as judgements, by run; and counts of labels, and of rows without one.

    `rater`: who labelled; else the letter that the sheet has for them. None where no record of a draw knows the sheet.
    Raises DatasetError with all that is wrong: labels of answers that
    have changed since, or of other runs, and what `read_labels` finds.
    """
    _, rows = read_rows(path)
    made = find_draw(path, [row.get("item", "").strip() for _, row in rows])
    if made is None:
        return None
    labels, empty = read_labels(path, made)
    if rater is not None and len({label.rater for label in labels}) > 1:
        raise RunEntryError(
            f"{path}: several people's labels, and --by names one\n  hint: without --by their sheets do"
        )
    known = {row.item: row for row in made.rows}
    problems = Problems(str(path))
    found: dict[str, dict[RowKey, list[Judgement]]] = {}
    scale = Scale(*made.scale) if made.is_range else tuple(made.scale)
    for label in labels:
        drawn = known[label.item]
        key: RowKey = (drawn.instance, drawn.perturbation, drawn.trial)
        name = _find_run(drawn.run, runs)
        row = None if name is None else runs[name].get(key)
        if name is None or row is None or not row.answers:
            hint = "name the run that the sheet was drawn from, or one that was made of it"
            message = f"row {show(key[0])} is in none of the runs" if name else f"it is an answer of {drawn.run}"
            problems.add(Location(str(path), label.line), message, hint, code="run", kind=DatasetIntegrityError)
        elif judged_digest(row.question, row.answers[0], made.rubric_sha256) != drawn.binding:
            message = f"question or answer of row {show(key[0])} has changed since the sheet was drawn"
            hint = "draw a sheet of the run as it is now"
            problems.add(Location(str(path), label.line), message, hint, code="stale", kind=DatasetIntegrityError)
        else:
            how = HowDrawn(made.design, drawn.stratum, drawn.p, made.sheet)
            asked = Asked(made.criterion, scale, made.rubric_sha256)
            judgement = _to_judgement(asked, label.value, rater or f"rater {label.rater}", at, how, row)
            found.setdefault(name, {}).setdefault(key, []).append(judgement)
    for name in found:
        there = sum(map(can_be_labelled, runs[name].values()))
        if 0 < made.answers < there:  # the others had no chance: merged from shards, say
            message = f"it was drawn from {made.answers} answers, and {name} has {there}"
            hint = "name the run that the sheet was drawn from, or draw one from this run"
            problems.add(Location(str(path)), message, hint, code="run", kind=DatasetIntegrityError)
    drawn_from = {row.run for row in made.rows}
    is_elsewhere = {_DIGEST.sub("", name) for name in drawn_from}.isdisjoint(_DIGEST.sub("", name) for name in runs)
    if is_elsewhere and problems.errors == len(labels) > 1:
        message = (
            f"none of its {len(labels)} labels is of an answer of {' or '.join(runs)}: "
            f"it was drawn from {' and '.join(sorted(drawn_from))}"
        )
        problems = Problems(str(path))
        problems.add(Location(str(path)), message, "name that run", code="run", kind=DatasetIntegrityError)
    raise_for(problems.finish())
    return found, Counter(labels=len(labels), empty=empty)


def _find_run(drawn: str, runs: Mapping[str, object]) -> str | None:
    """Return the run that a row was drawn from: one of that name, digests aside, else the only one that there is."""
    plain = {_DIGEST.sub("", name): name for name in runs}
    return plain.get(_DIGEST.sub("", drawn)) or (next(iter(runs)) if len(runs) == 1 else None)


def _to_judgement(asked: Asked, value: float, rater: str, at: str, how: HowDrawn | None, row: JudgedRow) -> Judgement:
    made = Judgement(
        by=rater, kind="human", criterion=asked.criterion, value=value, scale=asked.scale,
        rubric_sha256=asked.rubric_sha256, at=at, drawn=how,
    )  # fmt: skip
    return bind(made, row.question, row.answers)


def take_elsewhere(
    path: Path, rater: str, runs: Mapping[str, Mapping[RowKey, JudgedRow]], asked: Asked, design: str | None, at: str
) -> tuple[dict[str, dict[RowKey, list[Judgement]]], Counter[str]]:
    """Return labels that were made without a sheet of ours: columns `id` and `label`, perhaps `answer`.

    `design`: how their rows were chosen; without it the labels are kept and correct nothing. Of `random` and
    `by_verdict` chances are the shares of rows that have a label. Raises DatasetError.
    """
    columns, lines = read_rows(path)
    if len(runs) > 1:
        raise RunEntryError(f"{path}: labels that were made elsewhere are of one run, and {len(runs)} are named")
    [(name_of_run, rows)] = runs.items()
    if missing := [name for name in ("id", "label") if name not in columns]:
        hint = f"columns: {', '.join(columns)}; a sheet of `helm-ext judge sheet` comes with {path.stem}{DRAW_ENDING}"
        message = f"no column {' and '.join(missing)}"
        raise DatasetSchemaError([Problem(message, Location(str(path), 1), hint)])
    problems = Problems(str(path))
    by_id: dict[str, list[RowKey]] = {}
    for key in rows:
        by_id.setdefault(key[0], []).append(key)
    ends, is_range = _ends(asked.scale), isinstance(asked.scale, Scale)
    labels: dict[RowKey, tuple[float, int]] = {}
    empty = 0
    for line, row in lines:
        name, said = row.get("id", "").strip(), row.get("label", "").strip()
        place, found = Location(str(path), line, "id"), by_id.get(name, [])
        if len(found) != 1 or not rows[found[0]].answers:
            why = (
                "no row of the run"
                if not found
                else "several rows of the run"
                if len(found) > 1
                else "without an answer"
            )
            problems.add(place, f"{show(name)}: {why}", code="id", kind=DatasetIntegrityError)
        elif found[0] in labels:
            message = f"{show(name)} has a label in line {labels[found[0]][1]} already"
            problems.add(place, message, code="doubled", kind=DatasetIntegrityError)
        elif not said:
            empty += 1
        elif (value := read_value(said, ends, is_range=is_range)) is None:
            add_bad_value(problems, Location(str(path), line, "label"), said, ends, is_range=is_range)
        elif "answer" in row and row["answer"].lstrip("'").split() != answer_of(rows[found[0]].row).lstrip("'").split():
            message = f"the answer of row {show(name)} is another one in the run"
            problems.add(Location(str(path), line, "answer"), message, code="stale", kind=DatasetIntegrityError)
        else:
            labels[found[0]] = value, line
    raise_for(problems.finish())
    shown = [key for key, row in rows.items() if can_be_labelled(row)]
    is_random = design == "random"
    strata = {key: "all" if is_random else name_stratum(rows[key], asked.criterion) for key in shown}
    inside, taken = Counter(strata.values()), Counter(strata.get(key, "") for key in labels)
    judgements = {}
    for key, (value, _) in labels.items():
        stratum = strata.get(key, "")
        p = taken[stratum] / inside[stratum] if design in ("random", "by_verdict") and inside[stratum] else None
        how = None if design is None else HowDrawn(design, stratum, p)
        judgements[key] = [_to_judgement(asked, value, rater, at, how, rows[key])]
    return {name_of_run: judgements}, Counter(labels=len(labels), empty=empty)
