"""Sheets of answers that people judge, and the labels that come back."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

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
from helm_ext.judging.sheets import DRAW_ENDING, RATERS, Draw, DrawnRow, draw, find_draw, order, read_rows
from helm_ext.parsing import split_thinking
from helm_ext.scoring.corrected_scores import Seen, join_designs, see

_NO_VERDICT = "none"
"""The stratum of answers without a verdict: a jury that lacks one judge's may have none."""

_DIGEST = re.compile(r"digest=[0-9a-f]+,?")

Runs = Mapping[str, Mapping[RowKey, Prediction]]
"""The rows of runs, by the runs' names."""

Labels = dict[str, dict[RowKey, list[Judgement]]]
"""What people said of rows, by the names of their runs."""


@dataclass(frozen=True)
class Asked:
    """What people are asked of each answer."""

    criterion: str
    scale: tuple[float, ...] | Scale
    rubric_sha256: str | None
    shows_reference: bool = True
    is_pair: bool = False
    """Whether two answers are compared."""

    @property
    def is_range(self) -> bool:
        """Whether any number between the ends is a value."""
        return isinstance(self.scale, Scale)

    @property
    def values(self) -> list[float]:
        """The values that there are; of a range its ends."""
        return [self.scale.min, self.scale.max] if isinstance(self.scale, Scale) else list(self.scale)


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


def find_asked(runs: Sequence[Sequence[Prediction]], criterion: str | None, rubric: Rubric | None) -> Asked:
    """Return what is labelled: by the rubric, else what judges were asked. Raises RunEntryError where it is unclear."""
    if rubric is not None:
        return Asked(rubric.criterion, rubric.to_scale(), rubric.sha256, "reference" in rubric.contents, rubric.is_pair)
    rows = (row for rows in runs for row in rows)
    said = [one for row in rows for one in row.said if one.value is not None and criterion in (None, one.criterion)]
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
    sha256 = next(iter(digests)) if len(digests) == 1 else None
    return Asked(criteria[0], said[0].scale, sha256, is_pair=any(one.order for one in said))


def _name_stratum(seen: Seen | None) -> str:
    """Return what judges said of an answer, as labels correct it: the verdict, of a jury the sum of its verdicts."""
    return _NO_VERDICT if seen is None or seen.verdict is None else seen.cell


def _can_be_labelled(row: Prediction) -> bool:
    """Whether there is a text to look at."""
    completions = row.completions
    is_text = bool(completions) and completions[0]["reference_index"] is None and not row.likelihoods
    return is_text and not row.left_out and not row.media and len(row.requests) == 1


