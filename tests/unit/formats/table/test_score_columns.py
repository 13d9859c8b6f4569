"""`scores=`: columns of scores that a table's outputs were given are scores like any other."""

import json

import finished_runs
import pytest
from commands import run
from table_files import golds, load, refusal, write_csv, write_lines
from typer.testing import CliRunner

from helm_ext.analysis.run_scores import read_scores
from helm_ext.cli import app
from helm_ext.errors import RunEntryError
from helm_ext.evalset import row_extra
from helm_ext.formats.table.format import FORMAT

HEADER = ["question", "answer", "gpt", "judge", "human", "topic"]
ROWS = [
    ["Capital of France?", "Paris", "Paris", "C", "1", "eu"],
    ["Capital of Italy?", "Rome", "It is Rome", "C", "0.5", "eu"],
    ["Capital of Peru?", "Lima", "Quito", "I", "0", "am"],
    ["Capital of Chile?", "Santiago", "Santiago de C.", "P", "", "am"],
]


def write(folder, header=HEADER, rows=ROWS):
    return write_csv(folder, header, *rows, name="judged.csv")


def scores(evalset):
    return [row_extra(instance).get("source_scores") for instance in evalset.instances]


def stats(run):
    found = json.loads((run.folder / "stats.json").read_text())
    return {stat["name"]["name"]: stat for stat in found if stat["name"]["split"] == "test"}


@pytest.mark.parametrize(("value", "number"), [
    ("C", 1), ("P", 0.5), ("I", 0), ("N", 0), ("yes", 1), ("No", 0), ("TRUE", 1), ("false", 0), ("0.25", 0.25),
    (" 4 ", 4), ("-1e-3", -0.001), (True, 1), (False, 0), (3, 3), (0.5, 0.5), ("", None), (None, None),
])  # fmt: skip
def test_values_are_those_of_inspect(tmp_path, value, number):
    row = {"question": "?", "answer": "iron", "output": "tin", "judge": value}
    evalset = load(write_lines(tmp_path, row), scores=["judge"])
    assert scores(evalset) == [None if number is None else {"table_judge": number}]
    is_number = isinstance(value, float) or value in ("0.25", " 4 ", "-1e-3") or (value == 3)
    assert evalset.source.scores["judge"].bounds == (None if is_number else (0, 1))


@pytest.mark.parametrize(("values", "line"), [(("5", "3", "N"), 4), (("no", "0.5", "1.5"), 2), (("1", "C", "0"), 0)])
def test_a_score_is_a_grade_in_all_rows_or_in_none(tmp_path, values, line):
    """N among 1 to 5 was 0: the worst grade, or none?"""
    path = write(tmp_path, rows=[["1+1?", "2", "2", value, "", "x"] for value in values])
    if line:
        found = refusal(path, output=["gpt"], scores=["judge"])
        assert (found.code, found.location.line) == ("scores", line)
    else:
        assert len(scores(load(path, output=["gpt"], scores=["judge"]))) == 3


def test_the_interval_of_grades_ends_where_they_end(tmp_path):
    """One P among C: Student's t, 0.9167 +- 0.2142, would end at 1.13; of numbers nobody knows where they end."""
    rows = [["1+1?", "2", "2", *given, "x"] for given in [("C", "1")] * 5 + [("P", "0.5")]]
    run = finished_runs.score(tmp_path, write(tmp_path, rows=rows), output="gpt", scores="judge+human")
    for name, high in (("judge", 1), ("human", pytest.approx(1.1309, abs=1e-4))):
        interval = read_scores(run, f"table_{name}").measure()
        assert (interval.low, interval.high) == (pytest.approx(0.7025, abs=1e-4), high)


def test_stand_beside_ours(tmp_path):
    found = stats(finished_runs.score(tmp_path, write(tmp_path), output="gpt", scores="judge+human"))
    assert found["normalized_exact_match"]["mean"] == 0.25
    assert found["table_judge"]["mean"] == (1 + 1 + 0 + 0.5) / 4
    assert (found["table_human"]["mean"], found["table_human"]["count"]) == ((1 + 0.5 + 0) / 3, 3)
    assert found["table_human_unscored"]["sum"] == 1
    said = run("score", write(tmp_path), "--arg", "output=gpt", "--arg", "scores=human", "-o", tmp_path).stderr
    assert "1 of 4 rows have no human of table, as where a cell is empty" in said


