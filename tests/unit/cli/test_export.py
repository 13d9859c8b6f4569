"""`helm-ext export`, as it is typed."""

import json
from pathlib import Path

import commands
import pytest
from finished_runs import run_sums


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    run_sums(folder, "scored")
    run_sums(folder, "nothing", metrics=())
    half = folder / "out" / "runs" / "s" / "half"
    half.mkdir()
    (half / "stats.json").write_text("[]")
    return folder / "out"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments, code=0):
    return commands.run("export", *arguments, code=code)


@pytest.mark.parametrize("to", ["csv", "jsonl", "parquet"])
def test_tables_have_a_place_of_their_own(out, tmp_path, to):
    name = f"predictions.{to}"
    done = run(out, "--to", to)
    assert done.stdout == f"{name}: 6 predictions of 2 runs\n"
    assert done.stderr.endswith(f"left out: {out}/runs/s/half: the run is not finished\n")
    assert (tmp_path / name).exists()
    assert f"{name}: exists\n  hint: --replace overwrites it" in run(out, "--to", to, code=1).stderr
    assert run(out / "runs" / "s" / "scored", "--to", to, "--replace").stdout == f"{name}: 3 predictions of 1 run\n"


def test_records_leave_runs_without_scores_out_and_say_so(out, tmp_path):
    done = run(out, "--to", "every_eval_ever", "--out", "records", "--organization", "Our lab")
    path, _, said = done.stdout.strip().rpartition(": ")
    assert (said, path.startswith("records/data/sums/org/two/")) == ("3 samples", True)
    assert f"left out: {out}/runs/s/nothing: none of the stats of its rows is a score" in done.stderr
    assert json.loads((tmp_path / path).read_bytes())["source_metadata"]["source_organization_name"] == "Our lab"


@pytest.mark.parametrize(("runs", "arguments", "code", "said"), [
    ("", ("xls",), 2, "'xls' is not one of 'csv', 'every_eval_ever'"),
    ("", ("every_eval_ever", "--relationship", "friend"), 2, "'friend' is not one of 'first_party'"),
    ("", ("every_eval_ever", "--organization", " "), 2, "--organization: expected a name"),
    ("", ("csv", "--organization", "Our lab"), 2, "--organization and the like are for records of Every Eval Ever"),
    ("", ("every_eval_ever", "--table", "scores"), 2, "--table scores: a record"),
    ("", ("csv", "--out", "nowhere/rows.csv"), 1, "nowhere: no such folder"),
    ("nowhere", ("csv",), 1, "nowhere: no such folder"),
    ("runs/s/nothing", ("every_eval_ever",), 1, "nothing: none of the stats of its rows is a score"),
    ("runs/s/scored", ("every_eval_ever", "--out", "file"), 1, "error: file: cannot be written: "),
])  # fmt: skip
def test_what_cannot_be_is_refused(out, runs, arguments, code, said):
    Path("file").write_text("")
    assert said in run(out / runs, "--to", *arguments, code=code).stderr


def test_scores_are_a_table_of_their_own(out, tmp_path):
    import csv

    from helm_ext.scoring.statistics.intervals import wilson_interval

    done = run(out, "--to", "csv", "--table", "scores")
    assert done.stdout.startswith("scores.csv: ")
    found = list(csv.DictReader((tmp_path / "scores.csv").open()))
    (whole,) = [row for row in found if row["metric"] == "exact_match" and not row["slice"]]
    one_of_three = wilson_interval(1, 3)  # of 2, 3 and 4 the model says 2
    assert (float(whole["low"]), float(whole["high"])) == (one_of_three.low, one_of_three.high)
    assert (whole["rows"], whole["interval"], whole["main"]) == ("3", "wilson", "true")
    assert {row["slice"] for row in found if row["slice"]} == {"sub_split=even", "sub_split=odd"}
