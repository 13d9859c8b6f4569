"""`make demo`: two models side by side in every column, with the scores that were counted."""

import json
import sys
from pathlib import Path

import pytest
from processes import load

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import demo  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.nightly("tools/demo.py", "examples", "src/helm_ext/cli")]

COUNTED = json.loads((ROOT / "tests/data/example_scores.json").read_text(encoding="utf-8"))
# Counted by hand: replies that hold the expected words, of 24; letters that are the right one, of 12.
BY_HAND = {
    "front-desk v1": {"recorded/first-model": 13 / 24, "recorded/second-model": 19 / 24},
    "workshop_workshop_gen": {"recorded/first-model": 9 / 12, "recorded/second-model": 10 / 12},
}


def test_the_leaderboard_compares_two_models_in_every_column(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "FOLDER", tmp_path / "demo")
    demo.main()
    tables = load(tmp_path / "demo/benchmark_output/runs/demo/groups/all_scenarios.json")
    (main,) = [table for table in tables if table["title"] == "Main Metric"]
    titles = [cell["value"].rsplit(" - ", 1)[0] for cell in main["header"]]
    shown = {
        title: {row[0]["value"]: row[index]["value"] for row in main["rows"]}
        for index, title in enumerate(titles)
        if title not in ("Model", "Mean win rate")
    }
    expected = {
        load(ROOT / f"adapter_specs/{name}.json")["display_name"]: {
            f"recorded/{model}": COUNTED[model][name]["stats"][COUNTED[model][name]["main_metric"]]
            for model in ("first-model", "second-model")
        }
        for name in COUNTED["second-model"]
    }
    assert shown == {title: pytest.approx(values) for title, values in {**expected, **BY_HAND}.items()}
    printed = capsys.readouterr().out
    assert all(title in printed for title in shown)
    assert "helm-server --suite demo" in printed
