"""UltraEval configs through real processes: long paths, tasks that cannot be run, logs, a checkout's metrics."""

import pytest
import ultraeval_checkout as made
from processes import command, helm_run, load, only_run, run_folders, stat_means

pytestmark = [pytest.mark.slow, pytest.mark.nightly("src/helm_ext/formats/ultraeval", "src/helm_ext/planning")]

CODE = {"pass_k": {"evaluation": {"type": "function_execution"}, "aggregation": {"type": "pass_k"}}}


def test_many_tasks_with_long_names_of_which_one_cannot_be_run(tmp_path):
    """As configs in deep folders have them: a run's name may be 255 bytes long."""
    deep = tmp_path.joinpath(*["deep" * 50] * 4)
    deep.mkdir(parents=True)
    root = made.make_checkout(deep / "UltraEval")
    data = "datasets/sums/data/sums.jsonl"
    names = ["a" * 150, "甲" * 60, "sums"]
    configs = [made.config("gen", task=name, path=data) for name in names]
    configs.insert(1, made.config("gen", task="code", path=data, metric=CODE))
    path = made.write_config(root / "configs" / ("long" * 60 + ".json"), configs)
    here = tmp_path / "here"
    here.mkdir()
    done = helm_run(here, f"ultraeval:config={path},fewshot=1,model=simple/model1", check=False)
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "task code cannot be run" in said
    (last,) = [line for line in said.splitlines() if line.endswith("]") and "Failed runs: [" in line]
    assert last.count('"ultraeval:') == 1
    assert "task=code" in last
    runs = run_folders(here)
    assert len(runs) == 3
    specs = [load(run / "run_spec.json") for run in runs.values()]
    assert {spec["metric_specs"][-1]["args"]["task"] for spec in specs} == set(names)
    assert {spec["metric_specs"][-1]["args"]["config"] for spec in specs} == {str(path)}
    for run in runs.values():
        assert stat_means(run)["num_instances"] == 10
    command(here, "helm-summarize", "--suite", "s", "--auto-generate-schema")
    groups = load(here / "benchmark_output" / "runs" / "s" / "groups.json")
    assert sum(len(table["rows"]) for table in groups) >= 3


def test_parameters_and_metrics_of_a_checkout(tmp_path):
    root = made.make_checkout(tmp_path / "UltraEval")
    (root / "metrics").mkdir()
    (root / "metrics" / "__init__.py").write_text(
        "class Own:\n    def __call__(self, doc, ground_truth, results):\n        return len(doc['question']) / 100\n"
        "METRICS_REGISTRY = {'own': Own}\n"
    )
    metric = {"accuracy": {"evaluation": {"type": "own"}}, "rouge": {"evaluation": {"type": "rouge", "n_gram": "l"}}}
    config = made.write_config(root / "one.json", made.config("gen", metric=metric))
    params = made.write_config(tmp_path / "params.json", {"max_tokens": 7, "temperature": 0.5})
    helm_run(tmp_path, f"ultraeval:config={config},params={params},model=simple/model1")
    run = only_run(tmp_path)
    assert load(run / "run_spec.json")["adapter_spec"]["max_tokens"] == 7
    stats = stat_means(run)
    assert stats["ultraeval_own"] == pytest.approx(len("What is 1 + 1?") / 100)
    assert stats["ultraeval_rouge_l"] >= 0
