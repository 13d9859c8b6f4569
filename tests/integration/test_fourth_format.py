"""A format of another distribution: run entry, validate, preview, score, convert, as with one of ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import request_states_files
from processes import command, helm_run, load, run_folders, stat_means

pytestmark = pytest.mark.slow

FOURTH = Path(__file__).parents[1] / "fourth_format" / "src"


def with_paths(*folders: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "capitals.qa").write_text(
        "question,answer,reply\nCapital of France?,Paris,Paris\nCapital of Italy?,Rome,Milan\n"
    )
    (tmp_path / "sums.qa").write_text("question,answer\n2+2?,4\n")
    return tmp_path


def test_helm_run_and_helm_summarize(folder):
    env = with_paths(FOURTH)
    entries = ("qa_csv:path=capitals.qa,model=recorded/m", "qa_csv:path=sums.qa,max_tokens=3,model=simple/model1")
    helm_run(folder, *entries, env=env)
    runs = run_folders(folder)
    recorded = next(path for name, path in runs.items() if name.startswith("qa_csv:path=capitals.qa,digest="))
    live = next(path for name, path in runs.items() if "path=sums.qa,max_tokens=3,digest=" in name)
    assert stat_means(recorded)["exact_match"] == 0.5
    assert load(recorded / "run_spec.json")["scenario_spec"]["class_name"] == "qa_csv_format.scenario.QaCsvScenario"
    (state,) = load(live / "scenario_state.json")["request_states"]
    assert state["request"]["prompt"] == "Q: 2+2?\nA:"
    assert state["request"]["max_tokens"] == 3
    command(folder, "helm-summarize", "--suite", "s", "--auto-generate-schema", env=env)
    schema = load(folder / "benchmark_output" / "runs" / "s" / "schema.json")
    titles = {group["name"]: group["display_name"] for group in schema["run_groups"]}
    assert {"capitals", "sums (max_tokens=3)"} <= set(titles.values())


def test_the_command(folder):
    env = with_paths(FOURTH)
    done = command(folder, "helm-ext", "validate", "capitals.qa", "sums.qa", env=env)
    assert "capitals.qa: qa_csv: 0 errors, 0 warnings; 2 rows, 2 eval" in done.stdout
    (folder / "wrong.qa").write_text("frage,antwort\n1,2\n")
    wrong = command(folder, "helm-ext", "validate", "wrong.qa", check=False, env=env)
    assert wrong.returncode == 1
    assert "error: wrong.qa:2: expected the columns ['question', 'answer'], got ['frage', 'antwort']" in wrong.stdout
    done = command(folder, "helm-ext", "preview", "sums.qa", "--arg", "max_tokens=3", env=env)
    assert "Q: 2+2?\nA:\n──── end of prompt" in done.stdout
    assert "max_tokens=3" in done.stdout
    wrong = command(folder, "helm-ext", "preview", "sums.qa", "--arg", "max_token=3", check=False, env=env)
    assert wrong.returncode == 2
    assert "qa_csv: unknown argument 'max_token'\n  hint: did you mean 'max_tokens'?" in wrong.stderr
    done = command(folder, "helm-ext", "score", "capitals.qa", "--model", "m", env=env)
    assert "exact_match (main) │   0.5" in done.stdout
    done = command(folder, "helm-ext", "convert", "capitals.qa", "capitals.jsonl", env=env)
    assert done.stdout == "capitals.jsonl: 2 rows\n"
    wrong = command(folder, "helm-ext", "schema", "qa_csv", check=False, env=env)
    assert wrong.returncode == 2
    assert "there is no JSON Schema" in wrong.stderr


def test_a_broken_format_of_somebody_elses_breaks_no_run(folder, tmp_path):
    """One that cannot be imported, one that takes the name of a run entry of HELM's: two warnings, and the run goes on."""
    info = tmp_path / "site" / "broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[helm_ext.formats]\nbroken = no_such:FORMAT\nmmlu = no_such:FORMAT\n")
    request_states_files.write(folder / "a.json", [request_states_files.state("?", "!", id="a")])
    done = helm_run(folder, "adapter_spec:path=a.json,model=simple/model1", env=with_paths(tmp_path / "site"))
    log = done.stdout + done.stderr
    assert log.count("the format 'broken' of the distribution 'broken' cannot be loaded") == 1
    assert "the format 'mmlu' has no run entry: A run spec function with name mmlu already exists" in log
    assert len(run_folders(folder)) == 1
    done = helm_run(folder, "broken:path=a.json,model=simple/model1", env=with_paths(tmp_path / "site"), check=False)
    assert done.returncode != 0
    assert (
        "the format 'broken' of the distribution 'broken' cannot be loaded: no_such:FORMAT" in done.stdout + done.stderr
    )
