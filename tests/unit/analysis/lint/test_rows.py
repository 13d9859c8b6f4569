"""Rows of a large dataset are read again for each turn, and nothing else comes of it."""

# ruff: noqa: E402 - `benchmarks` is not installed: the repository's root must be on the path first

import gzip
import random
import sys
from array import array
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[4]))

from benchmarks import lint_sets

from helm_ext import formats
from helm_ext.analysis.lint import lint, minhash
from helm_ext.analysis.lint import rows as rows_module
from helm_ext.analysis.lint.rows import find_frequent
from helm_ext.errors import KEPT_PROBLEMS
from helm_ext.evalset.rows import StoredRows
from helm_ext.formats.request_states import loading


@pytest.mark.long
@pytest.mark.parametrize("kind", ["chat", "classes", "word problems", "multiple choice"])
def test_what_is_read_again_is_what_was_kept(kind, tmp_path, monkeypatch):
    rows, _ = lint_sets.plant(kind, lint_sets.make_clean(kind, 900, 5), 6, 5)
    path = tmp_path / "rows.jsonl"
    lint_sets.write(path, rows)
    packed = tmp_path / "packed" / "rows.jsonl.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(path.read_bytes()))
    kept = list(map(str, lint(formats.load(path), "rows")))
    assert len(kept) >= 40
    monkeypatch.setattr(loading, "KEPT_ROWS", 50)
    monkeypatch.setattr(rows_module, "KEPT_BYTES", 10_000)
    monkeypatch.setattr(rows_module, "BLOCK", 7)
    monkeypatch.setattr(rows_module, "COUNTED", 10)
    for file in (path, packed):
        evalset = formats.load(file)
        assert isinstance(evalset.instances, StoredRows)
        assert [said.replace(str(packed), str(path)) for said in map(str, lint(evalset, "rows"))] == kept


@pytest.mark.parametrize("counted", [0, 10_000])
@pytest.mark.parametrize("least", [1, 2, 3, 7])
def test_what_is_frequent(least, counted, monkeypatch):
    monkeypatch.setattr(rows_module, "COUNTED", counted)
    draw = random.Random(1)
    values = array("q", [draw.randrange(-300, 300) * 2**50 for _ in range(1_500)])
    often = Counter(values)
    assert find_frequent(values, least) == {value for value in often if often[value] >= least}
    assert find_frequent(array("q"), least) == frozenset()
    assert find_frequent(array("q", [5] * (least - 1)), least) == frozenset()
    assert find_frequent(array("q", [5] * least), least) == {5}


def test_what_is_written_and_read_in_parts_is_what_was_in_memory(tmp_path, monkeypatch):
    rows, _ = lint_sets.plant("multiple choice", lint_sets.make_clean("multiple choice", 500, 5), 6, 5)
    path = tmp_path / "rows.jsonl"
    lint_sets.write(path, [*rows, *rows[:300:3], *rows[:300:7]])
    expected = list(map(str, lint(formats.load(path), "rows")))
    assert len(expected) >= 140
    for module, name, value in (
        (rows_module, "COUNTED", 10),
        (minhash, "BLOCK", 64),
        (minhash, "SPOOLED", 1_000),
        (minhash, "AT_ONCE", 3),
        (rows_module, "BLOCK", 7),
    ):
        monkeypatch.setattr(module, name, value)
    assert list(map(str, lint(formats.load(path), "rows"))) == expected


def test_of_many_that_are_alike_the_first_are_listed_and_all_are_counted(tmp_path):
    path = tmp_path / "rows.jsonl"
    lint_sets.write(path, lint_sets.make_clean("capitals", 150, 5) * 10)
    problems = [problem for problem in lint(formats.load(path), "rows") if problem.code == "duplicate"]
    assert sum(problem.number for problem in problems) == 9 * 150
    assert len(problems) == KEPT_PROBLEMS + 1
