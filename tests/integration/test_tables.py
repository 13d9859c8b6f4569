"""Tables from file to scores, with the commands and with helm-run."""

from __future__ import annotations

import json

import pytest
from processes import command
from table_files import write_csv

pytestmark = pytest.mark.slow

HEADER = ["id", "Question", "A", "B", "C", "Answer", "subject", "gpt", "llama"]
ROWS = [
    ["m1", "Which is liquid?", "iron", "mercury", "lead", "B", "chemistry", "B", "The answer is (B)."],
    ["m2", "Which one rusts?", "iron", "gold", "tin", "A", "chemistry", "A. iron", "gold"],
    ["m3", "Which were coins made of?", "electrum", "zinc", "nickel", "A", "history", "I think it is B", "A"],
    ["m4", "Which named an age?", "sodium", "bronze", "radium", "B", "history", "bronze", "C"],
]
"""By hand: gpt 3 of 4, llama 2 of 4."""


def test_one_command_scores_every_column_of_outputs(tmp_path):
    write_csv(tmp_path, HEADER, *ROWS)
    done = command(
        tmp_path, "helm-ext", "score", "metals.csv", "--arg", "output=gpt+llama", "--arg", "by=subject", "--json"
    )
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    found = [(run["model"], *map(run["metrics"]["exact_match"].get, ("mean", "count"))) for run in runs]
    assert found == [("gpt", 0.75, 4), ("llama", 0.5, 4)]
    assert runs[0]["counts"]["lines"] == runs[0]["counts"]["scored"] == 4
    assert len({json.loads((tmp_path / run["folder"] / "run_spec.json").read_text())["groups"][0] for run in runs}) == 1


def test_helm_run_scores_one_column_and_asks_a_model_where_there_is_none(tmp_path):
    write_csv(tmp_path, HEADER, *ROWS)
    entries = (
        "table:path=metals.csv,output=gpt,by=subject,model=recorded/gpt",
        "table:path=metals.csv,model=simple/model1",
    )
    command(tmp_path, "helm-run", "--suite", "s", "-m", "100", "--run-entries", *entries)
    folders = sorted((tmp_path / "benchmark_output" / "runs" / "s").glob("table:*"))
    assert len(folders) == 2
    live = next(folder for folder in folders if "simple_model1" in folder.name)
    state = json.loads((live / "scenario_state.json").read_text())["request_states"][0]
    assert state["request"]["prompt"].endswith("Question: Which is liquid?\nA. iron\nB. mercury\nC. lead\nAnswer:")


def test_preview_says_what_was_inferred_before_what_is_sent(tmp_path):
    write_csv(tmp_path, HEADER, *ROWS)
    done = command(tmp_path, "helm-ext", "preview", "metals.csv", "-n", "1", "--arg", "max_train_instances=2")
    assert "options   A+B+C (a column for each option)" in done.stdout.splitlines()
    assert "demonstrations: 2" in done.stdout


def test_several_columns_in_one_run_entry_are_refused_with_the_way_out(tmp_path):
    write_csv(tmp_path, HEADER, *ROWS)
    done = command(tmp_path, "helm-ext", "preview", "metals.csv", "--arg", "output=gpt+llama", check=False)
    assert done.returncode == 1
    assert "hint: a run entry has one model's outputs, output=gpt and output=llama" in done.stderr
