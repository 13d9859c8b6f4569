"""Answers that models write, judged by hand before any code read them: `tests/data/answers_{judged,unseen}.jsonl`.

A line holds `options` (label to text), `completion`, `kind`, `finish_reason` where it is no "stop", and `label` (null
where no option, or more than one, is meant) or `labels` where all of the right options are asked for.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from helm_ext.parsing import read_label, read_labels

DATA = Path(__file__).parents[1].parent / "data"
ROWS, UNSEEN = (
    [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
    for name in ("answers_judged.jsonl", "answers_unseen.jsonl")
)


def _read(row):
    if "labels" in row:
        return list(read_labels(row["completion"], row["options"]))
    return read_label(row["completion"], row["options"])


def test_hardly_any_answer_is_missed_and_no_other_option_is_read():
    missed = [
        row["completion"]
        for row in ROWS
        if _read(row) in (None, []) and row.get("labels", row.get("label")) not in (None, [])
    ]
    wrong = [
        (row["completion"], read)
        for row in ROWS
        if (read := _read(row)) not in (None, []) and read != row.get("labels", row.get("label"))
    ]
    assert wrong == []
    assert len(missed) <= 0.02 * len(ROWS), missed


@pytest.mark.parametrize("kind", sorted({row["kind"] for row in ROWS}))
def test_every_kind_is_read(kind):
    rows = [row for row in ROWS if row["kind"] == kind]
    right = sum(_read(row) == row.get("labels", row.get("label")) for row in rows)
    assert right >= 0.9 * len(rows)


def test_what_is_undecided_is_not_read_and_most_of_what_is_decided_is():
    """Of a second file, with chances, marks, truncated answers, units and twenty languages among other kinds.

    Kinds "2, ...": parts of texts, positions, elimination, calculations, sums of money, and what only looks like these.
    """
    read = [read_label(r["completion"], r["options"], is_cut_off=r.get("finish_reason") == "length") for r in UNSEEN]
    wrong = [
        (row["completion"], label) for row, label in zip(UNSEEN, read, strict=True) if label not in (None, row["label"])
    ]
    missed = [row["completion"] for row, label in zip(UNSEEN, read, strict=True) if label is None and row["label"]]
    assert (len(UNSEEN), sum(row["label"] is None for row in UNSEEN)) == (651, 176)
    assert (wrong, len(missed)) == ([], 27), missed


def test_the_answers_are_many_and_different():
    assert len({(row["completion"], tuple(row["options"]), "labels" in row) for row in ROWS}) >= 1_000
    assert min(Counter(row["kind"] for row in ROWS).values()) >= 15
    assert sum(row.get("labels", row.get("label")) in (None, []) for row in ROWS) >= 200
