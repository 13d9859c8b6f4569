"""Stock scenarios through real `helm-run` and `helm-summarize`, with HELM's classes and with ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ENTRIES = [
    "simple1:model=simple/model1",
    "simple_mcqa:model=simple/model1",
    "simple_classification:model=simple/model1",
]
RUNNER = ["--runner-class-name", "helm_ext.runner.StreamingRunner"]
SUMMARIZER = ["--summarizer-class-name", "helm_ext.summarizer.StreamingSummarizer"]
TIMES = {"request_time", "request_datetime", "inference_runtime"}


def call(program, *arguments, cwd):
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    # One hash seed: HELM's generated schema has the order of a set.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def without_times(value):
    """Take the measured times out: they differ from run to run."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    if isinstance(value, list):
        kept = [item for item in value if not (isinstance(item, dict) and is_time_stat(item))]
        return [without_times(item) for item in kept]
    return value


def is_time_stat(item):
    return isinstance(item.get("name"), dict) and item["name"].get("name") in TIMES


@pytest.mark.slow
def test_stock_runs_and_their_report_are_the_same(tmp_path):
    options = ["--run-entries", *ENTRIES, "--suite", "s", "-m", "12", "--disable-cache"]
    call("helm-run", *options, "-o", "stock", cwd=tmp_path)
    call("helm-run", *options, "-o", "ours", *RUNNER, cwd=tmp_path)
    stock = sorted(path.relative_to(tmp_path / "stock") for path in (tmp_path / "stock" / "runs").rglob("*.json"))
    assert len(stock) == 5 * len(ENTRIES)
    for path in stock:
        helms, mine = (json.loads((tmp_path / folder / path).read_text()) for folder in ("stock", "ours"))
        assert without_times(mine) == without_times(helms), path

    # The report of one and the same run, by both summarizers.
    for folder, extra in (("report", []), ("streamed", SUMMARIZER)):
        (tmp_path / "stock").rename(tmp_path / "benchmark_output")
        call("helm-summarize", "--suite", "s", "--auto-generate-schema", *extra, cwd=tmp_path)
        reports = {
            path.relative_to(tmp_path / "benchmark_output"): path.read_text()
            for path in (tmp_path / "benchmark_output" / "runs").rglob("*.json")
        }
        (tmp_path / "benchmark_output").rename(tmp_path / "stock")
        if folder == "report":
            expected = reports
    assert any(path.name == "display_predictions.json" for path in expected)
    assert {path: json.loads(text) for path, text in reports.items()} == {
        path: json.loads(text) for path, text in expected.items()
    }
