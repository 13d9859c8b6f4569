"""`ultraeval:config=FILE`: one run for each task of the file."""

from pathlib import Path

import pytest
import ultraeval_checkout as made
from helm.benchmark import run_expander
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import ScenarioSpec, create_scenario

from helm_ext.errors import DatasetNotFoundError, RunEntryError
from helm_ext.planning import expanders, run_specs
from helm_ext.planning.expanders import PendingTaskScenario, TaskRunExpander, make_pending


@pytest.fixture
def config(tmp_path, monkeypatch):
    root = made.make_checkout(tmp_path / "UltraEval")
    monkeypatch.chdir(root)  # arguments become file names: short ones
    return made.write_config(Path("configs/both.json"), [made.config("gen"), made.config("ppl")])


MODEL = run_expander.ModelRunExpander("simple/model1")


def expand(config, arguments=None, parent=None):
    pending = make_pending("ultraeval", arguments or {})
    return TaskRunExpander(run_specs.get_run_spec, "config", str(config)).expand(parent(pending) if parent else pending)


def test_one_run_for_each_task(config):
    gen, ppl = expand(config, {"fewshot": 2})
    assert gen.name.startswith("ultraeval:config=")
    assert "task=sums_sums_gen" in gen.name
    assert "task=sums_sums_ppl" in ppl.name
    assert (gen.adapter_spec.method, ppl.adapter_spec.method) == ("generation", "multiple_choice_separate_original")
    assert gen.scenario_spec.args["fewshot"] == 2
    direct = run_specs.get_run_spec("ultraeval", {"config": str(config), "fewshot": 2, "task": "sums_sums_gen"})
    assert gen == direct


@pytest.mark.parametrize(("chosen", "method"), [
    ({"method": "ppl"}, "multiple_choice_separate_original"), ({"task": "sums_sums_gen"}, "generation"),
])  # fmt: skip
def test_one_task_of_the_file(config, chosen, method):
    (only,) = expand(config, chosen)
    assert only.adapter_spec.method == method
    assert ("task=" in only.name) == ("task" in chosen)
    made.write_config(config, made.config("gen"))  # the only one
    assert ["task=" in run.name for run in expand(config)] == [False]


CODE = {"pass_k": {"evaluation": {"type": "function_execution"}, "aggregation": {"type": "pass_k"}}}


def test_a_task_that_cannot_be_run_leaves_the_others_running(config, caplog):
    missing = made.config("gen", task="gone")
    code = made.config("gen", task="code", path="datasets/sums/data/sums.jsonl", metric=CODE)
    made.write_config(config, [code, made.config("gen"), missing, made.config("ppl")])
    with caplog.at_level("WARNING", logger="helm"):
        gen, ppl, *blocked = (child for run in expand(config, {"fewshot": 1}) for child in MODEL.expand(run))
    assert (gen.adapter_spec.method, ppl.adapter_spec.method) == ("generation", "multiple_choice_separate_original")
    assert [run.scenario_spec.args["task"] for run in blocked] == ["code", "gone"]
    for run, reason in zip(blocked, ("allow_code=true permits it", "data: no such file"), strict=True):
        task = run.scenario_spec.args["task"]
        assert run.name.startswith("ultraeval:config=configs_both.json,fewshot=1,task=" + task)
        assert run.name.endswith(",model=simple_model1")
        assert run.adapter_spec.model == "simple/model1"
        with pytest.raises(RunEntryError, match=f"task {task} cannot be run: (.|\n)*{reason}"):
            create_scenario(run.scenario_spec).get_instances("")
        assert f"task {task} cannot be run, and will be named at the end" in caplog.text
    allowed = expand(config, {"fewshot": 1, "allow_code": "true"})
    assert [run.scenario_spec.args.get("task") for run in allowed] == ["code", "sums_sums_gen", "sums_sums_ppl", "gone"]


def test_a_task_that_was_chosen_and_cannot_be_run_stops_the_run(config):
    made.write_config(config, [made.config("gen"), made.config("gen", task="gone")])
    with pytest.raises(DatasetNotFoundError, match="data: no such file"):
        expand(config, {"task": "gone"})
    made.write_config(config, [made.config("gen", task="gone")])
    with pytest.raises(DatasetNotFoundError, match="data: no such file"):
        expand(config)


def test_where_no_task_can_be_run_nothing_is_started(config):
    made.write_config(config, [made.config("gen", task=f"gone{number}") for number in range(12)])
    with pytest.raises(RunEntryError) as caught:
        expand(config)
    first, *shown = str(caught.value).splitlines()
    assert first.endswith("both.json: none of its 12 tasks can be run")
    assert [line.split(":")[0] for line in shown if "no such file" in line] == [f"gone{number}" for number in range(10)]
    assert shown[-1] == "... and 2 more"


@pytest.mark.parametrize("expander", [
    MODEL,
    run_expander.TemperatureRunExpander(1.0),  # HELM's default; the task's is 0
    run_expander.DataAugmentationRunExpander("canonical"),
])  # fmt: skip
def test_what_would_change_no_task_is_refused(config, expander):
    """`ultraeval:model=m,config=FILE`: what stands before the file would be lost."""
    with pytest.raises(RunEntryError, match=r"stands behind an argument .*\n  hint: ultraeval:config="):
        expand(config, parent=lambda pending: expander.expand(pending)[0])


def test_another_run_entry_is_told(config):
    other = RunSpec("mmlu:subject=x", ScenarioSpec("some.Scenario"), AdapterSpec(), [])
    with pytest.raises(RunEntryError, match="this argument is helm-ext's .* 'mmlu:subject=x'"):
        TaskRunExpander(run_specs.get_run_spec, "config", "x.json").expand(other)


def test_an_entry_that_names_nothing_says_so_before_any_model_is_called(tmp_path):
    pending = make_pending("ultraeval", {"fewshot": 2})
    assert pending.scenario_spec.class_name == "helm_ext.planning.expanders.PendingTaskScenario"
    with pytest.raises(RunEntryError, match="exactly one of config, dataset, data is needed"):
        PendingTaskScenario(**pending.scenario_spec.args).get_instances(str(tmp_path))


def test_install_registers_once(monkeypatch):
    registered = {}
    monkeypatch.setattr(expanders, "RUN_EXPANDERS", registered)
    expanders.install(run_specs.get_run_spec)
    expanders.install(run_specs.get_run_spec)
    (expander,) = (make("x.json") for make in registered.values())
    assert (list(registered), expander.name, expander.value) == (["config"], "config", "x.json")


def test_a_config_whose_path_has_a_comma(config):
    config.rename(config.with_name("a,b.json"))
    names = [run_spec.name for run_spec in expand("configs/a%2Cb.json")]
    assert ["task=sums_sums_gen" in name for name in names] == [True, False]
    assert all("config=configs_a%2Cb.json" in name for name in names)
