"""What real commands say of how far they are, in files and pipes, and on a terminal; and of workers that are killed."""

import json
import os
import re

import processes
import pytest
import recorded_runs
from processes import BIN, OFFLINE
from terminal import run_on_terminal, screen

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/engines", "src/helm_ext/running", "tests/recorded_runs.py", "tests/terminal.py"),
]

ROWS = 6_000
SCORE = ("helm-ext", "score", "many.jsonl", "--model", "m")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown")
    recorded_runs.write_many(folder, ROWS)
    return folder


def environ(folder, shows_progress=True, **env):
    few = recorded_runs.few_rows(folder, shows_progress=shows_progress)
    return {**os.environ, **OFFLINE, **few, "HELM_EXT_WORKERS": "1", **env}


def run(folder, *command, **env):
    return processes.command(folder, *command, env=environ(folder, **env))


def test_reading_and_scoring_are_shown_and_no_program_reads_it(folder):
    done = run(folder, *SCORE, "--json")
    lines = done.stderr.splitlines()
    reading = [line for line in lines if line.startswith("reading many.jsonl: ")]
    scoring = [line for line in lines if line.startswith("scoring: ")]
    assert re.fullmatch(r"reading many\.jsonl: 6,001 of 6,001 lines, [\d,.]+/s, in \d+ s", reading[-1])
    assert any(re.search(r" of about [\d,]+ lines, [\d,.]+/s, \d+ s left$", line) for line in reading)
    assert scoring[0] == "scoring: 0 of 6,000 rows"
    assert re.fullmatch(r"scoring: 6,000 of 6,000 rows, [\d,.]+/s, in \d+ s", scoring[-1])
    assert json.loads(done.stdout)["counts"]["scored"] == ROWS  # one line, and nothing else


def test_validate_shows_what_it_reads(folder):
    done = run(folder, "helm-ext", "validate", "--lint", "--format", "json", "many.jsonl")
    assert json.loads(done.stdout)[0]["linted"]
    assert re.search(r"^reading many\.jsonl: 6,001 of 6,001 lines, [\d,.]+/s, in \d+ s$", done.stderr, re.MULTILINE)
    assert run(folder, "helm-ext", "validate", "many.jsonl", HELM_EXT_PROGRESS="off").stderr == ""


def test_pages_and_merges_are_shown(folder):
    lines = (folder / "many.jsonl").read_text().splitlines()
    for number in range(2):
        shard = [lines[0], *lines[1 + 3000 * number : 3001 + 3000 * number]]
        (folder / f"shard-{number}.jsonl").write_text("\n".join(shard) + "\n")
        run(folder, "helm-ext", "score", f"shard-{number}.jsonl", "--model", "m", "--suite", "shards")
    merged = run(folder, "helm-ext", "merge", "benchmark_output/runs/shards", "--into", "whole")
    assert re.search(r"^merge: 6,000 of 6,000 rows, [\d,.]+/s, in \d+ s$", merged.stderr, re.MULTILINE)
    assert "merge: " not in merged.stdout
    pages = run(
        folder, "helm-summarize", "--suite", "whole", "--auto-generate-schema",
        "--summarizer-class-name", "helm_ext.running.StreamingSummarizer",
    )  # fmt: skip
    last = [line for line in pages.stderr.splitlines() if line.startswith("pages: ")][-1]
    assert (found := re.fullmatch(r"pages: (\d+) of (\d+) MB, [\d,.]+/s, in \d+ s", last))
    assert found[1] == found[2] != "0"


def test_a_terminal_shows_bars_and_the_table_below_them(folder):
    written = run_on_terminal([BIN / SCORE[0], *SCORE[1:]], environ(folder), folder)
    shown = "\n".join(screen(written))
    bar = re.search(r"100%\|█{20}\| scoring: 6,000 of 6,000 rows, [\d,.]+/s, in \d+ s", shown)
    assert bar
    assert re.search(r"100%\|█{20}\| reading many\.jsonl: 6,001 of 6,001 lines", shown[: bar.start()])
    assert shown.index("f1_score (main)") > bar.end()
