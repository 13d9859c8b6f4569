"""What the source of recorded answers did not say is not made up: not recorded, where HELM's class must have a number."""

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


def file_that_says(said):
    return lambda folder: score(
        folder, write(folder / "x.json", [answered(state(), "mercury")], {"max_train_instances": 0, **said})
    )


def log_of_another_tool(folder):
    head = header(plan={"name": "plan", "steps": [{"solver": "generate"}], "config": {"temperature": 0.7}})
    return score(folder, write_json(folder, [sample()], head))


def converted(folder):
    done = CliRunner().invoke(app, ["convert", table(folder), str(folder / "x.jsonl")])
    assert done.exit_code == 0, done.output
    written = json.loads((folder / "x.jsonl").read_text().splitlines()[0])
    assert not BOTH.keys() & written["adapter_spec"].keys()
    return score(folder, folder / "x.jsonl")


def scored_again(folder):
    return score(folder, score(folder, table(folder)).folder / "scenario_state.json", model="again")


@pytest.mark.parametrize(("make", "expected"), [
    (file_that_says({}), BOTH),
    (file_that_says({"decoding_parameters": {"temperature": 0.7}}), {**BOTH, "temperature": "0.7"}),
    (file_that_says({"temperature": 0, "max_tokens": 7}), {"temperature": "0.0", "max_tokens": "7"}),
    (log_of_another_tool, {**BOTH, "temperature": "0.7"}),
    (run_sums, {"temperature": "0.0", "max_tokens": "5"}),  # a live run: what it asked with
    (converted, BOTH), (scored_again, BOTH),
])  # fmt: skip
def test_each_way_to_a_run_says_what_its_source_says(tmp_path, make, expected):
    assert provenance(make(tmp_path)) == expected


def test_the_leaderboard_says_it_of_the_group(tmp_path):
    run = score(tmp_path, table(tmp_path), model="org/m")
    spec = from_json((run.folder / "run_spec.json").read_bytes(), RunSpec)
    group = ScenarioMetadata(name=spec.groups[0], main_metric="x", main_split="test", description="Metals.")
    other = ScenarioMetadata(name="other", main_metric="x", main_split="test", description="Others.")
    said = say_unrecorded([group, other], [SimpleNamespace(run_spec=spec)])
    assert said[0].description.startswith("Metals. ")
    assert "org/m: temperature not recorded, max_tokens not recorded." in said[0].description
    assert said[1] is other
