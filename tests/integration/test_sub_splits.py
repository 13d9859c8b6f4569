"""Sub-splits of different sizes, through helm-run, helm-summarize and `helm-ext score`."""

import pytest
import request_states_files
from processes import command, helm_run, load, only_run, stat_means
from request_states_files import answered, state

pytestmark = pytest.mark.slow

SIZES = {"rare": (10, "no"), "common": (90, "yes")}
"""Sub-split to its number of rows and what the model says; the right answer is always "yes"."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sub_splits")
    states = [
        answered(state(f"Is {name} {n} right?", "yes", split="test", sub_split=name, id=f"{name}{n}"), said)
        for name, (count, said) in SIZES.items()
        for n in range(count)
    ]
    request_states_files.write(folder / "parts.json", states, name="parts")
    helm_run(folder, "adapter_spec:path=parts.json,model=recorded/one")
    command(folder, "helm-summarize", "--suite", "s", "--auto-generate-schema")
    return folder


def test_every_stat_is_of_all_rows_and_the_main_metric_of_each_sub_split_too(suite):
    run = only_run(suite)
    assert not any("sub_split" in stat["name"] for stat in load(run / "stats.json"))
    means = stat_means(run)
    assert (means["normalized_exact_match"], means["num_instances"]) == (0.9, 100)
    assert means["normalized_exact_match@sub_split=rare"] == 0
    assert means["normalized_exact_match@sub_split=common"] == 1


def test_the_leaderboard_shows_the_mean_over_rows(suite):
    tables = load(suite / "benchmark_output/runs/s/groups/all_scenarios.json")
    (main,) = [table for table in tables if table["title"] == "Main Metric"]
    (row,) = main["rows"]
    assert 0.9 in [cell.get("value") for cell in row]
    assert 0.5 not in [cell.get("value") for cell in row]


def test_the_report_shows_each_sub_split(suite):
    (group,) = [path for path in (suite / "benchmark_output/runs/s/groups").glob("parts*.json")]
    tables = load(group)
    shown = [
        dict(zip([c["value"] for c in table["header"]], [c.get("value") for c in row], strict=True))
        for table in tables
        for row in table["rows"]
    ]
    columns = {column: value for row in shown for column, value in row.items()}
    assert columns["sub_split=rare (normalized_exact_match)"] == 0
    assert columns["sub_split=common (normalized_exact_match)"] == 1


def test_score_prints_a_row_for_each(suite):
    printed = command(suite, "helm-ext", "score", "parts.json", "--model", "one", "-o", "scored").stdout
    rows = {line.split("│")[1].strip(): line.split("│")[2].strip() for line in printed.splitlines() if "│" in line}
    assert rows["normalized_exact_match (main)"] == "0.9"
    assert rows["normalized_exact_match@sub_split=rare"] == "0"
    assert rows["normalized_exact_match@sub_split=common"] == "1"
