"""What the source of recorded answers did not say is not made up: not recorded, where HELM's class must have a number."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from finished_runs import run_sums, score
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import ScenarioMetadata
from helm.common.codec import from_json
from inspect_files import header, sample, write_json
from request_states_files import answered, state, write
from table_files import write_csv
from typer.testing import CliRunner

from helm_ext.analysis.export.every_eval_ever import Publisher, write_every_eval_ever
from helm_ext.analysis.report.gathering import gather
from helm_ext.cli import app
from helm_ext.running.summarizer import say_unrecorded

BOTH = {"temperature": "not recorded", "max_tokens": "not recorded"}


def table(folder):
    return write_csv(folder, ["question", "answer", "output"], ["What rusts?", "iron", "tin"])


def provenance(run):
    ((dataset,), _) = gather([run])
    return {key: dataset.runs[0].provenance[key] for key in BOTH}


def test_a_table_says_nothing(tmp_path):
    run = score(tmp_path, table(tmp_path))
    assert provenance(run) == BOTH
    write_every_eval_ever([run], tmp_path / "eee", Publisher("me"))
    (record,) = (tmp_path / "eee").rglob("*.json")
    for result in json.loads(record.read_text())["evaluation_results"]:
        config = result["generation_config"]
        assert config["generation_args"] == {}
        assert {key: config["additional_details"][key] for key in BOTH} == BOTH


@pytest.mark.long
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, BOTH),
        ({"decoding_parameters": {"temperature": 0.7}}, {"temperature": "0.7", "max_tokens": "not recorded"}),
        ({"temperature": 0, "max_tokens": 7}, {"temperature": "0.0", "max_tokens": "7"}),
    ],
)
def test_an_adapter_spec_file_says_what_it_says(tmp_path, said, expected):
    path = write(tmp_path / "x.json", [answered(state(), "mercury")], {"max_train_instances": 0, **said})
    assert provenance(score(tmp_path, path)) == expected


def test_a_log_of_another_tool_says_it_in_its_own_place(tmp_path):
    head = header(plan={"name": "plan", "steps": [{"solver": "generate"}], "config": {"temperature": 0.7}})
    path = write_json(tmp_path, [sample()], head)
    assert provenance(score(tmp_path, path)) == {"temperature": "0.7", "max_tokens": "not recorded"}


def test_a_live_run_has_what_it_asked_with(tmp_path):
    assert provenance(run_sums(tmp_path)) == {"temperature": "0.0", "max_tokens": "5"}


def test_a_converted_file_says_no_more(tmp_path):
    done = CliRunner().invoke(app, ["convert", table(tmp_path), str(tmp_path / "x.jsonl")])
    assert done.exit_code == 0, done.output
    header = json.loads((tmp_path / "x.jsonl").read_text().splitlines()[0])
    assert not BOTH.keys() & header["adapter_spec"].keys()
    assert provenance(score(tmp_path, tmp_path / "x.jsonl")) == BOTH


@pytest.mark.long
def test_a_run_scored_again_says_no_more(tmp_path):
    run = score(tmp_path, table(tmp_path))
    assert provenance(score(tmp_path, run.folder / "scenario_state.json", model="again")) == BOTH


def test_the_leaderboard_says_it_of_the_group(tmp_path):
    run = score(tmp_path, table(tmp_path), model="org/m")
    spec = from_json((run.folder / "run_spec.json").read_bytes(), RunSpec)
    group = ScenarioMetadata(name=spec.groups[0], main_metric="x", main_split="test", description="Metals.")
    other = ScenarioMetadata(name="other", main_metric="x", main_split="test", description="Others.")
    said = say_unrecorded([group, other], [SimpleNamespace(run_spec=spec)])
    assert said[0].description.startswith("Metals. ")
    assert "org/m: temperature not recorded, max_tokens not recorded." in said[0].description
    assert said[1] is other
