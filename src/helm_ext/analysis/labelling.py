"""Sheets of answers that people judge, and the labels that come back."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import msgspec

from helm_ext.analysis.json_arrays import RowKey
from helm_ext.analysis.predictions import Prediction
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
from helm_ext.judging.judgement import HowDrawn, Judgement, Scale, bind, judged_digest
from helm_ext.judging.rubrics import Rubric
from helm_ext.judging.sheets import DRAW_ENDING, RATERS, Asked, Draw, DrawnRow, draw, find_draw, order, read_rows
from helm_ext.parsing import split_thinking
from helm_ext.scoring.corrected_scores import Seen, join_designs, kind_of, see

_NO_VERDICT = "none"
"""The stratum of answers without a verdict: a jury that lacks one judge's may have none."""

_DIGEST = re.compile(r"digest=[0-9a-f]+,?")

Runs = Mapping[str, Mapping[RowKey, Prediction]]
"""The rows of runs, by the runs' names."""

Labels = dict[str, dict[RowKey, list[Judgement]]]
"""What people said of rows, by the names of their runs."""


def to_time(seconds: float) -> str:
    """Return seconds since 1970 as a judgement has them."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def question_of(row: Prediction) -> str:
    """Return the question as who judges sees it: with its options."""
    options = [f"{label}. {text}" for label, text in (row.options or {}).items() if label != text]
    return "\n".join([row.question, *options])


def answer_of(row: Prediction) -> str:
    """Return the answer that is judged: the first completion, without what the model thought."""
    text: str = row.completions[0]["text"]
    parts = split_thinking(text)
    return text if parts is None else parts[1]


def find_asked(runs: Runs, criterion: str | None, rubric: Rubric | None) -> Asked:
    """Return what is labelled: by the rubric, else what judges were asked. Raises RunEntryError where it is unclear."""
    if rubric is not None:
        return _to_asked(rubric.criterion, rubric.to_scale(), rubric.sha256)
    every = (one for rows in runs.values() for row in rows.values() for one in row.said if one.value is not None)
    said = [one for one in every if criterion in (None, one.criterion)]
    criteria = sorted({one.criterion for one in said})
    if len(criteria) != 1:
        known = f"judged so far: {', '.join(criteria)}" if criteria else "nothing is judged so far"
        raise RunEntryError(
            f"--criterion{f' {criterion}' if criterion else ''}: name one that was judged; {known}\n"
            "  hint: --criterion NAME, or --rubric FILE says what people are asked"
        )
    if len({one.scale for one in said}) > 1:
        raise RunEntryError(f"--criterion {criteria[0]}: judged on several scales\n  hint: --rubric FILE names one")
    digests = {one.rubric_sha256 for one in said}
    return _to_asked(criteria[0], said[0].scale, digests.pop() if len(digests) == 1 else None)


def _to_asked(criterion: str, scale: tuple[float, ...] | Scale, sha256: str | None) -> Asked:
    values, is_range = ([scale.min, scale.max], True) if isinstance(scale, Scale) else ([*scale], False)
    return Asked(criterion=criterion, rubric_sha256=sha256, scale=values, is_range=is_range)


def _name_stratum(seen: Seen | None) -> str:
    """Return what judges said of an answer, as labels correct it: the verdict, of a jury the sum of its verdicts."""
    return _NO_VERDICT if seen is None or seen.verdict is None else seen.cell


def _can_be_labelled(row: Prediction) -> bool:
    """Whether there is a text to look at."""
    completions = row.completions
    is_text = bool(completions) and completions[0]["reference_index"] is None and not row.likelihoods
    return is_text and not row.left_out and not row.media and len(row.requests) == 1


def draw_sheet(
    runs: Runs, criterion: str | None, rubric: Rubric | None, design: str, number: int, seed: int
) -> tuple[Draw, dict[str, tuple[str, str, str]]]:
    """Return a draw of so many answers of one or two runs; and question, reference and answer of each item.

    Where there are verdicts, answers without one are not drawn. `disagreements` of two runs draws questions that both
    have answered: both answers are labelled. Those that have labels of a draw which this one is joined with are left
    out: of n of N answers and m of the N - n others, each has the chance (n + m) / N, as in one draw of all. It is what
    `choose_labels` makes of n / N and m / (N - n). Raises HelmExtError.
    """
    asked = find_asked(runs, criterion, rubric)
    every = [one for rows in runs.values() for row in rows.values() for one in row.list_said(asked.criterion)]
    if any(one.order for one in every) if rubric is None else rubric.is_pair:
        hint = "helm-ext judge labels FILE.csv RUN --design random takes labels of pairs that were made elsewhere"
        raise RunEntryError(f"{asked.criterion}: it compares two answers, and a row of a sheet has one\n  hint: {hint}")
    names = list(runs)
    rows = {name: {key: row for key, row in runs[name].items() if _can_be_labelled(row)} for name in names}
    is_judged = any(one.value is not None for one in every)
    said = {
        key: [of_run[key].list_said(asked.criterion) for of_run in rows.values()]
        for key in rows[names[0]]
        if all(key in of_run for of_run in rows.values())
    }
    by_judge = {
        key: {one.by: f"{one.value:g}" for one in first if one.kind == "model" and one.value is not None}
        for key, (first, *_) in said.items()
    }
    judges = sorted({by for verdicts in by_judge.values() for by in verdicts})
    strata: dict[str, list[RowKey]] = {}
    keys, labelled = [], 0
    for key, of_each in said.items():
        seen = [see(one) for one in of_each]
        verdicts = [_name_stratum(one) for one in seen]
        if is_judged and _NO_VERDICT in verdicts:
            continue  # labels of what the judge said nothing of correct nothing of what it said
        if design == "disagreements" and len(names) == 1:
            verdicts = [by_judge[key].get(by, _NO_VERDICT) for by in judges]
        inside = strata.setdefault("all" if design == "random" else ", ".join(verdicts), [])
        if all(one and any(kind_of(label) == join_designs(design) for label in one.labels) for one in seen):
            labelled += 1
        else:
            keys.append(key)
            inside.append(key)
    if not keys:
        all_have = f": all {labelled} have labels drawn so" if labelled else ""
        raise HelmExtError(f"{' and '.join(names)}: no answer to label{all_have}")
    if design != "random" and len(strata) == 1:
        refused = f"--design {design}: all answers have one verdict, {next(iter(strata))}"
        raise RunEntryError(f"{refused}\n  hint: --design random")
    drawn = draw(strata, max(1, number // len(names)), seed)
    told = hashlib.sha256(repr((names, asked, design, number, seed, keys)).encode("utf-8", "replace")).hexdigest()[:6]
    found, items = [], {}
    for place, (name, key) in enumerate(order([(name, key) for name in names for key in drawn], seed, "place"), 1):
        item, row = f"{told}-{place:04}", rows[name][key]
        reference = "\n".join(row.gold) if rubric is None or "reference" in rubric.contents else ""
        items[item] = question_of(row), reference, answer_of(row)
        found.append(
            DrawnRow(
                item=item, run=name, instance=key[0], trial=key[2], perturbation=key[1],
                binding=judged_digest(row.judged_question, row.answers[0], asked.rubric_sha256),
                stratum=drawn[key][0], p=drawn[key][1],
            )
        )  # fmt: skip
    made = Draw(
        **msgspec.structs.asdict(asked), sheet=told, design=design, seed=seed,
        strata={name: len(inside) for name, inside in sorted(strata.items())}, rows=found,
        answers=len(rows[names[0]]) if len(names) == 1 else 0, labelled=labelled,
    )  # fmt: skip
    return made, items


# Labels that come back


class _Target(NamedTuple):
    """What a label is of, and whose it is."""

    run: str
    row: Prediction
    how: HowDrawn | None = None
    rater: str = ""


class _NotFoundError(Exception):
    """A label is of no row: the field that is wrong, a message and a hint."""


def take_labels(path: Path, rater: str | None, runs: Runs, at: str) -> tuple[Labels, Counter[str]] | None:
    """Return the labels of a sheet as judgements, by run; and counts of labels, and of rows without one.

    `rater`: who labelled; else the letter that the sheet has for them. None where no record of a draw knows the sheet.
    Raises DatasetError with all that is wrong.
    """
    made = find_draw(path, [row.get("item", "").strip() for _, row in read_rows(path)[1]])
    if made is None:
        return None
    known = {row.item: row for row in made.rows}
    plain = {_DIGEST.sub("", name): name for name in runs}

    def find(item: str, _cells: Mapping[str, str]) -> _Target:
        name, _, letter = item.rpartition("-")
        if name not in known or letter not in {*RATERS}:
            raise _NotFoundError(
                "item", f"{show(item)} is no row of this sheet", "the sheet's column item is not to be changed"
            )
        drawn = known[name]
        run = plain.get(_DIGEST.sub("", drawn.run)) or (next(iter(runs)) if len(runs) == 1 else "")
        row = runs[run].get((drawn.instance, drawn.perturbation, drawn.trial)) if run else None
        if row is None or not row.answers:
            hint = "name the run that the sheet was drawn from, or one that was made of it"
            raise _NotFoundError("item", f"row {show(drawn.instance)} of {drawn.run} is in none of the runs", hint)
        if judged_digest(row.judged_question, row.answers[0], made.rubric_sha256) != drawn.binding:
            message = f"question or answer of row {show(drawn.instance)} has changed since the sheet was drawn"
            raise _NotFoundError("item", message, "draw a sheet of the run as it is now")
        return _Target(run, row, HowDrawn(made.design, drawn.stratum, drawn.p, made.sheet), f"rater {letter}")

    labels, empty, problems = _read_labels(path, "item", find, made)
    if rater is not None and len({target.rater for target, _ in labels}) > 1:
        raise RunEntryError(
            f"{path}: several people's labels, and --by names one\n  hint: without --by their sheets do"
        )
    for name in {target.run for target, _ in labels}:
        there = sum(map(_can_be_labelled, runs[name].values()))
        if 0 < made.answers < there:  # the others had no chance: merged from shards, say
            message = f"it was drawn from {made.answers} answers, and {name} has {there}"
            hint = "name the run that the sheet was drawn from, or draw one from this run"
            problems.add(Location(str(path)), message, hint, code="run", kind=DatasetIntegrityError)
    drawn_from = {row.run for row in made.rows}
    if not labels and problems.errors > 1 and plain.keys().isdisjoint(_DIGEST.sub("", name) for name in drawn_from):
        message = (
            f"none of its {problems.errors} labels is of an answer of {' or '.join(runs)}: "
            f"it was drawn from {' and '.join(sorted(drawn_from))}"
        )
        raise DatasetIntegrityError([Problem(message, Location(str(path)), "name that run", code="run")])
    raise_for(problems.finish())
    return _to_judgements(labels, made, rater, at), Counter(labels=len(labels), empty=empty)


def take_elsewhere(
    path: Path, rater: str, runs: Runs, asked: Asked, design: str | None, at: str
) -> tuple[Labels, Counter[str]]:
    """Return labels that were made without a sheet of ours: columns `id` and `label`, perhaps `answer`.

    `design`: how their rows were chosen; without it the labels are kept and correct nothing. Of `random` and
    `by_verdict` chances are the shares of rows that have a label. Raises DatasetError.
    """
    if len(runs) > 1:
        raise RunEntryError(f"{path}: labels that were made elsewhere are of one run, and {len(runs)} are named")
    [(run, rows)] = runs.items()
    by_id: dict[str, list[Prediction]] = {}
    for row in rows.values():
        by_id.setdefault(row.instance_id, []).append(row)

    def find(name: str, cells: Mapping[str, str]) -> _Target:
        found = by_id.get(name, [])
        if len(found) != 1:
            raise _NotFoundError("id", f"{show(name)}: {'several rows' if found else 'no row'} of the run", "")
        [row] = found
        if not row.answers:
            raise _NotFoundError("id", f"{show(name)}: without an answer", "")
        if "answer" in cells and cells["answer"].lstrip("'").split() != answer_of(row).lstrip("'").split():
            raise _NotFoundError("answer", f"the answer of row {show(name)} is another one in the run", "")
        return _Target(run, row)

    labels, empty, problems = _read_labels(path, "id", find, asked)
    raise_for(problems.finish())
    strata = {
        key: "all" if design == "random" else _name_stratum(see(row.list_said(asked.criterion)))
        for key, row in rows.items()
        if _can_be_labelled(row)
    }
    inside, taken = Counter(strata.values()), Counter(strata.get(target.row.key, "") for target, _ in labels)
    for place, (target, value) in enumerate(labels if design is not None else ()):
        stratum = strata.get(target.row.key, "")
        p = taken[stratum] / inside[stratum] if design in ("random", "by_verdict") and inside[stratum] else None
        labels[place] = target._replace(how=HowDrawn(design or "", stratum, p)), value
    return _to_judgements(labels, asked, rater, at), Counter(labels=len(labels), empty=empty)


def _read_labels(
    path: Path, column: str, find: Callable[[str, Mapping[str, str]], _Target], asked: Asked
) -> tuple[list[tuple[_Target, float]], int, Problems]:
    """Return the labels of a file, how many rows have none, and what is wrong with others.

    `column` says which row of a run a line is of; `find` looks it up, and raises _NotFoundError. Raises DatasetError
    for what is no such file.
    """
    columns, lines = read_rows(path)
    if missing := [name for name in (column, "label") if name not in columns]:
        hint = f"columns: {', '.join(columns)}; a sheet of `helm-ext judge sheet` comes with {path.stem}{DRAW_ENDING}"
        message = f"no column {' and '.join(missing)}"
        raise DatasetSchemaError([Problem(message, Location(str(path), 1), hint)])
    problems, scale = Problems(str(path)), asked.scale
    expected = (
        f"a number from {scale[0]:g} to {scale[-1]:g}" if asked.is_range else " or ".join(f"{v:g}" for v in scale)
    )
    expected += ", no or yes" if scale == [0.0, 1.0] else ""
    seen: dict[str, int] = {}
    labels, empty = [], 0
    for line, cells in lines:
        name, said = cells.get(column, "").strip(), cells.get("label", "").strip()
        found = value = None
        wrong = (column, f"{name} stands in line {seen[name]} already", "keep one of the two") if name in seen else None
        if wrong is None and said:
            try:
                found, value = find(name, cells), asked.read(said)
            except _NotFoundError as error:
                wrong = error.args
            if found is not None and value is None:
                wrong = "label", f"expected {expected}, got {show(said)}", "leave it empty where nothing can be said"
        if wrong is not None:
            where = Location(str(path), line, wrong[0])
            problems.add(where, *wrong[1:], code="label", kind=DatasetIntegrityError)
        elif found is not None and value is not None:
            labels.append((found, value))
        empty += wrong is None and not said
        seen.setdefault(name, line)
    return labels, empty, problems


def _to_judgements(labels: Sequence[tuple[_Target, float]], asked: Asked, rater: str | None, at: str) -> Labels:
    found: Labels = {}
    scale = Scale(*asked.scale) if asked.is_range else tuple(asked.scale)
    for target, value in labels:
        made = Judgement(
            by=rater or target.rater, kind="human", criterion=asked.criterion, value=value, scale=scale,
            rubric_sha256=asked.rubric_sha256, at=at, drawn=target.how,
        )  # fmt: skip
        made = bind(made, target.row.judged_question, target.row.answers)
        found.setdefault(target.run, {}).setdefault(target.row.key, []).append(made)
    return found
