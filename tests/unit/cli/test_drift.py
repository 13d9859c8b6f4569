"""Runs of one model over time: the first that is worse for certain; by hand, with rows that only one of two has right."""

import json
import re

import pytest
import request_states_files as files
from commands import run
from scipy.stats import binom

from helm_ext.analysis.siblings import TIMES_FILE

pytestmark = pytest.mark.long

ROWS = 100
WRONG = {"mon": range(10), "tue": range(5, 15), "wed": range(30), "thu": range(32)}
"""Rows that a day's run gets wrong: 5 and 5 flip on Tuesday, 20 to wrong on Wednesday, 22 on Thursday."""


def write(path, wrong):
    rows = [files.state(f"{n} + 1?", str(n + 1), id=f"r{n}", split="test") for n in range(ROWS)]
    said = [files.answered(row, "no" if n in wrong else str(n + 1)) for n, row in enumerate(rows)]
    files.write(path, said, name="sums")


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drift")
    for place, (day, wrong) in enumerate(WRONG.items()):
        write(folder / "sums.json", wrong)
        run("score", folder / "sums.json", "--model", "m", "--suite", day, "-o", folder / "out")
        [times] = (folder / "out" / "runs" / day).glob(f"*/{TIMES_FILE}")
        times.write_text(json.dumps({"finished": f"2026-01-0{place + 1}T03:00:00Z"}))
    return folder / "out"


def test_the_first_run_that_is_worse_for_certain_is_named(output):
    done = run("compare", output, "--over", "time", "--json")
    points = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["suite"], one["mean"], one["first_worse"]) for one in points] == [
        ("mon", 0.9, False), ("tue", 0.9, False), ("wed", 0.7, True), ("thu", 0.68, False),
    ]  # fmt: skip
    assert points[0]["gate"] is None
    tuesday, wednesday, thursday = [one["gate"] for one in points[1:]]
    assert tuesday["outcome"] == "cannot tell"
    assert (wednesday["gain"], thursday["gain"]) == (pytest.approx(-0.2), pytest.approx(-0.22))
    # Of 20 rows that differ all are worse: far beyond a sign test's 2^-20 in neither direction, times 3 for Holm at most
    assert binom.cdf(0, 20, 0.5) < 1e-5
    assert wednesday["p_worse"] <= wednesday["p_worse_holm"] <= 3 * wednesday["p_worse"] < 0.001
    assert points[2]["finished"].startswith("2026-01-03")


def test_it_is_said_and_a_build_may_fail_of_it(output):
    done = run("compare", output, "--over", "time")
    assert "wed is the first run that is worse than mon for certain" in " ".join(done.stdout.split())
    run("compare", output, "--over", "time", "--fail-if-worse", "0", code=1)
    run("compare", output, "--over", "time", "--fail-if-worse", "0.5")


def test_names_of_suites_order_too(output):
    points = [json.loads(line) for line in run("compare", output, "--over", "suite", "--json").stdout.splitlines()]
    assert [one["suite"] for one in points] == ["mon", "thu", "tue", "wed"]
    assert [one["suite"] for one in points if one["first_worse"]] == ["thu"]


def test_what_makes_no_sense_is_refused(output):
    assert "'date' is not one of 'time', 'suite'" in run("compare", output, "--over", "date", code=2).stderr
    assert "--over and --by-suite" in run("compare", output, "--over", "time", "--by-suite", code=2).stderr
    alone = run("compare", output / "runs" / "mon", "--over", "time", code=2)
    assert "no model has several runs" in alone.stderr


def test_the_report_draws_it(output, tmp_path):
    page = tmp_path / "report.html"
    run("report", output, "-o", page)
    text = page.read_text()
    assert "m on sums over time: mon 0.900; tue 0.900; wed 0.700; thu 0.680" in text
    assert "wed is the first run that is worse than mon for certain" in text
    assert "m (wed)" in text  # runs of one model are told apart, and compared
    assert "not compared" not in text


def test_runs_that_are_scored_otherwise_are_no_series(output, tmp_path):
    """Of several completions `pass_at_2` and `mean` are two questions."""
    write(tmp_path / "sums.json", WRONG["mon"])
    for name in ("mean", "pass_at_2"):
        states = json.loads((tmp_path / "sums.json").read_text())
        for row in states["request_states"]:
            row["request"]["result"]["completions"] *= 3
        (tmp_path / "three.json").write_text(json.dumps(states))
        arguments = ("--model", "m", "--suite", name, "-o", tmp_path / "out", "--arg", f"completions={name}")
        run("score", tmp_path / "three.json", *arguments)
    assert "no model has several runs" in run("compare", tmp_path / "out", "--over", "time", code=2).stderr
    said = run("compare", tmp_path / "out", "--by-suite", code=None).stderr
    assert re.search("of several completions, .* by (the mean|pass_at_2) and", said)
    assert "2 runs of 2 datasets" in run("report", tmp_path / "out", "-o", tmp_path / "r.html").stdout
