"""`max_train_instances=N` in a run entry: how many rows are drawn, evaluated and shown agree with the run's name."""

import json
from pathlib import Path

import pytest
from helm.benchmark.run_expander import RUN_EXPANDERS, MaxTrainInstancesRunExpander, TemperatureRunExpander
from helm.benchmark.scenarios.scenario import create_scenario
from request_states_files import answered, split_rows, state, write

from helm_ext import plugin  # noqa: F401 - registers the run expander
from helm_ext.errors import DatasetError
from helm_ext.planning.expanders import DemonstrationsRunExpander
from helm_ext.planning.run_specs import get_run_spec

ROWS = [state(f"{n}?", str(n), id=n) for n in range(20)]


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def expand(value, spec=None, rows=ROWS, **arguments):
    write_path = arguments.pop("path", "x.json")
    write(Path(write_path), rows, {"max_train_instances": 5} if spec is None else spec)
    return RUN_EXPANDERS["max_train_instances"](value).expand(
        get_run_spec("adapter_spec", {"path": write_path, **arguments})
    )


def splits(run_spec):
    """How many rows of each split the run's scenario gives, live ones."""
    instances = create_scenario(run_spec.scenario_spec).get_instances("")
    live = [i for i in instances if i.extra_data["helm_ext"].get("only") != "recorded"]
    return {split: sum(i.split == split for i in live) for split in ("train", "test")}


def test_it_stands_in_the_place_of_helms():
    assert RUN_EXPANDERS["max_train_instances"] is DemonstrationsRunExpander
    assert DemonstrationsRunExpander.name == MaxTrainInstancesRunExpander.name
    assert DemonstrationsRunExpander.values_dict is MaxTrainInstancesRunExpander.values_dict


@pytest.mark.parametrize("number", [0, 2, 5, 8])
def test_so_many_rows_are_drawn_and_the_others_evaluated(number):
    (run_spec,) = expand(number)
    assert splits(run_spec) == {"train": number, "test": 20 - number}
    assert run_spec.adapter_spec.max_train_instances == number
    assert run_spec.name.endswith(f",max_train_instances={number}")
    assert run_spec.name.count("max_train_instances") == 1


def test_the_scenario_made_anew_draws_the_same():
    (run_spec,) = expand(3)
    args = json.loads(json.dumps(run_spec.scenario_spec.args))
    assert args["max_train_instances"] == 3
    assert run_spec.groups[0] == create_scenario(run_spec.scenario_spec).name
    first = create_scenario(run_spec.scenario_spec).get_instances("")
    again = create_scenario(run_spec.scenario_spec).get_instances("")  # read from the file: what was kept is taken
    assert [(i.id, i.split) for i in first] == [(i.id, i.split) for i in again]


def test_what_other_arguments_said_stays():
    write_args = {"metrics": "exact_match+f1_score", "seed": 3}
    (run_spec,) = expand(2, **write_args)
    assert run_spec.metric_specs[0].args["metrics"] == ["exact_match", "f1_score"]
    assert run_spec.scenario_spec.args["seed"] == 3
    (warm,) = TemperatureRunExpander(0.5).expand(run_spec)
    (after,) = RUN_EXPANDERS["max_train_instances"](4).expand(warm)
    assert after.adapter_spec.temperature == 0.5
    assert splits(after) == {"train": 4, "test": 16}


def test_long_arguments_are_kept_in_full(tmp_path):
    folder = tmp_path / ("long" * 30) / ("name" * 30)
    folder.mkdir(parents=True)
    (run_spec,) = expand(2, path=str(folder / "x.json"))
    assert splits(run_spec) == {"train": 2, "test": 18}


def test_rows_of_other_kinds():
    framed = [state(f"Input: {n}?\nOutput: ", str(n), id=n) for n in range(8)]  # sent as they are
    (run_spec,) = expand(0, rows=framed)
    assert (run_spec.adapter_spec.input_prefix, run_spec.adapter_spec.output_prefix) == ("", "")
    (run_spec,) = expand(1, rows=split_rows(9, train=4))  # demonstrations that the file names are not drawn
    assert splits(run_spec) == {"train": 4, "test": 5}
    (run_spec,) = expand(2, rows=[answered(row, "x") for row in ROWS])  # a recorded run evaluates all rows
    instances = create_scenario(run_spec.scenario_spec).get_instances("")
    assert sum(i.extra_data["helm_ext"].get("only") != "live" for i in instances) == 20
    assert splits(run_spec) == {"train": 2, "test": 18}


def test_too_many_are_an_error_when_the_run_is_planned():
    with pytest.raises(DatasetError, match="20 rows are too few: 20 would be demonstrations"):
        expand(20)
