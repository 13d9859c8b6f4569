"""`helm_ext.score` and `helm_ext.compare`: what the commands do, without files of one's own."""

import json
import logging
import re
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import helm_ext
from helm_ext import formats
from helm_ext.cli import app
from helm_ext.errors import HelmExtError, RunEntryError

ROWS = {
    "question": ["Capital of France?", "Capital of Italy?", "Capital of Spain?", "Capital of Peru?"],
    "gold": ["Paris", "Rome", "Madrid", "Lima"],
    "fox": ["Paris", "Milan", "Madrid", "Quito"],
    "hen": ["paris", "Rome", "Madrid", "Quito"],
}


RECORD = {"id": "a", "messages": [{"role": "user", "content": "2+2?"}], "expected": "4"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_data_frame_is_scored_and_leaves_nothing_behind(tmp_path):
    run = helm_ext.score(pd.DataFrame(ROWS), output="fox")
    assert list(run.rows["completion"]) == ROWS["fox"]
    assert run.read_means("test")["exact_match"] == 2 / 4  # counted
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_file_is_scored_and_compared_as_the_commands_do(tmp_path):
    pd.DataFrame(ROWS).to_csv("capitals.csv", index=False)
    fox, hen = (helm_ext.score("capitals.csv", output=name, output_path="out") for name in ("fox", "hen"))
    assert not (tmp_path / "prod_env").exists()
    done = CliRunner().invoke(app, ["score", "capitals.csv", "--arg", "output=fox+hen", "-o", "command"])
    assert done.exit_code == 0, done.output
    compared = CliRunner().invoke(app, ["compare", "command/runs/score", "--json"])
    line = json.loads(compared.stdout)
    (mine,) = helm_ext.compare(fox, hen).to_dict("records")
    assert (mine["mean_a"], mine["mean_b"]) == (line["mean_a"], line["mean_b"])
    assert mine["difference"] == line["difference"] == 0.25  # hen has Rome: quasi-exact counts `paris`
    assert {run.name for run in (fox, hen)} == {
        path.parent.name for path in tmp_path.glob("command/runs/score/*/stats.json")
    }


@pytest.mark.parametrize(("package", "call"), [
    ("pandas", lambda run: run.rows),
    ("pandas", lambda run: run.to_pandas()),
    ("pandas", lambda run: helm_ext.compare(run, run)),
    ("pandas", lambda run: helm_ext.read_suite(run.folder).scores()),
    ("pyarrow", lambda _: helm_ext.score("rows.parquet")),
    ("pyarrow", lambda _: formats.load("rows.parquet")),
    ("pyarrow", lambda _: formats.check("rows.parquet")),
    ("datasets", lambda _: helm_ext.hub.load("campus", hub="hub")),
])  # fmt: skip
def test_what_is_not_installed_is_named(tmp_path, monkeypatch, package, call):
    (tmp_path / "facts.csv").write_text("question,answer,output\n2+2?,4,4\n", encoding="utf-8")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    (tmp_path / "test.jsonl").write_text(json.dumps(RECORD), encoding="utf-8")
    helm_ext.hub.upload(helm_ext.hub.pack(name="campus", test="test.jsonl", target=".").path, hub="hub")
    run = helm_ext.score("facts.csv", model="m")
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(HelmExtError, match=f"needs the package {package}(.|\n)*pip install {package}"):
        call(run)


@pytest.mark.long
def test_several_runs_are_refused():
    with pytest.raises(RunEntryError, match="there are 2"):
        helm_ext.score(pd.DataFrame(ROWS), output="fox+hen")


def test_what_the_command_warns_of_is_a_warning_and_the_log_goes_on():
    rows = pd.DataFrame({**ROWS, "fox": ["Paris", None, "Madrid", "Quito"]})
    logging.disable(logging.NOTSET)
    with pytest.warns(UserWarning, match="not run") as found:
        run = helm_ext.score(rows, output="fox", metrics=["exact_match", "f1_score"])
    assert run.read_means("test")["exact_match"] == pytest.approx(2 / 3)  # counted, of the rows with an output
    assert logging.getLogger("mine").isEnabledFor(logging.WARNING)
    rows.to_json("rows.jsonl", orient="records", lines=True)
    given = ["score", "rows.jsonl", "--arg", "output=fox", "--arg", "metrics=exact_match+f1_score", "-o", "command"]
    done = CliRunner().invoke(app, given)
    said = [str(one.message).partition(": ")[2] for one in found]  # behind the file's name
    assert len(said) == done.stderr.count("warning: ")
    typed = done.stderr.replace("--arg ", "")  # in a notebook arguments are Python's
    assert all(one in typed for one in said)
    assert "1 row was not run of 4; left out of the score" in said[0]


def test_what_the_command_refuses_is_refused():
    with pytest.raises(HelmExtError, match="no such file"):
        helm_ext.score("absent.csv")


@pytest.mark.long
def test_the_tutorial_runs_as_it_stands():
    page = (Path(__file__).parents[2] / "docs/tutorials/notebook.md").read_text(encoding="utf-8")
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    assert list(names["difference"]["difference"]) == [0.25]  # Rome
