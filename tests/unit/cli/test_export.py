"""`helm-ext export`, as it is typed."""

from __future__ import annotations

import json

import pytest
from finished_runs import run_sums
from typer.testing import CliRunner

from helm_ext.cli import app
from helm_ext.errors import HelmExtError, RunEntryError


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    run_sums(folder, "scored")
    run_sums(folder, "nothing", metrics=())
    half = folder / "out" / "runs" / "s" / "half"
    half.mkdir()
    (half / "stats.json").write_text("[]")
    return folder / "out"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        done = CliRunner().invoke(app, ["export", *map(str, arguments)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, done.output
        return done

    return run


@pytest.mark.parametrize(
    ("to", "name"),
    [
        ("csv", "predictions.csv"),
        ("jsonl", "predictions.jsonl"),
        ("parquet", "predictions.parquet"),
    ],
)
def test_tables_have_a_place_of_their_own(run, out, tmp_path, to, name):
    done = run(out, "--to", to)
    assert done.stdout == f"{name}: 6 predictions of 2 runs\n"
    assert done.stderr.endswith(f"left out: {out}/runs/s/half: the run is not finished\n")
    assert (tmp_path / name).exists()
    with pytest.raises(HelmExtError, match=rf"{name}: exists\n  hint: --replace overwrites it"):
        run(out, "--to", to)
    assert run(out / "runs" / "s" / "scored", "--to", to, "--replace").stdout == f"{name}: 3 predictions of 1 run\n"


def test_records_leave_runs_without_scores_out_and_say_so(run, out, tmp_path):
    done = run(out, "--to", "every_eval_ever", "--out", "records", "--organization", "Our lab")
    path, _, said = done.stdout.strip().rpartition(": ")
    assert (said, path.startswith("records/data/sums/org/two/")) == ("3 samples", True)
    assert f"left out: {out}/runs/s/nothing: none of the stats of its rows is a score" in done.stderr
    assert json.loads((tmp_path / path).read_bytes())["source_metadata"]["source_organization_name"] == "Our lab"
    with pytest.raises(HelmExtError, match=r"nothing: none of the stats of its rows is a score"):
        run(out / "runs" / "s" / "nothing", "--to", "every_eval_ever", "--out", "others")


def test_wrong_usage(run, out):
    assert "'xls' is not one of 'csv', 'every_eval_ever'" in run(out, "--to", "xls", code=2).stderr
    said = run(out, "--to", "every_eval_ever", "--relationship", "friend", code=2).stderr
    assert "'friend' is not one of 'first_party'" in said
    with pytest.raises(RunEntryError, match="--organization: expected a name"):
        run(out, "--to", "every_eval_ever", "--organization", " ")
    with pytest.raises(RunEntryError, match="--organization and the like are for records of Every Eval Ever"):
        run(out, "--to", "csv", "--organization", "Our lab")
    with pytest.raises(HelmExtError, match="nowhere: no such folder"):
        run("nowhere", "--to", "csv")
    with pytest.raises(HelmExtError, match="nowhere: no such folder"):
        run(out, "--to", "csv", "--out", "nowhere/rows.csv")


def test_scores_are_a_table_of_their_own(run, out, tmp_path):
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
    with pytest.raises(RunEntryError, match="--table scores: a record"):
        run(out, "--to", "every_eval_ever", "--table", "scores")


def test_a_place_that_cannot_be_written_is_named(run, out, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HelmExtError, match="file: cannot be written: |file/x"):
        run(out / "runs" / "s" / "scored", "--to", "every_eval_ever", "--out", "file")
