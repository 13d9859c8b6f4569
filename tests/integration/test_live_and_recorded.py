"""A live and a recorded run of one file: one column, whose title says that they do not score the same rows."""

from __future__ import annotations

import json

import pytest
import request_states_files
from processes import command, helm_run, load, run_folders, stat_means
from request_states_files import answered, state

pytestmark = pytest.mark.slow


def test_the_column_says_so(tmp_path):
    states = [answered(state(f"{number}+{number}?", str(2 * number)), str(2 * number)) for number in range(10)]
    request_states_files.write(tmp_path / "sums.json", states, {"max_train_instances": 3})
    helm_run(tmp_path, *(f"adapter_spec:path=sums.json,model={model}" for model in ("recorded/m", "simple/model1")))
    runs = run_folders(tmp_path)
    assert {
        load(run / "run_spec.json")["adapter_spec"]["model"]: stat_means(run)["num_instances"] for run in runs.values()
    } == {"recorded/m": 10, "simple/model1": 7}
    command(tmp_path, "helm-summarize", "--suite", "s", "--auto-generate-schema")
    suite = tmp_path / "benchmark_output" / "runs" / "s"
    (group,) = {load(run / "run_spec.json")["groups"][0] for run in runs.values()}
    (shown,) = [g for g in load(suite / "schema.json")["run_groups"] if g["name"] == group]
    assert shown["display_name"] == "sums"
    (table, *_) = load(suite / "groups" / f"{group}.json")
    assert len(table["rows"]) == 2
    assert "A live run scores 7 of 10 rows." in json.dumps(load(suite / "groups.json"))
