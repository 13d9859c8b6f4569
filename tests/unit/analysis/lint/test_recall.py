"""What is found and missed in invented datasets: the promise of docs/how-to/lint.md, on smaller sets than its table."""

# ruff: noqa: E402 - `benchmarks` is not installed: the repository's root must be on the path first

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[4]))

from benchmarks import lint_sets
from benchmarks.lint import count_kind

from helm_ext import formats
from helm_ext.analysis.lint import lint, near
from helm_ext.analysis.lint.near import ALL_PAIRS


@pytest.mark.long
@pytest.mark.parametrize(("rows", "each"), [(ALL_PAIRS - 100, 3), (1_000, 8)], ids=["all pairs", "minhash"])
@pytest.mark.parametrize("kind", lint_sets.KINDS)
def test_every_kind_of_dataset(kind, rows, each, tmp_path):
    alarms, planted, found = count_kind(kind, tmp_path, rows=rows, each=each, seed=7)
    assert len(alarms) <= 1, alarms
    assert found.total() >= 0.95 * planted.total(), planted - found


@pytest.mark.long
@pytest.mark.parametrize("kind", lint_sets.KINDS)
def test_where_all_pairs_are_compared_nothing_is_missed_that_minhash_finds(kind, tmp_path, monkeypatch):
    rows, _ = lint_sets.plant(kind, lint_sets.make_clean(kind, ALL_PAIRS - 60, 1), 4, 1)
    path = tmp_path / "rows.jsonl"
    lint_sets.write(path, rows)
    evalset = formats.load(path)
    of_all_pairs = lint(evalset, str(path))
    monkeypatch.setattr(near, "ALL_PAIRS", 0)
    of_minhash = lint(evalset, str(path))
    assert {"near-duplicate", "duplicate"} <= {problem.code for problem in of_minhash}
    assert set(map(str, of_minhash)) <= set(map(str, of_all_pairs))


def test_datasets_are_the_same_everywhere():
    one, two = (lint_sets.make_clean("reading", 50, 3) for _ in range(2))
    assert one == two
    assert lint_sets.plant("reading", one, 2, 3) == lint_sets.plant("reading", two, 2, 3)


@pytest.mark.parametrize("kind", ["capitals", "multiple choice"])
def test_what_is_planted_is_what_the_table_counts(kind):
    clean = lint_sets.make_clean(kind, 200)
    rows, faults = lint_sets.plant(kind, clean, 3)
    expected = set(lint_sets.FAULTS) - ({"answer in prompt"} if kind == "multiple choice" else set())
    assert Counter(fault.kind for fault in faults) == dict.fromkeys(expected, 3)
    for fault in faults:
        if fault.kind == "leak, exact":
            assert (rows[fault.number].text, rows[fault.number].split) == (rows[fault.origin].text, "train")