@pytest.mark.parametrize("name", ["judge", "table_judge"])
def test_one_may_be_the_main_metric(tmp_path, name):
    path = write(tmp_path)
    arguments = ["--arg", "output=gpt", "--arg", "scores=judge+human", "--arg", f"main_metric={name}"]
    done = CliRunner().invoke(
        app, ["score", path, *arguments, "--arg", "by=topic", "--json", "-o", str(tmp_path / "o"), "--fail-under", "main=0.7"]
    )  # fmt: skip
    assert done.exit_code == 1
    assert "table_judge is 0.625, less than 0.7" in done.output
    said = json.loads(next(line for line in done.output.splitlines() if line.startswith("{")))
    assert said["main_metric"] == "table_judge"
    [path] = (tmp_path / "o/runs/score").glob("*/stats.json")
    means = {s["name"]["name"]: s.get("mean") for s in json.loads(path.read_text())}
    assert {name: means[name] for name in means if "@topic" in name and not name.endswith(("_low", "_high"))} == {
        "table_judge@topic=eu": 1, "table_judge@topic=am": 0.25,
    }  # fmt: skip


def test_need_no_gold(tmp_path):
    path = write(tmp_path, [HEADER[0], *HEADER[2:]], [[row[0], *row[2:]] for row in ROWS])
    evalset = load(path, output=["gpt"], scores=["human", "judge"])
    assert (evalset.scoring.metrics, evalset.scoring.main_metric) == ((), "table_human")
    assert not evalset.counts.get("unscored")
    found = stats(finished_runs.score(tmp_path, path, output="gpt", scores="judge"))
    assert found["table_judge"]["mean"] == 0.625
    assert "normalized_exact_match" not in found


def test_rows_without_a_gold_keep_their_scores(tmp_path):
    rows = [*ROWS[:3], [*ROWS[3][:1], "", *ROWS[3][2:]]]
    path = write(tmp_path, rows=rows)
    evalset = load(path, output=["gpt"], scores=["judge"])
    assert golds(evalset)[:3] == [["Paris"], ["Rome"], ["Lima"]]
    assert evalset.counts["unscored"] == 1
    assert scores(evalset)[3] == {"table_judge": 0.5}


def test_a_row_without_an_answer_has_none(tmp_path):
    """4 and 2 have the mean 3; what stands beside the empty answer has no part in it."""
    header = ["question", "bot", "grade"]
    said = ["--model", "m", "--arg", "output=bot", "--arg", "scores=grade", "--arg", "empty=not_run", "-o", tmp_path]
    path = write_csv(tmp_path, header, ["q1", "a", "4"], ["q2", "", "1"], ["q3", "c", "2"])
    found = json.loads(run("score", path, *said, "--json").stdout)
    assert (found["metrics"]["table_grade"]["mean"], found["metrics"]["table_grade"]["count"]) == (3, 2)
    run("report", tmp_path / "runs/score", "--out", tmp_path / "report.html")
    assert "2.333" not in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("score", ["4/5", "good"])
def test_that_cannot_be_read_are_all_that_is_said(tmp_path, score):
    """Not that there is no gold as well: with scores that can be read, none is needed."""
    path = write_csv(tmp_path, ["question", "bot", "grade"], ["q1", "", "3"], ["q2", "a", score])
    problems = run(
        "validate", path, "--arg", "output=bot", "--arg", "scores=grade", "--arg", "empty=not_run", code=1
    ).stdout
    assert problems.count("error:") == 1
    assert f'the score grade is "{score}"' in problems


def test_are_those_of_one_output(tmp_path):
    path = write_csv(tmp_path, ["question", "answer", "a", "b", "judge"], ["?", "x", "x", "y", "C"])
    with pytest.raises(RunEntryError, match="scores=judge would be those of 2 models, a\\+b"):
        FORMAT.tasks({"path": path, "output": ["a", "b"], "scores": ["judge"]})


def test_are_called_alike_to_be_compared(tmp_path):
    """By hand: 4 for one model; 3 and 4 in turn for the other, half a point less."""
    rows = [[f"Write {at}", f"x{at}", 4, f"y{at}", 3 + at % 2] for at in range(12)]
    path = write_csv(tmp_path, ["prompt", "gpt", "rg", "llama", "rl"], *rows)
    for output, column in (("gpt", "rg"), ("llama", "rl")):
        arguments = ("--arg", f"output={output}", "--arg", f"scores=rating={column}", "--json", "-o", tmp_path)
        said = json.loads(run("score", path, *arguments).stdout)
        assert said["main_metric"] == "table_rating"
    (row,) = [
        line for line in run("compare", tmp_path / "runs/score").stdout.splitlines() if line.startswith("all (12)")
    ]
    assert row.split()[2:5] == ["4", "3.5", "-0.5"]
    assert scores(load(write_csv(tmp_path, ["prompt", "output", "a=b"], ["?", "x", 2]), scores=["a=b"])) == [
        {"table_a=b": 2}
    ]


def test_in_a_mapping_file(tmp_path):
    write(tmp_path)
    said = {"path": "judged.csv", "output": "gpt", "scores": "judge", "scoring": {"main_metric": "judge"}}
    (tmp_path / "x.table.json").write_text(json.dumps(said))
    assert load(str(tmp_path / "x.table.json")).scoring.main_metric == "table_judge"