def draw_sheet(
    runs: Mapping[str, Sequence[Prediction]], asked: Asked, design: str, number: int, seed: int
) -> tuple[Draw, dict[str, tuple[str, str, str]]]:
    """Return a draw of so many answers of one or two runs; and question, reference and answer of each item.

    Where there are verdicts, answers without one are not drawn. `disagreements` of two runs draws questions that both
    have answered: both answers are labelled. Those that have labels of a draw which this one is joined with are left
    out: of n of N answers and m of the N - n others, each has the chance (n + m) / N, as in one draw of all. It is what
    `choose_labels` makes of n / N and m / (N - n). Raises HelmExtError.
    """
    if asked.is_pair:
        hint = "helm-ext judge labels FILE.csv RUN --design random takes labels of pairs that were made elsewhere"
        raise RunEntryError(f"{asked.criterion}: it compares two answers, and a row of a sheet has one\n  hint: {hint}")
    names = list(runs)
    rows = {name: {row.key: row for row in runs[name] if _can_be_labelled(row)} for name in names}
    every = (one for of_run in runs.values() for row in of_run for one in row.list_said(asked.criterion))
    is_judged = any(one.value is not None for one in every)
    by_models = {
        key: {
            one.by: f"{one.value:g}"
            for one in row.list_said(asked.criterion)
            if one.kind == "model" and one.value is not None
        }
        for key, row in rows[names[0]].items()
    }
    judges = sorted({by for said in by_models.values() for by in said})
    strata: dict[str, list[RowKey]] = {}
    keys, labelled = [], 0
    for key, said in by_models.items():
        if not all(key in rows[name] for name in names):
            continue
        seen = [see(rows[name][key].list_said(asked.criterion)) for name in names]
        verdicts = [_name_stratum(one) for one in seen]
        if is_judged and _NO_VERDICT in verdicts:
            continue  # labels of what the judge said nothing of correct nothing of what it said
        if design == "disagreements" and len(names) == 1:
            verdicts = [said.get(by, _NO_VERDICT) for by in judges]
        inside = strata.setdefault("all" if design == "random" else ", ".join(verdicts), [])
        if all(one and any(label.kind == join_designs(design) for label in one.labels) for one in seen):
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
        reference = "\n".join(row.gold) if asked.shows_reference else ""
        items[item] = question_of(row), reference, answer_of(row)
        found.append(
            DrawnRow(
                item=item, run=name, instance=key[0], trial=key[2], perturbation=key[1],
                binding=judged_digest(row.judged_question, row.answers[0], asked.rubric_sha256),
                stratum=drawn[key][0], p=drawn[key][1],
            )
        )  # fmt: skip
    made = Draw(
        sheet=told, criterion=asked.criterion, rubric_sha256=asked.rubric_sha256, scale=asked.values,
        is_range=asked.is_range, design=design, seed=seed,
        strata={name: len(inside) for name, inside in sorted(strata.items())}, rows=found,
        answers=len(rows[names[0]]) if len(names) == 1 else 0, labelled=labelled,
    )  # fmt: skip
    return made, items


# Labels that come back


class _Target(NamedTuple):
    """What a label is of, and whose it is."""

    run: str
    key: RowKey
    row: Prediction
    how: HowDrawn | None = None
    rater: str = ""


_Wrong = tuple[str, str, str]
"""Why a label is of no row: the field that is wrong, a message and a hint."""


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

    def find(item: str, _cells: Mapping[str, str]) -> _Target | _Wrong:
        name, _, letter = item.rpartition("-")
        if name not in known or letter not in {*RATERS}:
            return "item", f"{show(item)} is no row of this sheet", "the sheet's column item is not to be changed"
        drawn = known[name]
        key: RowKey = (drawn.instance, drawn.perturbation, drawn.trial)
        run = plain.get(_DIGEST.sub("", drawn.run)) or (next(iter(runs)) if len(runs) == 1 else "")
        row = runs[run].get(key) if run else None
        if row is None or not row.answers:
            hint = "name the run that the sheet was drawn from, or one that was made of it"
            return "item", f"row {show(key[0])} of {drawn.run} is in none of the runs", hint
        if judged_digest(row.judged_question, row.answers[0], made.rubric_sha256) != drawn.binding:
            message = f"question or answer of row {show(key[0])} has changed since the sheet was drawn"
            return "item", message, "draw a sheet of the run as it is now"
        return _Target(run, key, row, HowDrawn(made.design, drawn.stratum, drawn.p, made.sheet), f"rater {letter}")

    scale = Scale(*made.scale) if made.is_range else tuple(made.scale)
    asked = Asked(made.criterion, scale, made.rubric_sha256)
    labels, empty, problems = _read_labels(path, "item", find, asked)
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
        problems = Problems(str(path))
        problems.add(Location(str(path)), message, "name that run", code="run", kind=DatasetIntegrityError)
    raise_for(problems.finish())
    return _to_judgements(labels, asked, rater, at), Counter(labels=len(labels), empty=empty)


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
    by_id: dict[str, list[RowKey]] = {}
    for key in rows:
        by_id.setdefault(key[0], []).append(key)

    def find(name: str, cells: Mapping[str, str]) -> _Target | _Wrong:
        keys = by_id.get(name, [])
        if len(keys) != 1:
            return "id", f"{show(name)}: {'several rows' if keys else 'no row'} of the run", ""
        row = rows[keys[0]]
        if not row.answers:
            return "id", f"{show(name)}: without an answer", ""
        if "answer" in cells and cells["answer"].lstrip("'").split() != answer_of(row).lstrip("'").split():
            return "answer", f"the answer of row {show(name)} is another one in the run", ""
        return _Target(run, keys[0], row)

    labels, empty, problems = _read_labels(path, "id", find, asked)
    raise_for(problems.finish())
    shown = [key for key, row in rows.items() if _can_be_labelled(row)]
    is_random = design == "random"
    strata = {key: "all" if is_random else _name_stratum(see(rows[key].list_said(asked.criterion))) for key in shown}
    inside, taken = Counter(strata.values()), Counter(strata.get(target.key, "") for target, _ in labels)
    found = []
    for target, value in labels:
        stratum = strata.get(target.key, "")
        p = taken[stratum] / inside[stratum] if design in ("random", "by_verdict") and inside[stratum] else None
        found.append((target._replace(how=None if design is None else HowDrawn(design, stratum, p)), value))
    return _to_judgements(found, asked, rater, at), Counter(labels=len(labels), empty=empty)


