"""Stock HELM runs, re-scored from their own scenario_state.json, give the same value in every accuracy stat."""

import shutil

import pytest
from processes import command, helm_run, load, run_folders, stat_means
from tiny_model import build_tiny_model, model_files, offline_environment

pytestmark = pytest.mark.slow

# What depends on the texts and log-probabilities that were recorded; times and token counts are another matter.
ACCURACY = (
    "exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match", "f1_score", "predicted_index",
    "max_prob", "logprob", "num_instances",
)  # fmt: skip

METHODS = """
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.metrics.common_metric_specs import get_basic_metric_specs
from helm.benchmark.run_spec import RunSpec, run_spec_function
from helm.benchmark.scenarios.scenario import ScenarioSpec


@run_spec_function("capitals")
def get_capitals_spec(method: str) -> RunSpec:
    return RunSpec(
        name=f"capitals:method={method}",
        scenario_spec=ScenarioSpec("helm.benchmark.scenarios.simple_scenarios.SimpleMCQAScenario"),
        adapter_spec=AdapterSpec(method=method, max_train_instances=2, max_tokens=4, temperature=0.0, num_outputs=1,
                                 reference_prefix="A. ", instructions="Even or odd?"),
        metric_specs=get_basic_metric_specs(["exact_match", "quasi_exact_match"]),
        groups=["capitals"],
    )
"""
SEPARATE = ["generation", "multiple_choice_joint", "multiple_choice_separate_original", "multiple_choice_separate_calibrated"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Stock runs of HELM's toy model and of a real tiny one, then each re-scored; pairs of folders by name."""
    folder = tmp_path_factory.mktemp("rescore")
    model_files(folder / "prod_env", build_tiny_model(folder / "model"))
    (folder / "capitals_plugin.py").write_text(METHODS)
    env = offline_environment()
    stock = ["simple1:model=simple/model1", "simple_mcqa:model=simple/model1", "simple_mcqa:model=tiny/gpt2"]
    stock += [f"capitals:method={method},model=tiny/gpt2" for method in SEPARATE]
    options = ("-m", "12", "--plugins", "./capitals_plugin.py")
    helm_run(folder, *stock, suite="stock", options=options, env=env)
    again = []
    for index, (name, run) in enumerate(run_folders(folder, "stock").items()):
        shutil.copy(run / "scenario_state.json", folder / f"state{index}.json")
        again.append((name, f"adapter_spec:path=state{index}.json,model=recorded/again"))
    helm_run(folder, *(entry for _, entry in again), suite="again")
    by_path = {run.name.split(",")[0].split("path=")[1]: run for run in run_folders(folder, "again").values()}
    stock_runs = run_folders(folder, "stock")
    return {name: (stock_runs[name], by_path[f"state{index}.json"]) for index, (name, _) in enumerate(again)}


NAMES = ["simple1:model=simple_model1", "simple_mcqa:model=simple_model1", "simple_mcqa:model=tiny_gpt2"]
NAMES += [f"capitals:method={method},model=tiny_gpt2" for method in SEPARATE]


@pytest.mark.parametrize("name", NAMES)
def test_every_accuracy_stat_is_the_same(runs, name):
    stock, again = (stat_means(run) for run in runs[name])
    compared = [stat for stat in ACCURACY if stat in stock and stat in again]
    assert {"exact_match", "num_instances"} <= set(compared)
    assert {stat: again[stat] for stat in compared} == pytest.approx({stat: stock[stat] for stat in compared}, abs=1e-9)
    missing = [stat for stat in ACCURACY if stat in stock and stat not in again]
    # HELM's toy model gives log-probability 0, HELM makes a probability of 1 of it, and we leave it out.
    assert set(missing) <= ({"max_prob", "logprob"} if "simple_model1" in name else set())


def test_the_scores_are_not_all_the_same_number(runs):
    """A comparison of zeros would prove nothing."""
    values = {round(stat_means(stock)["exact_match"], 6) for stock, _ in runs.values()}
    assert len(values) >= 3


def test_the_recorded_prompts_are_kept(runs):
    stock, again = runs["capitals:method=multiple_choice_separate_calibrated,model=tiny_gpt2"]
    before, after = (load(run / "scenario_state.json")["request_states"] for run in (stock, again))
    key = ("reference_index", "request_mode")
    assert [[s[k] for k in key] for s in before] == [[s[k] for k in key] for s in after]
    assert [s["request"]["prompt"] for s in before] == [s["request"]["prompt"] for s in after]
    assert [s["result"]["completions"] for s in before] == [s["result"]["completions"] for s in after]


def test_a_scored_run_is_validated_without_errors(runs, tmp_path):
    stock, _ = runs["simple_mcqa:model=tiny_gpt2"]
    shutil.copy(stock / "scenario_state.json", tmp_path / "state.json")
    done = command(tmp_path, "helm-ext", "validate", "state.json")
    assert "0 errors" in done.stdout
