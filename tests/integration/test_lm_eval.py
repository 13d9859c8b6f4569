"""`helm-ext score` on logs of lm-eval: what the page shows, and the means that lm-eval reports."""

import json
import shutil
import sys
from pathlib import Path

import commands
import pytest
from lm_eval_logs import LOGS, MODEL, results
from optional_sources import IMPORT_SAMPLES, needs_import_samples
from tiny_model import offline_environment

ROOT = Path(__file__).resolve().parents[2]

sys.path.insert(0, str(ROOT / "tools"))
import console_blocks  # noqa: E402

CLOSE = 1e-9


def score(path, tmp_path, *arguments):
    done = commands.run("score", path, "--json", "-o", tmp_path, *arguments, code=None)
    return [json.loads(line) for line in done.stdout.splitlines()]


def require_parity(runs, report):
    for run in runs:
        counts = run["counts"]
        assert counts["read"] == counts["scored"] + counts["not_run"] + counts["failed"] + counts["unscored"]
        for name, found in run["source_scores"].items():
            assert abs(found["mean"] - report[run["dataset"]][name]) <= CLOSE
            ours = run["metrics"].get(name.partition(",")[0])
            if name.startswith("acc") and ours is not None:
                assert found["differs"] == 0
                assert abs(ours["mean"] - found["mean"]) <= CLOSE


def test_a_folder_is_a_run_for_each_task_with_the_reported_means(tmp_path):
    runs = score(MODEL, tmp_path)
    assert len(runs) == 14  # of 15: the gold of one is not logged
    require_parity(runs, json.loads(results().read_text(encoding="utf-8"))["results"])


@pytest.mark.slow
def test_the_page_shows_what_the_command_prints(tmp_path):
    shutil.copytree(LOGS, tmp_path / "lm_eval")
    page = console_blocks.read_page((ROOT / "docs" / "lm_eval.md").read_text(encoding="utf-8"))
    differences = console_blocks.run_page(page, tmp_path, offline_environment())
    assert not differences, "\n".join(differences)


@needs_import_samples
def test_the_collected_samples_have_the_reported_means(tmp_path):
    folder = IMPORT_SAMPLES / "lm_eval"
    (report,) = folder.glob("results_*.json")
    reported = json.loads(report.read_text(encoding="utf-8"))["results"]
    runs = score(folder, tmp_path)
    assert sorted(run["dataset"] for run in runs) == sorted(reported)
    require_parity(runs, reported)
    for task, chosen in (("gsm", "strict-match"), ("gsm", "flexible-extract"), ("sc", "score-first"), ("sc", "maj@4")):
        (run,) = score(folder, tmp_path, "--arg", f"task=imp_{task}", "--arg", f"filter={chosen}")
        assert run["source_scores"][f"exact_match,{chosen}"]["differs"] == 0
    (run,) = score(IMPORT_SAMPLES / "lm_eval_real", tmp_path)
    assert run["counts"]["read"] == 8
