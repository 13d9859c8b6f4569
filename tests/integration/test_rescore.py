"""Stock HELM runs, re-scored from their own scenario_state.json, give the same value in every accuracy stat."""

import os
import shutil

import pytest
from processes import command, helm_run, load, run_folders, stat_means
from tiny_model import build_tiny_model, model_files, offline_environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/formats/request_states", "src/helm_ext/clients", "src/helm_ext/scoring"),
]

# What depends on the texts and log-probabilities that were recorded; times and token counts are another matter.
ACCURACY = (
    "exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match", "f1_score", "predicted_index",
    "max_prob", "logprob", "num_instances",
)  # fmt: skip

METRICS = "exact_match+quasi_exact_match+prefix_exact_match+quasi_prefix_exact_match"

PLUGIN = """
import hashlib

from helm.clients.client import Client
from helm.common.request import GeneratedOutput, RequestResult, Token
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
        metric_specs=get_basic_metric_specs(
            ["exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match"]
        ),
        groups=["capitals"],
    )


class MixedClient(Client):
    # Right, wrong and half-way answers, chosen by the prompt: in HELM's own eyes only some of them count.
    def make_request(self, request):
        answers = ["A", "B", " Even", "Odd", "B.", "(A)", "even number", ""]
        chosen = int(hashlib.sha256(request.prompt.encode()).hexdigest(), 16) % len(answers)
        text = answers[chosen]
        tokens = [Token(text, -0.25 * (chosen + 1))]
        return RequestResult(True, [], [GeneratedOutput(text, tokens[0].logprob, tokens)], False, 0.5, 1700000000)
"""
DEPLOYMENT = """
  - name: tests/mixed
    model_name: tests/mixed
    client_spec:
      class_name: capitals_plugin.MixedClient
"""
METHODS = [
    "generation",
    "multiple_choice_joint",
    "multiple_choice_separate_original",
    "multiple_choice_separate_calibrated",
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Stock runs of HELM's toy model and of a real tiny one, then each re-scored; pairs of folders by name."""
    folder = tmp_path_factory.mktemp("rescore")
    model_files(folder / "prod_env", build_tiny_model(folder / "model"))
    (folder / "capitals_plugin.py").write_text(PLUGIN)
    with (folder / "prod_env" / "model_deployments.yaml").open("a") as file:
        file.write(DEPLOYMENT)
    env = offline_environment()
    env["PYTHONPATH"] += os.pathsep + str(folder)
    stock = ["simple1:model=simple/model1", "simple_mcqa:model=simple/model1", "simple_mcqa:model=tiny/gpt2"]
    stock += [f"capitals:method={method},model=tiny/gpt2" for method in METHODS]
    stock += [f"capitals:method={method},model=tests/mixed" for method in METHODS[:2]]
    options = ("-m", "30", "--plugins", "capitals_plugin")
    helm_run(folder, *stock, suite="stock", options=options, env=env)
    again = []
    for index, (name, run) in enumerate(run_folders(folder, "stock").items()):
        shutil.copy(run / "scenario_state.json", folder / f"state{index}.json")
        again.append((name, f"adapter_spec:path=state{index}.json,metrics={METRICS},model=recorded/again"))
    helm_run(folder, *(entry for _, entry in again), suite="again")
    by_path = {run.name.split(",")[0].split("path=")[1]: run for run in run_folders(folder, "again").values()}
    stock_runs = run_folders(folder, "stock")
    return {name: (stock_runs[name], by_path[f"state{index}.json"]) for index, (name, _) in enumerate(again)}


NAMES = ["simple1:model=simple_model1", "simple_mcqa:model=simple_model1", "simple_mcqa:model=tiny_gpt2"]
NAMES += [f"capitals:method={method},model=tiny_gpt2" for method in METHODS]
NAMES += [f"capitals:method={method},model=tests_mixed" for method in METHODS[:2]]


@pytest.mark.parametrize("name", NAMES)
def test_every_accuracy_stat_is_the_same(runs, name):
    stock, again = (stat_means(run) for run in runs[name])
    compared = [stat for stat in ACCURACY if stat in stock and stat in again]
    assert {stat: again[stat] for stat in compared} == pytest.approx({stat: stock[stat] for stat in compared}, abs=1e-9)
    # HELM makes a probability of 1 of a log-probability of 0 (HELM's toy model, and greedy decoding with the Hugging
    # Face client, whose scores are those after the temperature): nobody measured that, and we leave it out.
    missing = {stat for stat in stock if stat in ACCURACY and stat not in again}
    assert missing <= ({"max_prob", "logprob"} if stock.get("logprob") == 0 else set())
    assert "num_instances" in compared


def test_the_scores_are_not_all_the_same_number(runs):
    """A comparison of zeros would prove nothing."""
    values = {round(stat_means(stock).get("exact_match", 0), 6) for stock, _ in runs.values()}
    assert len(values) >= 4
    mixed = stat_means(runs["capitals:method=multiple_choice_joint,model=tests_mixed"][0])
    # HELM reads "B." and "(A)" as no answer; re-scored with a forgiving reader the number would be another.
    assert 0.1 < mixed["exact_match"] < 0.5


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
