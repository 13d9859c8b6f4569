"""Names of runs and scenarios stay within HELM's file names, whatever the arguments."""

import json
import os
from pathlib import Path

import pytest
import ultraeval_checkout as made
from helm.benchmark import runner
from helm.benchmark.metrics.metric import create_metric
from helm.benchmark.scenarios.scenario import ScenarioSpec, create_scenario, get_scenario_cache_path
from helm_names import SUFFIX, require_writable

from helm_ext.errors import DatasetNotFoundError, RunEntryError
from helm_ext.formats import planned
from helm_ext.formats.ultraeval.scenario import UltraEvalScenario
from helm_ext.planning import run_specs
from helm_ext.planning.names import ADDED_BY_HELM, MAX_FILE_NAME, SHORT, cut, fit_arguments, fit_name, shorten
from helm_ext.scoring.folding import RunFacts


def full_arguments(run_spec):
    """What `run_spec.json` says in full, where something is shortened."""
    return run_spec.metric_specs[-1].args if run_spec.metric_specs[-1].class_name.endswith("RunArguments") else None


# The run's name


def test_a_name_that_fits_stays():
    room = MAX_FILE_NAME - ADDED_BY_HELM - len("entry:path=,seed=1,digest=012345678901")
    just = fit_name("entry", {"path": "x" * room, "seed": 1}, ",digest=012345678901")
    assert just == f"entry:path={'x' * room},seed=1,digest=012345678901"
    assert len((just + SUFFIX).encode()) == MAX_FILE_NAME
    over = fit_name("entry", {"path": "x" * (room + 1), "seed": 1}, ",digest=012345678901")
    assert over.startswith("entry:path=~")
    assert over.endswith("x,seed=1,digest=012345678901")


def test_the_longest_value_gives_way_first():
    name = fit_name("e", {"a": "a" * 60, "b": "b" * 200, "c": ["c" * 20, "d" * 20]}, "")
    assert f"a={'a' * 60}," in name
    assert f"c={'c' * 20}+{'d' * 20}" in name
    assert ",b=~" in name


def test_values_are_told_apart_wherever_they_differ():
    values = ["x" * 500, "y" + "x" * 499, "x" * 250 + "y" + "x" * 249, "x" * 499 + "y", "x" * 501]
    assert len({fit_name("e", {"path": value}, "") for value in values}) == len(values)
    assert shorten("x" * SHORT) == "x" * SHORT
    assert shorten("/a/deep/folder/" * 9 + "workshop_gen.json").endswith("workshop_gen.json")
    assert shorten("seed=1, " * 9, keep_end=False).startswith("seed=1, ")


@pytest.mark.parametrize("text", ["甲" * 300, "é" * 301, "\ud800" * 300, "a" * 5000, "👍" * 99])
def test_bytes_are_counted_and_characters_are_whole(text):
    assert len(shorten(text).encode()) <= SHORT
    assert len(shorten(text, keep_end=False).encode()) <= SHORT
    name = fit_name("e", {"path": text}, "")
    assert len((name + SUFFIX).encode()) <= MAX_FILE_NAME
    assert len(cut("甲" * 10, 8).encode()) == 6


# The scenario's arguments


@pytest.fixture
def deep(tmp_path):
    """A folder whose path has 3,000 characters."""
    folder = tmp_path
    while len(str(folder)) < 2800:
        folder = folder / ("deep" * 50)
    folder = folder / ("d" * (2999 - len(str(folder))))
    assert len(str(folder)) == 3000
    os.makedirs(folder)  # noqa: PTH103 - Path.mkdir calls itself once a folder
    return folder


@pytest.fixture
def config(deep):
    root = made.make_checkout(deep / "UltraEval")
    return made.write_config(root / "configs" / "both.json", [made.config("gen"), made.config("ppl")])


def test_a_path_of_3000_characters(config):
    run_spec = run_specs.get_run_spec("ultraeval", dict(config=str(config), task="sums_sums_gen", fewshot=2))
    require_writable(run_spec)
    assert run_spec.name.startswith("ultraeval:config=~")
    assert "both.json,task=sums_sums_gen,fewshot=2," in run_spec.name
    assert full_arguments(run_spec)["config"] == str(config)
    assert full_arguments(run_spec)["fewshot"] == 2
    assert str(config) in json.dumps([spec.args for spec in run_spec.metric_specs])
    assert len(create_scenario(run_spec.scenario_spec).get_instances("")) == 10
    metric = create_metric(run_spec.metric_specs[-1])
    assert metric.get_metadata() == []
    measured, total = metric.begin(None, None, RunFacts())(None), metric.make_total(None, RunFacts())
    total.add(measured.summary)
    assert (list(measured.segments), total.to_stats()) == ([], [])