def _read_labels(
    path: Path, column: str, find: Callable[[str, Mapping[str, str]], _Target | _Wrong], asked: Asked
) -> tuple[list[tuple[_Target, float]], int, Problems]:
    """Return the labels of a file, how many rows have none, and what is wrong with others.

    `column` says which row of a run a line is of, `find` looks it up. Raises DatasetError for what is no such file.
    """
    columns, lines = read_rows(path)
    if missing := [name for name in (column, "label") if name not in columns]:
        hint = f"columns: {', '.join(columns)}; a sheet of `helm-ext judge sheet` comes with {path.stem}{DRAW_ENDING}"
        message = f"no column {' and '.join(missing)}"
        raise DatasetSchemaError([Problem(message, Location(str(path), 1), hint)])
    problems = Problems(str(path))
    values = asked.values
    listed = " or ".join(f"{one:g}" for one in values)
    expected = f"a number from {values[0]:g} to {values[-1]:g}" if asked.is_range else listed
    expected += ", no or yes" if values == [0.0, 1.0] else ""
    seen: dict[str, int] = {}
    labels, empty = [], 0
    for line, cells in lines:
        name, said = cells.get(column, "").strip(), cells.get("label", "").strip()
        wrong: _Wrong | None = None
        if name in seen:
            wrong = column, f"{name} stands in line {seen[name]} already", "keep one of the two"
        elif not said:
            empty += 1
        elif not isinstance(found := find(name, cells), _Target):
            wrong = found
        elif (value := _read_value(said, asked)) is None:
            wrong = "label", f"expected {expected}, got {show(said)}", "leave it empty where nothing can be said"
        else:
            labels.append((found, value))
        if wrong is not None:
            field, message, hint = wrong
            problems.add(Location(str(path), line, field), message, hint, code="label", kind=DatasetIntegrityError)
        seen.setdefault(name, line)
    return labels, empty, problems


def _read_value(text: str, asked: Asked) -> float | None:
    """Return the value that a label says; None for what is no value of the scale."""
    scale = asked.values
    words = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0} if scale == [0.0, 1.0] else {}
    try:
        value = words[text.lower()] if text.lower() in words else float(text.replace(",", "."))
    except ValueError:
        return None
    return value if (scale[0] <= value <= scale[-1] if asked.is_range else value in scale) else None


def _to_judgements(labels: Sequence[tuple[_Target, float]], asked: Asked, rater: str | None, at: str) -> Labels:
    found: Labels = {}
    for target, value in labels:
        made = Judgement(
            by=rater or target.rater, kind="human", criterion=asked.criterion, value=value, scale=asked.scale,
            rubric_sha256=asked.rubric_sha256, at=at, drawn=target.how,
        )  # fmt: skip
        made = bind(made, target.row.judged_question, target.row.answers)
        found.setdefault(target.run, {}).setdefault(target.key, []).append(made)
    return found
