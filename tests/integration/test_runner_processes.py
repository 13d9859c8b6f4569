"""Stock scenarios through `helm-run` and `helm-summarize`, with HELM's classes and with ours."""

import json
import shutil

import processes
import pytest
from processes import STOCK_ENTRIES as ENTRIES
from processes import read_all, without_times

RUNNER = ["--runner-class-name", "helm_ext.running.StreamingRunner"]
SUMMARIZER = ["--summarizer-class-name", "helm_ext.running.StreamingSummarizer"]


@pytest.mark.slow
@pytest.mark.nightly("src/helm_ext/running", "src/helm_ext/scoring/basic")
def test_stock_runs_and_their_report_are_the_same(tmp_path):
    for folder, extra in (("stock", ()), ("streamed", RUNNER)):
        processes.helm_run(tmp_path, *ENTRIES, options=("-m", "12", "-o", folder, *extra))
    stock, streamed = (read_all(tmp_path / folder / "runs") for folder in ("stock", "streamed"))
    assert len(stock) == 5 * len(ENTRIES)
    assert list(streamed) == list(stock)
    for path, helms in stock.items():
        assert without_times(streamed[path]) == without_times(helms), path

    # The report of one and the same run, by both summarizers.
    # HELM's generated schema has the order of a set: forks of one process have one seed of hashes.
    for folder, extra in (("helms", ()), ("ours", SUMMARIZER)):
        shutil.copytree(tmp_path / "stock", tmp_path / folder / "benchmark_output")
        processes.command(tmp_path / folder, "helm-summarize", "--suite", "s", "--auto-generate-schema", *extra)
    helms, ours = (read_all(tmp_path / folder / "benchmark_output" / "runs") for folder in ("helms", "ours"))
    assert len([path for path in helms if path.endswith("display_predictions.json")]) == len(ENTRIES)
    assert {"s/runs.json", "s/groups.json", "s/schema.json"} < helms.keys()
    locks = {folder: len(list((tmp_path / folder).rglob(".commit.lock"))) for folder in ("helms", "ours")}
    assert locks == {"helms": 0, "ours": len(ENTRIES)}  # each class did its own work
    assert list(ours) == list(helms)
    for path, report in helms.items():
        # Tables are HELM's numbers in another order, with intervals and without empty columns: test_leaderboard.py.
        if not (path.startswith("s/groups") or path in ("s/schema.json", "s/runs.json")):
            assert json.dumps(ours[path]) == json.dumps(report), path