def test_a_scenario_finds_its_arguments_in_another_process(config, tmp_path, monkeypatch):
    output = tmp_path / "out"
    output.mkdir()
    monkeypatch.setattr(runner, "_BENCHMARK_OUTPUT_PATH", str(output))
    run_spec = run_specs.get_run_spec(
        "ultraeval", dict(config=str(config), task="sums_sums_gen", fewshot=2, missing="skip")
    )
    spec = ScenarioSpec(run_spec.scenario_spec.class_name, json.loads(json.dumps(run_spec.scenario_spec.args)))
    here = create_scenario(spec)
    folder = get_scenario_cache_path(str(output), here.name)
    planned_instances = here.get_instances(folder)
    monkeypatch.setattr(planned, "_long_arguments", {})
    monkeypatch.setattr(planned, "_waiting", {})
    assert list(map(repr, create_scenario(spec).get_instances(folder))) == list(map(repr, planned_instances))
    assert create_scenario(spec).get_metadata() == here.get_metadata()
    for path in Path(folder).iterdir():
        path.unlink()
    with pytest.raises(DatasetNotFoundError, match="arguments-.*json: the run's arguments cannot be read"):
        create_scenario(spec).get_instances(folder)


def test_columns_are_the_same_wherever_the_files_lie(config, monkeypatch):
    far = run_specs.get_run_spec("ultraeval", dict(config=str(config), task="sums_sums_gen", fewshot=2))
    monkeypatch.chdir(config.parents[1])
    near = run_specs.get_run_spec("ultraeval", dict(config="configs/both.json", task="sums_sums_gen", fewshot=2))
    assert full_arguments(near) is None
    assert near.scenario_spec.args["config"] == "configs/both.json"
    assert "~" not in near.name
    assert not Path("benchmark_output").exists()  # nothing is written where a run is only shown
    assert near.groups == far.groups
    titles = [create_scenario(run_spec.scenario_spec).get_metadata().display_name for run_spec in (near, far)]
    assert titles[0] == titles[1]


def test_other_arguments_are_other_columns_also_where_they_are_long(config):
    others = ({}, {"fewshot": 1}, {"fewshot": 2}, {"seed": 1}, {"limit": 3}, {"seed": 1, "limit": 3, "fewshot": 1})
    given = [dict(config=str(config), task="sums_sums_gen", **more) for more in others]
    groups = [run_specs.get_run_spec("ultraeval", one).groups[0] for one in given]
    assert len(set(groups)) == len(groups)


@pytest.mark.parametrize("name", ["x" * 200, "甲乙" * 30, "data set " * 20])
def test_a_dataset_with_a_long_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    answer = {"output": {"text": "4"}, "tags": ["correct"]}
    state = {"instance": {"id": "a", "split": "test", "input": {"text": "2+2?"}, "references": [answer]}}
    content = {"adapter_spec": {"max_train_instances": 0}, "request_states": [state], "display_name": "Sums " * 50}
    (tmp_path / "adapter_specs").mkdir()
    (tmp_path / "adapter_specs" / f"{name}.json").write_text(json.dumps(content))
    run_spec = run_specs.get_run_spec("adapter_spec", dict(dataset=name, extract="(" + "x|" * 150 + "y)", lower="true"))
    require_writable(run_spec)
    assert full_arguments(run_spec)["dataset"] == name
    assert full_arguments(run_spec)["display_name"] == "Sums " * 50
    assert create_scenario(run_spec.scenario_spec).get_instances("")[0].input.text == "2+2?"
    planned._waiting.clear()
    assert create_scenario(run_spec.scenario_spec).get_instances("")[0].input.text == "2+2?"


def test_a_main_metric_that_leaves_no_room():
    arguments = {"digest": "0" * 12, "main_metric": "m" * 200, "name": "x"}
    with pytest.raises(RunEntryError, match="main_metric=m+: too long a name"):
        fit_arguments(UltraEvalScenario, arguments)


def test_a_metric_with_long_arguments_has_a_short_name(tmp_path):
    root = made.make_checkout(tmp_path / "UltraEval")
    (root / "metrics").mkdir()
    (root / "metrics" / "__init__.py").write_text(
        "class Own:\n    def __init__(self, words): pass\n    def __call__(self, *_): return 1\nMETRICS_REGISTRY = {'own': Own}\n"
    )
    names = set()
    for last in "xy":
        metric = {"accuracy": {"evaluation": {"type": "own", "words": "w" * 300 + last}}}
        path = made.write_config(root / "one.json", made.config(metric=metric))
        run_spec = run_specs.get_run_spec("ultraeval", dict(config=str(path)))
        require_writable(run_spec)
        names.add(run_spec.scenario_spec.args["main_metric"])
    assert len(names) == 2
