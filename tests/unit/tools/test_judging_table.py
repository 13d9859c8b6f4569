"""The tables of docs/judging.md, in small: corrected scores hold however labels were drawn, others do not."""

import math
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import judging_table as tool  # noqa: E402 - tools/ is put on the path above


@pytest.fixture(autouse=True)
def without_truescore(monkeypatch):
    """It takes most of the time."""
    monkeypatch.setattr(tool, "ask_truescore", lambda *_: iter(()))
    yield
    tool.simulate.cache_clear()


@pytest.mark.long
@pytest.mark.parametrize("design", ["random", "by verdict", "three quarters failed"])
@pytest.mark.parametrize(("labels", "least", "most"), [(30, 0.915, 1.0), (100, 0.94, 0.99), (300, 0.94, 0.98)])
def test_corrected_scores_hold_of_each_judge(monkeypatch, design, labels, least, most):
    monkeypatch.setattr(tool, "RUNS", 3000)
    held = [tool.simulate(design, labels, judge).held for judge in tool.JUDGES]
    corrected = [one["corrected"] for one in held if one]
    assert len(corrected) >= (24 if labels > 30 else 20)
    assert least - 0.005 <= min(corrected)  # 3,000 runs are off by so much
    assert max(corrected) <= most
    assert min(one["judge"] for one in held if one) < 0.01
    if design != "random":
        assert min(one["labels"] for one in held if one) < 0.01


@pytest.mark.long
def test_the_page_has_what_the_tool_makes():
    page = (ROOT / "docs" / "judging.md").read_text(encoding="utf-8")
    for design in ("random", "by verdict", "three quarters failed"):
        cases = [tool.simulate(design, 300, judge) for judge in tool.JUDGES]
        row = re.search(rf"^\| {design} \| 300 \|.*$", page, re.MULTILINE)[0].split(" | ")
        for name, place in (("judge", 2), ("labels", 3), ("corrected", 6)):
            assert row[place] == tool.show_range([case.held[name] for case in cases])


@pytest.mark.parametrize(("name", "least"), [
    ("difference of two models little alike, judge favours one, two thirds of 300 pairs from disagreements", 0.93),
    ("grades, 100 labels, low grades four times likelier", 0.925),
    ("25 of 200 clusters of 5 rows labelled", 0.93),
    ("half of 300 labels *humanly* failed, 70 % are right (Rogan-Gladen)", 0.95),
])  # fmt: skip
@pytest.mark.long
def test_other_corrections_hold(name, least):
    held, refused = tool.cover_other(name, 400)
    assert held >= least
    assert refused < 0.05


def test_what_the_shipped_function_makes_of_a_run_is_what_is_simulated():
    draws = tool.draw(0.9, 0.9, 0.8, 100, 0.75)
    low, high = tool.correct(draws)
    for run in range(20):
        verdicts, gold = tool.to_rows(draws, run)
        found = tool.correct_by_verdict(verdicts.tolist(), gold).interval
        assert math.isclose(found.low, low[run], abs_tol=1e-9)
        assert math.isclose(found.high, high[run], abs_tol=1e-9)
