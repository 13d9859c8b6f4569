"""`helm-ext score` on logs of inspect_ai: counts, the log's scores, ours, and on how many rows they differ."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import run
from optional_sources import IMPORT_SAMPLES, needs_import_samples

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "tests" / "data" / "inspect"

MADE = {
    # log: (samples, rows, scored, failed, unscored, our main metric, {score: (mean, rows that differ; None: beside the headline)})
    "plain_choice.eval": (8, 4, 4, 0, 0, 3 / 4, {"choice": (5 / 8, 1)}),
    "shuffled.eval": (4, 4, 4, 0, 0, 3 / 4, {"choice": (2 / 4, 1)}),
    "shuffled_twice.eval": (12, 4, 4, 0, 0, 10 / 12, {"choice": (7 / 12, 1)}),
    "several.eval": (3, 3, 3, 0, 0, 2 / 3, {"choice": (2 / 3, 0)}),
    "limited.json": (3, 3, 3, 0, 0, 2 / 3, {"match": (2 / 3, 0)}),
    "edited.eval": (3, 3, 3, 0, 0, 2 / 3, {"match": (1 / 3, 1)}),
    "cancelled.eval": (5, 5, 5, 0, 0, 2 / 5, {"match": (2 / 5, 0)}),
    "broken.eval": (6, 6, 4, 2, 0, 2 / 4, {"match": (2 / 4, 0)}),
    "odd.json": (5, 5, 3, 1, 1, 3 / 3, {"includes": (3 / 4, 1), "partly": (1 / 3, None)}),
}

FOUND = {
    # beside the checkout: file, up to its id: (rows, failed, {score: (mean, rows that differ)}); None: refused
    "2025-02-11T15-18-04-05-00_popularity": (10, 0, {"match": (0.8, 0)}),
    "2025-05-12T20-28-13-04-00_no-samples": None,
    "2026-11-22T04-57-02-00-00_capitals": (10, 0, {"choice": (19 / 30, 1)}),  # "The answer is (A)." is read here
    "2026-11-22T04-57-06-00-00_capitals": (10, 0, {"choice": (19 / 30, 1)}),
    "2026-11-22T04-57-04-00-00_multi-correct": (4, 0, {"choice": (0.75, 0)}),
    "2026-11-22T04-57-09-00-00_multi-correct": (4, 0, {"choice": (0.75, 0)}),
    "2026-11-22T04-57-05-00-00_shuffled": (6, 0, {"choice": (1.0, 0)}),
    "2026-11-22T04-57-09-00-00_shuffled": (6, 0, {"choice": (1.0, 0)}),
    "2026-11-22T04-57-05-00-00_free": (9, 1, {"includes": (0.625, None), "maybe": (1.0, None), "graded": (0.3125, 3)}),
    "2026-11-22T04-57-10-00-00_free": (9, 1, {"includes": (0.625, None), "maybe": (1.0, None), "graded": (0.3125, 3)}),
    "data_cyse2_vuln_exploit_challenges": (1, 0, {"vul_exploit_scorer": (0.65, 1)}),  # theirs runs a program
    "data_with_llm_scoring": None,
    "log_formats": (1, 0, {"match": (0.0, 0)}),
    "log_read_sample": (1, 0, {"match": (1.0, 0)}),
    "mmlu-no-summary-choices": (1, 0, {"choice": (0.0, 0)}),
}


def score(path: Path, output: Path) -> dict[str, Any]:
    return json.loads(run("score", path, "--json", "--missing", "skip", "-o", output).stdout)


def require_scores(found: dict[str, Any], expected: dict[str, tuple[float, int]]) -> None:
    for name, (mean, differs) in expected.items():
        one = found["source_scores"][name]
        assert (one["mean"], one["differs"]) == (pytest.approx(mean, abs=1e-9), differs), name


@pytest.mark.parametrize("name", MADE)
def test_logs_of_invented_tasks(name: str, tmp_path: Path) -> None:
    lines, read, scored, failed, unscored, ours, theirs = MADE[name]
    found = score(LOGS / name, tmp_path)
    counts = {key: found["counts"][key] for key in ("lines", "read", "scored", "failed", "unscored", "not_run")}
    wanted = {"lines": lines, "read": read, "scored": scored, "failed": failed, "unscored": unscored, "not_run": 0}
    assert counts == wanted
    assert found["metrics"][found["own_metric"]]["mean"] == pytest.approx(ours)
    assert found["main_metric"] == f"inspect_{next(iter(theirs))}"
    require_scores(found, theirs)
    for one in found["source_scores"].values():
        if one["reported"] is None:
            assert name == "broken.eval"  # a run that ended in an error reports nothing
            continue
        assert one["mean"] == pytest.approx(one["reported"], abs=1e-9)


@needs_import_samples
def test_logs_beside_the_checkout(tmp_path: Path) -> None:
    for path in sorted((IMPORT_SAMPLES / "inspect").iterdir()):
        expected = next((value for start, value in FOUND.items() if path.name.startswith(start)), ())
        if expected is None:
            assert "there are no samples" in run("score", path, "-o", tmp_path, code=1).stderr
        elif expected:
            read, failed, theirs = expected
            found = score(path, tmp_path)
            assert (found["counts"]["read"], found["counts"]["failed"]) == (read, failed)
            require_scores(found, theirs)
