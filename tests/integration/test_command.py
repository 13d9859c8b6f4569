"""helm-ext as a user starts it, on the README's first dataset and on files that are wrong."""

import json
import re
from pathlib import Path

import pytest
from processes import command, helm_run, load, only_run, stat_means

pytestmark = pytest.mark.slow

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """The README's own example, where the README says to put it."""
    (example,) = re.findall(r"```json\n(.*?)```", README, flags=re.DOTALL)
    (tmp_path / "adapter_specs").mkdir()
    (tmp_path / "adapter_specs" / "capitals.json").write_text(example, encoding="utf-8")
    return tmp_path


def readme_commands(program):
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    return [line.split() for block in blocks for line in block.splitlines() if line.startswith(f"{program} ")]


def test_the_readmes_commands_in_order(folder):
    validate, preview, score = readme_commands("helm-ext")[:3]
    assert "0 errors" in command(folder, *validate).stdout
    shown = command(folder, *preview).stdout
    assert "Answer with one word.\nQuestion: What is the capital of France?\nAnswer:\n──── end of prompt" in shown
    assert "stop_sequences=['\\n']" in shown
    assert "expected: 'Paris'" in shown
    scored = command(folder, *score, fresh=True)
    assert re.search(r"num_instances +│ +2 ", scored.stdout)
    assert "nltk_data" not in scored.stderr  # what HELM prints of itself
    assert "Looking in path" not in scored.stderr
    recorded, live = readme_commands("helm-run")
    command(folder, *recorded, fresh=True)
    command(folder, *live)
    (summarize,) = readme_commands("helm-summarize")
    command(folder, *summarize)
    tables = load(folder / "benchmark_output/runs/demo/groups/all_scenarios.json")
    (main,) = [table for table in tables if table["title"] == "Main Metric"]
    values = {row[0]["value"]: [cell.get("value") for cell in row[1:]] for row in main["rows"]}
    assert 0.5 in values["recorded/my-model"]


def test_a_bad_file_stops_helm_run_with_the_place_and_the_hint(folder):
    path = folder / "adapter_specs" / "capitals.json"
    path.write_text(path.read_text().replace('"max_tokens": 5', '"max_tokns": 5'))
    done = helm_run(folder, "adapter_spec:dataset=capitals,model=recorded/x", check=False)
    assert done.returncode != 0
    assert "adapter_specs/capitals.json:7: adapter_spec.max_tokns: unknown key" in done.stderr
    assert "hint: did you mean 'max_tokens'" in done.stderr


def test_missing_completions_and_how_to_go_on(folder):
    path = folder / "adapter_specs" / "capitals.json"
    content = json.loads(path.read_text())
    content["request_states"][1]["request"] = {}
    path.write_text(json.dumps(content))
    done = command(folder, "helm-ext", "score", str(path), "--model", "x", check=False)
    assert done.returncode == 1
    assert "1 of 2 rows cannot be scored: 1 not run, 0 failed" in done.stderr
    assert "hint: missing=skip" in done.stderr
    assert "Traceback" not in done.stderr
    done = command(folder, "helm-ext", "score", str(path), "--model", "x", "--missing", "skip")
    run = only_run(folder, "score")
    stats = stat_means(run)
    assert (stats["num_instances"], stats["num_left_out"], stats["num_not_run"]) == (1, 1, 1)
    # The row that was left out stays visible, without a score.
    assert len(load(run / "scenario_state.json")["request_states"]) == 2
    assert len(load(run / "per_instance_stats.json")) == 1


def test_a_dataset_without_completions_needs_a_model(folder):
    path = folder / "adapter_specs" / "capitals.json"
    content = json.loads(path.read_text())
    for state in content["request_states"]:
        del state["request"]
    path.write_text(json.dumps(content))
    done = command(folder, "helm-ext", "score", str(path), "--model", "x", check=False)
    assert done.returncode == 1
    assert "none of the 2 rows holds a recorded completion" in done.stderr


def test_the_smaller_of_the_files_cap_and_m_wins(folder):
    path = folder / "adapter_specs" / "capitals.json"
    content = json.loads(path.read_text())
    state = content["request_states"][0]
    del state["request"]
    content["request_states"] = [
        {"instance": {**state["instance"], "id": f"r{i}", "input": {"text": f"Question {i}?"}}} for i in range(30)
    ]
    content["adapter_spec"]["max_eval_instances"] = 20
    path.write_text(json.dumps(content))
    entry = "adapter_spec:dataset=capitals,model=simple/model1"
    for suite, limit, expected in (("more", "25", 20), ("less", "10", 10)):
        helm_run(folder, entry, suite=suite, options=("-m", limit))
        assert stat_means(only_run(folder, suite))["num_instances"] == expected
