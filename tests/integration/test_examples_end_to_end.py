"""The example files through helm-run, helm-summarize and helm-server, as a user would run them."""

import html
import json
import re
import shutil
from pathlib import Path

import browser
import pytest
from processes import command, helm_run, load, run_folders, stat_means

from helm_ext.formats.request_states import format as catalog

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly(
        "adapter_specs",
        "tools/",
        "src/helm_ext/formats/request_states",
        "src/helm_ext/adaptation",
        "src/helm_ext/scoring",
    ),
]

ROOT = Path(__file__).resolve().parents[2]
SCORES = json.loads((ROOT / "tests" / "data" / "example_scores.json").read_text(encoding="utf-8"))
EXPECTED = {name: example["stats"] for name, example in SCORES["first-model"].items()}
LIVE = ["yes_no_questions", "multiple_choice", "labels_stems", "chain_of_thought", "list_output", "options_in_input"]


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """One helm-run over all examples, recorded and live, and one helm-summarize."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "adapter_specs", folder / "adapter_specs")
    recorded = [f"adapter_spec:dataset={name},model=recorded/first" for name in EXPECTED]
    live = [f"adapter_spec:dataset={name},model=simple/model1" for name in LIVE]
    renamed = "adapter_spec:dataset=short_answer_qa,model=openai/gpt-4-0613,model_deployment=recorded/openai/gpt-4-0613"
    helm_run(folder, *recorded, *live, renamed)
    command(folder, "helm-summarize", "--suite", "s", "--auto-generate-schema")
    return folder


def find(folder: Path, dataset: str, model: str) -> Path:
    (run,) = [
        path
        for name, path in run_folders(folder).items()
        if f"dataset={dataset}," in name and name.endswith(f"model={model}")
    ]
    return run


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_score_is_the_one_that_the_generator_counted(suite, name):
    stats = stat_means(find(suite, name, "recorded_first"))
    for metric, value in EXPECTED[name].items():
        assert stats[metric] == pytest.approx(value), metric


def test_recorded_runs_keep_everything_as_recorded(suite):
    """No reordering, times unchanged, one copy of each completion, and no made-up number."""
    run = find(suite, "short_answer_qa", "recorded_first")
    source = load(catalog.find_dataset("short_answer_qa"))
    completions = {
        state["instance"]["id"]: state["request"]["result"]
        for state in source["request_states"]
        if state.get("request", {}).get("result")
    }
    states = load(run / "scenario_state.json")["request_states"]
    assert len(states) == len(completions)
    for state in states:
        recorded = completions[state["instance"]["id"]]
        result = state["result"]
        assert [c["text"] for c in result["completions"]] == [c["text"] for c in recorded["completions"]]
        assert result["request_time"] == recorded["request_time"]
        assert result["cached"] == recorded["cached"]
        assert "recorded" not in state["instance"]["extra_data"]["helm_ext"]
    names = {stat["name"]["name"] for stat in load(run / "stats.json")}
    assert "inference_runtime" in names
    assert not names & {"num_prompt_tokens", "num_train_instances"}


def test_our_schema_shows_the_same_leaderboard(suite):
    path = command(suite, "helm-ext", "schema-path", "--suite", "s").stdout.strip()
    command(suite, "helm-summarize", "--suite", "s", "--schema-path", path, "--skip-completed-run-display-json")
    tables = load(suite / "benchmark_output/runs/s/groups/all_datasets.json")
    (main,) = [table for table in tables if table["title"] == "Main Metric"]
    (row,) = [row for row in main["rows"] if row[0]["value"] == "recorded/first"]
    assert sum(cell.get("value") is not None for cell in row[1:]) >= len(EXPECTED)
    static = command(suite, "helm-ext", "schema-path").stdout.strip()
    command(suite, "helm-summarize", "--suite", "s", "--schema-path", static, "--skip-completed-run-display-json")
    assert (suite / "benchmark_output/runs/s/groups/all_scenarios.json").is_file()


@pytest.mark.browser
@pytest.mark.skipif(
    browser.CHROMIUM is None, reason="Chromium is not installed: helm-server's pages were not looked at"
)
def test_helm_server_shows_the_value_and_the_mapped_answer(suite, tmp_path):
    run = find(suite, "multiple_choice", "recorded_first")
    # The summary is made again: the test above left one for another schema.
    command(suite, "helm-summarize", "--suite", "s", "--auto-generate-schema", "--skip-completed-run-display-json")
    with browser.helm_server(suite, "s") as address:
        board = visible(browser.page_text(f"{address}/#/leaderboard", tmp_path / "profile"))
        page = visible(browser.page_text(f"{address}/#/runs/{run.name}", tmp_path / "profile"))
    babi = stat_means(find(suite, "babi_style", "recorded_first"))
    assert "recorded/first" in board
    assert EXPECTED["babi_style"]["exact_match"] == pytest.approx(babi["exact_match"])
    assert f"{load(catalog.find_dataset('babi_style'))['display_name']} - " in board
    assert re.search(r"0\.\d", board)
    # A completion that is exactly a label is mapped by HELM; any other one is shown as we read it.
    assert "read_as" in page
    display = load(run / "display_predictions.json")
    mapped = [p["mapped_output"] for p in display if p.get("mapped_output")]
    read = [p["annotations"]["answer"] for p in display]
    assert mapped
    assert any(answer.get("option") and not p.get("mapped_output") for answer, p in zip(read, display, strict=True))
    assert any(text in page for text in mapped)


def visible(page: str) -> str:
    """Return a page's text without its markup."""
    page = re.sub(r"<(style|script).*?</\1>", " ", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)))
